// The page of `meow ui` in the system's Chromium: its size, how soon a run is shown and changes, what it costs in the browser and in
// the server, and `meow top` for scripts.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';

import type { Journal } from '../src/engine/ports.ts';
import type { Program } from '../src/ir/program.ts';
import type { Decision, JournalRecord } from '../src/kernel/decision.ts';
import { compileMeow } from '../src/languages/meow/compile.ts';
import { fileStore } from '../src/stores/files.ts';
import { layOut } from '../src/view/layout.ts';
import { Browser } from '../test/rig/browser.ts';
import { runEngine } from './engine-run.ts';
import {
  atMost,
  type Bench,
  count,
  duration,
  environment,
  figure,
  type Figure,
  interleaveWarm,
  makeProject,
  type Measurement,
  median,
  MEOW,
  ratios,
  ROOT,
  type Target,
  timeProcess,
  type Unit,
} from './measure.ts';
import { workflowText } from './workflow.ts';

const SMALL = 3;
const LARGE = 2_000;
const HUGE = 20_000;
const GROUP = 1_000;
const FOLLOWED = 300;
const EVERY_MS = 10;
const LIVE_RUNS = 20;
const ENDED_RUNS = 500;
const OUTPUT_MB = 100;
const WATCHED_STEPS = 1_000;
const IDLE_MS = 20_000;
const SETTLE_MS = 10_000;
const NODES = 2_000;
/** Of /proc/PID/stat. */
const TICK_MS = 10;

export const ui: Measurement = {
  name: 'ui',
  method:
    'The system’s Chromium without a window, with the built server. The size is what a browser loads for the fleet and the timeline of a ' +
    'run; every other part is a file that is loaded when it is shown. Runs are made by the engine with a driver of its own. From a navigation ' +
    `to everything: until all records of the run are folded and its rows are drawn; ${count(LARGE)} steps in one group. From durable to changed: ` +
    `records are appended one every ${EVERY_MS} ms, and a mutation observer in the page notes when the last record is shown, with a group of ` +
    `${count(GROUP)} steps open. Frames: the timeline scrolls by 120 px in each. Layout: CPU time of the process. Heap: after a garbage collection. ` +
    `The fleet has ${count(ENDED_RUNS)} ended and ${LIVE_RUNS} live runs. Idle: the CPU time of the server in ${IDLE_MS / 1000} s with one page open. ` +
    'The cost of a page is `meow run` of commands with a page that follows it, against the same without, alternately.',
  async measure(bench) {
    const project = makeProject(bench, 'ui');
    const groups = new Map<number, readonly JournalRecord[]>();
    for (const steps of [SMALL, LARGE, HUGE, GROUP]) groups.set(steps, await storeGroup(project, steps));
    await using browser = await Browser.start();
    await using server = await Server.start(project);
    const page = await browser.page({ viewport: { width: 1280, height: 900 } });
    await page.goto(server.url);
    await page.getByText('live', { exact: true }).waitFor();
    return [
      size(),
      ...(await firstLook(bench, page, server)),
      ...(await latency(page, server, project, groups.get(GROUP) ?? [])),
      ...(await frames(page, server)),
      layout(bench),
      ...(await heaps(page, server)),
      ...(await idle(page, server)),
      ...(await output(bench, browser)),
      ...(await fleet(bench, browser)),
      await watched(bench, browser),
    ];
  },
};

/** What a browser loads for the fleet and the timeline of a run: the document, and what it names (test/ui/parts.test.ts). */
function size(): Figure {
  const folder = join(ROOT, 'dist/ui');
  const document = readFileSync(join(folder, 'page.html'), 'utf8');
  const kilobytes = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) / 1024;
  const compressed = readdirSync(folder).filter((name) => name.endsWith('.br'));
  const first = compressed.filter((name) => document.includes(`/assets/${name.replace(/\.br$/, '')}"`));
  const later = compressed.filter((name) => !first.includes(name) && !/^(?:enter|terminal-frame)-/.test(name));
  const measured = `${first.length + 1} files; ${count(Math.ceil(kilobytes(later)))} KB in ${later.length} more are loaded when shown`;
  const loaded = kilobytes(['page.html', ...first]);
  return one('page without the terminal, compressed: fleet and timeline', measured, loaded, 'KB', atMost(60));
}

