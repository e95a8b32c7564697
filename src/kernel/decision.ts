// What the kernel makes of an input. The journal keeps decisions, the state is their fold, and each says enough to be
// applied by a later version that would decide otherwise.

import type { Json } from '../base/json.ts';
import type { CommandSpec, Delivery, Dialog, EffectSpec, Session, SpawnSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Target } from '../ir/follow.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, RunRequest } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Usage } from '../ir/usage.ts';
import type { EmittedEvent, GateVerdict, Input } from './input.ts';

export type RunEnd = 'done' | 'failed' | 'stopped' | 'paused';

export type Decision =
  | { readonly kind: 'run-started'; readonly request: RunRequest; readonly programHash: string }
  | { readonly kind: 'frame-opened'; readonly frame: FrameOpening }
  | {
      readonly kind: 'steps-added';
      readonly frame: string;
      readonly block: string;
      /** In the block's order. */
      readonly steps: readonly string[];
    }
  | {
      readonly kind: 'step-started';
      readonly step: string;
      readonly attempt: number;
      /** Null where there is nothing to ask of the world. */
      readonly effect: EffectSpec<FilledText> | null;
      readonly agent: string | null;
      readonly timeoutAt: number | null;
      /** What a foreach iterates over; null while it is still to be read. */
      readonly items: readonly Json[] | null;
      /** How many of its iterations may be open at once; null is no limit. */
      readonly width: number | null;
    }
  /** What a foreach iterates over has been read. */
  | { readonly kind: 'items-read'; readonly step: string; readonly items: readonly Json[] }
  /** What the iterations of a foreach are called, in the order of its items. */
  | { readonly kind: 'iterations-named'; readonly step: string; readonly names: readonly string[] }
  /** What became known of its effect. */
  | { readonly kind: 'step-progressed'; readonly step: string; readonly progress: StepProgress }
  /** Its answer has something to say to whoever watches. */
  | { readonly kind: 'step-printed'; readonly step: string; readonly text: string }
  /** The agent has reported; the step is over when the driver has taken note. */
  | {
      readonly kind: 'step-completing';
      readonly step: string;
      readonly outputs: Outputs;
      readonly notes: string | null;
      readonly message: string | null;
    }
  /** The effect is over; the step goes on until the blocks below it are. */
  | {
      readonly kind: 'step-answered';
      readonly step: string;
      readonly outputs: Outputs;
      readonly kept: readonly string[];
      readonly route: string | null;
      readonly session: string | null;
    }
  /** No further block will come below the step. */
  | { readonly kind: 'step-grown'; readonly step: string }
  | {
      readonly kind: 'step-failed-once';
      readonly step: string;
      readonly failure: Failure;
      readonly retryAt: number;
      /** Whether it counts against the step's retries. */
      readonly counts: boolean;
    }
  | { readonly kind: 'step-retried'; readonly step: string }
  /** To be run again: lost in an earlier life of the engine, or given up while it waited for a person in a run that pauses. */
  | { readonly kind: 'step-lost'; readonly step: string; readonly why: 'engine' | 'pause' }
  | {
      readonly kind: 'steps-stopping';
      readonly steps: readonly string[];
      readonly why: StopReason;
      readonly force: boolean;
    }
  | {
      readonly kind: 'step-done';
      readonly step: string;
      readonly outputs: Outputs;
      /** Which of the outputs are kept in files. */
      readonly kept: readonly string[];
      readonly session: string | null;
      /** The route of its outcome, where it stands in a block that performs another step; absent elsewhere. */
      readonly route?: string | null;
    }
  /** `handling`: what becomes of those who need it. A recovery settles the step later. */
  | {
      readonly kind: 'step-failed';
      readonly step: string;
      readonly failure: Failure;
      readonly handling: FailureHandling;
    }
  | {
      readonly kind: 'step-recovered';
      readonly step: string;
      readonly outputs: Outputs;
      readonly kept: readonly string[];
    }
  | { readonly kind: 'recovery-failed'; readonly step: string }
  /** `need`: something they need is not to be had. `run-ending`: the run ended before they did. */
  | { readonly kind: 'steps-skipped'; readonly steps: readonly string[]; readonly why: 'need' | 'run-ending' }
  | { readonly kind: 'frame-failing'; readonly frame: string; readonly step: string }
  | { readonly kind: 'value-returned'; readonly frame: string; readonly value: Json }
  /** Frames that wait for a return which will not come. */
  | { readonly kind: 'frames-dropped'; readonly frames: readonly string[] }
  | { readonly kind: 'frame-closed'; readonly frame: string; readonly ok: boolean; readonly value: Json }
  /** `anew`: what was decided about it before belonged to an earlier asking. */
  | {
      readonly kind: 'gate-asked';
      readonly gate: string;
      readonly step: string;
      readonly prompt: string | null;
      readonly anew: boolean;
    }
  | { readonly kind: 'gate-expired'; readonly gate: string; readonly step: string }
  | {
      readonly kind: 'gate-decided';
      readonly gate: string;
      readonly verdict: GateVerdict;
      readonly message: string | null;
    }
  /** What the step comes to, unless it is a success, is not its own doing. */
  | { readonly kind: 'wait-released'; readonly step: string }
  | { readonly kind: 'event-emitted'; readonly event: EmittedEvent }
  | { readonly kind: 'event-received'; readonly step: string; readonly event: number; readonly asking: string | null }
  /** An agent is there, and can be prompted. */
  | { readonly kind: 'agent-opened'; readonly agent: AgentOpening }
  /** It was lost with an earlier life of the engine, is wanted again, and is started anew in its session. */
  | { readonly kind: 'agent-reviving'; readonly agent: string; readonly spawn: SpawnSpec<FilledText> }
  /** The session that an agent is in became known, or is another from now on. */
  | { readonly kind: 'agent-session'; readonly agent: string; readonly session: string }
  /** Agents that are ended with the run. */
  | { readonly kind: 'agents-closing'; readonly agents: readonly string[]; readonly force: boolean }
  /** They are given no more time to come or to go. */
  | { readonly kind: 'agents-hastened'; readonly agents: readonly string[] }
  | { readonly kind: 'agent-closed'; readonly agent: string; readonly how: AgentEnd; readonly message: string | null }
  /** What a step's attempt has cost. */
  | { readonly kind: 'usage-counted'; readonly step: string; readonly usage: Usage }
  /** From here on nothing new starts. What is running may finish until the moment given; null is no limit. */
  | {
      readonly kind: 'run-ending';
      readonly end: RunEnd;
      readonly reason: string | null;
      readonly drainUntil: number | null;
    }
  | {
      readonly kind: 'cleanup-started';
      readonly attempt: number;
      readonly effect: CommandSpec<FilledText>;
      readonly timeoutAt: number;
    }
  | { readonly kind: 'cleanup-stopping'; readonly force: boolean }
  | { readonly kind: 'cleanup-finished' }
  /** `withdrawn`: it was about to end as stopped or paused, and goes on instead. */
  | {
      readonly kind: 'run-resumed';
      readonly reopened: readonly string[];
      readonly withdrawn: boolean;
      readonly allowance: Allowance | null;
    }
  | { readonly kind: 'warned'; readonly message: string }
  | { readonly kind: 'run-ended'; readonly end: RunEnd; readonly reason: string | null; readonly result: Json };

