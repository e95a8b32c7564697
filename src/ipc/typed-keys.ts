// Keys that a person types into the terminal of an agent, through the engine's own connection.
//
//   keys/1  They need a proof, as decisions do: a step or an agent of the run cannot type for a person.
//   keys/2  A message counts once, and only for PROOF_MS: it cannot be repeated by somebody who saw it.
//   keys/3  While an agent asks something that a gate is open for, only keys are typed that a person meant for the question.
//   keys/4  Keys arrive in the order of the messages.

import type { Result } from '../base/errors.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Clock } from '../engine/ports.ts';
import type { RunState } from '../kernel/state.ts';
import type { ProofChecks } from './authorize-decision.ts';
import { type Answer, errorAnswer, type Message } from './protocol.ts';

type KeysMessage = Extract<Message, { kind: 'type-keys' }>;

export interface TypedKeysOptions {
  readonly run: Pick<LiveRun, 'id' | 'state'>;
  readonly clock: Clock;
  readonly proofs: ProofChecks;
  /** Absent if the run can have no agents. */
  typeKeys?(agent: string, keys: Uint8Array, by: string): Promise<Result<null, string>>;
}

const PROOF_MS = 60_000;
const SEEN_MAX = 10_000;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export class TypedKeys {
  readonly #options: TypedKeysOptions;
  readonly #seen = new Set<string>();
  /** Resolves when all keys so far have been typed. */
  #typing: Promise<unknown> = Promise.resolve();

  constructor(options: TypedKeysOptions) {
    this.#options = options;
  }

  answer(message: KeysMessage): Promise<Answer> {
    const answer = this.#typing.then(() => this.#type(message));
    this.#typing = answer.catch(() => undefined);
    return answer;
  }

  async #type(message: KeysMessage): Promise<Answer> {
    const { run } = this.#options;
    const { agent, keys, intoDialog, by } = message;
    const problem = this.#proofProblem(message);
    if (problem !== null) return errorAnswer(`the keys were refused: ${problem}`);
    if (!intoDialog && asksSomething(run.state, agent))
      return errorAnswer(`agent ${agent} asks something: choose Type again to answer it in the terminal`);
    const typed = await this.#options.typeKeys?.(agent, Buffer.from(keys, 'base64'), by ?? 'somebody');
    if (typed?.ok === true) return { kind: 'ack', success: true };
    return errorAnswer(typed?.error ?? `agent ${agent} has no terminal`);
  }

  /** A clause; null if a person has sent the message, and not before. */
  #proofProblem(message: KeysMessage): string | null {
    const { run, clock, proofs } = this.#options;
    const { proof, keys, message: id } = message;
    if (!BASE64.test(keys)) return 'they are not in base64';
    if (proof?.kind !== 'key') return 'they need a proof that a person typed them, made with the key of the user';
    if (Math.abs(clock.now() - Date.parse(proof.time)) > PROOF_MS) return 'their proof is too old';
    const about = { agent: message.agent, keys, by: message.by ?? '', intoDialog: message.intoDialog, id };
    const wrong = proofs.hmacProblem(provenKeys(run, about, proof.time), proof.hmac);
    if (wrong !== null) return wrong;
    if (this.#seen.has(id)) return 'they were typed already';
    this.#seen.add(id);
    const [oldest] = this.#seen;
    if (this.#seen.size > SEEN_MAX && oldest !== undefined) this.#seen.delete(oldest);
    return null;
  }
}

/** Whether a gate is open for a dialog of the agent. */
export function asksSomething({ inFlight }: RunState, agent: string): boolean {
  return [...inFlight.values()].some((step) => step.agent === agent && step.dialog !== null);
}

export interface ProvenKeys {
  readonly agent: string;
  /** In base64. */
  readonly keys: string;
  readonly by: string;
  readonly intoDialog: boolean;
  /** Of the message. */
  readonly id: string;
}

/** The text that the proof is about. */
export function provenKeys(
  { id: run, state }: { readonly id: string; readonly state: Pick<RunState, 'request'> },
  { agent, keys, by, intoDialog, id }: ProvenKeys,
  time: string,
): string {
  return JSON.stringify([run, state.request?.mark ?? '', 'type_keys', agent, keys, by, intoDialog, id, time]);
}
