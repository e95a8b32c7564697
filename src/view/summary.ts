// The closing words of a run: how it ended and after how long, what became of its steps, which failed and how, and what
// to type next. For a run that has not ended it tells how things stand.

import { errorType } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import { exhaustedLimit } from '../kernel/allowance.ts';
import { formatDuration } from '../base/time.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import type { Paint } from './paint.ts';
import { brief, cut, tame } from './row.ts';
import type { Counts, RunStatus } from './status.ts';
import { commandFor, countSteps, openGates, runStatus } from './status.ts';

const FAILED_SHOWN_MAX = 5;
const MESSAGE_WIDTH = 160;

/** One line or a few. */
export function census(state: RunState, paint: Paint): readonly string[] {
  const status = runStatus(state);
  const lines = [headline(state, status, paint)];
  const failed = failedSteps(state);
  for (const step of failed.slice(0, FAILED_SHOWN_MAX)) {
    lines.push(`${paint.red('failed:')} ${paint.bold(brief(step.id))} ${failureText(step)}`);
  }
  if (failed.length > FAILED_SHOWN_MAX) lines.push(paint.dim(`… ${failed.length - FAILED_SHOWN_MAX} more failed`));
  for (const warning of state.warnings) lines.push(`${paint.yellow('warning:')} ${tame(warning)}`);
  const left = agentsLeft(state);
  if (left !== null) lines.push(`${paint.dim('left:')} ${left}`);
  const next = nextCommands(state, status, failed);
  if (next.length > 0) lines.push(`${paint.dim('next:')} ${next.join(' · ')}`);
  return lines;
}

/** `3 done, 1 failed`: what there is none of is not named. */
export function countsText(counts: Counts): string {
  const named = ORDER.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${status}`);
  return named.length === 0 ? 'no steps' : named.join(', ');
}

/** The last line that says something. */
export function lastLine(output: string | null): string | null {
  return output?.trimEnd().split('\n').at(-1)?.trim() || null;
}

const ORDER: readonly (keyof Counts)[] = ['running', 'done', 'failed', 'skipped', 'pending'];

function headline(state: RunState, status: RunStatus, paint: Paint): string {
  const { startedAt, endedAt, reason } = state;
  const brush = status === 'done' ? paint.green : status === 'failed' ? paint.red : paint.yellow;
  const took = startedAt === null || endedAt === null ? '' : ` in ${formatDuration(endedAt - startedAt)}`;
  const because = reason === null || (status !== 'stopped' && status !== 'paused') ? '' : ` (${tame(reason)})`;
  return `${paint.bold(brush(status.replace('_', ' ')))}${took}: ${countsText(countSteps(state))}${because}`;
}

/** Those that failed by themselves, for the others only follow from them, and among these those nobody made good for. */
function failedSteps(state: RunState): readonly StepState[] {
  const failed = [...state.steps.values()]
    .filter(({ status, failure }) => status === 'failed' && failure?.kind !== 'child-failed')
    .toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  const broken = failed.filter(({ settlement }) => settlement === 'broken');
  return broken.length > 0 ? broken : failed;
}

function failureText({ failure, attempt }: StepState): string {
  if (failure === null) return '';
  const attempts = attempt > 1 ? `, attempt ${attempt}` : '';
  // What a command said last explains its status, and what an agent said its end; other failures explain themselves.
  const byStatus = failure.kind === 'exit-nonzero' || failure.kind === 'signal';
  const how = byStatus ? `exit ${failure.code}` : errorType(failure.kind);
  const said = byStatus || endsUnexplained(failure) ? lastLine(failure.output) : null;
  const told = said === null ? failure.message : byStatus ? said : `${failure.message}: ${said}`;
  return `(${how}${attempts}): ${cut(tame(told), MESSAGE_WIDTH)}`;
}

/** A run that is over does not end its agents by itself; those in terminals may be worth a look. */
function agentsLeft({ phase, agents, request }: RunState): string | null {
  if (phase !== 'ended') return null;
  const left = [...agents.values()].filter(
    ({ status, info }) => status === 'active' && info !== null && info.terminal !== null,
  );
  const [only] = left;
  if (only === undefined || request === null) return null;
  if (left.length > 1) return `${left.length} agents, in their terminals: meow agents --workflow ${request.id}`;
  return `agent ${tame(only.name)}, in its terminal: meow attach ${request.id} ${tame(only.name)}`;
}

/** That a program was not there is said in full; of what was to say what follows, what it said instead tells most. */
function endsUnexplained({ kind, code }: Failure): boolean {
  if (kind === 'protocol') return true;
  return (kind === 'spawn-failed' || kind === 'agent-crashed') && code !== 126 && code !== 127;
}

function nextCommands(state: RunState, status: RunStatus, failed: readonly StepState[]): readonly string[] {
  const id = state.request?.id ?? null;
  if (id === null) return [];
  // Else it would be taken for a flag; flags stand before it then.
  const run = id.startsWith('-') ? `-- ${id}` : id;
  const commands: string[] = [];
  const spoke = failed.find(({ attempt, failure }) => attempt > 0 && !saidNothing(failure));
  if (spoke !== undefined) commands.push(`meow logs ${run} ${spoke.id}`);
  else if (failed[0] !== undefined) commands.push(`meow show ${run} ${failed[0].id}`);
  if (status === 'waiting' || status === 'paused')
    for (const gate of openGates(state)) commands.push(commandFor(run, gate));
  const spent = status === 'paused' ? exhaustedLimit(state) : null;
  const more = spent === null ? [] : [`${MORE[spent.what]} N`];
  const named = run === id ? [id, ...more] : [...more, run];
  if (canGoOn(state, status)) commands.push(`meow resume ${named.join(' ')}`);
  return commands;
}

/** Not where a workflow has come to an end of its own, and failed by it. */
function canGoOn(state: RunState, status: RunStatus): boolean {
  if (status !== 'failed') return status === 'stopped' || status === 'paused';
  for (const step of state.steps.values()) if (step.settlement === 'broken' || step.status === 'skipped') return true;
  return state.steps.size === 0;
}

/** What was never started has no logs. */
function saidNothing(failure: Failure | null): boolean {
  return failure?.kind === 'not-started' && failure.output === null;
}

/** How more is allowed. */
const MORE = { usd: '--budget-usd', tokens: '--budget-tokens', transitions: '--max-transitions' } as const;
