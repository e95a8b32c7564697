// The whole seam between the engine and the world. The engine owns these interfaces, drivers and stores implement them,
// and neither knows the other.

import type { UsageError } from '../base/usage-error.ts';
import type { Dialog, DriverKind, Effect, Outcome, Progress } from '../ir/effect.ts';
import type { Program, Source } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';

/** Performs one kind of effect. Never throws for what the world does: it answers with a failure. */
export interface Driver {
  /** The engine has never asked for this effect before. Returns at once; answers later, at least once. */
  start(effect: Effect, answer: Answer, note?: Note): void;
  /**
   * The engine is about to ask for this effect: the record that asks is on its way to the disk. What takes time and begins
   * nothing may be done now. It is followed by `start`, or by the end of the engine: then nothing has begun. Not called
   * before the run has a durable record.
   */
  prepare?(effect: Effect): void;
  /**
   * The engine may have asked in an earlier life. An effect that left its result is answered with it; one that still
   * is running is awaited; one that was never begun is started; one that began and left nothing has its remains stopped
   * and is answered with the failure `lost`.
   */
  find(effect: Effect, answer: Answer, note?: Note): void;
  /** Ends the effect and all that it started; it is still answered. Unknown ids are ignored. */
  stop(effectId: string, how: StopHow): void;
  /**
   * What the effect was for has been reported by other means (an agent called `meow done`): it is to be wound up, and
   * answered with a success. Unknown ids are ignored. Only drivers of effects that can be reported have it.
   */
  conclude?(effectId: string): void;
  /** A person has decided what an effect's progress told of as a dialog. May come twice. Unknown ids are ignored. */
  decide?(effectId: string, verdict: DialogVerdict): void;
}

export interface StopHow {
  /** Without grace. */
  readonly force: boolean;
  /** Its time is up; or the run is ending, and nobody is to wait for it. */
  readonly why: 'timeout' | 'run-ending';
}

export type Answer = (outcome: Outcome) => void;
/**
 * To be told what is known before the answer, as often as there is something. Resolves when that is durable; never where it
 * cannot be, since nothing more may be begun then.
 */
export type Note = (progress: Progress) => Promise<void>;

export interface DialogVerdict {
  /** As it was noted: what is asked meanwhile may be something else. */
  readonly dialog: Dialog;
  readonly approved: boolean;
  /** What is to be typed in place of yes or no; null if that is enough. */
  readonly answer: string | null;
  /** The person's remarks for the agent. */
  readonly notes?: string | null;
}
/** The driver of each kind of effect; made when the first effect of that kind is asked for. */
export type Drivers = Readonly<Partial<Record<DriverKind, () => Driver>>>;

/** Stores runs: a Program, a journal with at most one writer, and files. Throws a UsageError for what the operator can fix. */
export interface Store {
  /** Creates the run and locks it for writing. Leaves nothing behind if it fails. */
  create(runId: string, program: Program): Promise<Journal>;
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
  /** Resolves when the records are durable. After a rejection nothing more can be appended. */
  append(records: readonly JournalRecord[]): Promise<void>;
  /** Releases the run. Removes it if it has no record. */
  close(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once at the moment or soon after, never before. Returns how to take it back. */
  at(moment: number, call: () => void): () => void;
}
