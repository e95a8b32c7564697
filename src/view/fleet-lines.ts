// Draws the fleet as rows of a terminal: what needs a person, the runs, and the agents. No row is wider than the terminal: a
// narrow one has fewer columns, not fewer runs.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration, parseMoment } from '../base/time.ts';
import type { FleetAgent, FleetNeed, FleetRun, FleetView } from './fleet.ts';
import { hasEnded } from './fleet.ts';
import { counted, cut, padTo, type Palette, row, type Segment, widthOf } from './row.ts';
import type { ShownRunStatus } from './shown-status.ts';
import { costText } from './usage.ts';

export interface FleetDrawing {
  /** In milliseconds since 1970. */
  readonly now: number;
  readonly width: number;
  readonly palette: Palette;
  /** For terminals without Unicode. */
  readonly ascii: boolean;
  /** `all projects`, or the names of the chosen ones. */
  readonly scope: string;
  /** Time of day, for the corner; null leaves it out. */
  readonly clock: string | null;
  /** The run whose row is marked; null marks none. */
  readonly selected: FleetRun | null;
}

/** `run`: the row stands for this run. */
export interface FleetRow {
  readonly text: string;
  readonly run: FleetRun | null;
}

export function fleetRows(view: FleetView, drawing: FleetDrawing): readonly FleetRow[] {
  const plain = (text: string): FleetRow => ({ text, run: null });
  const rows: FleetRow[] = [plain(headLine(view, drawing))];
  if (view.needs.length > 0)
    rows.push(plain(''), plain(title('Needs you', drawing)), ...needRows(view, drawing).map(plain));
  if (view.runs.length > 0) rows.push(plain(''), plain(title('Runs', drawing)), ...runRows(view, drawing));
  if (view.agents.length > 0)
    rows.push(plain(''), plain(title('Agents', drawing)), ...agentRows(view, drawing).map(plain));
  return rows;
}

const SIGNS: Readonly<
  Record<
    ShownRunStatus | FleetAgent['shown'],
    { readonly glyph: string; readonly ascii: string; readonly style: keyof Palette | null }
  >
> = {
  waiting: { glyph: '◆', ascii: '?', style: 'yellow' },
  running: { glyph: '●', ascii: '*', style: 'cyan' },
  cleaning_up: { glyph: '●', ascii: '*', style: 'cyan' },
  active: { glyph: '●', ascii: '*', style: 'cyan' },
  starting: { glyph: '●', ascii: '*', style: 'cyan' },
  parked: { glyph: '‖', ascii: '|', style: 'magenta' },
  failed: { glyph: '✗', ascii: 'x', style: 'red' },
  unreadable: { glyph: '✗', ascii: 'x', style: 'red' },
  gone: { glyph: '✗', ascii: 'x', style: 'red' },
  done: { glyph: '✓', ascii: '+', style: 'green' },
  paused: { glyph: '○', ascii: 'o', style: null },
  interrupted: { glyph: '○', ascii: 'o', style: null },
  stopped: { glyph: '○', ascii: 'o', style: 'dim' },
  pending: { glyph: '○', ascii: 'o', style: 'dim' },
  idle: { glyph: '○', ascii: 'o', style: 'dim' },
};

function sign(shown: keyof typeof SIGNS, { ascii, palette }: FleetDrawing): Segment {
  const { glyph, ascii: plain, style } = SIGNS[shown];
  return { text: ` ${ascii ? plain : glyph} `, style: style && palette[style] };
}

function line(drawing: FleetDrawing, ...segments: readonly Segment[]): string {
  return row(segments, drawing.width, ellipsisOf(drawing)).trimEnd();
}

function ellipsisOf({ ascii }: FleetDrawing): string {
  return ascii ? '...' : '…';
}

function cell(text: string, width: number, drawing: FleetDrawing, style: Segment['style'] = null): Segment {
  return { text: padTo(cut(text, width, ellipsisOf(drawing)), width), style };
}

