// The closing summary of a run, which may not have ended yet: its failures, its agents that keep running, and what to
// type next. Data only; `summary-lines.ts` prints it.

import { errorType, type Failure } from '../ir/failure.ts';
import { exhaustedLimit } from '../kernel/prepare-step.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { gateCommand, openGates, runStatus, shownSteps } from './status.ts';

/** The last line that is not blank. */
export function lastLine(output: string | null): string | null {
  return output?.trimEnd().split('\n').at(-1)?.trim() || null;
}

/**
 * Steps that failed by themselves, not through their children. Handled failures only if there are no others and the run
 * still failed.
 */
export function failedSteps(state: RunState): readonly StepState[] {
  const failed = shownSteps(state)
    .filter(({ status, failure }) => status === 'failed' && failure?.kind !== 'child-failed')
    .toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  const broken = failed.filter(({ settlement }) => settlement === 'broken');
  return broken.length > 0 || state.end !== 'failed' ? broken : failed;
}

/** The step that a person wants to see first: the failed one, else one that runs, else the last; null without steps. */
export function mainStep(state: RunState): StepState | null {
  const [failed] = failedSteps(state);
  if (failed !== undefined) return failed;
  const steps = shownSteps(state);
  const running = steps.filter(({ status }) => status === 'running' || status === 'completing');
  const working = running.find(({ effect, definition }) => effect !== null || definition.act.kind === 'block');
  const started = steps.filter(({ startedAt }) => startedAt !== null);
  const last = started.toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0)).at(-1);
  return working ?? running[0] ?? last ?? steps[0] ?? null;
}

/**
 * The type is `exit 3` or that of the error. The last output explains the exit code of a command or the end of an agent;
 * other failures, such as a missing program, have a message that says enough.
 */
export function describeFailure({ kind, code, message, output }: Failure): readonly [type: string, message: string] {
  const last = lastLine(output);
  if (kind === 'exit-nonzero' || kind === 'signal') return [`exit ${code}`, last ?? message];
  const isCrash = (kind === 'spawn-failed' || kind === 'agent-crashed') && code !== 126 && code !== 127;
  const needsOutput = kind === 'protocol' || isCrash;
  return [errorType(kind), needsOutput && last !== null ? `${message}: ${last}` : message];
}

/** Agents that keep running in a terminal: a run does not kill its agents by itself, and they may be worth a look. */
export function agentsLeft({ phase, agents }: RunState): readonly string[] {
  if (phase !== 'ended') return [];
  return [...agents.values()]
    .filter(({ status, info }) => status === 'active' && info !== null && info.terminal !== null)
    .map(({ name }) => name);
}

/** Commands to type next. */
export function nextCommands(state: RunState, failed: readonly StepState[]): readonly string[] {
  const id = state.request?.id ?? null;
  if (id === null) return [];
  const status = runStatus(state);
  // An id with a leading dash would be read as a flag. Flags come before `--`.
  const run = id.startsWith('-') ? `-- ${id}` : id;
  const commands: string[] = [];
  // A step that was never started has no log.
  const withLog = failed.find(
    ({ attempt, failure }) => attempt > 0 && (failure?.kind !== 'not-started' || failure.output !== null),
  );
  if (withLog !== undefined) commands.push(`meow logs ${run} ${withLog.id}`);
  else if (failed[0] !== undefined) commands.push(`meow show ${run} ${failed[0].id}`);
  if (status === 'waiting' || status === 'paused')
    for (const gate of openGates(state)) commands.push(gateCommand(run, gate));
  const raised = limitFlags(state, failed).map((flag) => `${flag} N`);
  const args = run === id ? [id, ...raised] : [...raised, run];
  if (canResume(state)) commands.push(`meow resume ${args.join(' ')}`);
  return commands;
}

/** Flags that raise the limits which ended the run. */
function limitFlags(state: RunState, failed: readonly StepState[]): readonly string[] {
  const limit = runStatus(state) === 'paused' ? exhaustedLimit(state) : null;
  if (limit !== null) return [LIMIT_FLAGS[limit.what]];
  const messages = failed.flatMap(({ failure }) => (failure?.kind === 'expansion-limit' ? [failure.message] : []));
  return GROWTH_FLAGS.flatMap(([start, flag]) => (messages.some((text) => text.startsWith(start)) ? [flag] : []));
}

/** Not if the workflow itself ended the run as failed. */
function canResume(state: RunState): boolean {
  const status = runStatus(state);
  if (status !== 'failed') return status === 'stopped' || status === 'paused';
  const isOpen = (step: StepState): boolean => step.settlement === 'broken' || step.status === 'skipped';
  return state.steps.size === 0 || shownSteps(state).some(isOpen);
}

/** By the start of the message of a step that could not grow. */
const GROWTH_FLAGS = [
  ['max expansion depth', '--max-depth'],
  ['max steps', '--max-steps'],
] as const;

const LIMIT_FLAGS = { usd: '--budget-usd', tokens: '--budget-tokens', transitions: '--max-transitions' } as const;
