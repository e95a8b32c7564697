// What a fork keeps of another run: results of steps, and the agents that they started.

import type { Json, JsonMap } from '../base/json.ts';
import type { SpawnSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Outputs } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import type { Transition } from '../ir/transition.ts';

/** What a fork keeps of the run that it comes from, by step id. It needs nothing else of that run. */
export interface Fork {
  readonly from: string;
  /** Steps that must run again, with everything that depends on them. */
  readonly discarded: readonly string[];
  readonly results: Readonly<Record<string, KeptResult>>;
  /** Absolute paths of scripts that have changed since the old run began; absent: none. */
  readonly scripts?: readonly string[];
  /** Where the worktree begins, of a run on a repository: see drivers/conductor/workspace.ts. */
  readonly worktree?: JsonMap;
  /** The status of steps without a result. */
  readonly unfinished: Readonly<Record<string, string>>;
}

/** A result, with the key of the step that had it: see keep.ts. */
export interface KeptResult {
  readonly outputs: Outputs;
  /** Names of the outputs stored in files. */
  readonly kept: readonly string[];
  readonly key: JsonMap;
  readonly attempt: number;
  readonly route: string | null;
  readonly follows: readonly Transition[] | null;
  /** Workflows that its transitions enter, as in `Success`. */
  readonly grown: readonly string[];
  readonly session: string | null;
  readonly notes?: string;
  /** Of a foreach. */
  readonly items?: readonly Json[];
  /** Of a step that a later one of its block judges, or of a visit that the workflow has gone on from. */
  readonly failure?: Failure;
  /** The agent that it started. */
  readonly agent?: AgentInfo;
}

export interface AgentInfo {
  readonly name: string;
  readonly adapter: string;
  /** Absolute path. */
  readonly workdir: string;
  readonly session: string | null;
  /** How a person can attach to it; null without a terminal. */
  readonly terminal: string | null;
  /** The spawn request, used for restarts. */
  readonly spawn: SpawnSpec<FilledText>;
}