function cellRight(text: string, width: number, drawing: FleetDrawing, style: Segment['style'] = null): Segment {
  const shown = cut(text, width, ellipsisOf(drawing));
  return { text: ' '.repeat(width - widthOf(shown)) + shown, style };
}

function headLine({ runs, needs, agents }: FleetView, drawing: FleetDrawing): string {
  const { palette, scope, clock, width, ascii } = drawing;
  const dot = ascii ? ' - ' : ' · ';
  const spent = sumCosts(runs, ascii);
  const facts = [counted(runs.length, 'run'), ...(agents.length > 0 ? [counted(agents.length, 'agent')] : [])];
  if (spent !== '') facts.push(spent);
  const needed = needs.length === 0 ? '' : needs.length === 1 ? '1 needs you' : `${needs.length} need you`;
  const text = `${needed}${needed === '' ? '' : dot}${facts.join(dot)}`;
  const corner = clock !== null && width >= CLOCK_WIDTH_MIN ? clock : '';
  const left = `meow  ${sanitize(scope)}   `;
  const gap = Math.max(0, width - widthOf(left) - widthOf(text) - widthOf(corner));
  return line(
    drawing,
    { text: 'meow', style: palette.bold },
    { text: `  ${sanitize(scope)}   `, style: palette.dim },
    { text: needed, style: palette.yellow },
    { text: `${text.slice(needed.length)}${corner === '' ? '' : ' '.repeat(gap)}`, style: null },
    { text: corner, style: palette.dim },
  );
}

const CLOCK_WIDTH_MIN = 72;

function sumCosts(runs: readonly FleetRun[], ascii: boolean): string {
  const known = runs.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  const usd = known.reduce((sum, { known_usd }) => sum + known_usd, 0);
  if (usd === 0) return '';
  return costOf({ usd, tokens: 0, unpriced: known.some(({ unknown_turns }) => unknown_turns > 0) ? 1 : 0 }, ascii);
}

function costOf(cost: Parameters<typeof costText>[0], ascii: boolean): string {
  return ascii ? costText(cost).replace('≥', '>=') : costText(cost);
}

function title(name: string, { palette, width, ascii }: FleetDrawing): string {
  return palette.dim(`${name} ${(ascii ? '-' : '─').repeat(Math.max(0, width - name.length - 1))}`);
}

function needRows({ needs }: FleetView, drawing: FleetDrawing): readonly string[] {
  const { palette, now, width } = drawing;
  const gateWidth = columnWidth(
    needs.map(({ gate }) => shorten(gate)),
    Math.min(24, Math.floor(width * 0.3)),
  );
  const runWidth = columnWidth(
    needs.map(({ run }) => run),
    Math.min(24, Math.floor(width * 0.25)),
  );
  return needs.map((need) => {
    const since = need.opened_at === null ? '' : formatDuration(now - (parseMoment(need.opened_at) ?? now));
    const room = width - gateWidth - runWidth - 3 - 2 - 2 - 7;
    return line(
      drawing,
      sign('waiting', drawing),
      cell(shorten(need.gate), gateWidth, drawing, palette.yellow),
      cell(`  ${need.run}`, runWidth + 2, drawing),
      cell(`  ${promptOf(need)}`, Math.max(0, room) + 2, drawing),
      cellRight(since, 7, drawing),
    );
  });
}

function promptOf({ prompt, agent, interrupted }: FleetNeed): string {
  const first = (prompt ?? '').trim().split('\n')[0] ?? '';
  const said = sanitize(agent === null ? first : `${agent}: ${first}`);
  return interrupted ? `${said} (no engine)` : said;
}

function columnWidth(texts: readonly string[], max: number): number {
  return texts.reduce((widest, text) => Math.max(widest, Math.min(max, widthOf(text))), 1);
}

const PROJECT_WIDTH_MIN = 100;
const BAR_WIDTH_MIN = 110;
const COUNT_WIDTH_MIN = 70;
const COST_WIDTH_MIN = 80;
const TOOK_WIDTH = 7;

