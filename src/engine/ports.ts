// The whole seam between the engine and the world. The engine owns these interfaces, drivers and stores implement them,
// and neither knows the other.

import type { Dialog, DriverKind, Effect, Outcome, Progress } from '../ir/effect.ts';
import type { Program } from '../ir/program.ts';
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
   * lives is waited for; one that was never begun is started; one that began and left nothing has its remains stopped
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
  /** What is to be typed in place of yes or no; null where that is all. */
  readonly answer: string | null;
  /** What the person said about it, for the agent; absent where nothing was. */
  readonly notes?: string | null;
}
export type Drivers = Readonly<Partial<Record<DriverKind, Driver>>>;

/** Keeps journals, one writer each. Refuses with a UsageError what the operator can mend. */
export interface Store {
  /** Makes the run and takes it for writing. Leaves nothing behind when it fails. */
  create(runId: string, program: Program): Promise<Journal>;
  /** Takes an existing run for writing: refused when another engine holds it, or when its records are damaged. */
  open(runId: string): Promise<Journal>;
  /** Reads without taking; a record that is being written is not seen. */
  read(runId: string): Promise<StoredRun>;
}

export interface StoredRun {
  readonly program: Program;
  readonly programHash: string;
  readonly records: readonly JournalRecord[];
}

export interface Journal extends StoredRun {
  /** Resolves when the records are durable. After a rejection nothing more can be appended. */
  append(records: readonly JournalRecord[]): Promise<void>;
  /** Releases the run; one that was created and has no record is taken away. */
  close(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once at the moment or soon after, never before. Returns how to take it back. */
  at(moment: number, call: () => void): () => void;
}
