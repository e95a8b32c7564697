// What ended runs have left on this machine: processes, engines, tmux servers, sockets, locks, worktrees, branches, refs and
// unfinished files. Nothing counts that an engine may still use, or that a resume would find.
//
//   orphan/1  A process is judged by the folder of its run, from its environment, and by the mark in that run's journal. It is an
//             orphan if the run has ended or its folder is gone, and nothing of ours otherwise.
//   orphan/2  Only projects of this user count: the present one, and those in the list of projects.
//   orphan/3  A removal looks again before it acts. Uncommitted work and unmerged commits stay.

import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { findRemains, findRuns, judge, removeRemains } from '../drivers/git/gc.ts';
import { Repository } from '../drivers/git/repository.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import { shellWord } from '../ir/quote.ts';
import { liveHolder, takeLock } from '../stores/lock.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { readUntrustedFile } from '../sys/files.ts';
import {
  allProcesses,
  argumentsOf,
  environmentOf,
  findProcess,
  lives,
  type ProcessEntry,
  startTimeOf,
} from '../sys/process.ts';
import { findProject, ownEnvironment, type Project } from './project.ts';
import { listedFolders } from './projects.ts';
import { hasRun, isRunId, readRun, storeOf, unlessRefused } from './runs.ts';
import { knownRun } from './workspace.ts';

export const ORPHAN_KINDS = [
  'process',
  'engine',
  'tmux',
  'socket',
  'lock',
  'worktree',
  'branch',
  'ref',
  'tmp',
] as const;

export interface Orphan {
  readonly kind: (typeof ORPHAN_KINDS)[number];
  /** A pid, a name or a path. */
  readonly id: string;
  readonly run: string | null;
  /** ISO 8601; null if unknown. */
  readonly since: string | null;
  /** A command that removes it. */
  readonly cure: string;
}

export interface FoundOrphan extends Orphan {
  /** Looks again and removes it; the reason if it is still there. */
  remove(): Promise<string | null>;
}

/** In the order in which they are to be removed: processes before what they use. */
export async function findOrphans(project: Project): Promise<readonly FoundOrphan[]> {
  const search = new Search(scopeOf(project));
  const found = [
    ...(await search.processes()),
    ...(await search.terminals()),
    ...(await search.sockets()),
    ...(await search.locks()),
    ...(await search.remains()),
    ...(await search.unfinished()),
  ];
  return found;
}

/** Folders that contain `.meow`; some may be gone. */
function scopeOf(project: Project): readonly string[] {
  return [...new Set([...(project.exists ? [dirname(project.meow)] : []), ...listedFolders()])];
}

type Standing =
  | { readonly kind: 'gone' }
  /** `isOver`: it has ended, and was not paused. `isLive`: an engine holds it. */
  | { readonly kind: 'known'; readonly mark: string; readonly isOver: boolean; readonly isLive: boolean }
  | { readonly kind: 'unknown' };

class Search {
  readonly #scope: readonly string[];
  readonly #standings = new Map<string, Promise<Standing>>();

  constructor(scope: readonly string[]) {
    this.#scope = scope;
  }

