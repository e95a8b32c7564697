// The live picture of a run on a terminal: a header, the steps as a tree by what they grew from, and what a person has to
// do. It fits the size given: nothing wraps, and where there is no room for all steps those that run or failed stay,
// with what happened last and what comes next, and each branch sums up the rest.

import { formatDuration } from '../base/time.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { retryTimer } from '../kernel/state.ts';
import { countsText, lastLine } from './summary.ts';
import { DELIVERY_TEXTS, isDelivered } from './delivery.ts';
import type { Brush, Paint } from './paint.ts';
import type { Piece } from './row.ts';
import { brief, cut, padTo, row, tame, widthOf } from './row.ts';
import type { RunStatus } from './status.ts';
import { commandFor, countSteps, openGates, runStatus } from './status.ts';

export interface TreeOptions {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly width: number;
  /** Infinity shows every step. */
  readonly height: number;
  readonly paint: Paint;
  /** For terminals that have no other characters. */
  readonly ascii: boolean;
  /** Whether the closing words (summary.ts) follow below it, with all the warnings. */
  readonly closing: boolean;
}

export function treeLines(state: RunState, options: TreeOptions): readonly string[] {
  const look: Look = { ...options, ...(options.ascii ? ASCII : UNICODE) };
  const head = [header(state, look), ...remark(state, look)];
  const foot = footer(state, look);
  const room = options.height - head.length - foot.length;
  if (room < 1) return [...head, ...foot].slice(0, Math.max(0, options.height));
  return [...head, ...body(state, look, room), ...foot];
}

interface Marks {
  readonly glyphs: Readonly<Record<StepStatus | 'gate' | 'retry', string>>;
  readonly ellipsis: string;
  readonly dash: string;
}
type Look = TreeOptions & Marks;

const UNICODE: Marks = {
  glyphs: { pending: '·', running: '●', completing: '●', done: '✓', failed: '✗', skipped: '○', gate: '?', retry: '↻' },
  ellipsis: '…',
  dash: '—',
};
const ASCII: Marks = {
  glyphs: { pending: '.', running: '*', completing: '*', done: '+', failed: 'x', skipped: '-', gate: '?', retry: '~' },
  ellipsis: '...',
  dash: '-',
};

const GATES_SHOWN_MAX = 3;

function header(state: RunState, look: Look): string {
  const { paint, now } = look;
  const status = runStatus(state);
  const elapsed = state.startedAt === null ? '' : formatDuration((state.endedAt ?? now) - state.startedAt);
  return row(
    [
      { text: state.request?.id ?? 'run', brush: paint.bold },
      { text: ` ${tame(state.program.source.name)}`, brush: paint.dim },
      { text: `  ${status.replace('_', ' ')}`, brush: brushOfRun(status, paint) },
      { text: elapsed === '' ? '' : `  ${elapsed}`, brush: null },
      { text: `  ${countsText(countSteps(state))}`, brush: paint.dim },
    ],
    look.width,
    look.ellipsis,
  );
}

/** Why the run ends, while or after it does. */
function remark(state: RunState, look: Look): readonly string[] {
  if (state.reason === null) return [];
  const brush = state.end === 'failed' ? look.paint.red : look.paint.yellow;
  return [row([{ text: `  ${tame(state.reason)}`, brush }], look.width, look.ellipsis)];
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? '';
}

function footer(state: RunState, look: Look): readonly string[] {
  const { paint, width, ellipsis } = look;
  const lines: string[] = [];
  const gates = state.phase === 'running' ? openGates(state) : [];
  for (const gate of gates.slice(0, GATES_SHOWN_MAX)) {
    // What an agent asks is a whole screen.
    const prompt = gate.prompt === null ? '' : `: ${tame(firstLine(gate.prompt))}`;
    lines.push(
      row(
        [
          { text: `${look.glyphs.gate} ${tame(gate.id)}`, brush: paint.yellow },
          { text: ` waits for you${prompt}`, brush: null },
          { text: `  ${tame(commandFor(state.request?.id ?? 'ID', gate))}`, brush: paint.cyan },
        ],
        width,
        ellipsis,
      ),
    );
  }
  if (gates.length > GATES_SHOWN_MAX) {
    lines.push(row([{ text: `${ellipsis} ${gates.length - GATES_SHOWN_MAX} more gates`, brush: paint.dim }], width));
  }
  const warning = look.closing ? undefined : state.warnings.at(-1);
  if (warning !== undefined) {
    const more = state.warnings.length > 1 ? ` (and ${state.warnings.length - 1} before)` : '';
    lines.push(row([{ text: `warning: ${tame(warning)}${more}`, brush: paint.yellow }], width, ellipsis));
  }
  return lines;
}

