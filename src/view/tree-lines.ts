// Draws the live tree of a run on a terminal: a header, the steps, and what a person has to do. It fits the given size:
// no line wraps.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration } from '../base/time.ts';
import type { Cost } from '../kernel/decision.ts';
import { verdictFor } from '../kernel/gates.ts';
import { NO_COST, type RunState, type StepState } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';
import { cut, padTo, type Palette, row, type Segment, type Style, widthOf } from './row.ts';
import {
  countsOf,
  gateCommand,
  openGates,
  pendingVerdicts,
  runStatus,
  type RunStatus,
  statusText,
  verdictText,
} from './status.ts';
import { DELIVERY_TEXTS, isDelivered, roundsText } from './step.ts';
import { countsText, lastOutput } from './summary.ts';
import { type HiddenRow, type StepRow, type StepSign, treeRows } from './tree.ts';
import { costText, runDuration, stepCost, stepDuration } from './usage.ts';

export interface TreeOptions {
  readonly now: number;
  readonly width: number;
  /** Infinity shows every step. */
  readonly height: number;
  readonly palette: Palette;
  /** For terminals without Unicode. */
  readonly ascii: boolean;
  /** The run should be running, but has no engine. */
  readonly interrupted: boolean;
  /** Why nothing happens, and what to do, if it is interrupted. Default: its engine is gone. */
  readonly cure?: string | undefined;
  /** The closing summary follows and lists all warnings. */
  readonly closing: boolean;
  /** Lines about the work that open gates decide on. */
  readonly work?: readonly string[];
}

export function treeLines(state: RunState, options: TreeOptions): readonly string[] {
  const ellipsis = options.ascii ? '...' : '…';
  const drawing: Drawing = {
    ...options,
    ellipsis,
    line: (...segments) => row(segments, options.width, ellipsis),
    cost: (cost) => (options.ascii ? costText(cost).replace('≥', '>=') : costText(cost)),
  };
  const head = [header(state, drawing), ...reasonLine(state, drawing), ...interruptedLine(state, drawing)];
  const foot = footer(state, drawing);
  const room = options.height - head.length - foot.length;
  if (room < 1) return [...head, ...foot].slice(0, Math.max(0, options.height));
  return [...head, ...body(state, drawing, room), ...foot];
}

interface Drawing extends TreeOptions {
  readonly ellipsis: string;
  readonly line: (...segments: readonly Segment[]) => string;
  readonly cost: (cost: Cost) => string;
}

const SIGNS: Readonly<
  Record<StepSign, { readonly glyph: string; readonly ascii: string; readonly style: keyof Palette }>
> = {
  pending: { glyph: '·', ascii: '.', style: 'dim' },
  running: { glyph: '●', ascii: '*', style: 'cyan' },
  completing: { glyph: '●', ascii: '*', style: 'cyan' },
  done: { glyph: '✓', ascii: '+', style: 'green' },
  failed: { glyph: '✗', ascii: 'x', style: 'red' },
  skipped: { glyph: '○', ascii: '-', style: 'dim' },
  rejected: { glyph: '⊘', ascii: '!', style: 'magenta' },
  false: { glyph: '◇', ascii: '/', style: 'cyan' },
  handled: { glyph: '↷', ascii: '^', style: 'yellow' },
  gate: { glyph: '?', ascii: '?', style: 'yellow' },
  retry: { glyph: '↻', ascii: '~', style: 'yellow' },
};

const FAILURE_STYLES: Readonly<Partial<Record<StepSign, keyof Palette>>> = { failed: 'red', rejected: 'magenta' };

const RUN_STYLES: Readonly<Partial<Record<RunStatus, keyof Palette>>> = {
  done: 'green',
  failed: 'red',
  running: 'cyan',
};

const GATES_SHOWN_MAX = 3;

