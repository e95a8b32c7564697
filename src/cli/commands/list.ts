// `meow list`: all runs of the project, newest first. An ended run is shown by its store entry alone, since there may
// be thousands of runs with thousands of steps.

import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { formatDuration, formatMoment } from '../../base/time.ts';
import type { RunEntry, Store } from '../../app/runs.ts';
import type { RunStatus } from '../../view/status.ts';
import { moment, runStatus } from '../../view/status.ts';
import { cut, padTo } from '../../view/row.ts';
import { sanitize } from '../../view/sanitize.ts';
import { lineWidth, paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { readRun, storeOf, unlessRefused } from '../../app/runs.ts';
import { warn, printLine } from '../output.ts';

export interface ListOptions {
  readonly status?: string;
  readonly json?: true;
}

const STATUSES: readonly RunStatus[] = [
  'pending',
  'running',
  'waiting',
  'paused',
  'cleaning_up',
  'done',
  'failed',
  'stopped',
];

/** Files open at the same time. */
const AT_ONCE = 64;

interface Row {
  readonly id: string;
  readonly language: string | null;
  readonly source: string | null;
  readonly status: RunStatus | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly engine: { readonly pid: number } | null;
}

export async function list(options: ListOptions): Promise<number> {
  const wanted = checkStatus(options.status ?? null);
  const store = storeOf(findProject());
  const entries = await store.list();
  const all: Row[] = [];
  for (let at = 0; at < entries.length; at += AT_ONCE) {
    all.push(...(await Promise.all(entries.slice(at, at + AT_ONCE).map((entry) => rowOf(store, entry)))));
  }
  const rows = all.filter(({ status }) => wanted === null || status === wanted);
  if (options.json) {
    printLine(JSON.stringify(rows, null, 2));
    return EXIT.done;
  }
  if (rows.length === 0) {
    const what = wanted === null ? 'there are no runs here yet' : `no run is ${wanted}`;
    warn(`${what}${wanted === null ? '; start with: meow run FILE (an example: meow init)' : ''}`);
    return EXIT.done;
  }
  for (const line of table(rows)) printLine(line);
  return EXIT.done;
}

function checkStatus(wanted: string | null): RunStatus | null {
  if (wanted === null) return null;
  const known = STATUSES.find((status) => status === wanted);
  if (known !== undefined) return known;
  const guess = nearest(wanted, STATUSES);
  throw new UsageError(
    `unknown status ${JSON.stringify(wanted)}`,
    `${guess === null ? '' : `did you mean ${guess}? `}--status is one of ${STATUSES.join(', ')}`,
  );
}

async function rowOf(store: Store, entry: RunEntry): Promise<Row> {
  return endedRow(entry) ?? (await wholeRow(store, entry.id));
}

/** Null unless the run has ended: the outcome of others needs the whole journal. */
function endedRow({ id, source, startedAt, last }: RunEntry): Row | null {
  const end = last?.decisions.find((decision) => decision.kind === 'run-ended');
  if (last === null || end === undefined || source === null || startedAt === null) return null;
  const { language, name } = source;
  const ended_at = formatMoment(last.at);
  return { id, language, source: name, status: end.end, started_at: formatMoment(startedAt), ended_at, engine: null };
}

async function wholeRow(store: Store, id: string): Promise<Row> {
  const holder = await unlessRefused(store.holder(id), null);
  const engine = holder === null ? null : { pid: holder.pid };
  const run = await unlessRefused(readRun(store, id), null);
  // Unreadable runs are listed as well; `meow status` says what is wrong.
  if (run === null) {
    return { id, language: null, source: null, status: null, started_at: null, ended_at: null, engine };
  }
  const { state } = run;
  const { language, name } = state.program.source;
  const { startedAt, endedAt } = state;
  const status = runStatus(state);
  return { id, language, source: name, status, started_at: moment(startedAt), ended_at: moment(endedAt), engine };
}

function table(rows: readonly Row[]): readonly string[] {
  const palette = paletteFor(process.stdout);
  const now = Date.now();
  const cells = rows.map((row) => ({
    id: row.id,
    status: row.status?.replace('_', ' ') ?? 'unreadable',
    started: row.started_at === null ? '-' : `${formatDuration(now - Date.parse(row.started_at))} ago`,
    took: durationOf(row, now),
    source: `${sanitize(row.source ?? '')}${remark(row)}`,
  }));
  const width = (key: 'id' | 'status' | 'started' | 'took', head: string): number =>
    cells.reduce((widest, cell) => Math.max(widest, cell[key].length), head.length);
  const widths = {
    id: width('id', 'ID'),
    status: width('status', 'STATUS'),
    started: width('started', 'STARTED'),
    took: width('took', 'TOOK'),
  };
  const columns = lineWidth(process.stdout);
  const style = { done: palette.green, failed: palette.red, running: palette.cyan } as const;
  return [
    palette.dim(
      `${padTo('ID', widths.id)}  ${padTo('STATUS', widths.status)}  ${padTo('STARTED', widths.started)}  ${padTo('TOOK', widths.took)}  WORKFLOW`,
    ),
    ...cells.map((cell) => {
      const status = padTo(cell.status, widths.status);
      const painted = Object.hasOwn(style, cell.status) ? style[cell.status as keyof typeof style](status) : status;
      const rest = `${padTo(cell.started, widths.started)}  ${padTo(cell.took, widths.took)}  ${cell.source}`;
      return `${padTo(cell.id, widths.id)}  ${painted}  ${cut(rest, columns - widths.id - widths.status - 4)}`;
    }),
  ];
}

function durationOf({ started_at, ended_at }: Row, now: number): string {
  if (started_at === null) return '-';
  return formatDuration((ended_at === null ? now : Date.parse(ended_at)) - Date.parse(started_at));
}

function remark({ id, status, engine }: Row): string {
  if (status === null) return `  (see why: meow status ${id})`;
  const over = status === 'done' || status === 'failed' || status === 'stopped' || status === 'paused';
  return over || engine !== null ? '' : `  (no engine: meow resume ${id})`;
}
