// The closing summary of a run, which may not have ended yet: its failures, its agents that keep running, and what to
// type next.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration } from '../base/time.ts';
import { errorType, type Failure } from '../ir/failure.ts';
import { plainText } from '../ir/text.ts';
import { exhaustedLimit } from '../kernel/prepare-step.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { failedSteps, shownSteps, stepWithOutput } from './cause.ts';
import { cut, type Palette } from './row.ts';
import {
  type Counts,
  countsOf,
  describeCause,
  gateCommand,
  openGates,
  raiseFlag,
  resultOf,
  resumeArguments,
  runStatus,
} from './status.ts';
import { costText, runDuration } from './usage.ts';

const FAILURES_SHOWN_MAX = 5;
const MESSAGE_WIDTH = 160;

export function summaryLines(state: RunState, palette: Palette, work: readonly string[] = []): readonly string[] {
  const failed = failedSteps(state);
  const left = agentsLeft(state);
  const next = nextCommands(state, failed);
  const lines = [headline(state, palette)];
  const result = resultOf(state);
  if (result !== null) lines.push(`${palette.dim('result:')} ${cut(sanitize(plainText(result)), MESSAGE_WIDTH)}`);
  for (const step of failed.slice(0, FAILURES_SHOWN_MAX)) {
    lines.push(`${palette.red('failed:')} ${palette.bold(shorten(step.id))} ${failureText(state, step)}`);
  }
  if (failed.length > FAILURES_SHOWN_MAX)
    lines.push(palette.dim(`… ${failed.length - FAILURES_SHOWN_MAX} more failed`));
  for (const warning of state.warnings) lines.push(`${palette.yellow('warning:')} ${sanitize(warning)}`);
  if (state.request !== null && left.length > 0)
    lines.push(`${palette.dim('left:')} ${agentsText(state.request.id, left)}`);
  lines.push(...work);
  if (next.length > 0) lines.push(`${palette.dim('next:')} ${next.join(' · ')}`);
  return lines;
}

/** `3 done, 1 failed`: statuses that do not occur are left out. In a run that is done, all failures were handled. */
export function countsText(counts: Counts, end: RunState['end'] = null): string {
  const word = (status: keyof Counts): string => (status === 'failed' && end === 'done' ? 'failed (handled)' : status);
  const named = ORDER.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${word(status)}`);
  return named.length === 0 ? 'no steps' : named.join(', ');
}

const ORDER: readonly (keyof Counts)[] = ['running', 'done', 'failed', 'skipped', 'pending'];

function headline(state: RunState, palette: Palette): string {
  const { endedAt, reason } = state;
  const status = runStatus(state);
  const style = status === 'done' ? palette.green : status === 'failed' ? palette.red : palette.yellow;
  const took = endedAt === null ? '' : ` in ${formatDuration(runDuration(state, endedAt) ?? 0)}`;
  const cost = costText(state.cost);
  const spent = cost === '' ? '' : ` for ${cost}`;
  const isInterrupted = status === 'stopped' || status === 'paused';
  const because = reason !== null && isInterrupted ? ` (${sanitize(reason)})` : '';
  const counts = countsText(countsOf(shownSteps(state)), state.end);
  return `${palette.bold(style(status.replace('_', ' ')))}${took}${spent}: ${counts}${because}`;
}

function failureText(state: RunState, step: StepState): string {
  const { failure, attempt, status } = step;
  const cause = describeCause(state, step);
  const [type, message] =
    status === 'failed' && failure !== null ? describeFailure(failure) : [cause.type ?? status, cause.message];
  const attempts = attempt > 1 ? `, attempt ${attempt}` : '';
  return `(${type}${attempts}): ${cut(sanitize(message), MESSAGE_WIDTH)}`;
}

function agentsText(run: string, agents: readonly string[]): string {
  const [only = ''] = agents;
  if (agents.length > 1) return `${agents.length} agents, in their terminals: meow agents --run ${run}`;
  return `agent ${sanitize(only)}, in its terminal: meow attach ${run} ${sanitize(only)}`;
}

/** The last line of what a failed attempt printed; null if there is none, or if its message contains it. */
export function lastOutput({ output, message }: Pick<Failure, 'output' | 'message'>): string | null {
  const last = lastLine(output);
  return last === null || message.includes(last) ? null : last;
}

function lastLine(output: string | null): string | null {
  return output?.trimEnd().split('\n').at(-1)?.trim() || null;
}

/**
 * The type is `exit 3` or that of the error. The last output explains the exit code of a command or the end of an agent;
 * other failures, such as a missing program, have a message that says enough.
 */
function describeFailure({ kind, code, message, output }: Failure): readonly [type: string, message: string] {
  const last = lastLine(output);
  if (kind === 'exit-nonzero' || kind === 'signal') return [`exit ${code}`, last ?? message];
  const isCrash = (kind === 'spawn-failed' || kind === 'agent-crashed') && code !== 126 && code !== 127;
  const needsOutput = last !== null && !message.includes(last) && (kind === 'protocol' || isCrash);
  return [errorType(kind), needsOutput ? `${message}: ${last}` : message];
}

/** Agents that keep running in a terminal: a run does not kill its agents by itself, and they may be worth a look. */
function agentsLeft({ phase, agents }: RunState): readonly string[] {
  if (phase !== 'ended') return [];
  return [...agents.values()]
    .filter(({ status, info }) => status === 'active' && info !== null && info.terminal !== null)
    .map(({ name }) => name);
}

function nextCommands(state: RunState, failed: readonly StepState[]): readonly string[] {
  const id = state.request?.id ?? null;
  if (id === null) return [];
  const status = runStatus(state);
  // An id with a leading dash would be read as a flag. Flags come before `--`.
  const run = id.startsWith('-') ? `-- ${id}` : id;
  const commands: string[] = [];
  const [withLog] = failed.flatMap((step) => stepWithOutput(step) ?? []);
  const [first] = failed;
  if (withLog !== undefined) commands.push(`meow logs ${run} ${withLog.id}`);
  else if (first !== undefined) commands.push(`meow ${first.attempt === 0 ? 'show' : 'why'} ${run} ${first.id}`);
  if (status === 'waiting' || status === 'paused')
    for (const gate of openGates(state)) commands.push(gateCommand(run, gate));
  if (canResume(state)) commands.push(`meow resume ${resumeArguments(id, ...raisingFlags(state, failed))}`);
  return commands;
}

/** Flags that raise the limits which ended the run. */
function raisingFlags(state: RunState, failed: readonly StepState[]): readonly string[] {
  const isPaused = runStatus(state) === 'paused';
  const limit = isPaused ? exhaustedLimit(state) : null;
  if (limit !== null) return [`${LIMIT_FLAGS[limit.what]} N`];
  if (isPaused && state.pause !== null) return [raiseFlag(state.pause)];
  const messages = failed.flatMap(({ failure }) => (failure?.kind === 'expansion-limit' ? [failure.message] : []));
  return GROWTH_FLAGS.flatMap(([start, flag]) =>
    messages.some((text) => text.startsWith(start)) ? [`${flag} N`] : [],
  );
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
