// The merge queue: an offer is rebased onto its target, checked there, and merged if the checks pass.
//
//   REPOSITORY/meow-merge/
//     offers/KEY.json   an offer that waits or is being checked, and whether it was withdrawn
//     TARGET/lock       held by the one offer that works on the target
//     TARGET/check.json the check that it has started
//     TARGET/…          drivers/git/merge.ts
//
// queue/1  One offer for each repository and target is worked on at a time; others wait.
// queue/2  An offer is identified by its key. One whose key the target's history has is merged already, with that commit.
// queue/3  All of it can be killed at any moment. The next offer for the target, before it begins: kills a check that is left,
//          removes files that are left, and lets checked-out trees follow the target. A killed offer is made again by the
//          same command.
// queue/4  Withdrawing and merging exclude each other: an offer is either merged or withdrawn. A withdrawn key stays withdrawn.
// queue/5  A command that checks starts only after the next offer could find it, so that none is left (queue/3).

import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../base/errors.ts';
import { BranchMerge, findMerged, mergeFolder, mergeName, uncommittedFiles } from '../drivers/git/merge.ts';
import { Repository } from '../drivers/git/repository.ts';
import { takeLock } from '../stores/lock.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import { makeFolderBelow, readJsonFile, writeJsonFile } from '../sys/files.ts';
import { killProcessTree } from '../sys/kill-process-tree.ts';
import { findProcess, MARKER, startHelper } from '../sys/process.ts';
import { orThrow } from './errors.ts';
import { ownEnvironment } from './project.ts';

export interface OfferRequest {
  /** Folder of the offered worktree. */
  readonly worktree: string;
  readonly target: string;
  /** Commands, in order. */
  readonly checks: readonly string[];
  /** Null: the calling step, or the offered commit. */
  readonly key: string | null;
  /** Ends the offer. */
  readonly signal: AbortSignal;
  /** Progress, and problems that do not change the outcome. */
  readonly note: (line: string) => void;
}

export type MergeOutcome = 'merged' | 'conflict' | 'check_failed' | 'stale' | 'withdrawn';

/** As `meow merge --json` prints it. */
export interface OfferResult {
  readonly outcome: MergeOutcome;
  /** Null if an offer was merged earlier, and nothing tells into which branch. */
  readonly target: string | null;
  /** Commit of the target that the offer was rebased onto; null if it came to none. */
  readonly base: string | null;
  /** The merge commit, if the offer is merged. */
  readonly commit: string | null;
  /** The command that failed. */
  readonly check: string | null;
  /** Files in conflict, a line each; the output of the check; or the reason. */
  readonly output: string;
}

export async function offerMerge(request: OfferRequest): Promise<OfferResult> {
  const { worktree, target, signal } = request;
  const repository = orThrow(await Repository.open(worktree, ownEnvironment()));
  const key = keyOf(request.key ?? callingStep() ?? repository.head);
  const merge = orThrow(await BranchMerge.open(repository, target));
  const [left, ...more] = orThrow(await uncommittedFiles(repository));
  if (left !== undefined) {
    const others = more.length === 0 ? '' : ` and ${more.length} more`;
    request.note(`not part of the offer, because it is not committed: ${left}${others}`);
  }
  const offer = new PendingOffer(repository, key, target);
  if (!(await offer.begin())) return withdrawn(target);
  const lock = await lockWhenFree(join(merge.folder, 'lock'), request, () => offer.isWithdrawn());
  if (lock === null) {
    if (!offer.isWithdrawn()) offer.end();
    return withdrawn(target, signal.aborted ? 'the offer was interrupted' : undefined);
  }
  try {
    await killLeftCheck(merge);
    for (const problem of orThrow(await merge.recover())) request.note(problem);
    forgetDeadOffers(repository, target);
    // Not before: a tree that a killed offer has left behind has just followed.
    orThrow(await merge.checkCheckouts(null));
    return await new Round(repository, merge, offer, request, key).perform();
  } finally {
    if (!offer.isWithdrawn()) offer.end();
    orThrow(await merge.clear());
    await lock.release();
  }
}

