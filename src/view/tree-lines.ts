// Draws the live tree of a run on a terminal: a header, the steps, and what a person has to do. It fits the given size:
// no line wraps.

import { formatDuration } from '../base/time.ts';
import type { RunState } from '../kernel/state.ts';
import { DELIVERY_TEXTS, isDelivered } from './delivery.ts';
import type { Palette, Style } from './palette.ts';
import type { Segment } from './row.ts';
import { cut, padTo, row, widthOf } from './row.ts';
import { sanitize, shorten } from './sanitize.ts';
import type { RunStatus } from './status.ts';
import { countSteps, gateCommand, openGates, runStatus } from './status.ts';
import { countsText } from './summary-lines.ts';
import type { HiddenRow, StepRow, StepSign } from './tree.ts';
import { treeRows } from './tree.ts';

export interface TreeOptions {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly width: number;
  /** Infinity shows every step. */
  readonly height: number;
  readonly palette: Palette;
  /** For terminals without Unicode. */
  readonly ascii: boolean;
  /** The closing summary follows and lists all warnings. */
  readonly closing: boolean;
}

export function treeLines(state: RunState, options: TreeOptions): readonly string[] {
  const drawing: Drawing = { ...options, ...(options.ascii ? ASCII : UNICODE) };
  const head = [header(state, drawing), ...reasonLine(state, drawing)];
  const foot = footer(state, drawing);
  const room = options.height - head.length - foot.length;
  if (room < 1) return [...head, ...foot].slice(0, Math.max(0, options.height));
  return [...head, ...body(state, drawing, room), ...foot];
}

interface Glyphs {
  readonly glyphs: Readonly<Record<StepSign, string>>;
  readonly ellipsis: string;
  readonly dash: string;
}
type Drawing = TreeOptions & Glyphs;

const UNICODE: Glyphs = {
  glyphs: { pending: '·', running: '●', completing: '●', done: '✓', failed: '✗', skipped: '○', gate: '?', retry: '↻' },
  ellipsis: '…',
  dash: '—',
};
const ASCII: Glyphs = {
  glyphs: { pending: '.', running: '*', completing: '*', done: '+', failed: 'x', skipped: '-', gate: '?', retry: '~' },
  ellipsis: '...',
  dash: '-',
};

const GATES_SHOWN_MAX = 3;

function header(state: RunState, { palette, now, width, ellipsis }: Drawing): string {
  const status = runStatus(state);
  const elapsed = state.startedAt === null ? '' : formatDuration((state.endedAt ?? now) - state.startedAt);
  return row(
    [
      { text: state.request?.id ?? 'run', style: palette.bold },
      { text: ` ${sanitize(state.program.source.name)}`, style: palette.dim },
      { text: `  ${status.replace('_', ' ')}`, style: styleOfRun(status, palette) },
      { text: elapsed === '' ? '' : `  ${elapsed}`, style: null },
      { text: `  ${countsText(countSteps(state))}`, style: palette.dim },
    ],
    width,
    ellipsis,
  );
}

/** Why the run ends or has ended. */
function reasonLine(state: RunState, { palette, width, ellipsis }: Drawing): readonly string[] {
  if (state.reason === null) return [];
  const style = state.end === 'failed' ? palette.red : palette.yellow;
  return [row([{ text: `  ${sanitize(state.reason)}`, style }], width, ellipsis)];
}

function footer(state: RunState, { palette, width, ellipsis, glyphs, closing }: Drawing): readonly string[] {
  const lines: string[] = [];
  const gates = state.phase === 'running' ? openGates(state) : [];
  for (const gate of gates.slice(0, GATES_SHOWN_MAX)) {
    // An agent's question may fill a whole screen.
    const prompt = gate.prompt === null ? '' : `: ${sanitize(gate.prompt.trim().split('\n')[0] ?? '')}`;
    lines.push(
      row(
        [
          { text: `${glyphs.gate} ${sanitize(gate.id)}`, style: palette.yellow },
          { text: ` waits for you${prompt}`, style: null },
          { text: `  ${sanitize(gateCommand(state.request?.id ?? 'ID', gate))}`, style: palette.cyan },
        ],
        width,
        ellipsis,
      ),
    );
  }
  if (gates.length > GATES_SHOWN_MAX) {
    lines.push(row([{ text: `${ellipsis} ${gates.length - GATES_SHOWN_MAX} more gates`, style: palette.dim }], width));
  }
  const warning = closing ? undefined : state.warnings.at(-1);
  if (warning !== undefined) {
    const more = state.warnings.length > 1 ? ` (and ${state.warnings.length - 1} before)` : '';
    lines.push(row([{ text: `warning: ${sanitize(warning)}${more}`, style: palette.yellow }], width, ellipsis));
  }
  return lines;
}