/** From the start of the navigation, in alternation. */
async function firstLook(bench: Bench, page: Page, server: Server): Promise<readonly Figure[]> {
  const look = (steps: number) => async (): Promise<number> => {
    await page.goto('about:blank');
    const began = performance.now();
    await page.goto(`${server.origin}${addressOf(steps)}`);
    await page.locator(`[role=slider][aria-valuemax="${lastSeq.get(steps)}"]`).waitFor();
    await page.locator('[role=row][data-step=last]').waitFor();
    return performance.now() - began;
  };
  const samples = await interleaveWarm(bench.rounds, { large: look(LARGE), small: look(SMALL) });
  const measured = duration(median(samples.large));
  const against = `${duration(median(samples.small))} for ${SMALL} steps`;
  const values = { seconds: samples.large.map((ms) => ms / 1000), ratio: ratios(samples.large, samples.small) };
  const what = `run of ${count(LARGE + 3)} steps: navigation to everything shown`;
  return [
    figure({ what, measured, against: '', values: values.seconds, unit: 's', target: atMost(1.5), samples }),
    figure({ what, measured, against, values: values.ratio, unit: '×', target: atMost(4), samples }),
  ];
}

/** Records of a finished run are appended again to another one, while a page shows it with its group open. */
async function latency(
  page: Page,
  server: Server,
  project: string,
  records: readonly JournalRecord[],
): Promise<readonly Figure[]> {
  const id = 'followed';
  const { journal, rest } = await beginAgain(project, id, GROUP, records, records.length - FOLLOWED);
  await page.goto(`${server.origin}/p/ui/r/${id}/timeline?step=each.0.one`);
  await page.locator('[role=row][data-step="each.0.one"]').waitFor();
  await page.evaluate(`{
    globalThis.shownAt = {};
    const slider = document.querySelector('[role=slider]');
    new MutationObserver(() => (globalThis.shownAt[slider.getAttribute('aria-valuemax')] = Date.now())).observe(slider, {
      attributes: true, attributeFilter: ['aria-valuemax'],
    });
  }`);
  const durableAt = new Map<number, number>();
  for (const record of rest) {
    await journal.append([record]);
    durableAt.set(record.seq, Date.now());
    await sleep(EVERY_MS);
  }
  const last = rest.at(-1)?.seq ?? 0;
  await page.locator(`[role=slider][aria-valuemax="${last}"]`).waitFor();
  await journal.close();
  const shownAt = Object.entries(await page.evaluate<Record<string, number>>('globalThis.shownAt')).map(
    ([seq, at]) => [Number(seq), at] as const,
  );
  // A frame may show several records: each was shown with the next one that is noted.
  const delays = [...durableAt].map(([seq, at]) => {
    const shown = shownAt.find(([noted]) => noted >= seq)?.[1] ?? Number.NaN;
    return Math.max(0, shown - at);
  });
  return [
    one(
      `record durable to changed on the page, group of ${count(GROUP)}: p50`,
      `${delays.length} records`,
      quantile(delays, 0.5),
      'ms',
      atMost(50),
    ),
    one(
      `record durable to changed on the page, group of ${count(GROUP)}: p95`,
      `${delays.length} records`,
      quantile(delays, 0.95),
      'ms',
      atMost(200),
    ),
  ];
}

