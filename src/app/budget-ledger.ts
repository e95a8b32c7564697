// The ledger of the user's budgets: what all other runs have spent and reserved, read from their journals.
//
//   ledger/1  Reading the figures and appending what follows from them happens under one lock of the user,
//             `~/.meow/budget.lock`. It is released when its holder dies.
//   ledger/2  There is no other record: each figure is computed from the journals. Of each journal only what is new is read.
//   ledger/3  A reservation of a run without an engine counts only if its turn was started; otherwise nothing would ever end it.
//   ledger/4  A run counts for the day in which its turns ended. A run that did not change today, and that no engine holds,
//             is not read.

import { closeSync, existsSync, fstatSync, readdirSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../base/errors.ts';
import { hasBegun, stepFolder } from '../drivers/step-folder.ts';
import type { Ledger, LedgerAdmission } from '../engine/ports.ts';
import { noteSpending } from '../kernel/budget.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import {
  chargedSince,
  emptySpending,
  KNOWN_MAX,
  type KnownCost,
  type OpenReservation,
  type OthersSpending,
  type Spending,
  sumOf,
} from '../kernel/spending.ts';
import type { BudgetConfig } from '../languages/money-config.ts';
import { isRunId } from '../stores/errors.ts';
import { decodeRecords } from '../stores/journal-lines.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import { liveHolder, type Lock, takeLock } from '../stores/lock.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { makeFolder, openForReading } from '../sys/files.ts';
import { listProject, projectsToShow } from './projects.ts';
import { forksOf } from './run-budgets.ts';

export interface LedgerOptions {
  readonly runId: string;
  /** The folder of the project's runs. */
  readonly runs: string;
  /** `~/.meow` */
  readonly shared: string;
  readonly budgets: readonly BudgetConfig[];
  /** The run that this one is a fork of. */
  readonly origin: string | null;
  readonly warn: (line: string) => void;
}

export function budgetLedger(options: LedgerOptions): Ledger {
  const { runs, shared } = options;
  const journals = new Map<string, JournalReader>();
  let isListed = false;
  const list = (): void => {
    if (isListed) return;
    isListed = true;
    // Others must find this run as soon as it spends something.
    listProject(runs);
  };
  return {
    async admit(turns, signal) {
      makeFolder(shared);
      const lock = await waitForLock(join(shared, 'budget.lock'), signal);
      if (lock === null) return null;
      try {
        list();
        const others = await readOthers(options, journals, turns, Date.now());
        return { others, close: () => lock.release() } satisfies LedgerAdmission;
      } catch (error) {
        await lock.release();
        throw error;
      }
    },
  };
}

/** Held for milliseconds; a hundred runs that start a turn at once wait for seconds. */
const LOCK_WAIT_MAX_MS = 120_000;
const LOCK_PAUSE_MS = 15;

/** Null if the signal aborts. */
async function waitForLock(path: string, signal: AbortSignal): Promise<Lock | null> {
  const until = performance.now() + LOCK_WAIT_MAX_MS;
  while (!signal.aborted) {
    const answer = await takeLock(path);
    if (answer.kind === 'taken') return answer.lock;
    if (performance.now() > until) {
      const holder = answer.by === null ? 'another process' : `process ${answer.by.pid}`;
      throw new UsageError(
        `${path} has been locked by ${holder} for two minutes`,
        'end that process, then resume the run',
      );
    }
    // Not all at the same moment.
    await sleep(LOCK_PAUSE_MS * (0.5 + Math.random()));
  }
  return null;
}

async function readOthers(
  { runId, runs, budgets, origin, warn }: LedgerOptions,
  journals: Map<string, JournalReader>,
  turns: readonly string[],
  now: number,
): Promise<OthersSpending> {
  const since = startOfDay(now);
  const isOfDay = budgets.some(({ dayUsd, dayTokens }) => dayUsd !== null || dayTokens !== null);
  const isOfUser = isOfDay && budgets.some(({ scope }) => scope === 'user');
  const read = async (folder: string): Promise<OtherRun> => {
    const reader = journals.get(folder) ?? new JournalReader(folder, warn);
    journals.set(folder, reader);
    reader.advance();
    return { folder, spending: reader.spending, reserved: await reservedIn(folder, reader, since) };
  };
  const ofDay: OtherRun[] = [];
  const folders = isOfUser
    ? new Set([runs, ...projectsToShow([]).projects.map((project) => project.runs)])
    : new Set(isOfDay ? [runs] : []);
  for (const place of folders)
    for (const folder of activeRuns(place, since)) if (folder !== join(runs, runId)) ofDay.push(await read(folder));
  const root = origin ?? runId;
  const tree: OtherRun[] = [];
  for (const id of new Set([root, ...forksOf(runs, root)]))
    if (id !== runId && existsSync(join(runs, id, JOURNAL))) tree.push(await read(join(runs, id)));
  return othersOf({ runs, budgets, since, turns, ofDay, tree });
}

