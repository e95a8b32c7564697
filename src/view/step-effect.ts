// What a step asks for: its command, its prompt or its question. As last started, or as written if it never started.

import type { GitOperation, Inspection } from '../ir/conductor.ts';
import type { EffectSpec } from '../ir/effect.ts';
import { type FilledText, type Text, writtenText } from '../ir/text.ts';
import type { AppliedRecord } from '../kernel/decision.ts';
import type { StepState } from '../kernel/state.ts';
import { filledText } from './status.ts';

export interface EffectView {
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Name of the gate or the adapter. */
  readonly name: string | null;
  /** False if placeholders are not filled. */
  readonly filled: boolean;
  readonly kind: EffectSpec<Text>['kind'];
  /** The script, the prompt, or the question. */
  readonly text: string;
}

/** `started`: its effect as last started. Null if other steps do its work. */
export function stepEffect(
  { definition: { act } }: StepState,
  started: EffectSpec<FilledText> | undefined,
): EffectView | null {
  if (started !== undefined) return effectView(started, filledText, true);
  return act.kind === 'effect' ? effectView(act.effect, writtenText, false) : null;
}

export function startedEffect(step: string, records: readonly AppliedRecord[]): EffectSpec<FilledText> | undefined {
  for (const { decisions } of records.toReversed()) {
    for (const decision of decisions.toReversed()) {
      if (decision.kind === 'step-started' && decision.step === step && decision.effect !== null)
        return decision.effect;
    }
  }
  return undefined;
}

function effectView<T>(effect: EffectSpec<T>, show: (text: T) => string, filled: boolean): EffectView {
  const { cwd, env } = effect.kind === 'command' || effect.kind === 'spawn' ? effect : { cwd: null, env: {} };
  const plain = {
    workdir: cwd === null ? null : show(cwd),
    env: Object.fromEntries(Object.entries(env).map(([name, text]) => [name, show(text)])),
    name: null,
    filled,
    kind: effect.kind,
    text: '',
  };
  switch (effect.kind) {
    case 'command':
      return { ...plain, text: show(effect.script) };
    case 'turn':
      return { ...plain, text: show(effect.prompt), name: show(effect.adapter) };
    case 'spawn':
      return { ...plain, text: `by the adapter ${show(effect.adapter)}`, name: show(effect.agent) };
    case 'attend':
      return { ...plain, name: effect.agent };
    case 'prompt':
      return { ...plain, text: show(effect.prompt), name: show(effect.agent) };
    case 'kill':
      return { ...plain, text: effect.graceful ? 'gracefully' : 'at once', name: show(effect.agent) };
    case 'read':
      return { ...plain, text: show(effect.path) };
    case 'gate':
      return { ...plain, text: show(effect.prompt), name: show(effect.gate) };
    case 'git':
      return { ...plain, text: gitText(effect.operation) };
    case 'inspect':
      return { ...plain, text: INSPECTIONS[effect.inspection.kind] };
    default:
      // In a run of an earlier version.
      return plain;
  }
}

function gitText(operation: GitOperation): string {
  switch (operation.kind) {
    case 'snapshot':
      return 'snapshot the worktree';
    case 'changes':
      return `see what the ${operation.by} has changed`;
    case 'rollback':
      return `roll back to ${operation.target}`;
  }
}

const INSPECTIONS: Readonly<Record<Inspection['kind'], string>> = {
  prompt: 'fill the prompt of the agent',
  policy: 'judge the turn by its policy and its limits',
  witness: 'judge the outcome by its witness',
  evidence: 'gather the evidence for the evaluator',
  decision: 'read the answer of the evaluator and decide',
  prepare: 'find out how the validator is run',
  collect: 'collect what the validator has left',
  report: 'judge the validators',
  end: 'see whether the run may end',
};
