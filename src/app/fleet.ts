// All runs of several projects, followed while they are active.
//
//   fleet/1  A run that has ended is not folded: its last record and the head of its state file say enough. All others are folded
//            once, and each new record is applied to them.
//   fleet/2  The operating system says what has changed. Only the death of an engine leaves no trace, so living engines are
//            looked at every two seconds, without a subprocess.
//   fleet/3  A run that cannot be read is shown as such, and does not hide or delay the others.

import { constants } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../base/errors.ts';
import { formatMoment } from '../base/time.ts';
import { crash, tolerateAsync, UNUSABLE } from '../sys/errors.ts';
import { openRegular, readFrom } from '../sys/files.ts';
import { findProcess, lives, type ProcessEntry } from '../sys/process.ts';
import { watchFolder } from '../sys/watch.ts';
import {
  endedEntry,
  type FleetEntry,
  fleetEntry,
  fleetView,
  type FleetView,
  hasEnded,
  unreadableEntry,
} from '../view/fleet.ts';
import { readStateHead, type StateHead } from '../view/state-head.ts';
import { follow, type FollowedRun } from './follow.ts';
import { type NamedProject, projectListPath, projectsToShow } from './projects.ts';
import { agentsLeft } from './run-agents.ts';
import { isRunId, readRun, type RunEntry, type Store, storeOf, unlessRefused } from './runs.ts';
import { shownRun } from './shown-run.ts';

export interface Fleet {
  readonly view: FleetView;
  readonly projects: readonly NamedProject[];
  /** What was left out of the list of projects; null if nothing was. */
  readonly remark: string | null;
}

/** The fleet at this moment. `given`: folders of projects; without any, that of the working directory and all known ones. */
export async function readFleet(given: readonly string[]): Promise<Fleet> {
  const { projects, remark } = projectsToShow(given);
  const entries = await Promise.all(projects.map((project) => entriesOf(project)));
  return { view: fleetView(entries.flat(), Date.now()), projects, remark };
}

/** The fleet at this moment, and again whenever something has changed, at most ten times a second. Ends when `signal` aborts. */
export async function* followFleet(given: readonly string[], signal: AbortSignal): AsyncGenerator<Fleet> {
  const followed = new FollowedFleet(given);
  const end = (): void => followed.close();
  signal.addEventListener('abort', end, { once: true });
  try {
    await followed.start();
    while (!signal.aborted) {
      yield followed.picture();
      await followed.changed();
      await sleep(INTERVAL_MS);
    }
  } finally {
    signal.removeEventListener('abort', end);
    followed.close();
  }
}

const INTERVAL_MS = 100;
const AT_ONCE = 32;

async function entriesOf(project: NamedProject): Promise<readonly FleetEntry[]> {
  const store = storeOf(project);
  const listed = await unlessRefused(store.list(), []);
  const entries: FleetEntry[] = [];
  for (let at = 0; at < listed.length; at += AT_ONCE) {
    const some = listed.slice(at, at + AT_ONCE);
    entries.push(...(await Promise.all(some.map((entry) => entryOf(project, store, entry)))));
  }
  return entries;
}

async function entryOf(project: NamedProject, store: Store, entry: RunEntry): Promise<FleetEntry> {
  const ended = await endedRun(project, store, entry);
  if (ended !== null) return ended;
  try {
    return await foldedEntry(project, store, await readRun(store, entry.id));
  } catch (error) {
    return unreadable(project, store, entry.id, error);
  }
}

/** Null if the run has not ended, or its steps must be folded to show it. */
async function endedRun(project: NamedProject, store: Store, entry: RunEntry): Promise<FleetEntry | null> {
  const { id, source, startedAt, last } = entry;
  const end = last?.decisions.find((decision) => decision.kind === 'run-ended');
  if (end === undefined || last === null || !hasEnded(end.end) || source === null || startedAt === null) return null;
  const head = await stateHead(`${store.files(id).localPath('')}.yaml`);
  // Else the state file is of an earlier moment, or somebody is still asked.
  if (head?.endedAt !== formatMoment(last.at) || head.hasOpenGates) return null;
  const { language, name } = source;
  return endedEntry({ project: project.name, id, source: name, language, startedAt, endedAt: last.at, end, head });
}