function runRows({ runs, needs }: FleetView, drawing: FleetDrawing): readonly FleetRow[] {
  const { palette, width, now, ascii } = drawing;
  const waiting = new Set(needs.map(({ project, run }) => `${project}/${run}`));
  const idWidth = columnWidth(
    runs.map(({ id }) => id),
    Math.min(30, Math.floor(width * 0.3)),
  );
  const several = new Set(runs.map(({ project }) => project)).size > 1;
  const projectWidth =
    several && width >= PROJECT_WIDTH_MIN
      ? columnWidth(
          runs.map(({ project }) => sanitize(project)),
          16,
        ) + 2
      : 0;
  const barWidth = width >= BAR_WIDTH_MIN ? Math.min(22, Math.floor(width * 0.14)) : 0;
  const counts = runs.map(countText);
  const countWidth = width >= COUNT_WIDTH_MIN ? columnWidth(counts, 11) + 2 : 0;
  const costs = runs.map((run) => runCost(run, ascii));
  const costWidth = width >= COST_WIDTH_MIN && costs.some((cost) => cost !== '') ? columnWidth(costs, 18) + 2 : 0;
  const taken = 3 + idWidth + projectWidth + (barWidth === 0 ? 0 : barWidth + 2) + countWidth + TOOK_WIDTH + costWidth;
  const room = Math.max(0, width - taken);
  return runs.map((run, index) => {
    const shown = waiting.has(`${run.project}/${run.id}`) && run.shown !== 'interrupted' ? 'waiting' : run.shown;
    const isSelected = run === drawing.selected;
    const segments = [
      ...(isSelected ? marked(sign(shown, drawing), drawing) : [sign(shown, drawing)]),
      cell(run.id, idWidth, drawing, hasEnded(run.status) ? null : palette.bold),
      cell(`  ${sanitize(run.project)}`, projectWidth, drawing, palette.dim),
      ...(barWidth === 0 ? [] : [{ text: '  ', style: null }, ...bar(run, shown, barWidth, drawing)]),
      cellRight(counts[index] ?? '', countWidth, drawing, palette.dim),
      cell(`  ${whatText(run)}`, room, drawing, run.status === 'failed' ? palette.red : null),
      cellRight(tookText(run, now), TOOK_WIDTH, drawing, palette.dim),
      cellRight(costs[index] ?? '', costWidth, drawing),
    ];
    const text = isSelected ? palette.inverse(row(segments, width, ellipsisOf(drawing))) : line(drawing, ...segments);
    return { text, run };
  });
}

/** Without colours, a mark shows which row is selected. */
function marked({ text, style }: Segment, { ascii, palette }: FleetDrawing): readonly Segment[] {
  return [
    { text: ascii ? '>' : '›', style: palette.bold },
    { text: text.slice(1), style },
  ];
}

function countText({ counts }: FleetRun): string {
  if (counts === null) return '';
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return `${counts.done + counts.skipped}/${total}`;
}

/** What it does, or how it ended. */
function whatText(run: FleetRun): string {
  if (run.problem !== null) return `unreadable: ${sanitize(run.problem.message)}`;
  if (run.error !== null) {
    const where = run.error.step === null ? '' : ` at ${shorten(run.error.step)}`;
    return `failed${where}: ${sanitize(run.error.message)}`;
  }
  return run.now ?? (run.status ?? '').replace('_', ' ');
}

function tookText({ duration_ms, clock_from }: FleetRun, now: number): string {
  const ms = duration_ms ?? (clock_from === null ? null : now - (parseMoment(clock_from) ?? now));
  return ms === null ? '' : formatDuration(ms);
}

/** `$2.41 of 10`. */
function runCost({ cost, budget }: FleetRun, ascii: boolean): string {
  if (cost === null) return '';
  const { known_usd: usd, tokens, unknown_turns } = cost;
  const text = costOf({ usd, tokens: tokens ?? 0, unpriced: unknown_turns }, ascii);
  const limit = budget?.usd ?? null;
  return limit === null ? text : `${text === '' ? '$0' : text} of ${limit}`;
}

