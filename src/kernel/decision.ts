// The kernel's decisions. The journal stores them and the state is their fold. Each contains everything `apply` needs,
// so a later version that would decide differently can still replay it.

import type { Json } from '../base/json.ts';
import type { CommandSpec, Delivery, Dialog, EffectSpec, Session, SpawnSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Outputs, Usage } from '../ir/output.ts';
import type { Allowance, Budgets, Limits, ProgramPart, RunRequest } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Target } from '../ir/transition.ts';
import type { AgentInfo, Fork } from './fork.ts';
import type { EmittedEvent, GateVerdict, Input, Taken } from './input.ts';
import type { Extra, PauseCause, Reservation } from './spending.ts';

export type RunEnd = 'done' | 'failed' | 'stopped' | 'paused';

export type Decision = Readonly<
  /** `fork`: the run that this one comes from, and the results that it keeps. */
  | ({ kind: 'run-started'; request: RunRequest; programHash: string; fork?: Fork } & Taken)
  /** A workflow that was not known at the start, and that a transition enters next. */
  | { kind: 'program-grown'; part: ProgramPart }
  | { kind: 'frame-opened'; frame: FrameSpec }
  /** `steps`: in the order of the block's steps. */
  | { kind: 'steps-added'; frame: string; block: string; steps: readonly string[] }
  /** `keptFrom`: the run whose result it keeps. It is settled at once, or with the steps below it. */
  | ({ kind: 'step-started'; step: string; attempt: number; keptFrom?: string } & PreparedStep)
  /** The items of a foreach are known. */
  | { kind: 'items-read'; step: string; items: readonly Json[] }
  /** Names of a foreach's iterations, in the order of its items. */
  | { kind: 'iterations-named'; step: string; names: readonly string[] }
  /** The next round of a loop begins at that time. */
  | { kind: 'round-delayed'; step: string; round: number; until: number }
  | { kind: 'round-due'; step: string }
  | { kind: 'step-progressed'; step: string; progress: StepProgress }
  /** Text from the answer to show to the user. */
  | { kind: 'step-printed'; step: string; text: string }
  /** The agent reported its outputs. The step is done once the driver has finished the prompt. */
  | { kind: 'step-completing'; step: string; outputs: Outputs; notes: string | null; message: string | null }
  /** Its effect ended at this time, before an engine could record it. The outcome follows. */
  | { kind: 'effect-ended'; step: string; endedAt: number }
  /** The effect is finished; the step runs until its child frames close. */
  | ({ kind: 'step-answered'; step: string; route: string | null; session: string | null } & StepOutputs)
  /** The step gets no further child frames. */
  | { kind: 'step-grown'; step: string }
  /** `counts`: against the retry limit. */
  | { kind: 'step-failed-once'; step: string; failure: Failure; retryAt: number; counts: boolean }
  | { kind: 'step-retried'; step: string }
  /** An attempt failed, and the next one starts when the run is resumed. */
  | { kind: 'step-parked'; step: string; failure: Failure }
  /** The attempt is repeated: it was lost with an earlier engine, began on another machine, or was interrupted by a pause. */
  | { kind: 'step-lost'; step: string; why: 'engine' | 'pause' | 'machine' }
  | { kind: 'steps-stopping'; steps: readonly string[]; why: StopReason; force: boolean }
  /** `route`: of its outcome, if its block performs another step; absent elsewhere. */
  | ({ kind: 'step-done'; step: string; session: string | null; route?: string | null } & StepOutputs)
  /** `handling`: the effect on dependent steps. With a recovery, the step is settled later. */
  | { kind: 'step-failed'; step: string; failure: Failure; handling: FailureHandling }
  | ({ kind: 'step-recovered'; step: string } & StepOutputs)
  | { kind: 'recovery-failed'; step: string }
  /** `need`: a needed step failed or was skipped. `run-ending`: the run ended first. */
  | { kind: 'steps-skipped'; steps: readonly string[]; why: 'need' | 'run-ending' }
  | { kind: 'frame-failing'; frame: string; step: string }
  | { kind: 'value-returned'; frame: string; value: Json }
  /** Frames whose pending return is cancelled. */
  | { kind: 'frames-dropped'; frames: readonly string[] }
  | { kind: 'frame-closed'; frame: string; ok: boolean; value: Json }
  /** `anew`: an earlier verdict does not answer this request. `approvers`: absent: those of the gate step, if any. */
  | {
      kind: 'gate-asked';
      gate: string;
      step: string;
      prompt: string | null;
      anew: boolean;
      approvers?: readonly string[];
    }
  | { kind: 'gate-expired'; gate: string; step: string }
  | { kind: 'gate-decided'; gate: string; verdict: GateVerdict; message: string | null; asking?: number }
  /** For people: nothing follows from it. */
  | { kind: 'report-refused'; step: string; reason: string }
  /** If the step does not succeed, that does not count as its own failure. */
  | { kind: 'wait-released'; step: string }
  | { kind: 'event-emitted'; event: EmittedEvent }
  | { kind: 'event-received'; step: string; event: number; asking: string | null }
  /** The agent is running and accepts prompts. */
  | { kind: 'agent-opened'; agent: AgentInfo }
  /** Its spawn was kept. It starts when a step needs it. */
  | { kind: 'agent-kept'; agent: AgentInfo }
  /** The agent was lost with an earlier engine and is restarted in its session because a step needs it. */
  | { kind: 'agent-reviving'; agent: string; spawn: SpawnSpec<FilledText> }
  /** The agent's session id became known or changed. */
  | { kind: 'agent-session'; agent: string; session: string }
  /** The run ends and kills these agents. */
  | { kind: 'agents-closing'; agents: readonly string[]; force: boolean }
  /** Starts and graceful stops of these agents are cut short. */
  | { kind: 'agents-hastened'; agents: readonly string[] }
  | { kind: 'agent-closed'; agent: string; how: AgentEnd; message: string | null }
  /** Precedes the start of a turn if the run has a budget. Ended by the outcome of the turn. */
  | ({ kind: 'usage-reserved' } & Reservation)
  | { kind: 'usage-counted'; step: string; usage: Usage }
  /** Nothing new starts. Running steps may finish until `drainUntil`; null is unlimited. */
  /** `pause`: the budget that does not allow another turn. */
  | { kind: 'run-ending'; end: RunEnd; reason: string | null; drainUntil: number | null; pause?: PauseCause }
  | { kind: 'cleanup-started'; attempt: number; effect: CommandSpec<FilledText>; timeoutAt: number }
  | { kind: 'cleanup-stopping'; force: boolean }
  | { kind: 'cleanup-finished' }
  /** An engine stops the run of one that is gone. In between there was none. */
  | { kind: 'engine-replaced' }
  /** `withdrawn`: the run was being stopped or paused, and continues instead. `limits`: absent if they are unchanged. */
  | ({
      kind: 'run-resumed';
      reopened: readonly string[];
      withdrawn: boolean;
      allowance: Allowance | null;
      limits?: Limits;
      /** Those of the configuration; absent if they are unchanged. */
      budgets?: Budgets | null;
      /** By how much every budget is raised, in all; absent if that is unchanged. */
      extra?: Extra;
    } & Taken)
  /** `refusal`: a verdict was refused. */
  | { kind: 'warned'; message: string; refusal?: true }
  /** `lasted`: milliseconds without absences, if there were any. `cost`: absent if nothing was reported. */
  | { kind: 'run-ended'; end: RunEnd; reason: string | null; result: Json; lasted?: number; cost?: Cost }
