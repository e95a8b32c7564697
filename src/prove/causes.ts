// Causes: what the world did in a move, for stories and tests; and the verdict of a person.

import { isAgent, needsSignature, SIGNER_PREFIX } from '../ir/approvers.ts';
import type { CommandSpec } from '../ir/effect.ts';
import type { Outputs } from '../ir/output.ts';
import { type FilledText, plainText } from '../ir/text.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { RunState, StepState } from '../kernel/state.ts';

export type Cause = Readonly<
  | ({ kind: 'exit'; exit: number; stdout: string | null; files: Readonly<Record<string, string>> } & Caused)
  | ({ kind: 'reports'; outputs: Outputs } & Caused)
  | ({ kind: 'answers'; text: string; violates?: boolean } & Caused)
  /** A command or an agent is silent until its timeout. */
  | ({ kind: 'hangs'; isCommand: boolean; violates?: boolean } & Caused)
  /** An agent exits. */
  | ({ kind: 'dies'; violates?: boolean } & Caused)
  /** The engine judged an answer or the work of an agent: `answer` is what it must have been, null if that is the same. */
  | ({ kind: 'judged'; answer: string | null; violates: boolean } & Caused)
  /** A list was read from a file; null if that cannot be read. */
  | ({ kind: 'reads'; path: string; text: string | null } & Caused)
  | ({ kind: 'emits'; event: string } & Caused)
  /** `by`: null if anybody may decide. */
  | ({ kind: 'decides'; gate: string; approved: boolean; by: string | null } & Caused)
  | ({ kind: 'expires'; gate: string } & Caused)
  /** The run continues without anything that a test must describe. */
  | { kind: 'goes-on' }
  /** No rule of a test can make it happen. */
  | { kind: 'beyond-tests'; what: string }
>;

/** The step that it happened to, as `meow status` shows it, and when that started. */
export interface Caused {
  readonly step: string;
  readonly since: number;
}

export const GOES_ON: Cause = { kind: 'goes-on' };

/** `what`: a sentence without its subject. */
export function beyondTests(what: string): Cause {
  return { kind: 'beyond-tests', what };
}

/** Inner steps belong to the step that they perform. */
export function caused(state: RunState, step: StepState): Caused {
  let shown = step;
  while (shown.frame.isInner && shown.frame.owner !== null) {
    const owner = state.steps.get(shown.frame.owner);
    if (owner === undefined) break;
    shown = owner;
  }
  return { step: shown.id, since: step.startedAt ?? 0 };
}

export function hanging(state: RunState, step: StepState): Cause {
  return { kind: 'hangs', isCommand: step.effect?.kind === 'command', ...caused(state, step) };
}

/** What a command must write so that its outputs are captured. */
export function written(
  { captures }: CommandSpec<FilledText>,
  outputs: Outputs,
): Pick<Extract<Cause, { kind: 'exit' }>, 'stdout' | 'files'> {
  let stdout: string | null = null;
  const files: Record<string, string> = {};
  for (const { name, from } of captures) {
    const value = outputs[name];
    if (value === undefined) continue;
    if (from.kind === 'stdout') stdout ??= plainText(value);
    if (from.kind === 'file') files[textOf(from.path)] = plainText(value);
  }
  return { stdout, files };
}

export function invalidAnswer(state: RunState, step: StepState): Cause {
  return { kind: 'answers', ...caused(state, step), text: 'There is no transition in this answer.' };
}

/** Who decides, as a rule of a test names them. */
export function deciderOf(approvers: readonly string[] | null): string | null {
  if (approvers === null) return null;
  return (
    (needsSignature(approvers) && approvers.find((each) => each.startsWith(SIGNER_PREFIX))) || (approvers[0] ?? null)
  );
}

/** By somebody who may decide. */
export function verdictOf(approved: boolean, approvers: readonly string[] | null): GateVerdict {
  const by = approvers?.[0] ?? 'somebody';
  const words = { approved, notes: null, answer: null };
  if (approvers === null) return { ...words, by };
  const time = '2026-01-01T00:00:00Z';
  if (needsSignature(approvers)) {
    const signer = approvers.find((each) => each.startsWith(SIGNER_PREFIX)) ?? by;
    return { ...words, by: signer.replace(SIGNER_PREFIX, ''), proof: { kind: 'signature', time, signature: '' } };
  }
  return isAgent(by) ? { ...words, by, proof: { kind: 'agent' } } : { ...words, by };
}

export function textOf(text: FilledText): string {
  return typeof text === 'string' ? text : text.map((piece) => (typeof piece === 'string' ? piece : '…')).join('');
}