/** Done, running or waiting, failed, and the rest; what occurs has at least one column. */
function bar({ counts }: FleetRun, shown: ShownRunStatus, width: number, drawing: FleetDrawing): readonly Segment[] {
  const { palette, ascii } = drawing;
  const total = counts === null ? 0 : Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (counts === null || total === 0) return [{ text: ' '.repeat(width), style: null }];
  const now = shown === 'waiting' ? palette.yellow : shown === 'parked' ? palette.magenta : palette.cyan;
  const parts: readonly (readonly [count: number, style: Segment['style'], glyph: string])[] = [
    [counts.done, palette.green, ascii ? '=' : '━'],
    [counts.failed, palette.red, ascii ? 'x' : '━'],
    [counts.running, now, ascii ? '*' : '━'],
    [counts.skipped + counts.pending, palette.dim, ascii ? '-' : '─'],
  ];
  const columns = shares(
    parts.map(([count]) => count),
    width,
  );
  return parts.map(([, style, glyph], index) => ({ text: glyph.repeat(columns[index] ?? 0), style }));
}

/** Splits the width in proportion. */
function shares(counts: readonly number[], width: number): readonly number[] {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const columns = counts.map((count) => (count === 0 ? 0 : Math.max(1, Math.floor((count / total) * width))));
  const used = columns.reduce((sum, count) => sum + count, 0);
  const largest = counts.indexOf(Math.max(...counts));
  return columns.map((count, index) => (index === largest ? count + width - used : count));
}

const AGENT_COLUMN_WIDTH = 56;
/** The others are counted. */
const AGENTS_SHOWN_MAX = 12;

function agentRows({ agents }: FleetView, drawing: FleetDrawing): readonly string[] {
  const { palette, width } = drawing;
  const shown = agents.toSorted((a, b) => agentRank(a) - agentRank(b)).slice(0, AGENTS_SHOWN_MAX);
  const columns = Math.max(1, Math.min(3, Math.floor(width / AGENT_COLUMN_WIDTH)));
  const each = Math.floor(width / columns);
  const idWidth = columnWidth(
    shown.map(({ id }) => sanitize(id)),
    16,
  );
  const adapterWidth = columnWidth(
    shown.map(({ adapter }) => sanitize(adapter ?? '')),
    10,
  );
  const rows: string[] = [];
  const height = Math.ceil(shown.length / columns);
  for (let at = 0; at < height; at++) {
    const segments: Segment[] = [];
    for (let column = 0; column < columns; column++) {
      const agent = shown[at + column * height];
      if (agent === undefined) continue;
      segments.push(
        sign(agent.shown, drawing),
        cell(sanitize(agent.id), idWidth, drawing),
        cell(`  ${sanitize(agent.adapter ?? '')}`, adapterWidth + 2, drawing, palette.dim),
        cell(`  ${agentText(agent)}`, Math.max(0, each - idWidth - adapterWidth - 5), drawing),
      );
    }
    rows.push(line(drawing, ...segments));
  }
  const more = agents.length - shown.length;
  if (more > 0) rows.push(line(drawing, { text: `   ${more} more`, style: palette.dim }));
  return rows;
}

const AGENT_RANKS: Readonly<Partial<Record<FleetAgent['shown'], number>>> = {
  waiting: 0,
  active: 1,
  starting: 2,
  parked: 3,
  idle: 4,
};

function agentRank({ shown }: FleetAgent): number {
  return AGENT_RANKS[shown] ?? 5;
}

function agentText({ shown, step, run }: FleetAgent): string {
  const where = step === null ? run : `${run} ${shorten(step)}`;
  if (shown === 'waiting') return `asks you: ${where}`;
  return shown === 'active' ? where : `${shown}: ${where}`;
}