function header(state: RunState, { palette, now, interrupted, line, cost: costOf }: Drawing): string {
  const status = runStatus(state);
  const duration = runDuration(state, now);
  const cost = costOf(state.cost);
  return line(
    { text: state.request?.id ?? 'run', style: palette.bold },
    { text: ` ${sanitize(state.program.source.name)}`, style: palette.dim },
    {
      text: `  ${statusText(status, interrupted)}`,
      style: palette[(interrupted ? undefined : RUN_STYLES[status]) ?? 'yellow'],
    },
    { text: duration === null ? '' : `  ${formatDuration(duration)}`, style: null },
    { text: cost === '' ? '' : `  ${cost}`, style: null },
    { text: `  ${countsText(countsOf(shownSteps(state)), state.end)}`, style: palette.dim },
  );
}

function reasonLine({ reason, end }: RunState, { palette, line }: Drawing): readonly string[] {
  if (reason === null) return [];
  return [line({ text: `  ${sanitize(reason)}`, style: end === 'failed' ? palette.red : palette.yellow })];
}

function interruptedLine({ request }: RunState, { palette, interrupted, cure, line }: Drawing): readonly string[] {
  if (!interrupted) return [];
  const text = cure ?? `its engine is gone; resume it: meow resume ${request?.id ?? 'ID'}`;
  return [line({ text: `  ${sanitize(text)}`, style: palette.yellow })];
}

function footer(state: RunState, drawing: Drawing): readonly string[] {
  const { palette, width, ellipsis, closing, line } = drawing;
  const gates = state.phase === 'running' || state.end === 'paused' ? openGates(state) : [];
  const lines = gates.slice(0, GATES_SHOWN_MAX).map((gate) => {
    // An agent's question may fill a whole screen.
    const prompt = gate.prompt === null ? '' : `: ${sanitize(gate.prompt.trim().split('\n')[0] ?? '')}`;
    return line(
      { text: `? ${sanitize(gate.id)}`, style: palette.yellow },
      { text: ` waits for you${prompt}`, style: null },
      { text: `  ${sanitize(gateCommand(state.request?.id ?? 'ID', gate))}`, style: palette.cyan },
    );
  });
  if (gates.length > GATES_SHOWN_MAX) {
    lines.push(row([{ text: `${ellipsis} ${gates.length - GATES_SHOWN_MAX} more gates`, style: palette.dim }], width));
  }
  if (gates.length > 0) for (const text of drawing.work ?? []) lines.push(line({ text, style: palette.dim }));
  if (drawing.interrupted || state.end === 'paused') lines.push(...verdictLines(state, drawing));
  const warning = closing ? undefined : state.warnings.at(-1);
  if (warning !== undefined) {
    const more = state.warnings.length > 1 ? ` (and ${state.warnings.length - 1} before)` : '';
    lines.push(line({ text: `warning: ${sanitize(warning)}${more}`, style: palette.yellow }));
  }
  return lines;
}

function verdictLines(state: RunState, { palette, ascii, line }: Drawing): readonly string[] {
  return pendingVerdicts(state).map(({ gate, verdict }) => {
    const sign = SIGNS[verdict.approved ? 'done' : 'rejected'];
    return line(
      { text: `${ascii ? sign.ascii : sign.glyph} ${sanitize(gate)}`, style: palette[sign.style] },
      { text: ` ${sanitize(verdictText(verdict))}; takes effect on resume`, style: null },
    );
  });
}

function body(state: RunState, drawing: Drawing, room: number): readonly string[] {
  const rows = treeRows(state, room);
  const widest = rows.reduce(
    (most, each) => (each.kind === 'step' ? Math.max(most, shorten(each.name).length + 2 * each.depth) : most),
    0,
  );
  const nameWidth = Math.min(widest, Math.floor(drawing.width * 0.5));
  return rows.map((each) =>
    each.kind === 'step' ? stepLine(state, each, nameWidth, drawing) : hiddenLine(each, drawing),
  );
}

