// The kernel's decisions. The journal stores them and the state is their fold. Each contains everything `apply` needs,
// so a later version that would decide differently can still replay it.

import type { Json } from '../base/json.ts';
import type { CommandSpec, Delivery, Dialog, EffectSpec, Session, SpawnSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Target } from '../ir/transition.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, RunRequest } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Usage } from '../ir/usage.ts';
import type { EmittedEvent, GateVerdict, Input } from './input.ts';

export type RunEnd = 'done' | 'failed' | 'stopped' | 'paused';

export type Decision =
  | { readonly kind: 'run-started'; readonly request: RunRequest; readonly programHash: string }
  | { readonly kind: 'frame-opened'; readonly frame: FrameSpec }
  | {
      readonly kind: 'steps-added';
      readonly frame: string;
      readonly block: string;
      /** In the order of the block's steps. */
      readonly steps: readonly string[];
    }
  | {
      readonly kind: 'step-started';
      readonly step: string;
      readonly attempt: number;
      /** Null if the step has no effect. */
      readonly effect: EffectSpec<FilledText> | null;
      readonly agent: string | null;
      readonly timeoutAt: number | null;
      /** Items of a foreach; null until they have been read. */
      readonly items: readonly Json[] | null;
      /** Maximum of concurrent iterations; null is unlimited. */
      readonly width: number | null;
    }
  /** The items of a foreach are known. */
  | { readonly kind: 'items-read'; readonly step: string; readonly items: readonly Json[] }
  /** Names of a foreach's iterations, in the order of its items. */
  | { readonly kind: 'iterations-named'; readonly step: string; readonly names: readonly string[] }
  /** Progress of the effect in flight. */
  | { readonly kind: 'step-progressed'; readonly step: string; readonly progress: StepProgress }
  /** Text from the answer to show to the user. */
  | { readonly kind: 'step-printed'; readonly step: string; readonly text: string }
  /** The agent reported its outputs. The step is done once the driver has finished the prompt. */
  | {
      readonly kind: 'step-completing';
      readonly step: string;
      readonly outputs: Outputs;
      readonly notes: string | null;
      readonly message: string | null;
    }
  /** The effect is finished; the step runs until its child frames close. */
  | {
      readonly kind: 'step-answered';
      readonly step: string;
      readonly outputs: Outputs;
      readonly kept: readonly string[];
      readonly route: string | null;
      readonly session: string | null;
    }
  /** The step gets no further child frames. */
  | { readonly kind: 'step-grown'; readonly step: string }
  | {
      readonly kind: 'step-failed-once';
      readonly step: string;
      readonly failure: Failure;
      readonly retryAt: number;
      /** Counts against the retry limit. */
      readonly counts: boolean;
    }
  | { readonly kind: 'step-retried'; readonly step: string }
  /** The attempt is repeated: it was lost with an earlier engine, or interrupted because the run pauses. */
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
      /** Names of the outputs stored in files. */
      readonly kept: readonly string[];
      readonly session: string | null;
      /** The route of its outcome, where it stands in a block that performs another step; absent elsewhere. */
      readonly route?: string | null;
    }
  /** `handling`: the effect on dependent steps. With a recovery, the step is settled later. */
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
  /** `need`: a needed step failed or was skipped. `run-ending`: the run ended first. */
  | { readonly kind: 'steps-skipped'; readonly steps: readonly string[]; readonly why: 'need' | 'run-ending' }
  | { readonly kind: 'frame-failing'; readonly frame: string; readonly step: string }
  | { readonly kind: 'value-returned'; readonly frame: string; readonly value: Json }
  /** Frames whose pending return is cancelled. */
  | { readonly kind: 'frames-dropped'; readonly frames: readonly string[] }
  | { readonly kind: 'frame-closed'; readonly frame: string; readonly ok: boolean; readonly value: Json }
  /** `anew`: an earlier verdict does not answer this request. */
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
  /** If the step does not succeed, that does not count as its own failure. */
  | { readonly kind: 'wait-released'; readonly step: string }
  | { readonly kind: 'event-emitted'; readonly event: EmittedEvent }
  | { readonly kind: 'event-received'; readonly step: string; readonly event: number; readonly asking: string | null }
  /** The agent is running and accepts prompts. */
  | { readonly kind: 'agent-opened'; readonly agent: AgentInfo }
  /** The agent was lost with an earlier engine and is restarted in its session because a step needs it. */
  | { readonly kind: 'agent-reviving'; readonly agent: string; readonly spawn: SpawnSpec<FilledText> }
  /** The agent's session id became known or changed. */
  | { readonly kind: 'agent-session'; readonly agent: string; readonly session: string }
  /** The run ends and kills these agents. */
  | { readonly kind: 'agents-closing'; readonly agents: readonly string[]; readonly force: boolean }
  /** Starts and graceful stops of these agents are cut short. */
  | { readonly kind: 'agents-hastened'; readonly agents: readonly string[] }
  | { readonly kind: 'agent-closed'; readonly agent: string; readonly how: AgentEnd; readonly message: string | null }
  /** Cost of one attempt. */
  | { readonly kind: 'usage-counted'; readonly step: string; readonly usage: Usage }
  /** Nothing new starts. Running steps may finish until `drainUntil`; null is unlimited. */
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
  /** `withdrawn`: the run was being stopped or paused, and continues instead. */
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
 * `killed`: by a step. `ended`: with the run. `gone`: exited by itself. `lost`: exited while no engine was running. A
 * resumed run restarts all but killed agents when a step needs them.
 */
export type AgentEnd = 'killed' | 'ended' | 'gone' | 'lost';

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

/** Absent fields are unchanged. */
export interface StepProgress {
  readonly session?: string;
  readonly delivery?: Delivery;
  /** The agent's question and the gate opened for it; null: the question is gone. */
  readonly dialog?: OpenDialog | null;
}

export interface OpenDialog extends Dialog {
  readonly gate: string;
}

/**
 * `fails`: the frame fails. `continues`: dependent steps run. `routed`: a route was taken. `recovers`: a recovery block
 * runs.
 */
export type FailureHandling = 'fails' | 'continues' | 'routed' | 'recovers';

/** One instance of a block: its variables, and where control continues when it closes. */
export interface FrameSpec {
  readonly id: string;
  /** Prefix of the ids of its steps. */
  readonly prefix: string;
  readonly variables: Readonly<Record<string, Json>>;
  /** The enclosing frame for variable lookup; null for the outermost. */
  readonly scope: string | null;
  /** The parent step; null for the entry frame and for forks. */
  readonly owner: string | null;
  readonly join: FrameJoin;
  /** The calling frame, and the block to enter there on return. */
  readonly caller: string | null;
  readonly returnTo: Target | null;
  readonly lane: string;
  /** The lane that forked this one. */
  readonly forkedFrom: string | null;
  /** The frame that this one replaces, taking over its owner and caller. */
  readonly replaces: string | null;
  /** Session for the first agent turn in this frame. */
  readonly session: Session;
  readonly depth: number;
  readonly recoveryDepth: number;
}

/**
 * Effect of the frame's end on its owner. `wait`: the owner step ends with the frame. `inline`: the frame is part of
 * the owner's frame. `recover`: settles the failed owner. `answer`: performs the owner, whose outcome is that of the
 * frame's last step. `loose`: no step waits, but the run does.
 */
export type FrameJoin = 'wait' | 'inline' | 'recover' | 'answer' | 'loose';

export interface JournalRecord {
  /** From 1, without gaps. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}
