// What the performers of opcodes know of their run: its folders, what was done in it before, and the drivers that start
// something for them.

import type { JsonMap } from '../../base/json.ts';
import type { Result } from '../../base/result.ts';
import type { Driver, Note } from '../../engine/ports.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import type { FailureKind } from '../../ir/failure.ts';
import type { ConductedSpec } from '../../ir/conducted.ts';
import type { PendingEffect } from '../pending-effect.ts';
import type { DriverContext } from '../environment.ts';
import type { Worktree } from '../git/worktree.ts';

export interface OpcodeContext {
  readonly run: DriverContext;
  /** What people and planners look at: artifacts, reports, diffs. Absolute; it is there before the first effect is asked for. */
  readonly runDir: string;
  /** As workflows write it in paths, with the run's id: `.meow/run/ID`. */
  readonly runDirName: string;
  readonly workspace: Workspace;
  /** Every visit of a step so far, in their order, without the one that asks. */
  readonly history: () => readonly Visit[];
  /** Of headless turns, with MEOW_RUN_DIR in their environment. */
  readonly turn: Driver;
  /** Of commands, with the user's environment and MEOW_RUN_DIR. */
  readonly command: Driver;
  readonly settings: OpcodeSettings;
}

/** Where the work is done. */
export interface Workspace {
  /** The same however often it is asked for, in all lives of the engine. An error is a sentence, with its cure. */
  open(): Promise<Result<OpenWorkspace, string>>;
}

export interface OpenWorkspace {
  /** Absolute. */
  readonly folder: string;
  /** Null where the run changes nothing and works without git. */
  readonly git: Worktree | null;
}

export interface OpcodeSettings {
  /** Beside those in the run's directory: paths or globs, seen from the worktree. */
  readonly allowedEntrypoints: readonly string[];
  /** Names of variables that validators may see. */
  readonly envAllow: readonly string[];
  readonly protectedBranches: readonly string[];
}

export interface Visit {
  /** `fix#2`. */
  readonly id: string;
  /** `fix`. */
  readonly step: string;
  readonly visit: number;
  readonly kind: ConductedSpec['kind'] | 'gate';
  /** Null while it is under way. */
  readonly outcome: string | null;
  readonly failure: { readonly kind: FailureKind; readonly message: string } | null;
  readonly outputs: JsonMap;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface Performance<S extends ConductedSpec> {
  readonly effect: Effect;
  readonly spec: S;
  readonly asked: PendingEffect;
  readonly note: Note;
}

/** The same whether it is asked for the first time or found again: what was done in an earlier life is not done again. */
export type Perform<S extends ConductedSpec> = (
  context: OpcodeContext,
  performance: Performance<S>,
) => Promise<Outcome>;