/** The merge commit if the key is merged already; otherwise the offer is withdrawn. */
export async function withdrawOffer(folder: string, wanted: string): Promise<OfferResult> {
  const key = keyOf(wanted);
  const repository = orThrow(await Repository.open(folder, ownEnvironment()));
  const known = readOffers(repository).find((each) => each.key === key);
  const merged = orThrow(await findMerged(repository, key, known?.target ?? null));
  if (merged === null && known === undefined) {
    const keys = readOffers(repository).map((each) => each.key);
    const hint = keys.length === 0 ? 'no offer waits in this repository' : `offers that wait: ${keys.join(', ')}`;
    throw new UsageError(`there is no offer ${JSON.stringify(key)}`, hint);
  }
  const target = known?.target ?? null;
  if (known !== undefined) {
    const answer = await new PendingOffer(repository, key, known.target).withdraw();
    if (answer === 'withdrawn') return withdrawn(target);
  }
  const result = orThrow(await findMerged(repository, key, known?.target ?? null));
  return { ...NOTHING, outcome: 'merged', target, base: result?.base ?? null, commit: result?.commit ?? null };
}

const NOTHING = { base: null, commit: null, check: null, output: '' };

function withdrawn(target: string | null, output = 'the offer was withdrawn'): OfferResult {
  return { ...NOTHING, outcome: 'withdrawn', target, output };
}

/** A key is a line of a commit message. */
function keyOf(key: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/.test(key)) return key;
  throw new UsageError(
    `${JSON.stringify(key)} cannot be the key of an offer`,
    'use 1 to 200 printable ASCII characters, such as --id login-form',
  );
}

/** `RUN/STEP`, for an offer that a step makes. */
function callingStep(): string | null {
  const { MEOW_WORKFLOW: run, MEOW_STEP: step } = process.env;
  return run === undefined || step === undefined || run === '' || step === '' ? null : `${run}/${step}`;
}

/** Null if the offer has ended meanwhile. */
async function lockWhenFree(path: string, { target, signal, note }: OfferRequest, isOver: () => boolean) {
  for (let tries = 0; !signal.aborted && !isOver(); tries += 1) {
    const answer = await takeLock(path);
    if (answer.kind === 'taken') return answer.lock;
    if (tries === 0) note(`another offer for ${target} is being checked${by(answer.by?.pid)}: waiting`);
    await sleep(WAIT_MS);
  }
  return null;
}

function by(pid: number | undefined): string {
  return pid === undefined ? '' : ` (process ${pid})`;
}

/** Interval at which a waiting offer tries to begin. */
const WAIT_MS = 100;
/** Interval at which a check is asked whether its offer was withdrawn. */
const WITHDRAWN_MS = 250;
/** How often others may move the target during an offer. */
const MOVES_MAX = 3;

/** Work on one offer, which holds the lock. */
class Round {
  readonly #repository: Repository;
  readonly #merge: BranchMerge;
  readonly #offer: PendingOffer;
  readonly #request: OfferRequest;
  readonly #key: string;

  constructor(repository: Repository, merge: BranchMerge, offer: PendingOffer, request: OfferRequest, key: string) {
    this.#repository = repository;
    this.#merge = merge;
    this.#offer = offer;
    this.#request = request;
    this.#key = key;
  }

