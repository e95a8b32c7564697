// The closing summary of a run: its status and duration, counts, failures, warnings, and what to type next. Data only;
// `summary-lines.ts` prints it. A run that has not ended has one too.

import { errorType } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import { exhaustedLimit } from '../kernel/allowance.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import type { Counts, RunStatus } from './status.ts';
import { countSteps, gateCommand, openGates, runStatus, shownSteps } from './status.ts';

export interface RunSummary {
  readonly status: RunStatus;
  readonly durationMs: number | null;
  readonly counts: Counts;
  /** Why it was stopped or paused. */
  readonly reason: string | null;
  readonly failures: readonly SummaryFailure[];
  readonly warnings: readonly string[];
  /** Agents that keep running in a terminal after the end. */
  readonly agentsLeft: readonly string[];
  /** Commands to type next. */
  readonly next: readonly string[];
}

export interface SummaryFailure {
  readonly step: string;
  readonly attempt: number;
  /** `exit 3`, or the type of the error. */
  readonly type: string;
  readonly message: string;
}

export function runSummary(state: RunState): RunSummary {
  const { startedAt, endedAt, reason } = state;
  const status = runStatus(state);
  const failed = failedSteps(state);
  return {
    status,
    durationMs: startedAt === null || endedAt === null ? null : endedAt - startedAt,
    counts: countSteps(state),
    reason: status === 'stopped' || status === 'paused' ? reason : null,
    failures: failed.map(failureOf),
    warnings: [...state.warnings],
    agentsLeft: agentsLeft(state),
    next: nextCommands(state, status, failed),
  };
}

/** The last line that is not blank. */
export function lastLine(output: string | null): string | null {
  return output?.trimEnd().split('\n').at(-1)?.trim() || null;
}

/** Steps that failed by themselves, not through their children. Handled failures only if there are no others. */
function failedSteps(state: RunState): readonly StepState[] {
  const failed = shownSteps(state)
    .filter(({ status, failure }) => status === 'failed' && failure?.kind !== 'child-failed')
    .toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  const broken = failed.filter(({ settlement }) => settlement === 'broken');
  return broken.length > 0 ? broken : failed;
}

/** The last output explains the exit code of a command or the end of an agent; other failures have a message. */
function failureOf({ id, failure, attempt }: StepState): SummaryFailure {
  if (failure === null) return { step: id, attempt, type: '', message: '' };
  const isExit = failure.kind === 'exit-nonzero' || failure.kind === 'signal';
  const type = isExit ? `exit ${failure.code}` : errorType(failure.kind);
  const output = isExit || needsOutput(failure) ? lastLine(failure.output) : null;
  const message = output === null ? failure.message : isExit ? output : `${failure.message}: ${output}`;
  return { step: id, attempt, type, message };
}

/** Its message does not say enough without the last output. A missing program's does. */
function needsOutput({ kind, code }: Failure): boolean {
  if (kind === 'protocol') return true;
  return (kind === 'spawn-failed' || kind === 'agent-crashed') && code !== 126 && code !== 127;
}

/** A run does not kill its agents by itself; those in terminals may be worth a look. */
function agentsLeft({ phase, agents }: RunState): readonly string[] {
  if (phase !== 'ended') return [];
  return [...agents.values()]
    .filter(({ status, info }) => status === 'active' && info !== null && info.terminal !== null)
    .map(({ name }) => name);
}

function nextCommands(state: RunState, status: RunStatus, failed: readonly StepState[]): readonly string[] {
  const id = state.request?.id ?? null;
  if (id === null) return [];
  // An id with a leading dash would be read as a flag. Flags come before `--`.
  const run = id.startsWith('-') ? `-- ${id}` : id;
  const commands: string[] = [];
  const withLog = failed.find(({ attempt, failure }) => attempt > 0 && !hasNoLog(failure));
  if (withLog !== undefined) commands.push(`meow logs ${run} ${withLog.id}`);
  else if (failed[0] !== undefined) commands.push(`meow show ${run} ${failed[0].id}`);
  if (status === 'waiting' || status === 'paused')
    for (const gate of openGates(state)) commands.push(gateCommand(run, gate));
  const limit = status === 'paused' ? exhaustedLimit(state) : null;
  const raised = limit === null ? [] : [`${LIMIT_FLAGS[limit.what]} N`];
  const args = run === id ? [id, ...raised] : [...raised, run];
  if (canResume(state, status)) commands.push(`meow resume ${args.join(' ')}`);
  return commands;
}

/** Not if the workflow itself ended the run as failed. */
function canResume(state: RunState, status: RunStatus): boolean {
  if (status !== 'failed') return status === 'stopped' || status === 'paused';
  for (const step of shownSteps(state)) if (step.settlement === 'broken' || step.status === 'skipped') return true;
  return state.steps.size === 0;
}

/** A step that was never started has no log. */
function hasNoLog(failure: Failure | null): boolean {
  return failure?.kind === 'not-started' && failure.output === null;
}

const LIMIT_FLAGS = { usd: '--budget-usd', tokens: '--budget-tokens', transitions: '--max-transitions' } as const;
