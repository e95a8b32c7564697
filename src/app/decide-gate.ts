// A decision about a gate. The engine of the run receives it; if there is none, the decision is left in the run's inbox and
// takes effect when the run is resumed.
//
// Only people decide: a process inside of a run is refused, unless it belongs to an agent that the gate lists as an approver.
// A decision of a person carries a proof, made with their key or signed by them.

import { dirname } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { JsonMap } from '../base/json.ts';
import type { Store } from '../engine/ports.ts';
import {
  approverProblem,
  askingProblem,
  authorizeDecision,
  isReserved,
  provenText,
  verbOf,
} from '../ipc/authorize-decision.ts';
import { ask, leaveMessage, newMessageId } from '../ipc/client.ts';
import { proofChecks, proveWithKey, signText } from '../ipc/decision-proof.ts';
import { pendingMessages } from '../ipc/inbox.ts';
import { answerToSecondDecision } from '../ipc/message-handler.ts';
import type { Answer } from '../ipc/protocol.ts';
import { AGENT_PREFIX } from '../ir/approvers.ts';
import { agentNamesOf } from '../kernel/agents.ts';
import { objectors } from '../kernel/gates.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { Config } from '../languages/config.ts';
import { makePrivateFolder } from '../sys/files.ts';
import { markersAround } from '../sys/process.ts';
import { openGates } from '../view/status.ts';
import type { FollowedRun } from './follow.ts';
import type { Project } from './project.ts';
import { runContext } from './run-context.ts';
import { engineAddress, type ReadRun, readRun, signersFile, storeOf, unlessRefused } from './runs.ts';

export { verbOf } from '../ipc/authorize-decision.ts';
export type { GateVerdict } from '../kernel/input.ts';

export interface DecisionOptions {
  readonly config: Pick<Config, 'gates'>;
  /** Sign with an SSH key: its file, or true for the user's own. Absent: prove it with the decision key. */
  readonly sign?: string | true;
  /** Whether somebody said who decides. An agent that decides does not. */
  readonly isNamed: boolean;
}

/** Where the run of a decision is stored: an agent may work in another project than that of its run. */
export function storeForDecision(project: Project): Store {
  const inbox = runContext()?.inbox ?? null;
  return storeOf(inbox === null ? project : { runs: dirname(dirname(inbox)) });
}

/** Returns the engine's answer, or an acknowledgement that says what happens next. */
export async function decideGate(
  store: Store,
  id: string,
  gate: string,
  verdict: GateVerdict,
  options: DecisionOptions,
): Promise<Answer> {
  const around = markersAround();
  if (around.length > 0) return decideInside(store, id, gate, verdict, { ...options, around });
  const run = await readRun(store, id);
  const decision = prove(run, gate, verdict, options.sign);
  return send(store, run, decision, options.config);
}

interface ReadyDecision {
  readonly gate: string;
  readonly asking: number;
  /** With its proof. */
  readonly verdict: GateVerdict;
  readonly message: JsonMap;
}

/** Inside of a run only agents decide, and only gates of their run that list them. */
async function decideInside(
  store: Store,
  id: string,
  gate: string,
  verdict: GateVerdict,
  options: DecisionOptions & { readonly around: readonly string[] },
): Promise<Answer> {
  const run = await unlessRefused(readRun(store, id), null);
  const mark = run?.state.request?.mark;
  const isOwn = options.around.some((marker) => marker.startsWith(mark === undefined ? `${id}.` : `${id}.${mark}:`));
  const mayBeAgent = isOwn && run !== null && !options.isNamed && options.sign === undefined;
  const decision = mayBeAgent ? asAgent(run, gate, verdict) : null;
  if (decision !== null && run !== null) return send(store, run, decision, options.config);
  throw new UsageError(
    isOwn ? 'a run cannot decide its own gates' : 'steps and agents of a run cannot decide gates',
    'a person must decide, in a terminal outside of the run',
  );
}

/** Null unless this process belongs to an agent that may decide the gate. */
function asAgent(run: ReadRun, gate: string, verdict: GateVerdict): ReadyDecision | null {
  const { state } = run;
  const { agent = null, step = null } = runContext() ?? {};
  const current = step === null ? undefined : state.steps.get(step);
  const names = [...(agent === null ? [] : [agent]), ...(current === undefined ? [] : agentNamesOf(state, current))];
  for (const name of names) {
    const decided: GateVerdict = { ...verdict, by: AGENT_PREFIX + name, proof: { kind: 'agent' } };
    if (objectors(state, gate, decided).length > 0) continue;
    const asking = state.gates.get(gate)?.asked ?? 0;
    return { gate, asking, verdict: decided, message: { ...messageOf(run.id, gate, verdict), agent: name } };
  }
  return null;
}

