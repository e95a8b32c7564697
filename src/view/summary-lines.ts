// Prints the closing summary of a run.

import { formatDuration } from '../base/time.ts';
import type { RunState } from '../kernel/state.ts';
import type { Palette } from './palette.ts';
import { cut } from './row.ts';
import { sanitize, shorten } from './sanitize.ts';
import type { Counts } from './status.ts';
import type { RunSummary, SummaryFailure } from './summary.ts';
import { runSummary } from './summary.ts';

const FAILURES_SHOWN_MAX = 5;
const MESSAGE_WIDTH = 160;

export function summaryLines(state: RunState, palette: Palette): readonly string[] {
  const summary = runSummary(state);
  const { failures, warnings, agentsLeft, next } = summary;
  const lines = [headline(summary, palette)];
  for (const failure of failures.slice(0, FAILURES_SHOWN_MAX)) {
    lines.push(`${palette.red('failed:')} ${palette.bold(shorten(failure.step))} ${failureText(failure)}`);
  }
  if (failures.length > FAILURES_SHOWN_MAX)
    lines.push(palette.dim(`… ${failures.length - FAILURES_SHOWN_MAX} more failed`));
  for (const warning of warnings) lines.push(`${palette.yellow('warning:')} ${sanitize(warning)}`);
  if (state.request !== null && agentsLeft.length > 0)
    lines.push(`${palette.dim('left:')} ${agentsText(state.request.id, agentsLeft)}`);
  if (next.length > 0) lines.push(`${palette.dim('next:')} ${next.join(' · ')}`);
  return lines;
}

/** `3 done, 1 failed`: statuses that do not occur are left out. */
export function countsText(counts: Counts): string {
  const named = ORDER.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${status}`);
  return named.length === 0 ? 'no steps' : named.join(', ');
}

const ORDER: readonly (keyof Counts)[] = ['running', 'done', 'failed', 'skipped', 'pending'];

function headline({ status, durationMs, counts, reason }: RunSummary, palette: Palette): string {
  const style = status === 'done' ? palette.green : status === 'failed' ? palette.red : palette.yellow;
  const took = durationMs === null ? '' : ` in ${formatDuration(durationMs)}`;
  const because = reason === null ? '' : ` (${sanitize(reason)})`;
  return `${palette.bold(style(status.replace('_', ' ')))}${took}: ${countsText(counts)}${because}`;
}

function failureText({ type, attempt, message }: SummaryFailure): string {
  if (type === '') return '';
  const attempts = attempt > 1 ? `, attempt ${attempt}` : '';
  return `(${type}${attempts}): ${cut(sanitize(message), MESSAGE_WIDTH)}`;
}

function agentsText(run: string, agents: readonly string[]): string {
  const [only = ''] = agents;
  if (agents.length > 1) return `${agents.length} agents, in their terminals: meow agents --workflow ${run}`;
  return `agent ${sanitize(only)}, in its terminal: meow attach ${run} ${sanitize(only)}`;
}