  async processes(): Promise<readonly FoundOrphan[]> {
    const found: FoundOrphan[] = [];
    for (const entry of allProcesses()) {
      const orphan = entry.pid === process.pid ? null : ((await this.#engine(entry)) ?? (await this.#process(entry)));
      if (orphan !== null) found.push(orphan);
    }
    return found;
  }

  async #process(entry: ProcessEntry): Promise<FoundOrphan | null> {
    const judged = await this.#judgeProcess(entry);
    if (judged === null) return null;
    const isStill = async (): Promise<boolean> => {
      const now = findProcess(entry.pid);
      return now?.start === entry.start && (await new Search(this.#scope).#judgeProcess(now)) !== null;
    };
    return processOrphan('process', entry, judged, isStill);
  }

  /** The run of an orphaned process; null if it is none. */
  async #judgeProcess({ pid, marker }: ProcessEntry): Promise<string | null> {
    const [, run, mark] = /^(.+)\.([^.:]+):/.exec(marker ?? '') ?? [];
    if (run === undefined || isMeow(pid)) return null;
    const inbox = environmentOf(pid)?.['MEOW_INBOX'];
    const folder = inbox === undefined ? null : dirname(inbox);
    if (folder === null || basename(folder) !== run || !this.#isInScope(folder)) return null;
    const standing = await this.#standing(folder);
    if (standing.kind === 'gone') return run;
    return standing.kind === 'known' && standing.isOver && !standing.isLive && standing.mark === mark ? run : null;
  }

  /** An engine works on the state file in its arguments. */
  async #engine(entry: ProcessEntry): Promise<FoundOrphan | null> {
    const folder = engineFolder(entry.pid);
    if (folder === null || !this.#isInScope(folder) || (await this.#standing(folder)).kind !== 'gone') return null;
    const isStill = (): Promise<boolean> => {
      const same = findProcess(entry.pid)?.start === entry.start && engineFolder(entry.pid) === folder;
      return Promise.resolve(same && !existsSync(folder));
    };
    return processOrphan('engine', entry, basename(folder), isStill);
  }

  /** Servers of tmux that runs had to themselves. */
  async terminals(): Promise<readonly FoundOrphan[]> {
    const tmux = findProgram('tmux', process.env['PATH'] ?? '');
    const found: FoundOrphan[] = [];
    for (const entry of tmux === null ? [] : allProcesses()) {
      const socket = tmuxSocket(entry.pid);
      const folder = socket === null ? null : await this.#ownerOf(socket);
      if (socket === null || folder === null) continue;
      const standing = await this.#standing(folder);
      if (!isLeft(standing)) continue;
      const isStill = (): Promise<boolean> =>
        Promise.resolve(findProcess(entry.pid)?.start === entry.start && tmuxSocket(entry.pid) === socket);
      const orphan = processOrphan('tmux', entry, basename(folder), isStill);
      const cure = existsSync(socket) ? `tmux -S ${shellWord(socket)} kill-server` : orphan.cure;
      found.push({
        ...orphan,
        id: socket,
        cure,
        async remove() {
          if (tmux !== null && existsSync(socket)) {
            spawnSync(tmux, ['-S', socket, 'kill-server'], { stdio: 'ignore', timeout: TMUX_TIMEOUT_MS });
            await gone(entry, GRACE_MS);
          }
          const problem = await orphan.remove();
          if (problem === null) removeSocket(socket);
          return problem;
        },
      });
    }
    return found;
  }

  /** The folder of the run that a socket of tmux belongs to; null if it is not in scope. */
  async #ownerOf(socket: string): Promise<string | null> {
    const folder = dirname(dirname(socket));
    if (basename(folder) === 'tmux' && this.#isInScope(dirname(folder))) return dirname(folder);
    const [, mark] = /^meow-([a-z0-9]+)-tmux$/.exec(basename(folder)) ?? [];
    return mark === undefined ? null : ((await this.#runsByMark()).get(mark) ?? null);
  }

  async sockets(): Promise<readonly FoundOrphan[]> {
    const found: FoundOrphan[] = [];
    const add = async (folder: string, path: string): Promise<void> => {
      const isSocket = (): boolean => tolerate(UNUSABLE, false, () => lstatSync(path).isSocket());
      if (!isSocket()) return;
      const standing = await this.#standing(folder);
      if (standing.kind !== 'known' || standing.isLive) return;
      const remove = async (): Promise<string | null> => {
        if ((await storeOf({ runs: dirname(folder) }).holder(basename(folder))) !== null)
          return 'an engine works on the run';
        if (isSocket()) unlinkSync(path);
        return null;
      };
      found.push(fileOrphan('socket', path, basename(folder), remove));
    };
    for (const folder of this.#runFolders()) {
      await add(folder, join(folder, 'sock'));
      const own = join(folder, 'tmux', `tmux-${process.getuid?.() ?? 0}`, 'default');
      if (existsSync(own) && !isServed(own)) await add(folder, own);
    }
    return found;
  }

  /** Locks of dead holders. */
  async locks(): Promise<readonly FoundOrphan[]> {
    const found: FoundOrphan[] = [];
    for (const runs of this.#runsFolders()) {
      for (const name of namesIn(runs)) {
        const run = /^(.+)\.yaml\.lock$/.exec(name)?.[1];
        if (run === undefined || !isRunId(run)) continue;
        const path = join(runs, name);
        if ((await liveHolder(path)) !== null || isYoung(path)) continue;
        const remove = async (): Promise<string | null> => {
          const answer = await takeLock(path);
          if (answer.kind === 'held') return 'an engine works on the run';
          await answer.lock.release();
          return null;
        };
        found.push(fileOrphan('lock', path, run, remove));
      }
    }
    return found;
  }

  /** What may be removed from repositories without loss. */
  async remains(): Promise<readonly FoundOrphan[]> {
    const found: FoundOrphan[] = [];
    for (const folder of this.#scope.filter((each) => existsSync(each))) {
      const opened = await Repository.open(folder, ownEnvironment());
      const runs = opened.ok ? await findRuns(opened.value) : null;
      if (!opened.ok || runs?.ok !== true) continue;
      const repository = opened.value;
      const project = findProject(folder);
      for (const run of runs.value) {
        const known = await this.#knownRun(project, run);
        const question = {
          standing: () => (known.standing === 'ended' ? ('ended' as const) : ('live' as const)),
          isForced: () => false,
        };
        const remains = await findRemains(repository, known.run);
        if (!remains.ok || !judge(remains.value, question).isRemoved) continue;
        const remove = async (): Promise<string | null> => {
          const again = await new Search(this.#scope).#knownRun(project, run);
          if (again.standing !== 'ended') return 'the run has been resumed';
          const removed = await removeRemains(repository, again.run, question);
          if (!removed.ok) return removed.error.message;
          return removed.value.isRemoved ? null : removed.value.reasons.join('; ');
        };
        const { worktree, branch, refs } = remains.value;
        const cure = `meow gc ${run}`;
        const since = worktree === null ? null : changedAt(worktree.path);
        if (worktree !== null) found.push({ kind: 'worktree', id: worktree.path, run, since, cure, remove });
        if (branch !== null) found.push({ kind: 'branch', id: branch, run, since, cure, remove });
        for (const ref of refs) found.push({ kind: 'ref', id: ref, run, since, cure, remove });
      }
    }
    return found;
  }

  async #knownRun(project: Project, run: string) {
    const store = storeOf(project);
    const folder = join(project.runs, run);
    const state = (await hasRun(store, run)) ? await unlessRefused(readRun(store, run), null) : null;
    const standing = isLeft(await this.#standing(folder)) ? 'ended' : 'live';
    return { standing, run: knownRun(run, dirname(project.meow), state?.state ?? null) } as const;
  }

  /** Files that a killed process has not finished, and temporary folders of runs that are over. */
  async unfinished(): Promise<readonly FoundOrphan[]> {
    const found: FoundOrphan[] = [];
    const add = (path: string, run: string | null): void => {
      if (isYoung(path)) return;
      const remove = (): Promise<string | null> => {
        tolerate(UNUSABLE, undefined, () => rmSync(path, { recursive: true, force: true }));
        return Promise.resolve(existsSync(path) ? 'it cannot be removed' : null);
      };
      found.push(fileOrphan('tmp', path, run, remove));
    };
    for (const runs of this.#runsFolders()) {
      for (const name of namesIn(runs)) {
        const run = DRAFT.exec(name)?.[1];
        if (run !== undefined && !(await this.#isLive(join(runs, run)))) add(join(runs, name), run);
      }
    }
    for (const folder of this.#runFolders()) {
      const drafts = ['', 'steps', 'inbox', 'agents'].flatMap((inside) =>
        namesIn(join(folder, inside)).flatMap((name) => (UNFINISHED.test(name) ? [join(folder, inside, name)] : [])),
      );
      if (drafts.length === 0 || (await this.#isLive(folder))) continue;
      for (const path of drafts) add(path, basename(folder));
    }
    const marked = new Set([tmpdir(), '/tmp']);
    for (const parent of marked) {
      for (const name of namesIn(parent)) {
        const mark = TEMPORARY.exec(name)?.[1];
        const folder = mark === undefined ? undefined : (await this.#runsByMark()).get(mark);
        if (folder === undefined) continue;
        const standing = await this.#standing(folder);
        if (standing.kind === 'known' && standing.isOver && !standing.isLive) add(join(parent, name), basename(folder));
      }
    }
    return found;
  }

  async #isLive(folder: string): Promise<boolean> {
    const standing = await this.#standing(folder);
    return standing.kind === 'unknown' || (standing.kind === 'known' && standing.isLive);
  }

  #standing(folder: string): Promise<Standing> {
    const known = this.#standings.get(folder) ?? standingOf(folder);
    this.#standings.set(folder, known);
    return known;
  }

  #isInScope(folder: string): boolean {
    const project = resolve(folder, '../../..');
    return folder === join(project, '.meow/workflows', basename(folder)) && this.#scope.includes(project);
  }

  #runsFolders(): readonly string[] {
    return this.#scope.map((project) => join(project, '.meow/workflows')).filter((folder) => existsSync(folder));
  }

  #runFolders(): readonly string[] {
    return this.#runsFolders().flatMap((runs) =>
      namesIn(runs).flatMap((name) =>
        isRunId(name) && existsSync(join(runs, name, 'journal.jsonl')) ? [join(runs, name)] : [],
      ),
    );
  }

  #marks: Promise<ReadonlyMap<string, string>> | null = null;

  /** Folders of runs, by their marks. */
  #runsByMark(): Promise<ReadonlyMap<string, string>> {
    this.#marks ??= Promise.resolve(
      new Map(this.#runFolders().flatMap((folder) => markIn(folder).map((mark) => [mark, folder] as const))),
    );
    return this.#marks;
  }
}

function isLeft(standing: Standing): boolean {
  return standing.kind === 'gone' || (standing.kind === 'known' && standing.isOver && !standing.isLive);
}

async function standingOf(folder: string): Promise<Standing> {
  if (!existsSync(folder)) return { kind: 'gone' };
  const store = storeOf({ runs: dirname(folder) });
  const read = await unlessRefused(readRun(store, basename(folder)), null);
  if (read === null) return { kind: 'unknown' };
  const { phase, end, request } = read.state;
  const isLive = (await store.holder(basename(folder))) !== null;
  return { kind: 'known', mark: request?.mark ?? '', isOver: phase === 'ended' && end !== 'paused', isLive };
}

/** The mark in the first record of a journal. */
function markIn(folder: string): readonly string[] {
  const text = readUntrustedFile(join(folder, 'journal.jsonl'), JOURNAL_BYTES_MAX)?.text ?? '';
  const mark = /"mark":"([a-z0-9]+)"/.exec(text.slice(0, text.indexOf('\n')))?.[1];
  return mark === undefined ? [] : [mark];
}

const JOURNAL_BYTES_MAX = 1_000_000_000;

/** `ID.yaml` and others, while they are replaced. */
const DRAFT = /^\.?(.+)\.yaml\.(?:[A-Za-z0-9-]+\.new|[0-9a-f]+\.tmp|lock\.[0-9a-f-]{36})$/;
const UNFINISHED = /\.[0-9a-f]+\.(?:new|tmp)$|^probe-[0-9a-f-]{36}$/;
const TEMPORARY = /^meow-([a-z0-9]{8})(?:-tmux)?$/;

/** Somebody may be about to finish it. */
function isYoung(path: string): boolean {
  const { mtimeMs } = tolerate(UNUSABLE, { mtimeMs: 0 }, () => lstatSync(path));
  return Date.now() - mtimeMs < YOUNG_MS && readFileSafely(path) === '';
}

const YOUNG_MS = 10_000;

function readFileSafely(path: string): string {
  return tolerate([...UNUSABLE, 'EISDIR'], 'a folder', () => readFileSync(path, 'latin1'));
}

function namesIn(folder: string): readonly string[] {
  return tolerate([...UNUSABLE, 'ENOTDIR'], [], () => readdirSync(folder));
}

/** Whether it is a program of ours, which ends by itself: such as an engine that a step has started. */
function isMeow(pid: number): boolean {
  return argumentsOf(pid).some((argument) => /(?:^|\/)(?:meow\.cjs|bin\/meow)$/.test(argument));
}

/** The folder of the run that an engine in the background was started for. */
function engineFolder(pid: number): string | null {
  const words = argumentsOf(pid);
  if (!words.includes('--as-engine') || !words.some((word) => word.endsWith('meow.cjs'))) return null;
  const file = words[words.indexOf('--workflow') + 1];
  return file?.endsWith('.yaml') === true && words.includes('--workflow') ? file.slice(0, -'.yaml'.length) : null;
}

/** The socket of a tmux server or client, from its arguments. */
function tmuxSocket(pid: number): string | null {
  const words = argumentsOf(pid);
  const [program = ''] = words;
  if (!/(?:^|\/)tmux(?:$|:)/.test(program)) return null;
  const at = words.indexOf('-S');
  const path = at === -1 ? undefined : words[at + 1];
  return path !== undefined && /\/tmux-\d+\/default$/.test(path) ? path : null;
}

function isServed(socket: string): boolean {
  const tmux = findProgram('tmux', process.env['PATH'] ?? '');
  if (tmux === null) return false;
  const { status } = spawnSync(tmux, ['-S', socket, 'list-sessions'], { stdio: 'ignore', timeout: TMUX_TIMEOUT_MS });
  return status === 0;
}

const TMUX_TIMEOUT_MS = 10_000;

function removeSocket(socket: string): void {
  tolerate(UNUSABLE, undefined, () => {
    if (lstatSync(socket).isSocket()) unlinkSync(socket);
  });
}

function processOrphan(
  kind: 'process' | 'engine' | 'tmux',
  entry: ProcessEntry,
  run: string,
  isStill: () => Promise<boolean>,
): FoundOrphan {
  const startedAt = startTimeOf(entry);
  return {
    kind,
    id: String(entry.pid),
    run,
    since: startedAt === null ? null : new Date(startedAt).toISOString(),
    cure: `kill ${entry.pid}`,
    async remove() {
      for (const [signal, ms] of [
        ['SIGTERM', GRACE_MS],
        ['SIGKILL', KILLED_MS],
      ] as const) {
        if (!lives(entry) || !(await isStill())) return null;
        tolerate(['ESRCH', 'EPERM'], undefined, () => process.kill(entry.pid, signal));
        if (await gone(entry, ms)) return null;
      }
      return 'it cannot be killed';
    },
  };
}

const GRACE_MS = 3_000;
const KILLED_MS = 10_000;

async function gone(entry: ProcessEntry, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (lives(entry)) {
    if (performance.now() >= until) return false;
    await sleep(50);
  }
  return true;
}

function fileOrphan(
  kind: Orphan['kind'],
  path: string,
  run: string | null,
  remove: FoundOrphan['remove'],
): FoundOrphan {
  return { kind, id: path, run, since: changedAt(path), cure: `rm -r ${shellWord(path)}`, remove };
}

function changedAt(path: string): string | null {
  return tolerate(UNUSABLE, null, () => lstatSync(path).mtime.toISOString());
}