async function frames(page: Page, server: Server): Promise<readonly Figure[]> {
  await page.goto(`${server.origin}${addressOf(LARGE)}?step=each.0.one`);
  const done = page.locator('[data-section=done]');
  await done.waitFor();
  if ((await done.getAttribute('aria-expanded')) === 'false') await done.click();
  await page.locator('[role=row][data-step="each.1.one"]').waitFor();
  const [rows = 0, ...deltas] = await page.evaluate<number[]>(`new Promise((done) => {
    const container = document.querySelector('.gantt');
    const times = [];
    let rows = 0;
    const step = (at) => {
      times.push(at);
      container.scrollTop += 120;
      rows = Math.max(rows, document.querySelectorAll('[role=treegrid] [role=row]').length);
      if (times.length < 400) requestAnimationFrame(step);
      else done([rows, ...times.slice(1).map((time, index) => time - times[index])]);
    };
    requestAnimationFrame(step);
  })`);
  return [
    one(
      `frame while scrolling ${count(LARGE)} rows: p95`,
      `${deltas.length} frames`,
      quantile(deltas, 0.95),
      'ms',
      atMost(50),
    ),
    one('rows in the document while scrolling', 'most', rows, 'rows', atMost(200)),
  ];
}

/** Of a chain of fans, in which no two nodes are one group. */
function layout(bench: Bench): Figure {
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `n${index}`, width: 120, height: 40 }));
  const edges = nodes
    .slice(1)
    .map(({ id }, index) => ({ from: `n${index - (index % 7)}`, to: id, kind: 'need', label: null }));
  const values = Array.from({ length: bench.rounds + 1 }, () => {
    const before = process.cpuUsage();
    layOut(nodes, edges);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  }).slice(1);
  const what = `layout of ${count(NODES)} nodes`;
  return figure({
    what,
    measured: 'CPU time',
    against: '',
    values,
    unit: 'ms',
    target: atMost(150),
    samples: { ms: values },
  });
}

async function heaps(page: Page, server: Server): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [steps, most] of [
    [LARGE, 12],
    [HUGE, 50],
  ] as const) {
    await page.goto('about:blank');
    await page.goto(`${server.origin}${addressOf(steps)}`);
    await page.locator(`[role=slider][aria-valuemax="${lastSeq.get(steps)}"]`).waitFor();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    await devtools.detach();
    figures.push(
      one(
        `heap of the page at ${count(steps + 3)} steps`,
        'after a collection',
        usedSize / 2 ** 20,
        'MB',
        atMost(most),
      ),
    );
  }
  return figures;
}

async function idle(page: Page, server: Server): Promise<readonly Figure[]> {
  await page.goto(`${server.origin}/`);
  await page.getByRole('region', { name: 'Ended' }).waitFor();
  // Documents beside the list, such as the usage of all runs, are read first.
  await sleep(SETTLE_MS);
  const before = server.cpuMs();
  await sleep(IDLE_MS);
  const share = (100 * (server.cpuMs() - before)) / IDLE_MS;
  return [
    one('idle server with one page open', `of a core, ${IDLE_MS / 1000} s`, share, '%', atMost(0.2)),
    one('idle server: processes that it has started', 'now', server.children(), 'processes', atMost(0)),
  ];
}

async function output(bench: Bench, browser: Browser): Promise<readonly Figure[]> {
  const project = makeProject(bench, 'output');
  const line = 'x'.repeat(99);
  const command = `yes ${line} | head -c ${OUTPUT_MB}000000; echo the needle; echo the end`;
  writeFileSync(
    join(project, 'w.meow.toml'),
    `[main]\n[[main.steps]]\nid = "say"\nexecutor = "shell"\ncommand = ${JSON.stringify(command)}\n`,
  );
  timeProcess(MEOW, ['run', 'w.meow.toml', '--id', 'long'], project);
  await using server = await Server.start(project);
  const page = await browser.page();
  await page.goto(server.url);
  await page.getByText('live', { exact: true }).waitFor();
  const opened: number[] = [];
  const searched: number[] = [];
  for (let round = 0; round <= bench.rounds; round++) {
    await page.goto(`${server.origin}/p/output/r/long/timeline`);
    await page.locator('[role=row][data-step=say]').waitFor();
    let began = performance.now();
    await page.locator('[role=row][data-step=say]').click();
    await page.getByRole('tabpanel').getByText('the end').waitFor();
    opened.push((performance.now() - began) / 1000);
    began = performance.now();
    await page.getByPlaceholder('Search the output…').fill('the needle');
    await page
      .getByText(/^1 of 1|^1\/1/)
      .or(page.locator('mark'))
      .first()
      .waitFor();
    searched.push((performance.now() - began) / 1000);
  }
  await page.close();
  const of = { measured: `${OUTPUT_MB} MB`, against: '', unit: 's' } as const;
  return [
    figure({
      ...of,
      what: 'long output: open at its end',
      values: opened.slice(1),
      target: atMost(0.5),
      samples: { opened },
    }),
    figure({
      ...of,
      what: 'long output: search all of it',
      values: searched.slice(1),
      target: atMost(3),
      samples: { searched },
    }),
  ];
}

