// A workflow as syntax: each step's request and routes, with the positions of everything that is checked against other
// steps; and the context for reading it.

import type { Place } from '../../base/source.ts';
import type {
  AgentRequest,
  EndInspection,
  GitOperation,
  Hints,
  Policy,
  PolicyPair,
  Validator,
  Witness,
} from '../../ir/conductor.ts';
import type { GateSpec } from '../../ir/effect.ts';
import type { Limits } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import type { Entered } from '../language.ts';
import type { Report } from '../report.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import type { ConductorConfig } from './config.ts';
import type { LimitsSyntax } from './limits.ts';
import type { FindPrompt, Prompts } from './prompts.ts';

export const OPCODES = ['RUN_AGENT', 'RUN_VALIDATION', 'EVALUATE', 'GATE', 'ROLLBACK', 'STOP'] as const;
export type Opcode = (typeof OPCODES)[number];

/** Ends a run; a route may name it without a step. */
export const STOP = 'STOP';

/** The parts of a step that others refer to. */
export interface Outline {
  readonly id: string;
  readonly opcode: Opcode;
  readonly map: YamlMap;
  /** Position of its id. */
  readonly place: Place;
}

export interface StepSyntax extends Outline {
  /** Null after an error was reported. */
  readonly spec: OpcodeSpec | null;
  readonly timeoutMs: number | null;
  readonly routes: readonly Route[];
  readonly allowUnreachable: boolean;
  readonly inputs: readonly YamlScalar[];
  /** The targets that an EVALUATE allows. */
  readonly allowedNext: readonly YamlScalar[];
  /** The first validator of a RUN_VALIDATION that may leave a report with new goldens. */
  readonly harness: Place | null;
  readonly gate: GateType | null;
  /** Result of a STOP; null if the route decides. */
  readonly verdict: EndInspection['verdict'] | null;
}

/** The parts of a step that depend on its opcode. */
export type Particulars = Pick<StepSyntax, 'spec'> &
  Partial<Pick<StepSyntax, 'timeoutMs' | 'inputs' | 'allowedNext' | 'harness' | 'gate' | 'verdict'>>;

export type OpcodeSpec =
  | RunAgent
  | RunValidation
  | Evaluate
  | { readonly kind: 'gate'; readonly effect: GateSpec<Text> }
  | { readonly kind: 'rollback'; readonly target: Extract<GitOperation, { kind: 'rollback' }>['target'] }
  | { readonly kind: 'stop'; readonly verdict: EndInspection['verdict']; readonly reason: string | null };

/** An agent's turn in the run's worktree. Its changes are checked afterwards, whatever it says. */
export interface RunAgent {
  readonly kind: 'run_agent';
  readonly agent: AgentRequest;
  readonly policy: PolicyPair;
  /** Must confirm the completion; null: no confirmation needed. */
  readonly witness: Witness | null;
}

/** Commands in sequence, all of them. The worst outcome is that of the step. */
export interface RunValidation {
  readonly kind: 'run_validation';
  readonly validators: readonly Validator[];
  readonly idleMs: number | null;
  /** Variables that scripts see. */
  readonly envAllow: readonly string[];
  readonly witness: Witness | null;
}

/** An evaluation with a fixed form: one of five statuses decides the route. */
export interface Evaluate {
  readonly kind: 'evaluate';
  readonly evaluator:
    | { readonly kind: 'agent'; readonly agent: AgentRequest }
    | { readonly kind: 'command'; readonly command: string; readonly idleMs: number | null };
  readonly allowedNext: readonly string[];
  readonly partialMax: number;
  readonly hints: AgentRequest['hints'];
}

export interface Route {
  readonly key: string;
  readonly keyPlace: Place;
  readonly to: string;
  /** Position of the target, or of the step if it is implicit. */
  readonly place: Place;
  readonly witness: Witness | null;
  /** The workflow that it enters instead of a step; `to` is then its path. */
  readonly enters: Entering | null;
}

export interface Entering {
  /** Name of its first block. */
  readonly entry: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The step to continue with when it is done; null: STOP. */
  readonly returnTo: YamlScalar | null;
}

/** The step or STOP that a route leads to, possibly after another workflow. */
export function stepAfter({ to, enters }: Pick<Route, 'to' | 'enters'>): string {
  return enters === null ? to : (enters.returnTo?.text ?? STOP);
}

const WAITING_GATES = ['requires_approval', 'blocking_approval'] as const;

/** The first two wait for a decision, the others only request one. */
export const GATE_TYPES = [...WAITING_GATES, 'queue_for_review', 'requires_daily_review'] as const;
export type GateType = (typeof GATE_TYPES)[number];

export function waits(gate: GateType | null): boolean {
  return WAITING_GATES.some((waiting) => waiting === gate);
}

/** For messages. */
export function named({ opcode, id }: Pick<Outline, 'opcode' | 'id'>): string {
  return id === STOP ? 'the step STOP' : `the ${opcode} step "${id}"`;
}

export interface ConductorInput {
  /** `file`: the path as the user wrote it. */
  readonly source: { readonly file: string; readonly text: string };
  readonly config: ConductorConfig;
  readonly adapters: Omit<AdapterKnowledge, 'canFork'>;
  readonly prompts: FindPrompt;
  readonly validators: FindValidator;
  /** Enters another workflow by its path; null if there is none. */
  readonly enter: (path: string) => Entered | null;
  /** Default folder for run directories, relative to the project. */
  readonly artifactsDirDefault: string;
  readonly limits?: Limits;
}

/** The project's command for a validator, and where it was found. */
export type FindValidator = (id: string) => { readonly command: string; readonly from: string } | null;

export interface Reading extends Pick<ConductorInput, 'config' | 'adapters' | 'validators' | 'enter'> {
  readonly report: Report;
  readonly prompts: Prompts;
  readonly defaults: Defaults;
  readonly artifactsDir: string;
  readonly steps: ReadonlyMap<string, Outline>;
  /** Reports where something was found that the workflow does not name. */
  readonly note: (text: string) => void;
}

export interface Defaults {
  readonly policy: Policy | null;
  readonly limits: LimitsSyntax;
  readonly hints: Hints;
}