/** Pure: also for simulated runs. */
export function othersOf({
  runs,
  budgets,
  since,
  turns,
  ofDay,
  tree,
}: {
  readonly runs: string;
  readonly budgets: readonly BudgetConfig[];
  /** When the day began, in milliseconds since 1970. */
  readonly since: number;
  readonly turns: readonly string[];
  readonly ofDay: readonly OtherRun[];
  /** Those of the same origin. */
  readonly tree: readonly OtherRun[];
}): OthersSpending {
  return {
    tree: {
      usd: total(tree, ({ spending }) => spending.usd),
      tokens: total(tree, ({ spending }) => spending.tokens),
      reservedUsd: total(tree, ({ reserved }) => reserved.usd),
      reservedTokens: total(tree, ({ reserved }) => reserved.tokens),
    },
    days: budgets.flatMap((budget) => {
      const counted = ofDay.filter(({ folder }) => budget.scope === 'user' || dirname(folder) === runs);
      const day = (
        unit: 'usd' | 'tokens',
      ): { readonly since: number; readonly spent: number; readonly reserved: number } => ({
        since,
        spent: total(counted, ({ spending }) => chargedSince(spending, since)[unit]),
        reserved: total(counted, ({ reserved }) => reserved[unit]),
      });
      return [
        ...(budget.dayUsd === null ? [] : [{ budget: 'day_usd', limit: budget.dayUsd, ...day('usd') } as const]),
        ...(budget.dayTokens === null
          ? []
          : [{ budget: 'day_tokens', limit: budget.dayTokens, ...day('tokens') } as const]),
      ];
    }),
    known: Object.fromEntries(
      turns.flatMap((turn) => {
        const costs = [...new Set([...ofDay, ...tree])].flatMap(({ spending }) => spending.known.get(turn) ?? []);
        return costs.length === 0 ? [] : [[turn, costs.slice(-KNOWN_MAX)] as const];
      }),
    ),
  };
}

export interface OtherRun {
  readonly folder: string;
  readonly spending: Spending;
  readonly reserved: KnownCost;
}

function total(runs: readonly OtherRun[], count: (run: OtherRun) => number): number {
  return runs.reduce((sum, run) => sumOf(sum, count(run)), 0);
}

/** Local time. */
function startOfDay(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}

const JOURNAL = 'journal.jsonl';

/** Runs that changed since then, or that an engine may hold. */
function activeRuns(runs: string, since: number): readonly string[] {
  const names = tolerate(UNUSABLE, [], () => readdirSync(runs)).filter(isRunId);
  return names
    .map((name) => join(runs, name))
    .filter((folder) => {
      const journal = tolerate(UNUSABLE, null, () => statSync(join(folder, JOURNAL)));
      return journal !== null && (journal.mtimeMs >= since || existsSync(`${folder}.yaml.lock`));
    });
}

/** ledger/3 */
async function reservedIn(folder: string, reader: JournalReader, since: number): Promise<KnownCost> {
  let counted = [...reader.spending.reservations.values()];
  if (counted.length > 0 && (await liveHolder(`${folder}.yaml.lock`)) === null)
    counted = counted.filter((reservation) => reservation.at >= since && reader.wasStarted(reservation));
  return counted.reduce((sum, { usd, tokens }) => ({ usd: sumOf(sum.usd, usd), tokens: sum.tokens + tokens }), {
    usd: 0,
    tokens: 0,
  });
}

/** Reads what a journal says about money, and of a journal that grows only what is new (ledger/2). */
class JournalReader {
  spending = emptySpending();
  readonly #folder: string;
  readonly #warn: (line: string) => void;
  /** Attempts whose agent has got the prompt, or may have got it. */
  #delivered = new Set<string>();
  #offset = 0;
  #seq = 1;
  #inode = 0;
  #isUnreadable = false;

  constructor(folder: string, warn: (line: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
  }

  advance(): void {
    const path = join(this.#folder, JOURNAL);
    const file = tolerate(UNUSABLE, null, () => openForReading(path));
    if (file === null) return;
    try {
      const { size, ino } = fstatSync(file);
      // Another file, or its end was cut off.
      if (ino !== this.#inode || size < this.#offset) this.#restart(ino);
      if (size === this.#offset) return;
      const bytes = Buffer.alloc(size - this.#offset);
      const length = readSync(file, bytes, 0, bytes.length, this.#offset);
      const decoded = decodeRecords(bytes.subarray(0, length), this.#seq);
      if (!decoded.ok) return this.#giveUp();
      for (const record of decoded.value.records) this.#note(record);
      this.#seq += decoded.value.records.length;
      this.#offset += decoded.value.wholeBytes;
    } finally {
      closeSync(file);
    }
  }

  wasStarted({ step, attempt }: OpenReservation): boolean {
    if (this.#delivered.has(step)) return true;
    return hasBegun(stepFolder(localRunFiles(this.#folder), step, attempt));
  }

  #note({ at, decisions }: JournalRecord): void {
    for (const decision of decisions) {
      noteSpending(this.spending, decision, at);
      if (decision.kind === 'usage-reserved') this.#delivered.delete(decision.step);
      if (decision.kind === 'step-progressed' && decision.progress.delivery !== undefined)
        this.#delivered.add(decision.step);
    }
  }

  #restart(inode: number): void {
    this.spending = emptySpending();
    this.#delivered = new Set();
    this.#offset = 0;
    this.#seq = 1;
    this.#inode = inode;
  }

  #giveUp(): void {
    if (!this.#isUnreadable) this.#warn(`${this.#folder} cannot be read: what it has spent counts in no budget`);
    this.#isUnreadable = true;
  }
}