async function stateHead(path: string): Promise<StateHead | null> {
  const file = await tolerateAsync(UNUSABLE, null, openRegular(path, constants.O_RDONLY));
  if (file === null) return null;
  try {
    const { size } = await file.stat();
    return readStateHead((await readFrom(file, 0, Math.min(size, HEAD_BYTES_MAX))).toString('utf8'));
  } finally {
    await file.close();
  }
}

/** Heads are longer only if the variables of a run are. */
const HEAD_BYTES_MAX = 65_536;

/** If the run has no engine, this changes the state, which must not be used for anything but showing. */
async function foldedEntry(project: NamedProject, store: Store, run: FollowedRun): Promise<FleetEntry> {
  const shown = await shownRun(store, run, project);
  const isLeft = shown.engine === null && !hasEnded(run.state.phase === 'ended' ? run.state.end : null);
  const agents = isLeft ? { agents: await agentsLeft(store, run) } : {};
  return fleetEntry({ project: project.name, ...shown, ...agents });
}

async function unreadable(project: NamedProject, store: Store, id: string, error: unknown): Promise<FleetEntry> {
  if (!(error instanceof UsageError)) throw error;
  const holder = await unlessRefused(store.holder(id), null);
  const engine = holder === null ? null : { pid: holder.pid };
  const { message, hint } = error;
  return unreadableEntry({ project: project.name, id, engine, problem: { message, hint } });
}

class FollowedFleet {
  readonly #given: readonly string[];
  readonly #projects = new Map<string, FollowedProject>();
  readonly #watchers: { close(): void }[] = [];
  #remark: string | null = null;
  #engines: NodeJS.Timeout | null = null;
  #isChanged = false;
  #wake = (): void => {};
  #closed = false;

  constructor(given: readonly string[]) {
    this.#given = given;
  }