export type StopReason = 'timeout' | 'run-ending';

/**
 * `killed`: by a step. `ended`: with the run. `gone`: by itself. `lost`: while no engine watched. Whoever resumes the run
 * has all but the first started anew where they are needed.
 */
export type AgentEnd = 'killed' | 'ended' | 'gone' | 'lost';

export interface AgentOpening {
  readonly name: string;
  readonly adapter: string;
  /** Absolute. */
  readonly workdir: string;
  readonly session: string | null;
  /** Where people find it; null where it has no terminal. */
  readonly terminal: string | null;
  /** How it was started, for starting it anew. */
  readonly spawn: SpawnSpec<FilledText>;
}

/** What is left out has not changed. */
export interface StepProgress {
  readonly session?: string;
  readonly delivery?: Delivery;
  /** A gate was opened for what an agent asks; null: it asks no longer. */
  readonly dialog?: OpenDialog | null;
}

export interface OpenDialog extends Dialog {
  readonly gate: string;
}

/** `fails`: the frame fails. `continues`: those who need it go on. `routed`: a route followed. `recovers`: a block below makes good. */
export type FailureHandling = 'fails' | 'continues' | 'routed' | 'recovers';

/** A frame is one instance of a block: its variables, and where control goes when it is over. */
export interface FrameOpening {
  readonly id: string;
  /** Before the ids of its steps. */
  readonly prefix: string;
  readonly variables: Readonly<Record<string, Json>>;
  /** Where names are looked up that this frame does not have; null at the outermost. */
  readonly scope: string | null;
  /** The step it stands below; null for the entry and for forks. */
  readonly owner: string | null;
  readonly join: FrameJoin;
  /** The frame that called this one, and the block to enter there on return. */
  readonly caller: string | null;
  readonly returnTo: Target | null;
  /** The line of control it belongs to. */
  readonly lane: string;
  /** The line of control that forked this one off. */
  readonly forkedFrom: string | null;
  /** The frame whose place it takes: that one is over, and its owner and caller are this one's. */
  readonly replaces: string | null;
  /** How the next turn in it begins, until one has answered. */
  readonly session: Session;
  readonly depth: number;
  readonly recoveryDepth: number;
}

/**
 * What the end of a frame means to its owner. `wait`: the owner step ends as the frame does. `inline`: the frame is a part
 * of the owner's frame. `recover`: it settles the failed owner. `answer`: it performs the owner, whose outcome is that of the
 * frame's last step. `loose`: nobody waits, the run counts it.
 */
export type FrameJoin = 'wait' | 'inline' | 'recover' | 'answer' | 'loose';

export interface JournalRecord {
  /** From 1, without a gap. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}
