// Prints the closing summary of a run.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration } from '../base/time.ts';
import { plainText } from '../ir/text.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { costText } from './cost.ts';
import { runDuration } from './durations.ts';
import { cut, type Palette } from './row.ts';
import { type Counts, countsOf, resultOf, runStatus, shownSteps } from './status.ts';
import { agentsLeft, describeFailure, failedSteps, nextCommands } from './summary.ts';

const FAILURES_SHOWN_MAX = 5;
const MESSAGE_WIDTH = 160;

/** `work`: lines about the work of the run. */
export function summaryLines(state: RunState, palette: Palette, work: readonly string[] = []): readonly string[] {
  const failed = failedSteps(state);
  const left = agentsLeft(state);
  const next = nextCommands(state, failed);
  const lines = [headline(state, palette)];
  const result = resultOf(state);
  if (result !== null) lines.push(`${palette.dim('result:')} ${cut(sanitize(plainText(result)), MESSAGE_WIDTH)}`);
  for (const step of failed.slice(0, FAILURES_SHOWN_MAX)) {
    lines.push(`${palette.red('failed:')} ${palette.bold(shorten(step.id))} ${failureText(step)}`);
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

/** `3 done, 1 failed`: statuses that do not occur are left out. */
export function countsText(counts: Counts): string {
  const named = ORDER.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${status}`);
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
  const counts = countsText(countsOf(shownSteps(state)));
  return `${palette.bold(style(status.replace('_', ' ')))}${took}${spent}: ${counts}${because}`;
}

function failureText({ failure, attempt }: StepState): string {
  if (failure === null) return '';
  const [type, message] = describeFailure(failure);
  const attempts = attempt > 1 ? `, attempt ${attempt}` : '';
  return `(${type}${attempts}): ${cut(sanitize(message), MESSAGE_WIDTH)}`;
}

function agentsText(run: string, agents: readonly string[]): string {
  const [only = ''] = agents;
  if (agents.length > 1) return `${agents.length} agents, in their terminals: meow agents --run ${run}`;
  return `agent ${sanitize(only)}, in its terminal: meow attach ${run} ${sanitize(only)}`;
}