async function fleet(bench: Bench, browser: Browser): Promise<readonly Figure[]> {
  const project = makeProject(bench, 'fleet');
  const records = await storeGroup(project, SMALL);
  const open: Journal[] = [];
  for (let index = 0; index < ENDED_RUNS + LIVE_RUNS; index++) {
    const isLive = index >= ENDED_RUNS;
    const count_ = isLive ? records.length - 2 : records.length;
    const { journal } = await beginAgain(project, `run-${index}`, SMALL, records, count_);
    if (isLive) open.push(journal);
    else await journal.close();
  }
  const first: number[] = [];
  let quiet = Number.NaN;
  for (let round = 0; round < bench.rounds; round++) {
    await using server = await Server.start(project);
    const page = await browser.page();
    await page.goto(server.url);
    // The page is there before its list.
    const began = performance.now();
    await page.getByRole('row', { name: /^run-519,/ }).waitFor();
    first.push((performance.now() - began) / 1000);
    if (round === 0) {
      await sleep(SETTLE_MS);
      const before = server.cpuMs();
      await sleep(IDLE_MS);
      quiet = (100 * (server.cpuMs() - before)) / IDLE_MS;
    }
    await page.close();
  }
  const samples = await interleaveWarm(bench.rounds, {
    top: () => timeProcess(MEOW, ['top', '--once', '--json'], project),
    list: () => timeProcess(MEOW, ['list'], project),
  });
  for (const journal of open) await journal.close();
  const what = `fleet of ${ENDED_RUNS} ended and ${LIVE_RUNS} live runs`;
  return [
    figure({
      what: `${what}: first list`,
      measured: duration(1000 * median(first)),
      against: '',
      values: first,
      unit: 's',
      target: atMost(1),
      samples: { first },
    }),
    one(`${what}: while nothing happens`, 'of a core', quiet, '%', atMost(0.2)),
    figure({
      what: `meow top --once with ${LIVE_RUNS} live runs`,
      measured: duration(median(samples.top)),
      against: `${duration(median(samples.list))} for meow list`,
      values: ratios(samples.top, samples.list),
      unit: '×',
      target: atMost(2),
      samples,
    }),
  ];
}

async function watched(bench: Bench, browser: Browser): Promise<Figure> {
  const project = makeProject(bench, 'watched');
  writeFileSync(join(project, 'w.meow.toml'), workflowText('wide', WATCHED_STEPS));
  await using server = await Server.start(project);
  const page = await browser.page();
  await page.goto(server.url);
  let number = 0;
  const timed = async (isWatched: boolean): Promise<number> => {
    number += 1;
    const id = `r${number}`;
    await page.goto('about:blank');
    const began = performance.now();
    const child = spawn(MEOW, ['run', 'w.meow.toml', '--id', id], {
      cwd: project,
      env: environment(project),
      stdio: 'ignore',
    });
    const ended = new Promise<number>((resolve) => child.once('close', resolve));
    if (isWatched) {
      while (!existsSync(join(project, '.meow/workflows', id, 'journal.jsonl'))) await sleep(20);
      await page.goto(`${server.origin}/p/watched/r/${id}/timeline`);
    }
    if ((await ended) !== 0) throw new Error(`run ${id} failed`);
    return performance.now() - began;
  };
  const samples = await interleaveWarm(bench.rounds, { watched: () => timed(true), alone: () => timed(false) });
  await page.close();
  return figure({
    what: `run of ${count(WATCHED_STEPS)} steps, watched by a page`,
    measured: duration(median(samples.watched)),
    against: `${duration(median(samples.alone))} alone`,
    values: ratios(samples.watched, samples.alone),
    unit: '×',
    target: atMost(1.05),
    samples,
  });
}