function body(state: RunState, drawing: Drawing, room: number): readonly string[] {
  const rows = treeRows(state, room);
  const widest = rows.reduce(
    (most, each) => (each.kind === 'step' ? Math.max(most, shorten(each.name).length + 2 * each.depth) : most),
    0,
  );
  const nameWidth = Math.min(widest, Math.floor(drawing.width * 0.5));
  return rows.map((each) => (each.kind === 'step' ? stepLine(each, nameWidth, drawing) : hiddenLine(each, drawing)));
}

function stepLine(step: StepRow, nameWidth: number, drawing: Drawing): string {
  const { palette, glyphs, width, ellipsis } = drawing;
  const indent = '  '.repeat(step.depth);
  const name = cut(shorten(step.name), Math.max(1, nameWidth - indent.length), ellipsis);
  const isQuiet = step.sign === 'pending' || step.sign === 'skipped';
  return row(
    [
      { text: `${indent}${glyphs[step.sign]} `, style: styleOfSign(step.sign, palette) },
      { text: padTo(name, nameWidth - widthOf(indent)), style: isQuiet ? palette.dim : null },
      ...facts(step, drawing),
    ],
    width,
    ellipsis,
  ).trimEnd();
}

function facts(step: StepRow, { palette, now, dash }: Drawing): readonly Segment[] {
  const segments: Segment[] = [];
  const add = (text: string, style: Style | null): void => {
    segments.push({ text: `  ${text}`, style });
  };
  const end = step.finishedAt ?? (step.status === 'running' ? now : null);
  if (step.startedAt !== null && end !== null) add(formatDuration(end - step.startedAt), palette.dim);
  if (step.children > 0) add(`${step.childrenFinished}/${step.children}`, palette.dim);
  if (step.attempt > 1) add(`attempt ${step.attempt}`, palette.yellow);
  if (step.agent !== null) add(sanitize(step.agent), palette.cyan);
  if (step.delivery !== null && step.delivery !== 'accepted')
    add(DELIVERY_TEXTS[step.delivery], isDelivered(step.delivery) ? palette.dim : palette.yellow);
  if (step.dialog !== null) add(`asks: ${sanitize(step.dialog)}`, palette.yellow);
  if (step.queuedFor !== null) add(`waits for ${sanitize(step.queuedFor)}`, palette.cyan);
  if (step.stopping !== null) add(step.stopping === 'timeout' ? 'timed out, stopping' : 'stopping', palette.yellow);
  if (step.failure !== null) {
    const { message, lastLine, isHandled } = step.failure;
    add(sanitize(message), isHandled ? palette.yellow : palette.red);
    if (lastLine !== null) segments.push({ text: ` ${dash} ${sanitize(lastLine)}`, style: palette.dim });
  }
  if (step.retryAt !== null) add(`retry in ${formatDuration(step.retryAt - now)}`, palette.yellow);
  return segments;
}

function hiddenLine({ depth, counts }: HiddenRow, { palette, ellipsis, width }: Drawing): string {
  const statuses = Object.values(counts).filter((value) => value > 0).length;
  const total = Object.values(counts).reduce((sum, value) => sum + value, 0);
  const named = countsText(counts);
  const text = statuses === 1 ? named.replace(' ', ' more ') : `${total} more: ${named}`;
  return row([{ text: `${'  '.repeat(depth)}${ellipsis} ${text}`, style: palette.dim }], width, ellipsis);
}

function styleOfSign(sign: StepSign, palette: Palette): Style {
  switch (sign) {
    case 'pending':
    case 'skipped':
      return palette.dim;
    case 'running':
    case 'completing':
      return palette.cyan;
    case 'done':
      return palette.green;
    case 'failed':
      return palette.red;
    case 'gate':
    case 'retry':
      return palette.yellow;
  }
}

function styleOfRun(status: RunStatus, palette: Palette): Style {
  switch (status) {
    case 'done':
      return palette.green;
    case 'failed':
      return palette.red;
    case 'running':
      return palette.cyan;
    case 'pending':
    case 'waiting':
    case 'paused':
    case 'cleaning_up':
    case 'stopped':
      return palette.yellow;
  }
}
