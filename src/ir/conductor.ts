// Effects on a repository under rules: git operations, and what the engine inspects and judges itself. Opcode steps are
// blocks of these and of plain turns and commands. Everything is known at compile time, except the run's folders and
// the outcomes of earlier steps.

import type { FailureKind } from './failure.ts';
import type { ValueType } from './output.ts';

export type ConductedSpec = GitSpec | InspectSpec;

export type GitSpec = Readonly<{ kind: 'git'; operation: GitOperation }>;

export type GitOperation = Readonly<
  /**
   * Stores the state of the worktree before a visit: outputs `folder` and `before`, which is null without git. A step
   * that writes is refused without git.
   */
  | { kind: 'snapshot'; writes: boolean }
  /**
   * Compares: with the snapshot of the visit for an agent or an evaluator, otherwise with the start of the run.
   * Leftover processes of the step `ends` are killed first. Outputs: `after`, null without git; for an agent also
   * `patch` and `status`.
   */
  | { kind: 'changes'; by: 'agent' | 'evaluator' | 'run'; ends: string | null }
  /** Restores the worktree to the state before the run, or before the latest agent turn. */
  | { kind: 'rollback'; target: 'pre_run' | 'pre_step' }
>;

/** Something that the engine reads, writes for people, or judges from outcomes of steps of the same block. */
export type InspectSpec = Readonly<{ kind: 'inspect'; inspection: Inspection }>;

export type Inspection =
  | PromptInspection
  | PolicyInspection
  | WitnessInspection
  | EvidenceInspection
  | DecisionInspection
  | PrepareInspection
  | CollectInspection
  | ReportInspection
  | EndInspection;

/** Renders an agent's prompt: output `prompt`. */
export type PromptInspection = Readonly<{ kind: 'prompt'; agent: AgentRequest; policy: Policy }>;

/** Judges the step `turn` by the observation of the step `inspect`. */
export type PolicyInspection = Readonly<{ kind: 'policy'; agent: AgentRequest; policy: PolicyPair }>;

/** Judges the command of the step `run`, and so the outcome of the step `of`, by the observation of `inspect`. */
export type WitnessInspection = Readonly<{
  kind: 'witness';
  witness: Witness;
  of: string;
  run: string;
  inspect: string;
}>;

/** Collects the evidence for an evaluator: outputs `file`, `evidence`, and for an agent `prompt`. */
export interface EvidenceInspection {
  readonly kind: 'evidence';
  /** Null if a command evaluates. */
  readonly agent: AgentRequest | null;
  readonly allowedNext: readonly string[];
  readonly hints: Hints;
}

/** Reads the evaluator's answer, the step `ask`, and decides by it and by the history of the run. */
export interface DecisionInspection {
  readonly kind: 'decision';
  readonly agent: AgentRequest | null;
  readonly allowedNext: readonly string[];
  /** This many `partial` in a row escalate. */
  readonly partialMax: number;
}

/** Determines how a validator runs, and which files exist before: outputs `script`, `cwd` and others. */
export type PrepareInspection = Readonly<{ kind: 'prepare'; validator: Validator }>;

/** Collects and judges the results of the step `run`. */
export type CollectInspection = Readonly<{ kind: 'collect'; validator: Validator; idleMs: number | null }>;

/** Judges all validators, steps of these names: the worst outcome is that of the validation. */
export type ReportInspection = Readonly<{ kind: 'report'; validators: readonly string[] }>;

/** Decides whether the run may end like this. */
export type EndInspection = Readonly<{ kind: 'end'; verdict: 'success' | 'failure'; reason: string | null }>;

export interface AgentRequest {
  readonly adapter: string;
  /** Null leaves the choice to the adapter. */
  readonly model: string | null;
  readonly prompt: PromptText;
  /** Inputs of the prompt: built-in names (`diff`) or outputs of earlier steps (`evaluate.blockers`). */
  readonly inputs: readonly string[];
  readonly limits: WorkLimits;
  readonly hints: Hints;
}

