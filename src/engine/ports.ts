// All interfaces between the engine and the world. The engine owns them; drivers and stores implement them and do not
// know each other.

import type { UsageError } from '../base/errors.ts';
import type { Dialog, DriverKind, Effect, Outcome, Progress } from '../ir/effect.ts';
import type { Program, Source } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Taken } from '../kernel/input.ts';
import type { OthersSpending } from '../kernel/spending.ts';

/** Performs one kind of effect. Never throws for what the world does: it answers with a failure. */
export interface Driver {
  /** For an effect that was never requested before. Returns at once; answers later, at least once. */
  start(effect: Effect, answer: Answer, note?: Note): void;
  /**
   * For an effect that an earlier engine may have requested. If it left a result, that is the answer; if it is running,
   * the driver waits for it; if it never began, it starts; if it began and left nothing, its leftovers are killed and
   * the answer is `lost`.
   */
  find(effect: Effect, answer: Answer, note?: Note): void;
  /** Stops the effect and everything it started; it is still answered. Unknown ids are ignored. */
  stop(effectId: string, how: StopHow): void;
  /**
   * The purpose of the effect was reported in another way (an agent called `meow done`): wind it up and answer with a
   * success. Unknown ids are ignored. Only for effects that can be reported.
   */
  conclude?(effectId: string): void;
  /** A person decided about a dialog of the effect. May be called twice. Unknown ids are ignored. */
  decide?(effectId: string, verdict: DialogVerdict): void;
}

export interface StopHow {
  /** Without a grace period. */
  readonly force: boolean;
  /** Its timeout expired; or the run is ending. */
  readonly why: 'timeout' | 'run-ending';
}

export type Answer = (outcome: Outcome) => void;
/**
 * Reports progress before the answer, any number of times. Resolves when it is durable; never if it cannot be, since
 * then nothing more may start.
 */
export type Note = (progress: Progress) => Promise<void>;

export interface DialogVerdict {
  /** As it was reported: the screen may show another by now. */
  readonly dialog: Dialog;
  readonly approved: boolean;
  /** Text to type instead of yes or no; null if there is none. */
  readonly answer: string | null;
  /** The person's remarks for the agent. */
  readonly notes?: string | null;
}
/** The driver of each kind of effect; made when the first effect of that kind is asked for. */
export type Drivers = Readonly<Partial<Record<DriverKind, () => Driver>>>;

/**
 * What other runs have spent. While an admission is open, no other run of the user may start a turn, so it is closed as soon
 * as the decisions that it led to are durable.
 */
export interface Ledger {
  /** Waits for its turn. `turns`: those whose known costs are wanted. Resolves with null if the signal aborts first. */
  admit(turns: readonly string[], signal: AbortSignal): Promise<LedgerAdmission | null>;
}

export interface LedgerAdmission {
  readonly others: OthersSpending;
  close(): Promise<void>;
}

/** Stores runs: a Program, a journal with at most one writer, and files. Throws a UsageError for what the operator can fix. */
export interface Store {
  /** Its runs are driven on other machines too: their sockets, inboxes and terminals may not be here. */
  readonly isShared?: true;
  /**
   * Creates the run and locks it for writing. Leaves nothing behind if it fails. `fill` writes the files that the run
   * begins with; nobody else sees the run before they are there.
   */
  create(runId: string, program: Program, fill?: (files: RunFiles) => Promise<void>): Promise<Journal>;
  /** Locks an existing run for writing. Refuses a run that another engine holds, and one whose records are damaged. */
  open(runId: string): Promise<Journal>;
  /** Reads without locking. Never returns a record that is only partly written. */
  read(runId: string): Promise<StoredRun>;
  /** The most recently active run first, unreadable runs last. The cost of an entry does not grow with its journal. */
  list(query?: RunQuery): Promise<readonly RunEntry[]>;
  /**
   * Records from `fromSeq` on: first those that are stored, then each as it is stored. Costs what is new, and nothing while
   * nothing happens. Ends after `lost`, and when `signal` aborts.
   */
  follow(runId: string, fromSeq: number, signal?: AbortSignal): AsyncIterable<JournalEvent>;
  /** The live engine that holds the run; null if there is none. */
  holder(runId: string): Promise<RunHolder | null>;
  /** The Program as it is stored, unchecked; empty if it is missing. For searches over many runs. */
  programText(runId: string): Promise<string>;
  /** What steps and agents of the run have left as files. The run need not exist. */
  files(runId: string): RunFiles;
}

