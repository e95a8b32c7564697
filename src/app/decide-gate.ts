// A person's decision about a gate. The engine of the run receives it; if there is none, the decision is left in the run's
// inbox and takes effect when the run is resumed.

import type { JsonMap } from '../base/json.ts';
import { UsageError } from '../base/usage-error.ts';
import { makePrivateFolder } from '../ipc/address.ts';
import { ask, leaveMessage, newMessageId } from '../ipc/client.ts';
import { answerToSecondDecision, approverProblem } from '../ipc/message-handler.ts';
import { pendingMessages } from '../ipc/pending-messages.ts';
import type { Answer } from '../ipc/protocol.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { Store } from '../engine/ports.ts';
import { openGates } from '../view/status.ts';
import type { ReadRun } from './runs.ts';
import { engineAddress, readRun } from './runs.ts';

export type { GateVerdict } from '../kernel/input.ts';

/** `gate`: null means the only open one. Returns the engine's answer, or an acknowledgement that says what happens next. */
export async function decideGate(store: Store, id: string, gate: string | null, verdict: GateVerdict): Promise<Answer> {
  const answer = (await store.holder(id)) === null ? null : await askEngine(store, id, gate, verdict);
  return answer ?? leaveDecision(store, await readRun(store, id), gate, verdict);
}

export function verbOf({ approved, answer }: GateVerdict): string {
  if (answer !== null) return 'answered';
  return approved ? 'approved' : 'rejected';
}

/** For an engine without a reachable socket. */
const ANSWER_MS = 10_000;

/** Null if the engine has ended meanwhile. */
async function askEngine(store: Store, id: string, gate: string | null, verdict: GateVerdict): Promise<Answer | null> {
  const options = { deadline: Date.now() + ANSWER_MS, keep: 'never' } as const;
  const answer = await ask(engineAddress(store, await readRun(store, id)), messageOf(id, gate, verdict), options);
  if (answer?.kind === 'timeout') {
    throw new UsageError(`the engine of run ${id} does not answer`, `check it: meow status ${id}`);
  }
  return answer?.kind === 'error' && answer.code === 'ended' ? null : answer;
}

async function leaveDecision(store: Store, run: ReadRun, wanted: string | null, verdict: GateVerdict): Promise<Answer> {
  const { id, state } = run;
  if (state.phase === 'ended' && (state.end === 'done' || state.end === 'failed')) {
    throw new UsageError(`run ${id} has ended: it is ${state.end}`, `meow status ${id} shows it`);
  }
  const open = openGates(state).map((gate) => gate.id);
  const gate = wanted ?? onlyOne(id, open);
  const address = engineAddress(store, run);
  const earlier = state.gates.get(gate)?.verdict ?? pendingVerdict(address.inbox, id, gate);
  if (earlier !== null) return answerToSecondDecision(gate, earlier, verdict);
  const problem = approverProblem(state, gate, verdict);
  if (problem !== null) throw new UsageError(problem);
  makePrivateFolder(address.inbox);
  if (!leaveMessage(address, messageOf(id, gate, verdict))) {
    throw new UsageError(`the inbox of run ${id} cannot be written: ${address.inbox}`);
  }
  const notOpen =
    open.length > 0 ? `; ${gate} is not open yet, open now: ${open.join(', ')}` : `; ${gate} is not open yet`;
  const effect = `${verbOf(verdict)}; run ${id} has no engine, so this takes effect when you run: meow resume ${id}`;
  return { kind: 'ack', success: true, note: `${effect}${open.includes(gate) ? '' : notOpen}` };
}

function onlyOne(id: string, open: readonly string[]): string {
  const [only] = open;
  if (only === undefined) throw new UsageError(`run ${id} has no open gate`, `name one: meow answer ${id} GATE TEXT`);
  if (open.length === 1) return only;
  throw new UsageError(`run ${id} has ${open.length} open gates`, `say which: ${open.join(', ')}`);
}

/** A decision that is already in the inbox. */
function pendingVerdict(inbox: string, id: string, gate: string): GateVerdict | null {
  for (const message of pendingMessages(inbox, id)) {
    const by = 'by' in message ? (message.by ?? 'somebody') : '';
    if (message.kind === 'approval' && message.gate === gate)
      return { approved: message.approved, by, notes: message.notes, answer: null };
    if (message.kind === 'answer' && message.gate === gate)
      return { approved: true, by, notes: null, answer: message.text };
  }
  return null;
}

function messageOf(id: string, gate: string | null, { approved, by, notes, answer }: GateVerdict): JsonMap {
  const common = { id: newMessageId(), workflow: id, gate_id: gate, by };
  if (answer !== null) return { type: 'answer', ...common, text: answer };
  return { type: 'approval', ...common, approved, ...(approved ? { notes } : { reason: notes }) };
}