>;

/** What a step needs to start. */
export interface PreparedStep {
  /** Null if the step has no effect. */
  readonly effect: EffectSpec<FilledText> | null;
  readonly agent: string | null;
  readonly timeoutAt: number | null;
  /** Items of a foreach; null until they have been read. */
  readonly items: readonly Json[] | null;
  /** Maximum of concurrent iterations; null is unlimited. */
  readonly width: number | null;
  /** Maximum of rounds; absent if the step is not a loop. */
  readonly rounds?: number;
}

/** `kept`: names of the outputs stored in files. */
export interface StepOutputs {
  readonly outputs: Outputs;
  readonly kept: readonly string[];
}

export type StopReason = 'timeout' | 'run-ending';

/**
 * `killed`: by a step. `ended`: with the run. `gone`: exited by itself. `lost`: exited while no engine was running. A
 * resumed run restarts all but killed agents when a step needs them.
 */
export type AgentEnd = 'killed' | 'ended' | 'gone' | 'lost';

/** What agents reported. */
export interface Cost {
  readonly usd: number;
  readonly tokens: number;
  /** Turns without a reported price. */
  readonly unpriced: number;
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

/** `fails`: the frame fails. `continues`: dependent steps run. `routed`: a route is taken. `recovers`: by a block. */
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
  /** Number of the round that it is part of, if the owner is a loop. */
  readonly round?: number;
}

/**
 * Effect of the frame's end on its owner. `wait`: the owner step ends with the frame. `inline`: the frame is part of
 * the owner's frame. `recover`: settles the failed owner. `answer`: performs the owner, whose outcome is that of the
 * frame's last step. `loose`: no step waits, but the run does. `check`: like `wait`; the route of the frame's last step
 * says whether a loop is over.
 */
export type FrameJoin = 'wait' | 'inline' | 'recover' | 'answer' | 'loose' | 'check';

/** What of a record changes the state: its input does not. */
export type AppliedRecord = Pick<JournalRecord, 'at' | 'decisions'>;

export interface JournalRecord {
  /** From 1, without gaps. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}