export interface PromptText {
  /** `task.fix.v1`, the path that it was named by, or `inline` for a text in the workflow itself. */
  readonly id: string;
  readonly version: number | null;
  /** The author's path of the file, for people. */
  readonly path: string;
  /** With placeholders `{{name}}`. */
  readonly text: string;
  readonly inputs: readonly PromptInput[];
}

export type PromptInput = Readonly<{ name: string; type: ValueType; required: boolean }>;

/** For the inputs `component_kind` and `eval_profile`. */
export type Hints = Readonly<{ componentKind: string | null; evalProfile: string | null }>;

export interface WorkLimits {
  /** Limit of silence; null: none. The step has the limit of the whole time. */
  readonly idleMs: number | null;
  readonly tokensMax: number | null;
  readonly usdMax: number | null;
}

/** The requested policy, and the effective one, which is never weaker. */
export type PolicyPair = Readonly<{ requested: Policy | null; effective: Policy }>;

export interface Policy {
  readonly name: string | null;
  /** Text for the agent; may be empty. */
  readonly text: string;
  /** Globs, relative to the worktree; null: any path. */
  readonly allowedPaths: readonly string[] | null;
  readonly forbiddenPaths: readonly string[];
  readonly forbiddenOperations: readonly Operation[];
  readonly network: 'allow' | 'deny';
  readonly access: 'read_only' | 'workspace_write';
  readonly onPrompt: 'fail' | 'deny';
  /** Whether package manifests and lockfiles may change. */
  readonly lockfiles: 'allow' | 'deny';
}

/** Operations that can be seen in a worktree afterwards, and so be forbidden. */
export const OPERATIONS = [
  'create',
  'modify',
  'delete',
  'rename',
  'chmod',
  'symlink',
  'commit',
  'switch_branch',
] as const;
export type Operation = (typeof OPERATIONS)[number];

export type Validator = CommandValidator | ScriptValidator;

interface AnyValidator {
  readonly id: string;
  /** Relative to the worktree; null: its root. */
  readonly cwd: string | null;
  /** Globs, relative to `cwd`. */
  readonly artifacts: readonly string[];
  readonly timeoutMs: number | null;
  /** False: a report that proposes goldens is an error. Absent: it may. */
  readonly mayProposeGoldens?: boolean;
}

/** A validator that the project has a command for. */
export interface CommandValidator extends AnyValidator {
  readonly kind: 'builtin';
  readonly command: string;
}

/** Its texts may contain `${run_id}`, `${run_dir}`, `${worktree}` and `${step_id}`. */
export interface ScriptValidator extends AnyValidator {
  readonly kind: 'script';
  readonly entrypoint: string;
  readonly args: readonly string[];
}

/** A command that the engine runs itself to confirm an outcome. */
export interface Witness {
  readonly command: string;
  readonly expect: {
    readonly exitCode: number;
    /** A regular expression that its output must match; null if any output is accepted. */
    readonly output: string | null;
  };
  /** Globs of files that it depends on. An agent whose result it confirms must not have changed them. */
  readonly dependsOn: readonly string[];
  readonly timeoutMs: number | null;
}

export const STATUSES = ['success', 'partial', 'blocked', 'unsafe', 'needs_human'] as const;
export type EvaluationStatus = (typeof STATUSES)[number];

export const MECHANICAL = ['completed', 'error', 'killed_timeout', 'killed_idle', 'killed_policy'] as const;
export type Mechanical = (typeof MECHANICAL)[number];

/** Failure kinds that a workflow may route, and the outcome that they count as. */
export const OUTCOME_OF: Readonly<Partial<Record<FailureKind, Mechanical>>> = {
  timeout: 'killed_timeout',
  idle: 'killed_idle',
  policy: 'killed_policy',
  budget: 'killed_policy',
  'exit-nonzero': 'error',
  signal: 'error',
  'not-started': 'error',
  'output-missing': 'error',
  'output-invalid': 'error',
  unresolved: 'error',
  'agent-crashed': 'error',
  'agent-not-found': 'error',
  'spawn-failed': 'error',
  'not-delivered': 'error',
  'limit-reached': 'error',
  protocol: 'error',
  unproven: 'error',
  refused: 'error',
};