/** A step with those that grew from it. */
interface Node {
  readonly step: StepState;
  readonly parent: Node | null;
  readonly depth: number;
  readonly children: Node[];
}

function body(state: RunState, look: Look, room: number): readonly string[] {
  const forest = forestOf(state);
  const shown = choose(state, forest, room);
  const lines: Line[] = [];
  const walk = (nodes: readonly Node[], depth: number): void => {
    let hidden: Node[] | null = null;
    let anyShown = false;
    for (const node of nodes) {
      if (shown !== null && !shown.has(node)) {
        hidden ??= [];
        hidden.push(node);
        continue;
      }
      anyShown = true;
      lines.push({ kind: 'step', node });
      walk(node.children, depth + 1);
    }
    if (hidden !== null && (anyShown || depth === 0)) lines.push({ kind: 'rest', depth, hidden });
  };
  walk(forest.roots, 0);
  const nameWidth = Math.min(
    lines.reduce(
      (widest, line) =>
        line.kind === 'step' ? Math.max(widest, nameOf(line.node).length + 2 * line.node.depth) : widest,
      0,
    ),
    Math.floor(look.width * 0.5),
  );
  return lines.map((line) => (line.kind === 'step' ? stepRow(state, line.node, nameWidth, look) : restRow(line, look)));
}

type Line =
  | { readonly kind: 'step'; readonly node: Node }
  | { readonly kind: 'rest'; readonly depth: number; readonly hidden: readonly Node[] };

interface Forest {
  readonly roots: readonly Node[];
  readonly nodes: readonly Node[];
}

function forestOf(state: RunState): Forest {
  const byId = new Map<string, Node>();
  const roots: Node[] = [];
  for (const step of state.steps.values()) {
    const parent = step.frame.owner === null ? null : (byId.get(step.frame.owner) ?? null);
    const node: Node = { step, parent, depth: parent === null ? 0 : parent.depth + 1, children: [] };
    byId.set(step.id, node);
    (parent === null ? roots : parent.children).push(node);
  }
  return { roots, nodes: [...byId.values()] };
}

/** Which steps have a row of their own; null: all. */
function choose(state: RunState, forest: Forest, room: number): ReadonlySet<Node> | null {
  if (forest.nodes.length <= room) return null;
  const ranked = byInterest(state, forest.nodes, room);
  for (let count = Math.min(room, ranked.length); count > 0; count--) {
    const shown = new Set<Node>();
    for (const chosen of ranked.slice(0, count)) {
      for (let node: Node | null = chosen; node !== null && !shown.has(node); node = node.parent) shown.add(node);
    }
    if (shown.size + restRows(forest, shown) <= room) return shown;
  }
  return new Set();
}

/** How many branches have to sum up something: those with children of both sorts, and the outermost. */
function restRows({ roots }: Forest, shown: ReadonlySet<Node>): number {
  let count = roots.every((node) => shown.has(node)) ? 0 : 1;
  const shownBelow = new Map<Node, number>();
  for (const { parent } of shown) if (parent !== null) shownBelow.set(parent, (shownBelow.get(parent) ?? 0) + 1);
  for (const [parent, below] of shownBelow) if (below < parent.children.length) count += 1;
  return count;
}

/** What runs, what failed, what waits to be tried again; then in turn what ended last and what may come next. */
function byInterest(state: RunState, nodes: readonly Node[], room: number): readonly Node[] {
  const running: Node[] = [];
  const failed: Node[] = [];
  const retrying: Node[] = [];
  const parents: Node[] = [];
  const over: Node[] = [];
  const pending: Node[] = [];
  for (const node of nodes) {
    const { step } = node;
    if (step.status === 'running') (step.effect === null ? parents : running).push(node);
    else if (step.status === 'failed') failed.push(node);
    else if (step.status === 'pending') {
      if (state.timers.has(retryTimer(step.id))) retrying.push(node);
      else if (pending.length < room) pending.push(node);
    } else over.push(node);
  }
  over.sort((a, b) => (b.step.finishedAt ?? 0) - (a.step.finishedAt ?? 0));
  const turns: Node[] = [];
  for (let index = 0; index < room; index++) {
    for (const list of [over, pending]) {
      const node = list[index];
      if (node !== undefined) turns.push(node);
    }
  }
  return [...running, ...failed, ...retrying, ...parents, ...turns];
}