  async perform(): Promise<OfferResult> {
    const { target, signal } = this.#request;
    const known = await this.#merged();
    if (known !== null) return known;
    let base: string | null = null;
    for (let moves = 0; moves < MOVES_MAX; moves += 1) {
      const prepared = orThrow(await this.#merge.prepare({ head: this.#repository.head, key: this.#key }));
      base = prepared.base;
      if (prepared.kind === 'nothing')
        return { ...withdrawn(target, `nothing to merge: ${target} has everything that is committed there`), base };
      if (prepared.kind === 'conflict')
        return { ...NOTHING, outcome: 'conflict', target, base, output: prepared.files.join('\n') };
      orThrow(await this.#merge.checkCheckouts(prepared.commit));
      const failure = await this.#check(prepared.commit);
      if (this.#offer.isWithdrawn()) return { ...withdrawn(target), base };
      if (signal.aborted) return { ...withdrawn(target, 'the offer was interrupted'), base };
      if (failure !== null) return { ...NOTHING, outcome: 'check_failed', target, base, ...failure };
      const advanced = await this.#offer.unlessWithdrawn(async () => orThrow(await this.#merge.advance(prepared)));
      if (advanced === 'withdrawn') return { ...withdrawn(target), base };
      if (advanced === 'moved') continue;
      for (const problem of advanced) this.#request.note(problem);
      return { ...NOTHING, outcome: 'merged', target, base, commit: prepared.commit };
    }
    const output = `others moved ${target} ${MOVES_MAX} times while the offer was checked`;
    return { ...NOTHING, outcome: 'stale', target, base, output };
  }

  async #merged(): Promise<OfferResult | null> {
    const { target } = this.#request;
    const found = orThrow(await findMerged(this.#repository, this.#key, target));
    return found === null ? null : { ...NOTHING, outcome: 'merged', target, ...found };
  }

  /** The first check that fails. */
  async #check(commit: string): Promise<Pick<OfferResult, 'check' | 'output'> | null> {
    for (const [index, check] of this.#request.checks.entries()) {
      // An earlier check may have changed files.
      if (index > 0) orThrow(await this.#merge.checkOut(commit));
      this.#request.note(`checking: ${check}`);
      const { status, output } = await runCheck(this.#merge, check, this.#request.signal, () =>
        this.#offer.isWithdrawn(),
      );
      if (status !== 0) return { check, output: output === '' ? `exit code ${status}` : output };
    }
    return null;
  }
}

/** End of the output that is kept. */
const OUTPUT_MAX = 64 * 1024;

async function runCheck(
  merge: BranchMerge,
  command: string,
  signal: AbortSignal,
  isOver: () => boolean,
): Promise<{ readonly status: number; readonly output: string }> {
  const environment = ownEnvironment();
  const child = await startHelper(() =>
    spawn('/bin/sh', ['-c', WAIT_THEN_RUN, 'sh', command], {
      cwd: merge.tree,
      // It runs what agents wrote, so it may not decide gates like a person.
      env: { ...environment, [MARKER]: environment[MARKER] ?? 'meow.merge:check#1' },
      detached: true,
      stdio: 'pipe',
    }),
  );
  let chunks: Buffer[] = [];
  let size = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size < 2 * OUTPUT_MAX) return;
      chunks = [Buffer.concat(chunks).subarray(-OUTPUT_MAX)];
      size = OUTPUT_MAX;
    });
  }
  const ended = endOf(child);
  const pid = child.pid ?? 0;
  const leader = { pid, start: findProcess(pid)?.start ?? '' };
  writeJsonFile(join(merge.folder, CHECK_FILE), leader);
  // Its shell may be killed before it reads this: then its end says so.
  child.stdin?.on('error', () => {});
  child.stdin?.end('go\n');
  const watch = setInterval(() => {
    if (signal.aborted || isOver()) void killSession(leader);
  }, WITHDRAWN_MS);
  try {
    const status = await ended;
    return { status, output: Buffer.concat(chunks).subarray(-OUTPUT_MAX).toString('utf8') };
  } finally {
    clearInterval(watch);
    await killSession(leader);
    rmSync(join(merge.folder, CHECK_FILE), { force: true });
  }
}

/** Runs `$1` once it is told to. If this program is killed before, it reads nothing and ends (queue/5). */
const WAIT_THEN_RUN = `read -r go && [ "$go" = go ] && exec /bin/sh -c "$1" </dev/null`;
const CHECK_FILE = 'check.json';

/** Does not wait for the output of processes that the command has left in the background. */
function endOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      const status = code ?? 1;
      const finish = setTimeout(() => resolve(status), LAST_OUTPUT_MS);
      child.once('close', () => {
        clearTimeout(finish);
        resolve(status);
      });
    });
  });
}

