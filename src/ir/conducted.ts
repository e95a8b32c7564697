// Effects that work on a repository under rules: an agent's turn that is held to a policy, validators, an evaluation of what
// came of both, and the way back. Everything about them is known when a workflow is compiled, save what is asked of the
// run when they begin: its folders, the diff, what earlier steps have handed on. Drivers fill that in.

import type { FailureKind } from './failure.ts';
import type { ValueType } from './output.ts';

export type ConductedSpec = WorkSpec | ValidateSpec | EvaluateSpec | RollbackSpec | HaltSpec;

/** A turn of an agent in the run's worktree. What it changed is looked at afterwards, whatever it says. */
export interface WorkSpec {
  readonly kind: 'work';
  readonly adapter: string;
  /** Null leaves the choice to the adapter. */
  readonly model: string | null;
  readonly brief: PromptText;
  /** What the prompt is given: words of the run (`diff`), or outputs of earlier steps (`evaluate.blockers`). */
  readonly inputs: readonly string[];
  readonly policy: PolicyPair;
  readonly limits: WorkLimits;
  readonly hints: Hints;
  /** By the outcome that must be proven before it is believed. */
  readonly witnesses: Readonly<Record<string, Witness>>;
}

/** Commands, one after the other, none left out. Their worst outcome is that of the step. */
export interface ValidateSpec {
  readonly kind: 'validate';
  readonly validators: readonly Validator[];
  readonly idleMs: number | null;
  readonly witnesses: Readonly<Record<string, Witness>>;
}

/** A judgement, in a form that is held to: which of five words it comes to decides what follows. */
export interface EvaluateSpec {
  readonly kind: 'evaluate';
  readonly evaluator:
    | {
        readonly kind: 'agent';
        readonly adapter: string;
        readonly model: string | null;
        readonly prompt: PromptText;
        readonly inputs: readonly string[];
        readonly limits: WorkLimits;
      }
    | { readonly kind: 'command'; readonly command: string; readonly idleMs: number | null };
  readonly allowedNext: readonly string[];
  /** Which of these many `partial` in a row is one too many. */
  readonly partialMax: number;
  readonly hints: Hints;
  /** What is asked in place of the prompt, in the session of the attempt before; null in the first. */
  readonly reprompt: string | null;
}

/** Puts the files of the worktree back as they were. */
export interface RollbackSpec {
  readonly kind: 'rollback';
  /** Before the run began; before the latest turn of an agent. */
  readonly target: 'pre_run' | 'pre_step';
}

/** The end of the run, where it may end like that. */
export interface HaltSpec {
  readonly kind: 'halt';
  readonly verdict: 'success' | 'failure';
  readonly reason: string | null;
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
  /** What an agent is told of it; empty where there is nothing to tell. */
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
    /** A regular expression that its output must fit; null where that does not matter. */
    readonly output: string | null;
  };
  /** Globs of files that it depends on, and that whoever is to be believed must not have touched. */
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
