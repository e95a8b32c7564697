// Who made a decision about a gate, as far as its message proves it. Engines ask before they apply one, and clients before
// they respect one that is still in the inbox.

import { err, ok, type Result } from '../base/errors.ts';
import { AGENT_PREFIX, isAgent, needsSignature, SIGNER_PREFIX } from '../ir/approvers.ts';
import { isAgentAtWork } from '../kernel/agents.ts';
import { isPresentAsking, objectors } from '../kernel/gates.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { RunState } from '../kernel/state.ts';
import type { Message } from './protocol.ts';

export type GateDecision = Extract<Message, { kind: 'approval' | 'answer' }>;

/** Null if it is right; otherwise what is wrong, as a clause. */
export interface ProofChecks {
  hmacProblem(text: string, hmac: string): string | null;
  signatureProblem(text: string, name: string, signature: string): Promise<string | null>;
}

export interface AuthorizedDecision {
  readonly verdict: GateVerdict;
  readonly asking: number;
}

/** An error is a clause. */
export async function authorizeDecision(
  run: DecidedRun,
  gate: string,
  decision: GateDecision,
  checks: ProofChecks,
): Promise<Result<AuthorizedDecision, string>> {
  const { proof, agent, by } = decision;
  const said = verdictOf(decision);
  if (proof === null)
    return agent === null ? err('it has no valid proof that a person made it') : ofAgent(run.state, gate, agent, said);
  if (by !== null && isReserved(by)) return err(`${by} is not the name of a person`);
  const { asking, time } = proof;
  const text = provenText(run, { gate, asking, verdict: said, time });
  if (proof.kind === 'key') {
    const problem = checks.hmacProblem(text, proof.hmac);
    return problem === null ? ok({ asking, verdict: { ...said, proof: { kind: 'key', time } } }) : err(problem);
  }
  const { signature } = proof;
  const problem = await checks.signatureProblem(text, said.by, signature);
  return problem === null
    ? ok({ asking, verdict: { ...said, proof: { kind: 'signature', time, signature } } })
    : err(problem);
}

interface DecidedRun {
  readonly id: string;
  readonly state: RunState;
}

interface ProvenDecision extends AuthorizedDecision {
  readonly gate: string;
  /** ISO 8601, in UTC. */
  readonly time: string;
}

/** The text that a proof is made of, in UTF-8. It names all that the decision depends on, so that it proves nothing else. */
export function provenText({ id, state }: DecidedRun, { gate, asking, verdict, time }: ProvenDecision): string {
  const { by, answer, notes } = verdict;
  const mark = state.request?.mark ?? '';
  return JSON.stringify([id, mark, gate, asking, verbOf(verdict), by, answer ?? notes ?? '', time]);
}

/** An agent decides without a proof, if the gate lists it. */
function ofAgent(state: RunState, gate: string, agent: string, said: GateVerdict): Result<AuthorizedDecision, string> {
  const verdict = { ...said, by: AGENT_PREFIX + agent, proof: { kind: 'agent' } } as const;
  if (objectors(state, gate, verdict).length > 0) return err(`the agent ${agent} is not among its approvers`);
  if (!isAgentAtWork(state, agent)) return err(`no agent ${agent} of this run is at work`);
  return ok({ verdict, asking: state.gates.get(gate)?.asked ?? 0 });
}

/** Whether no person may have this name. */
export function isReserved(name: string): boolean {
  return isAgent(name) || name.startsWith(SIGNER_PREFIX);
}

/** Without who proves it; `somebody` if the message does not name them. */
function verdictOf(decision: GateDecision): GateVerdict {
  const by = decision.by ?? 'somebody';
  const where = decision.via === null ? {} : { via: decision.via };
  if (decision.kind === 'answer') return { approved: true, by, notes: null, answer: decision.text, ...where };
  return { approved: decision.approved, by, notes: decision.notes, answer: null, ...where };
}

export function verbOf({ approved, answer }: GateVerdict): 'approved' | 'rejected' | 'answered' {
  if (answer !== null) return 'answered';
  return approved ? 'approved' : 'rejected';
}

/** Why this person may not decide the gate, as a sentence; null if they may. */
export function approverProblem(state: RunState, gate: string, verdict: GateVerdict): string | null {
  const [approvers] = objectors(state, gate, verdict);
  if (approvers === undefined) return null;
  const listed = `its approvers are ${(approvers ?? []).join(', ')}`;
  if (needsSignature(approvers) && verdict.proof?.kind !== 'signature') {
    return `gate ${gate} needs a signature: ${listed} (sign with --sign, and use --as NAME to say who decides)`;
  }
  return `${verdict.by} may not decide gate ${gate}: ${listed} (use --as NAME to say who decides)`;
}

/** Why the decision comes too late, as a clause; null if it does not. */
export function askingProblem(state: RunState, gate: string, asking: number): string | null {
  if (isPresentAsking(state, gate, asking)) return null;
  return 'it was made for an earlier question; look at the gate (meow gates), and decide again';
}