function stepLine(state: RunState, step: StepRow, nameWidth: number, drawing: Drawing): string {
  const { palette, ellipsis, ascii } = drawing;
  const sign = SIGNS[step.sign];
  const indent = '  '.repeat(step.depth);
  const name = cut(shorten(step.name), Math.max(1, nameWidth - indent.length), ellipsis);
  return drawing
    .line(
      { text: `${indent}${ascii ? sign.ascii : sign.glyph} `, style: palette[sign.style] },
      { text: padTo(name, nameWidth - widthOf(indent)), style: sign.style === 'dim' ? palette.dim : null },
      ...facts(state, step, drawing),
    )
    .trimEnd();
}

function facts(state: RunState, row: StepRow, drawing: Drawing): readonly Segment[] {
  const { step, children, childrenFinished, retryAt } = row;
  const { palette, now, ascii } = drawing;
  const { status, attempt, failure } = step;
  const segments: Segment[] = [];
  const add = (text: string, style: Style | null): void => {
    segments.push({ text: `  ${text}`, style });
  };
  const isRunning = status === 'running';
  const duration = stepDuration(state, step, now);
  if (step.keptFrom !== null) add('kept', palette.dim);
  else if (duration !== null) add(formatDuration(duration), palette.dim);
  const cost = drawing.cost(stepCost(step) ?? NO_COST);
  if (cost !== '') add(cost, palette.dim);
  const rounds = roundsText(step);
  if (rounds !== null) add(rounds, palette.dim);
  else if (children > 0) add(`${childrenFinished}/${children}`, palette.dim);
  if (attempt > 1 && step.keptFrom === null) add(`attempt ${attempt}`, palette.yellow);
  if (isRunning && step.agent !== null) add(sanitize(step.agent), palette.cyan);
  if (isRunning && step.delivery !== null && step.delivery !== 'accepted')
    add(DELIVERY_TEXTS[step.delivery], isDelivered(step.delivery) ? palette.dim : palette.yellow);
  if (step.dialog !== null) add(`asks: ${sanitize(step.dialog.name)}`, palette.yellow);
  if (step.queuedFor !== null) add(`waits for ${sanitize(step.queuedFor)}`, palette.cyan);
  if (step.stopping !== null) add(step.stopping === 'timeout' ? 'timed out, stopping' : 'stopping', palette.yellow);
  if (failure !== null && status !== 'skipped') {
    add(sanitize(failure.message), palette[FAILURE_STYLES[row.sign] ?? 'yellow']);
    const output = lastOutput(failure);
    if (output !== null) segments.push({ text: ` ${ascii ? '-' : '—'} ${sanitize(output)}`, style: palette.dim });
  }
  if (row.sign === 'handled' && step.settlement === 'met') add(handlingText(step), palette.dim);
  // The message of a failure contains the verdict.
  const verdict = row.sign === 'rejected' && failure === null ? verdictFor(state, step) : null;
  if (verdict !== null) add(sanitize(verdictText(verdict)), palette.magenta);
  if (row.sign === 'false') add('condition false', palette.dim);
  if (retryAt !== null)
    add(`${isRunning ? 'next round' : 'retry'} in ${formatDuration(retryAt - now)}`, palette.yellow);
  return segments;
}

function handlingText({ definition: { onError } }: StepState): string {
  if (onError.kind === 'recover') return 'recovered';
  return onError.kind === 'continue' ? 'continued' : 'routed';
}

function hiddenLine({ depth, counts }: HiddenRow, { palette, ellipsis, line }: Drawing): string {
  const numbers = Object.values(counts).filter((count) => count > 0);
  const named = countsText(counts);
  const total = numbers.reduce((sum, count) => sum + count, 0);
  const text = numbers.length === 1 ? named.replace(' ', ' more ') : `${total} more: ${named}`;
  return line({ text: `${'  '.repeat(depth)}${ellipsis} ${text}`, style: palette.dim });
}
