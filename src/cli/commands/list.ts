// `meow list`: all runs of the project, newest first. An ended run is shown by its store entry alone, since there may
// be thousands of runs with thousands of steps.

import { chosenStore, type StoreChoice } from '../../app/choose-store.ts';
import { readRun, type RunEntry, type Store, unlessRefused } from '../../app/runs.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { sanitize } from '../../base/sanitize.ts';
import { formatDuration, formatMoment } from '../../base/time.ts';
import { cut, type Style } from '../../view/row.ts';
import { isInterrupted, moment, runStatus, type RunStatus } from '../../view/status.ts';
import { type Cost, costText, type CostView, reportedCost, runDuration } from '../../view/usage.ts';
import { EXIT, printLines, printResult, warn } from '../output.ts';
import { inColumns, lineWidth, paletteFor } from '../terminal.ts';

export const STATUSES: readonly string[] = [
  ...(['pending', 'running', 'waiting', 'paused', 'cleaning_up', 'done', 'failed', 'stopped'] as const),
  'interrupted',
  'unreadable',
];

const AT_ONCE = 64;

interface Row {
  readonly id: string;
  readonly language: string | null;
  readonly source: string | null;
  readonly status: RunStatus | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly engine: { readonly pid: number } | null;
  /** It should be running, but has no engine. */
  readonly interrupted: boolean;
  /** As in `meow status`; null if none is known. */
  readonly cost: CostView | null;
}

/** A row, how long the run took in milliseconds, and what it cost; null if unknown. */
interface Listed {
  readonly row: Row;
  readonly took: number | null;
  readonly cost: Cost | null;
}

export async function list(options: { readonly status?: string; readonly json?: true } & StoreChoice): Promise<number> {
  const wanted = options.status ?? null;
  checkStatus(wanted);
  const store = await chosenStore(options);
  const entries = await store.list();
  const all: Listed[] = [];
  for (let at = 0; at < entries.length; at += AT_ONCE) {
    const some = entries.slice(at, at + AT_ONCE);
    const rowOf = async (entry: RunEntry): Promise<Listed> => endedRow(entry) ?? (await wholeRow(store, entry.id));
    all.push(...(await Promise.all(some.map(rowOf))));
  }
  const listed = all.filter(({ row }) => wanted === null || shownStatus(row) === wanted);
  if (options.json) return printResult(listed.map(({ row }) => row));
  if (listed.length > 0) printLines(table(listed, options.fleet === true));
  else if (wanted !== null) warn(`no ${wanted.replace('_', ' ')} runs`);
  else warn('there are no runs here yet; start with: meow run FILE (an example: meow init)');
  return EXIT.done;
}

function checkStatus(wanted: string | null): void {
  if (wanted === null || STATUSES.some((status) => status === wanted)) return;
  const hint = `${didYouMean(wanted, STATUSES)}--status is one of ${STATUSES.join(', ')}`;
  throw new UsageError(`unknown status ${JSON.stringify(wanted)}`, hint);
}

/** Null unless the run has ended: the outcome of others needs the whole journal. */
function endedRow({ id, source, startedAt, last }: RunEntry): Listed | null {
  const end = last?.decisions.find((decision) => decision.kind === 'run-ended');
  if (last === null || end === undefined || source === null || startedAt === null) return null;
  const { language, name } = source;
  const [started_at, ended_at] = [formatMoment(startedAt), formatMoment(last.at)];
  const cost = end.cost === undefined ? null : reportedCost(end.cost);
  const still = { engine: null, interrupted: false, cost };
  const row = { id, language, source: name, status: end.end, started_at, ended_at, ...still };
  return { row, took: end.lasted ?? last.at - startedAt, cost: end.cost ?? null };
}

async function wholeRow(store: Store, id: string): Promise<Listed> {
  const holder = await unlessRefused(store.holder(id), null);
  const engine = holder === null ? null : { pid: holder.pid };
  const run = await unlessRefused(readRun(store, id), null);
  // Unreadable runs are listed as well; `meow status` says what is wrong.
  if (run === null) {
    const unknown = { language: null, source: null, status: null, started_at: null, ended_at: null };
    return { row: { id, ...unknown, engine, interrupted: false, cost: null }, took: null, cost: null };
  }
  const { state } = run;
  const { language, name } = state.program.source;
  const times = { started_at: moment(state.startedAt), ended_at: moment(state.endedAt) };
  const interrupted = isInterrupted(state, engine !== null);
  const cost = reportedCost(state.cost);
  const row = { id, language, source: name, status: runStatus(state), ...times, engine, interrupted, cost };
  return { row, took: runDuration(state, interrupted ? (state.recordedAt ?? 0) : Date.now()), cost: state.cost };
}

function shownStatus({ status, interrupted }: Row): string {
  if (status === null) return 'unreadable';
  return interrupted ? 'interrupted' : status;
}

function table(listed: readonly Listed[], isFleet: boolean): readonly string[] {
  const palette = paletteFor(process.stdout);
  const now = Date.now();
  const hasCosts = listed.some(({ cost }) => cost !== null && costText(cost) !== '');
  const cells = listed.map(({ row, took, cost }) => [
    row.id,
    shownStatus(row).replace('_', ' '),
    row.started_at === null ? '-' : `${formatDuration(now - Date.parse(row.started_at))} ago`,
    took === null ? '-' : formatDuration(took),
    ...(hasCosts ? [(cost && costText(cost)) || '-'] : []),
    `${sanitize(row.source ?? '')}${remark(row, isFleet)}`,
  ]);
  const [head = '', ...lines] = inColumns(
    ['ID', 'STATUS', 'STARTED', 'TOOK', ...(hasCosts ? ['COST'] : []), 'WORKFLOW'],
    cells,
  );
  // Only the status is painted, and only what follows it may be cut.
  const [from, to] = [head.indexOf('STATUS'), head.indexOf('  STARTED')];
  const room = lineWidth(process.stdout) - to - 2;
  const { green, red, cyan, yellow } = palette;
  const styles: Partial<Record<string, Style>> = { done: green, failed: red, running: cyan, interrupted: yellow };
  const painted = lines.map((line) => {
    const status = line.slice(from, to);
    const style = styles[status.trimEnd()];
    return `${line.slice(0, from)}${style === undefined ? status : style(status)}  ${cut(line.slice(to + 2), room)}`;
  });
  return [palette.dim(head), ...painted];
}

function remark({ id, status, interrupted }: Row, isFleet: boolean): string {
  if (status === null || (interrupted && isFleet)) return `  (see why: meow status ${id}${isFleet ? ' --fleet' : ''})`;
  return interrupted ? `  (resume it: meow resume ${id})` : '';
}
