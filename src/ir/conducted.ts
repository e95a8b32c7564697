// Effects on a repository under rules: what git is asked, and what the engine looks at and judges for itself. Steps that work
// by opcodes are blocks of these beside plain turns and commands. Everything about them is known when a workflow is compiled,
// except what the run itself knows: its folders, and the outcomes of the steps before.

import type { FailureKind } from './failure.ts';
import type { ValueType } from './output.ts';

export type ConductedSpec = GitSpec | InspectSpec;

/** Something that git does in the run's worktree. */
export interface GitSpec {
  readonly kind: 'git';
  readonly operation: GitOperation;
}

export type GitOperation =
  /**
   * Keep the state of the worktree before a visit: the outputs `folder` and `before`, which is null without git. A step that
   * writes is refused without git.
   */
  | { readonly kind: 'snapshot'; readonly writes: boolean }
  /**
   * See what has changed: since the snapshot of the visit where it is about an agent or an evaluator, else since the run
   * began. What the step `ends` has left running is killed first. Outputs: `after`, null without git; of an agent also
   * `patch` and `status`.
   */
  | { readonly kind: 'changes'; readonly by: 'agent' | 'evaluator' | 'run'; readonly ends: string | null }
  /** Put the files of the worktree back: as they were before the run, or before the latest turn of an agent. */
  | { readonly kind: 'rollback'; readonly target: 'pre_run' | 'pre_step' };

/** Something that the engine reads, writes for people, or judges from the outcomes of steps of the same block. */
export interface InspectSpec {
  readonly kind: 'inspect';
  readonly inspection: Inspection;
}

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

/** Fill the prompt of an agent: the output `prompt`. */
export interface PromptInspection {
  readonly kind: 'prompt';
  readonly agent: AgentRequest;
  readonly policy: Policy;
}

/** Judge the step `turn` by what the step `inspect` saw. */
export interface PolicyInspection {
  readonly kind: 'policy';
  readonly agent: AgentRequest;
  readonly policy: PolicyPair;
}

/** Judge the command of the step `run`, and so the outcome of the step `of`, by what the step `inspect` saw. */
export interface WitnessInspection {
  readonly kind: 'witness';
  readonly witness: Witness;
  readonly of: string;
  readonly run: string;
  readonly inspect: string;
}

/** Gather what an evaluator is shown: the outputs `file`, `evidence`, and for an agent `prompt`. */
export interface EvidenceInspection {
  readonly kind: 'evidence';
  /** Null if a command evaluates. */
  readonly agent: AgentRequest | null;
  readonly allowedNext: readonly string[];
  readonly hints: Hints;
}

/** Read the answer of an evaluator, the step `ask`, and decide by it and by what has happened in the run. */
export interface DecisionInspection {
  readonly kind: 'decision';
  readonly agent: AgentRequest | null;
  readonly allowedNext: readonly string[];
  /** Which of these many `partial` in a row is one too many. */
  readonly partialMax: number;
}

/** Find out how a validator is run, and what is there before: the outputs `script` and `cwd` among others. */
export interface PrepareInspection {
  readonly kind: 'prepare';
  readonly validator: Validator;
}

/** Collect what the step `run` has left, and judge it. */
export interface CollectInspection {
  readonly kind: 'collect';
  readonly validator: Validator;
  readonly idleMs: number | null;
}

/** Judge the validators, steps of these names: the worst outcome is that of the validation. */
export interface ReportInspection {
  readonly kind: 'report';
  readonly validators: readonly string[];
}

/** Whether the run may end like this. */
export interface EndInspection {
  readonly kind: 'end';
  readonly verdict: 'success' | 'failure';
  readonly reason: string | null;
}

/** What an agent is asked. */
export interface AgentRequest {
  readonly adapter: string;
  /** Null leaves the choice to the adapter. */
  readonly model: string | null;
  readonly prompt: PromptText;
  /** What the prompt is given: words of the run (`diff`), or outputs of earlier steps (`evaluate.blockers`). */
  readonly inputs: readonly string[];
  readonly limits: WorkLimits;
  readonly hints: Hints;
}

export interface PromptText {
  /** `task.fix.v1`, or the path that it was named by. */
  readonly id: string;
  readonly version: number | null;
  /** As the author knows the file; for people. */
  readonly path: string;
  /** With `{{name}}` for what it is given. */
  readonly text: string;
  readonly inputs: readonly PromptInput[];
}

export interface PromptInput {
  readonly name: string;
  readonly type: ValueType;
  readonly required: boolean;
}

/** For the words `component_kind` and `eval_profile`. */
export interface Hints {
  readonly componentKind: string | null;
  readonly evalProfile: string | null;
}

export interface WorkLimits {
  /** How long it may be silent; null is no limit. The time that it may take in all is the step's. */
  readonly idleMs: number | null;
  readonly tokensMax: number | null;
  readonly usdMax: number | null;
}

/** What the step asked for, and what holds: never less strict. */
export interface PolicyPair {
  readonly requested: Policy | null;
  readonly effective: Policy;
}

export interface Policy {
  /** Null: nobody named one. */
  readonly name: string | null;
  /** Text about it for the agent; may be empty. */
  readonly text: string;
  /** Globs, seen from the top of the worktree; null: any path. */
  readonly allowedPaths: readonly string[] | null;
  readonly forbiddenPaths: readonly string[];
  readonly forbiddenOperations: readonly Operation[];
  readonly network: 'allow' | 'deny';
  readonly access: 'read_only' | 'workspace_write';
  readonly onPrompt: 'fail' | 'deny';
  /** Whether lockfiles and manifests of packages may change. */
  readonly lockfiles: 'allow' | 'deny';
}

/** What can be seen in a worktree afterwards, and so be forbidden. */
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

/** One that a project has a command for. */
export interface CommandValidator {
  readonly kind: 'builtin';
  readonly id: string;
  readonly command: string;
  readonly cwd: string | null;
  readonly artifacts: readonly string[];
  readonly timeoutMs: number | null;
}

/** `${run_id}`, `${run_dir}`, `${worktree}` and `${step_id}` stand in its texts. */
export interface ScriptValidator {
  readonly kind: 'script';
  readonly id: string;
  readonly entrypoint: string;
  readonly args: readonly string[];
  /** Seen from the worktree; null is its top. */
  readonly cwd: string | null;
  /** Globs, seen from `cwd`. */
  readonly artifacts: readonly string[];
  readonly timeoutMs: number | null;
}

/** A command that the engine runs itself: an outcome that it does not bear out is none. */
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

/** Kinds of failures that a workflow may route, and what they count as there. */
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
