// `meow approve`, `meow reject` and `meow answer`: what a person decides about a gate. An engine is told, and answers; where
// none works on the run, the decision is left in its inbox, and applied when the run is resumed.

import { userInfo } from 'node:os';
import type { JsonMap } from '../../base/json.ts';
import { UsageError } from '../../base/usage-error.ts';
import { makePrivateFolder } from '../../ipc/address.ts';
import { ask, leaveMessage, newMessageId } from '../../ipc/client.ts';
import { answerToSecondDecision, approverProblem } from '../../ipc/message-handler.ts';
import { pendingMessages } from '../../ipc/pending-messages.ts';
import type { Answer } from '../../ipc/protocol.ts';
import type { GateVerdict } from '../../kernel/input.ts';
import type { Store } from '../../engine/ports.ts';
import { isErrno } from '../../sys/errno.ts';
import { openGates } from '../../view/status.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun } from '../../app/runs.ts';
import { engineAddress, readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { complain, say } from '../output.ts';

interface DecisionOptions {
  readonly notes?: string;
  readonly reason?: string;
  readonly as?: string;
}

export function approve(id: string, gate: string, { notes, as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: true, by: as ?? userName(), notes: notes ?? null, answer: null });
}

export function reject(id: string, gate: string, { reason, as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: false, by: as ?? userName(), notes: reason ?? null, answer: null });
}

/** `gate`: null means the only one that is open. */
export function answerGate(id: string, gate: string | null, text: string, { as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: true, by: as ?? userName(), notes: null, answer: text });
}

async function decide(wanted: string, gate: string | null, verdict: GateVerdict): Promise<number> {
  const store = storeOf(findProject());
  const id = await resolveRun(store, wanted);
  const told = (await store.holder(id)) === null ? null : await tellEngine(store, id, gate, verdict);
  const answer = told ?? (await leaveWord(store, await readRun(store, id), gate, verdict));
  if (answer.kind === 'ack') {
    say(answer.note ?? `${gate ?? 'it'} is ${verbOf(verdict)}`);
    return EXIT.done;
  }
  complain(`meow: ${'message' in answer ? answer.message : answer.kind}`);
  return EXIT.usage;
}

/** For an engine without a reachable socket. */
const ANSWER_MS = 10_000;

/** Null where the engine has ended meanwhile. */
async function tellEngine(store: Store, id: string, gate: string | null, verdict: GateVerdict): Promise<Answer | null> {
  const options = { deadline: Date.now() + ANSWER_MS, keep: 'never' } as const;
  const answer = await ask(engineAddress(store, await readRun(store, id)), messageOf(id, gate, verdict), options);
  if (answer?.kind === 'timeout') {
    throw new UsageError(`the engine of run ${id} does not answer`, `look at it: meow status ${id}`);
  }
  return answer?.kind === 'error' && answer.code === 'ended' ? null : answer;
}

async function leaveWord(store: Store, run: ReadRun, wanted: string | null, verdict: GateVerdict): Promise<Answer> {
  const { id, state } = run;
  if (state.phase === 'ended' && (state.end === 'done' || state.end === 'failed')) {
    throw new UsageError(`run ${id} has ended: it is ${state.end}`, `meow status ${id} shows it`);
  }
  const open = openGates(state).map((gate) => gate.id);
  const gate = wanted ?? onlyOne(id, open);
  const address = engineAddress(store, run);
  const stands = state.gates.get(gate)?.verdict ?? pendingVerdict(address.inbox, id, gate);
  if (stands !== null) return answerToSecondDecision(gate, stands, verdict);
  const problem = approverProblem(state, gate, verdict);
  if (problem !== null) throw new UsageError(problem);
  makePrivateFolder(address.inbox);
  if (!leaveMessage(address, messageOf(id, gate, verdict))) {
    throw new UsageError(`the inbox of run ${id} cannot be written: ${address.inbox}`);
  }
  const others = open.includes(gate)
    ? ''
    : `; nobody has asked for it yet${open.length > 0 ? `, open now: ${open.join(', ')}` : ''}`;
  const note = `no engine works on run ${id}: that ${gate} is ${verbOf(verdict)} is kept for when it is resumed${others}`;
  return { kind: 'ack', success: true, note };
}

function onlyOne(id: string, open: readonly string[]): string {
  const [only] = open;
  if (only === undefined) throw new UsageError(`run ${id} has no open gate`, `name one: meow answer ${id} GATE TEXT`);
  if (open.length === 1) return only;
  throw new UsageError(`run ${id} has ${open.length} open gates`, `say which: ${open.join(', ')}`);
}

/** What was decided before, and waits as well. */
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

function verbOf({ approved, answer }: GateVerdict): string {
  if (answer !== null) return 'answered';
  return approved ? 'approved' : 'rejected';
}

function userName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // A user that the system has no name for.
    if (isErrno(error, 'ENOENT')) return process.env['USER'] ?? 'somebody';
    throw error;
  }
}