/** By number of steps in the group. */
const lastSeq = new Map<number, number>();

function addressOf(steps: number): string {
  return `/p/ui/r/${idOf(steps)}/timeline`;
}

function idOf(steps: number): string {
  return `group-${steps}`;
}

function groupProgram(steps: number): Program {
  const items = JSON.stringify(Array.from({ length: steps }, (_, index) => index));
  const text = `[main]
[[main.steps]]
id = "each"
executor = "foreach"
items = ${JSON.stringify(items)}
template = ".one"
[one]
[[one.steps]]
id = "one"
executor = "shell"
command = "true"
[[main.steps]]
id = "last"
executor = "shell"
command = "true"
needs = ["each"]
`;
  const { program, diagnostics } = compileMeow({ file: 'group.meow.toml', text, workflow: null, given: [] });
  if (program === null) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return { ...program, limits: { ...program.limits, stepsMax: 10 * HUGE } };
}

/** Runs it, and returns its records. */
async function storeGroup(project: string, steps: number): Promise<readonly JournalRecord[]> {
  const folder = join(project, '.meow/workflows');
  mkdirSync(folder, { recursive: true });
  const program = groupProgram(steps);
  const { state } = await runEngine({ folder, runId: idOf(steps), program, answersATurn: 20, durable: false });
  if (state.end !== 'done') throw new Error(`the run of ${steps} steps ended ${state.end}: ${state.reason}`);
  const { records } = await fileStore({ folder }).read(idOf(steps));
  lastSeq.set(steps, records.length);
  return records;
}

/** Another run with the first of these records; it is locked by this process until its journal is closed. */
async function beginAgain(
  project: string,
  id: string,
  steps: number,
  records: readonly JournalRecord[],
  first: number,
): Promise<{ readonly journal: Journal; readonly rest: readonly JournalRecord[] }> {
  const renamed = (decision: Decision): Decision =>
    decision.kind === 'run-started' ? { ...decision, request: { ...decision.request, id } } : decision;
  const all = records.map((record) => ({ ...record, decisions: record.decisions.map(renamed) }));
  const journal = await fileStore({ folder: join(project, '.meow/workflows') }).create(id, groupProgram(steps));
  await journal.append(all.slice(0, first));
  return { journal, rest: all.slice(first) };
}

class Server implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly url: string;

  static async start(project: string): Promise<Server> {
    const server = spawn(MEOW, ['ui', '--port', '0', '--project', project], {
      cwd: project,
      env: environment(project),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = await new Promise<string>((resolve, reject) => {
      server.stdout.setEncoding('utf8').once('data', (text: string) => resolve(text.trim()));
      server.once('close', () => reject(new Error('meow ui has ended')));
    });
    return new Server(server, url);
  }

  private constructor(server: ChildProcess, url: string) {
    this.#process = server;
    this.url = url;
  }

  get origin(): string {
    return new URL(this.url).origin;
  }

  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#process.pid}/stat`, 'latin1')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  children(): number {
    const text = readFileSync(`/proc/${this.#process.pid}/task/${this.#process.pid}/children`, 'latin1').trim();
    return text === '' ? 0 : text.split(' ').length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.kill('SIGKILL');
    await ended;
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Measured once. */
function one(what: string, measured: string, value: number, unit: Unit, target: Target): Figure {
  return figure({ what, measured, against: '', values: [value], unit, target, samples: { [unit]: [value] } });
}