function prove(run: ReadRun, gate: string, verdict: GateVerdict, sign: string | true | undefined): ReadyDecision {
  const { by } = verdict;
  if (isReserved(by)) throw new UsageError(`${by} is not the name of a person`, 'say who decides: --as NAME');
  const asking = run.state.gates.get(gate)?.asked ?? 0;
  const time = new Date().toISOString();
  const text = provenText(run, { gate, asking, verdict, time });
  const message = { ...messageOf(run.id, gate, verdict), by };
  const made = sign === undefined ? { hmac: proveWithKey(process.env, text) } : { signature: signText(text, sign) };
  const proof = 'hmac' in made ? ({ kind: 'key', time } as const) : ({ kind: 'signature', time, ...made } as const);
  const proven = { ...message, proof: { asking, time, ...made } };
  return { gate, asking, verdict: { ...verdict, proof }, message: proven };
}

async function send(
  store: Store,
  run: ReadRun,
  decision: ReadyDecision,
  config: DecisionOptions['config'],
): Promise<Answer> {
  const answer = (await store.holder(run.id)) === null ? null : await askEngine(store, run, decision.message);
  return answer ?? leaveDecision(store, await readRun(store, run.id), decision, config);
}

/** For an engine without a reachable socket. */
const ANSWER_MS = 10_000;

/** Null if the engine has ended meanwhile. */
async function askEngine(store: Store, run: ReadRun, message: JsonMap): Promise<Answer | null> {
  const options = { deadline: Date.now() + ANSWER_MS, keep: 'never' } as const;
  const answer = await ask(engineAddress(store, run), message, options);
  if (answer?.kind === 'timeout') {
    throw new UsageError(`the engine of run ${run.id} does not answer`, `check it: meow status ${run.id}`);
  }
  return answer?.kind === 'error' && answer.code === 'ended' ? null : answer;
}

async function leaveDecision(
  store: Store,
  run: ReadRun,
  { gate, asking, verdict, message }: ReadyDecision,
  config: DecisionOptions['config'],
): Promise<Answer> {
  const { id, state } = run;
  if (state.phase === 'ended' && (state.end === 'done' || state.end === 'failed')) {
    throw new UsageError(`run ${id} has ended: it is ${state.end}`, `meow status ${id} shows it`);
  }
  const address = engineAddress(store, run);
  const stale = askingProblem(state, gate, asking);
  if (stale !== null) throw new UsageError(`the decision about gate ${gate} is refused: ${stale}`);
  const earlier = state.gates.get(gate)?.verdict ?? (await pendingVerdict(store, run, gate, config));
  if (earlier !== null) return answerToSecondDecision(gate, earlier, verdict);
  const problem = approverProblem(state, gate, verdict);
  if (problem !== null) throw new UsageError(problem);
  makePrivateFolder(address.inbox);
  if (!leaveMessage(address, message)) {
    throw new UsageError(`the inbox of run ${id} cannot be written: ${address.inbox}`);
  }
  const open = openGates(state).map((each) => each.id);
  const others = open.length > 0 ? `, open now: ${open.join(', ')}` : '';
  const notOpen = open.includes(gate) ? '' : `; ${gate} is not open yet${others}`;
  const effect = `${verbOf(verdict)}; run ${id} has no engine, so this takes effect when you run: meow resume ${id}`;
  return { kind: 'ack', success: true, note: `${effect}${notOpen}` };
}

/** A decision that is already in the inbox. One that the engine will refuse does not count. */
export async function pendingVerdict(
  store: Store,
  run: FollowedRun,
  gate: string,
  config: DecisionOptions['config'],
): Promise<GateVerdict | null> {
  const { inbox } = engineAddress(store, run);
  const signers = signersFile(store.files(run.id).localPath(''), config);
  const checks = proofChecks(process.env, signers);
  for (const message of pendingMessages(inbox, run.id)) {
    if ((message.kind !== 'approval' && message.kind !== 'answer') || message.gate !== gate) continue;
    const decision = await authorizeDecision(run, gate, message, checks);
    const isValid = decision.ok && askingProblem(run.state, gate, decision.value.asking) === null;
    if (isValid && approverProblem(run.state, gate, decision.value.verdict) === null) return decision.value.verdict;
  }
  return null;
}

function messageOf(id: string, gate: string, { approved, notes, answer, via }: GateVerdict): JsonMap {
  const common = { id: newMessageId(), workflow: id, gate_id: gate, ...(via === undefined ? {} : { via }) };
  if (answer !== null) return { type: 'answer', ...common, text: answer };
  return { type: 'approval', ...common, approved, ...(approved ? { notes } : { reason: notes }) };
}