/** How long output may follow the end of a command. */
const LAST_OUTPUT_MS = 1_000;
const GRACE_MS = 2_000;

interface Leader {
  readonly pid: number;
  readonly start: string;
}

/** Kills the session that a check has led, unless its process id belongs to another process now. */
async function killSession({ pid, start }: Leader): Promise<void> {
  const present = findProcess(pid);
  if (present !== null && present.start !== start) return;
  await killProcessTree({ marker: () => false, leader: pid }, { graceMs: GRACE_MS }).done;
}

async function killLeftCheck(merge: BranchMerge): Promise<void> {
  const path = join(merge.folder, CHECK_FILE);
  const left = readJsonFile(path) as Partial<Leader> | null;
  const { pid, start } = left ?? {};
  if (typeof pid === 'number' && pid > 1 && typeof start === 'string' && start !== '')
    await killSession({ pid, start });
  rmSync(path, { force: true });
}

interface OfferRecord {
  readonly key: string;
  readonly target: string;
  /** Process that makes the offer. */
  readonly pid: number;
  readonly start: string;
  readonly isWithdrawn: boolean;
}

/** The record of an offer between its beginning and its end. */
class PendingOffer {
  readonly #path: string;
  readonly #record: OfferRecord;

  constructor(repository: Repository, key: string, target: string) {
    const folder = join(mergeFolder(repository), 'offers');
    makeFolderBelow(repository.info.commonDir, folder);
    this.#path = join(folder, `${mergeName(key)}.json`);
    const start = findProcess(process.pid)?.start ?? '';
    this.#record = { key, target, pid: process.pid, start, isWithdrawn: false };
  }

  /** False if it was withdrawn. */
  async begin(): Promise<boolean> {
    const begun = await this.unlessWithdrawn(async () => writeJsonFile(this.#path, this.#record));
    return begun !== 'withdrawn';
  }

  isWithdrawn(): boolean {
    return recordIn(this.#path)?.isWithdrawn === true;
  }

  /** Excludes a withdrawal at the same time (queue/4). */
  async unlessWithdrawn<T>(act: () => Promise<T>): Promise<T | 'withdrawn'> {
    return this.#locked<T | 'withdrawn'>(async () => (this.isWithdrawn() ? 'withdrawn' : act()));
  }

  /** `over`: it ended before. */
  async withdraw(): Promise<'withdrawn' | 'over'> {
    return this.#locked(async () => {
      const present = recordIn(this.#path);
      if (present === null) return 'over';
      writeJsonFile(this.#path, { ...present, isWithdrawn: true });
      return 'withdrawn';
    });
  }

  end(): void {
    rmSync(this.#path, { force: true });
  }

  async #locked<T>(act: () => Promise<T>): Promise<T> {
    for (;;) {
      const answer = await takeLock(`${this.#path}.lock`);
      if (answer.kind === 'held') {
        await sleep(LOCK_MS);
        continue;
      }
      try {
        return await act();
      } finally {
        await answer.lock.release();
      }
    }
  }
}

const LOCK_MS = 20;

function readOffers(repository: Repository): readonly OfferRecord[] {
  const folder = join(mergeFolder(repository), 'offers');
  const names = tolerate(ABSENT, [], () => readdirSync(folder)).filter((name) => name.endsWith('.json'));
  return names.flatMap((name) => recordIn(join(folder, name)) ?? []);
}

function recordIn(path: string): OfferRecord | null {
  const found = readJsonFile(path) as Partial<OfferRecord> | null;
  const isWhole = typeof found?.key === 'string' && typeof found.target === 'string' && typeof found.pid === 'number';
  return isWhole ? (found as OfferRecord) : null;
}

/** Offers for the target whose process was killed (queue/3). A withdrawal is a decision, and stays. */
function forgetDeadOffers(repository: Repository, target: string): void {
  for (const { key, target: theirs, pid, start, isWithdrawn } of readOffers(repository)) {
    if (theirs !== target || isWithdrawn || findProcess(pid)?.start === start) continue;
    new PendingOffer(repository, key, target).end();
  }
}
