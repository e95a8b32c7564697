// Decisions of people in a test: which rule decides an asking of a gate, and the message that it sends.

import { segmentMatcher } from '../base/names.ts';
import type { ProofChecks } from '../ipc/authorize-decision.ts';
import type { Message } from '../ipc/protocol.ts';
import type { GateRule } from './test-file.ts';

export class GateRules {
  readonly #rules: readonly GateRule[];
  /** How often a rule has decided a gate. */
  readonly #used = new Map<GateRule, Map<string, number>>();

  constructor(rules: readonly GateRule[]) {
    this.#rules = rules;
  }

  /** The first rule for the gate that has not decided it often enough. */
  next(gate: string): GateRule | undefined {
    const rule = this.#rules.find(
      (each) =>
        segmentMatcher(each.gate)(gate) && (each.times === null || (this.#used.get(each)?.get(gate) ?? 0) < each.times),
    );
    if (rule === undefined) return undefined;
    const counts = this.#used.get(rule) ?? new Map<string, number>();
    this.#used.set(rule, counts.set(gate, (counts.get(gate) ?? 0) + 1));
    return rule;
  }
}

export function decisionMessage(
  gate: string,
  asking: number,
  { decide, answer, by, notes }: GateRule,
  now: number,
): Message {
  const time = new Date(now).toISOString();
  const signer = by.startsWith('ssh:') ? by.slice('ssh:'.length) : null;
  const agent = by.startsWith('agent:') ? by.slice('agent:'.length) : null;
  const key = { kind: 'key', asking, time, hmac: '' } as const;
  const signed = { kind: 'signature', asking, time, signature: '' } as const;
  const proof = agent !== null ? null : signer === null ? key : signed;
  const decider = { by: signer ?? by, agent, proof, via: null, message: null };
  return decide === 'answer'
    ? { kind: 'answer', gate, text: answer ?? '', ...decider }
    : { kind: 'approval', gate, approved: decide === 'approve', notes, ...decider };
}

/** Rules of a test say who decides. */
export const TRUSTING: ProofChecks = { hmacProblem: () => null, signatureProblem: () => Promise.resolve(null) };