  async start(): Promise<void> {
    await this.#adopt();
    if (this.#given.length > 0 || this.#closed) return;
    const list = projectListPath();
    const folder = list.slice(0, list.lastIndexOf('/'));
    const watcher = watchFolder(folder, (name) => {
      if (name === null || name === 'projects') this.#adopt().catch(crash);
    });
    this.#watchers.push(watcher);
  }

  picture(): Fleet {
    this.#isChanged = false;
    const followed = [...this.#projects.values()];
    const view = fleetView(
      followed.flatMap(({ entries }) => [...entries.values()]),
      Date.now(),
    );
    return { view, projects: followed.map(({ project }) => project), remark: this.#remark };
  }

  /** Resolves at once if something has changed since the last picture; also resolves when the fleet is closed. */
  async changed(): Promise<void> {
    if (this.#isChanged || this.#closed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers) watcher.close();
    for (const project of this.#projects.values()) project.close();
    if (this.#engines !== null) clearInterval(this.#engines);
    this.#engines = null;
    this.#wake();
  }

  /** Follows the projects that are new in the list. */
  async #adopt(): Promise<void> {
    const { projects, remark } = projectsToShow(this.#given);
    this.#remark = remark;
    const added = projects.filter(({ meow }) => !this.#projects.has(meow) && !this.#closed);
    const starting = added.map((project) => {
      const followed = new FollowedProject(project, () => this.#onChange());
      this.#projects.set(project.meow, followed);
      return followed.start();
    });
    await Promise.all(starting);
    this.#onChange();
  }

  #onChange(): void {
    this.#isChanged = true;
    this.#wake();
    const hasEngines = !this.#closed && [...this.#projects.values()].some((project) => project.hasEngines);
    if (hasEngines && this.#engines === null) {
      this.#engines = setInterval(() => this.#lookAtEngines(), ENGINES_MS).unref();
    } else if (!hasEngines && this.#engines !== null) {
      clearInterval(this.#engines);
      this.#engines = null;
    }
  }

  #lookAtEngines(): void {
    for (const project of this.#projects.values()) project.lookAtEngines();
  }
}

const ENGINES_MS = 2_000;

class FollowedProject {
  readonly project: NamedProject;
  readonly entries = new Map<string, FleetEntry>();
  readonly #store: Store;
  readonly #changed: () => void;
  readonly #runs = new Map<string, FollowedEntry>();
  readonly #dirty = new Set<string>();
  #allDirty = false;
  #isRefreshing = false;
  #watcher: { close(): void } | null = null;
  #closed = false;

  constructor(project: NamedProject, changed: () => void) {
    this.project = project;
    this.#store = storeOf(project);
    this.#changed = changed;
  }

  get hasEngines(): boolean {
    return [...this.#runs.values()].some(({ engine }) => engine !== null);
  }

  /** Resolves when every run has been read once. */
  async start(): Promise<void> {
    // Before the list is read, so that nothing is missed.
    this.#watcher = watchFolder(this.project.runs, (name) => this.#onChange(name));
    await this.#update(await unlessRefused(this.#store.list(), []));
  }

  lookAtEngines(): void {
    for (const run of this.#runs.values()) run.lookAtEngine();
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    for (const run of this.#runs.values()) run.close();
  }

  #onChange(name: string | null): void {
    const [id = '', ...rest] = name?.split('.') ?? [];
    const run = this.#runs.get(id);
    if (name === null) this.#allDirty = true;
    else if (!isRunId(id)) return;
    // The state file of an active run is replaced all the time.
    else if (run === undefined) this.#dirty.add(id);
    else if (rest.length === 0) {
      this.#dirty.add(id);
      run.restart();
    } else if (rest[1] === 'lock') run.restart();
    if ((this.#allDirty || this.#dirty.size > 0) && !this.#isRefreshing) this.#refresh().catch(crash);
  }

  async #refresh(): Promise<void> {
    this.#isRefreshing = true;
    while ((this.#allDirty || this.#dirty.size > 0) && !this.#closed) {
      const ids = this.#allDirty ? null : [...this.#dirty];
      this.#allDirty = false;
      this.#dirty.clear();
      const listing =
        ids === null || ids.length > PREFIXES_MAX ? [this.#store.list()] : ids.map((id) => this.#named(id));
      const listed = (await unlessRefused(Promise.all(listing), [])).flat();
      const found = new Set(listed.map(({ id }) => id));
      for (const id of ids ?? [...this.entries.keys()]) if (!found.has(id)) this.#forget(id);
      await this.#update(listed);
      await sleep(INTERVAL_MS);
    }
    this.#isRefreshing = false;
  }

  async #named(id: string): Promise<readonly RunEntry[]> {
    return (await this.#store.list({ prefix: id })).filter((entry) => entry.id === id);
  }

  async #update(listed: readonly RunEntry[]): Promise<void> {
    for (let at = 0; at < listed.length && !this.#closed; at += AT_ONCE) {
      await Promise.all(listed.slice(at, at + AT_ONCE).map((entry) => this.#updateRun(entry)));
    }
  }

  async #updateRun(entry: RunEntry): Promise<void> {
    if (this.#runs.has(entry.id)) return;
    const ended = await endedRun(this.project, this.#store, entry);
    if (this.#closed || this.#runs.has(entry.id)) return;
    if (ended !== null) return this.#show(ended);
    const run = new FollowedEntry(this.project, this.#store, entry.id, (shown) => {
      if (shown === null) this.#forget(entry.id);
      else this.#show(shown);
    });
    this.#runs.set(entry.id, run);
    run.follow().then((isGone) => {
      if (this.#runs.get(entry.id) === run) this.#runs.delete(entry.id);
      if (isGone) this.#forget(entry.id);
      else this.#changed();
    }, crash);
    await run.shown;
  }

  #show(entry: FleetEntry): void {
    this.entries.set(entry.run.id, entry);
    this.#changed();
  }

  #forget(id: string): void {
    this.#runs.get(id)?.close();
    this.#runs.delete(id);
    if (this.entries.delete(id)) this.#changed();
  }
}

/** With more changed runs than this, one look at the whole folder is cheaper. */
const PREFIXES_MAX = 8;

/** One run that has not ended, or cannot be read. */
class FollowedEntry {
  readonly #project: NamedProject;
  readonly #store: Store;
  readonly #id: string;
  readonly #show: (entry: FleetEntry) => void;
  /** Resolves when it has been shown for the first time. */
  readonly shown: Promise<void>;
  #onShown = (): void => {};
  #engine: ProcessEntry | null = null;
  #pass = new AbortController();
  #closed = false;

  constructor(project: NamedProject, store: Store, id: string, show: (entry: FleetEntry | null) => void) {
    this.#project = project;
    this.#store = store;
    this.#id = id;
    this.shown = new Promise((resolve) => {
      this.#onShown = resolve;
    });
    this.#show = (entry) => {
      if (!this.#closed) show(entry);
      this.#onShown();
    };
  }

  get engine(): ProcessEntry | null {
    return this.#engine;
  }

  lookAtEngine(): void {
    if (this.#engine !== null && !lives(this.#engine)) this.restart();
  }

  /** Reads the run again. */
  restart(): void {
    this.#pass.abort();
  }

  close(): void {
    this.#closed = true;
    this.#pass.abort();
    this.#onShown();
  }

  /** Resolves when the run has ended, to false, or no longer exists, to true. */
  async follow(): Promise<boolean> {
    while (!this.#closed) {
      this.#pass = new AbortController();
      const { signal } = this.#pass;
      try {
        if (await this.#followOnce(signal)) return false;
      } catch (error) {
        if (this.#closed) break;
        const exists = (await unlessRefused(this.#store.list({ prefix: this.#id }), [])).some(
          ({ id }) => id === this.#id,
        );
        if (!exists) return true;
        this.#engine = null;
        this.#show(await unreadable(this.#project, this.#store, this.#id, error));
        await this.#untilTouched('', signal);
      }
      if (!this.#closed) await sleep(RESTART_MS);
    }
    return false;
  }

  /** Resolves to true if the run has ended, to false if it must be read again. */
  async #followOnce(signal: AbortSignal): Promise<boolean> {
    const holder = await unlessRefused(this.#store.holder(this.#id), null);
    this.#engine = holder === null ? null : findProcess(holder.pid);
    let isEnded = false;
    let isChangedByShowing = false;
    const seen = async (run: FollowedRun, fresh: readonly unknown[]): Promise<boolean> => {
      if (isChangedByShowing && fresh.length > 0) return false;
      const entry = await foldedEntry(this.#project, this.#store, run);
      isChangedByShowing = entry.run.engine === null;
      isEnded = run.state.phase === 'ended' && hasEnded(run.state.end);
      this.#show(entry);
      return !isEnded;
    };
    const following = follow(this.#store, this.#id, seen, () => false, signal);
    // A decision about a run without an engine waits in its inbox.
    const untilDecided = holder === null ? this.#untilTouched('inbox', signal).then(() => this.restart()) : null;
    await following.finally(() => this.#pass.abort());
    await untilDecided;
    return isEnded;
  }

  /** Resolves when something in this folder of the run changes, or at the abort. */
  async #untilTouched(folder: string, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const watcher = watchFolder(this.#store.files(this.#id).localPath(folder), () => done());
      const done = (): void => {
        watcher.close();
        signal.removeEventListener('abort', done);
        resolve();
      };
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}

/** Between two attempts to read a run. */
const RESTART_MS = 100;