function stepRow(state: RunState, node: Node, nameWidth: number, look: Look): string {
  const { step, depth } = node;
  const { paint, glyphs, width, ellipsis } = look;
  const retrying = step.status === 'pending' && state.timers.has(retryTimer(step.id));
  const sign = retrying ? 'retry' : step.status === 'running' && step.effect?.kind === 'gate' ? 'gate' : step.status;
  const brush = brushOfStep(sign, paint);
  const indent = '  '.repeat(depth);
  const name = cut(nameOf(node), Math.max(1, nameWidth - indent.length), ellipsis);
  const quiet = step.status === 'pending' || step.status === 'skipped';
  return row(
    [
      { text: `${indent}${glyphs[sign]} `, brush },
      { text: padTo(name, nameWidth - widthOf(indent)), brush: quiet && !retrying ? paint.dim : null },
      ...facts(state, node, look),
    ],
    width,
    ellipsis,
  ).trimEnd();
}

function facts(state: RunState, node: Node, look: Look): readonly Piece[] {
  const { step } = node;
  const { paint, now, dash } = look;
  const pieces: Piece[] = [];
  const add = (text: string, brush: Brush | null): void => {
    pieces.push({ text: `  ${text}`, brush });
  };
  const end = step.finishedAt ?? (step.status === 'running' ? now : null);
  if (step.startedAt !== null && end !== null && step.status !== 'pending' && step.attempt > 0) {
    add(formatDuration(end - step.startedAt), paint.dim);
  }
  if (node.children.length > 0) add(progress(node), paint.dim);
  if (step.attempt > 1) add(`attempt ${step.attempt}`, paint.yellow);
  if (step.agent !== null && step.status === 'running') add(tame(step.agent), paint.cyan);
  if (step.status === 'running' && step.delivery !== null && step.delivery !== 'accepted')
    add(DELIVERY_TEXTS[step.delivery], isDelivered(step.delivery) ? paint.dim : paint.yellow);
  if (step.dialog !== null) add(`asks: ${tame(step.dialog.name)}`, paint.yellow);
  if (step.queuedFor !== null) add(`waits for ${tame(step.queuedFor)}`, paint.cyan);
  if (step.stopping !== null) add(step.stopping === 'timeout' ? 'timed out, stopping' : 'stopping', paint.yellow);
  if (step.failure !== null && step.status !== 'skipped') {
    const said = lastLine(step.failure.output);
    const brush = step.settlement === 'broken' ? paint.red : paint.yellow;
    add(tame(step.failure.message), brush);
    if (said !== null) pieces.push({ text: ` ${dash} ${tame(said)}`, brush: paint.dim });
  }
  const retry = state.timers.get(retryTimer(step.id));
  if (retry !== undefined) add(`retry in ${formatDuration(retry.at - now)}`, paint.yellow);
  return pieces;
}

/** `3/8` of the steps right below it are over. */
function progress({ children }: Node): string {
  const over = children.filter(({ step }) => step.status !== 'pending' && step.status !== 'running').length;
  return `${over}/${children.length}`;
}

function restRow({ depth, hidden }: Extract<Line, { kind: 'rest' }>, { paint, ellipsis, width }: Look): string {
  const counts = { pending: 0, running: 0, done: 0, failed: 0, skipped: 0 };
  const count = (nodes: readonly Node[]): void => {
    for (const { step, children } of nodes) {
      counts[step.status === 'completing' ? 'running' : step.status] += 1;
      count(children);
    }
  };
  count(hidden);
  const statuses = Object.values(counts).filter((value) => value > 0).length;
  const total = Object.values(counts).reduce((sum, value) => sum + value, 0);
  const named = countsText(counts);
  const text = statuses === 1 ? named.replace(' ', ' more ') : `${total} more: ${named}`;
  return row([{ text: `${'  '.repeat(depth)}${ellipsis} ${text}`, brush: paint.dim }], width, ellipsis);
}

/** Its id, without what it shares with the step above it. */
function nameOf({ step, parent }: Node): string {
  const prefix = parent === null ? '' : `${parent.step.id}.`;
  return brief(step.id.startsWith(prefix) ? step.id.slice(prefix.length) : step.id);
}

function brushOfStep(sign: StepStatus | 'gate' | 'retry', paint: Paint): Brush {
  switch (sign) {
    case 'pending':
    case 'skipped':
      return paint.dim;
    case 'running':
    case 'completing':
      return paint.cyan;
    case 'done':
      return paint.green;
    case 'failed':
      return paint.red;
    case 'gate':
    case 'retry':
      return paint.yellow;
  }
}

function brushOfRun(status: RunStatus, paint: Paint): Brush {
  switch (status) {
    case 'done':
      return paint.green;
    case 'failed':
      return paint.red;
    case 'running':
      return paint.cyan;
    case 'pending':
    case 'waiting':
    case 'paused':
    case 'cleaning_up':
    case 'stopped':
      return paint.yellow;
  }
}