export interface RunQuery {
  /** Only runs whose ids begin so. */
  readonly prefix?: string;
  /** At most so many. */
  readonly limit?: number;
}

/** What a list of runs shows. A field is null if it cannot be read; `read` throws the reason. */
export interface RunEntry {
  readonly id: string;
  /** When the journal last changed, in milliseconds since 1970. */
  readonly changedAt: number | null;
  readonly source: Source | null;
  readonly startedAt: number | null;
  /** The last record; also null if nothing is recorded yet. */
  readonly last: JournalRecord | null;
}

export interface RunHolder {
  readonly pid: number;
  readonly host: string;
  /** ISO 8601. */
  readonly since: string;
  /** Differs each time that a run is locked. */
  readonly take: string;
}

export type JournalEvent =
  /** In sequence, without a gap. */
  | { readonly kind: 'records'; readonly records: readonly JournalRecord[] }
  /**
   * A write that was cut off, or failed, has been removed. `lastSeq` is the last record that counts: the next one has the
   * number after it. Drop later records, if any were reported; the engine never acted on them.
   */
  | { readonly kind: 'cut'; readonly lastSeq: number }
  /** Nothing more can be followed. `deleted` also if it never existed; `replaced`: another journal has taken its place. */
  | { readonly kind: 'lost'; readonly why: JournalLoss; readonly refusal: UsageError };

export type JournalLoss = 'deleted' | 'replaced' | 'damaged' | 'other-format' | 'denied';

/**
 * Files of one run. Paths are relative to the run, with `/` between segments and without `..`; `''` is the run itself.
 * Links are not followed out of the run.
 */
export interface RunFiles {
  /** They are not on this machine: `localPath` throws. */
  readonly isRemote?: true;
  /** What is directly in a folder, by name; empty if the folder does not exist. */
  list(folder: string): Promise<readonly RunFile[]>;
  /** At most `length` bytes from `start` on, fewer at the end of the file; null if there is no such file. */
  read(path: string, start?: number, length?: number): Promise<Uint8Array | null>;
  /** Yields at once, and whenever something directly in the folder may have changed. Ends when `signal` aborts. */
  changes(folder: string, signal: AbortSignal): AsyncIterable<void>;
  /** Adds to the end of a file. Creates the file and its folders. */
  append(path: string, bytes: Uint8Array): Promise<void>;
  /** Readers find the old content or the new, and nothing in between. Creates the folders. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
  /** A file, or a folder with everything in it. Succeeds if it does not exist. */
  remove(path: string): Promise<void>;
  /** Local only: the path on this machine, for processes that are started here. Throws if the files are elsewhere. */
  localPath(path: string): string;
}

export interface RunFile {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  /** In bytes; 0 unless it is a file. */
  readonly size: number;
}

export interface StoredRun {
  readonly program: Program;
  readonly programHash: string;
  readonly records: readonly JournalRecord[];
}

export interface Journal extends StoredRun {
  /** Of a shared run: the machine that drives it now, for its next record. */
  readonly taken?: Taken;
  /** Resolves when the records are durable. After a rejection nothing more can be appended. */
  append(records: readonly JournalRecord[]): Promise<void>;
  /** Releases the run. Removes it if it has no record. */
  close(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once at that time or soon after, never before. Returns a function that cancels it. */
  at(moment: number, call: () => void): () => void;
}
