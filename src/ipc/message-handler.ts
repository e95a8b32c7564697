// Handles each kind of message for a live run: checks it against the run's state, passes it to the engine, and answers when
// the result is durable. It knows neither sockets nor files.
//
//   handler/1  An answer depends on durable records only.
//   handler/2  A step receives each event once. That it did is durable before the answer, and a caller that asks again
//              because the engine died in between gets the same answer.
//   handler/3  A waiting call is released when the run begins to end, when its attempt is over, and when its caller goes away.
//   handler/4  The number of waiting calls is bounded, and so is the number of gates that they can create.
//   handler/5  A decision without a valid proof is refused, and the run warns of it. Decisions are handled one after the other.
//   handler/6  While a call waits for a gate, no other question on behalf of its step can replace its own.

import { type Result, UsageError } from '../base/errors.ts';
import { once } from '../base/once.ts';
import { type Json, type JsonMap, own } from '../base/json.ts';
import { formatDuration } from '../base/time.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Clock } from '../engine/ports.ts';
import { plainText } from '../ir/text.ts';
import { type CurrentPrompt, currentPromptOf } from '../kernel/agents.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { canBeDecided, gateRequestOf } from '../kernel/gates.ts';
import type { GateVerdict } from '../kernel/input.ts';
import { checkReport, type FileProblem, recordsRefusal, requiredFiles } from '../kernel/report.ts';
import { findStep } from '../kernel/scope.ts';
import { effectId, isFinished, isOpenGate, type RunState, type StepState } from '../kernel/state.ts';
import { maskOutputs, revealJson, type Secrets } from '../sys/secrets.ts';
import {
  approverProblem,
  askingProblem,
  authorizeDecision,
  type GateDecision,
  type ProofChecks,
  verbOf,
} from './authorize-decision.ts';
import { type EmittedEvent, endingMessage, PendingWaits, type Unmatched } from './pending-waits.ts';
import { type Answer, errorAnswer, type Message, type Waiting } from './protocol.ts';
import { TypedKeys } from './typed-keys.ts';

export interface MessageHandlerOptions {
  readonly run: Pick<LiveRun, 'id' | 'state' | 'durable' | 'submit'>;
  readonly clock: Clock;
  /** The prompt as its agent sees it; an error is a sentence. */
  promptText(prompting: CurrentPrompt): Result<string, string>;
  /** Whether an agent has accepted the prompt of an effect. Until then the prompt is still being delivered. */
  hasAccepted(agent: string, effectId: string): boolean;
  /** Whether a report of the agent can be about the prompt of an effect. */
  mayReportOn?(agent: string, effectId: string): boolean;
  /** Types keys of a person into the terminal of an agent. An error is a sentence. */
  typeKeys?(agent: string, keys: Uint8Array, by: string): Promise<Result<null, string>>;
  /** Why a path, relative to that folder, is not a file; null if it is one. */
  fileProblem(path: string, from: string): string | null;
  readonly proofs: ProofChecks;
  /** Of the run: its records have references to them, and messages have the values. Absent: none are known. */
  readonly secrets?: Pick<Secrets, 'mask' | 'reveal'>;
  /** Creates a unique id, for a message that came without one. */
  newId(): string;
}

export class MessageHandler {
  readonly #options: MessageHandlerOptions;
  readonly #run: MessageHandlerOptions['run'];
  readonly #state: RunState;
  readonly #waits: PendingWaits;
  readonly #keys = once(() => new TypedKeys(this.#options));
  #whenDurable: (() => void)[] = [];
  /** Those that calls wait for. `text`: the prompt and the approvers. */
  readonly #questions = new Set<{ readonly gate: string; readonly step: string; readonly text: string }>();
  /** Resolves when all decisions so far have been handled. */
  #decisions: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: MessageHandlerOptions) {
    this.#options = options;
    this.#run = options.run;
    this.#state = options.run.state;
    this.#waits = new PendingWaits(options.run.state, options.clock);
  }

  /** Null if the sender has gone away, or this engine has ended before it could answer; the next one may. */
  async answer(message: Message, gone: AbortSignal): Promise<Answer | null> {
    try {
      await this.#durable();
      return this.#closed ? null : await this.#answer(message, gone);
    } catch (error) {
      // The journal cannot be written, or the run has ended. The engine reports both.
      if (error instanceof UsageError) return null;
      throw error;
    }
  }

  /** Must be called with all records that become durable. */
  observe(records: readonly JournalRecord[], state: RunState): void {
    for (const resolve of this.#whenDurable.splice(0)) resolve();
    this.#waits.observe(records, state);
  }

  /** The engine has ended. Waiting calls get no answer: the next engine may have one. */
  close(): void {
    this.#closed = true;
    for (const resolve of this.#whenDurable.splice(0)) resolve();
    this.#waits.cancelAll();
  }

  /** During an append the state is ahead of the journal (handler/1). */
  #durable(): Promise<void> {
    if (this.#run.durable) return Promise.resolve();
    return new Promise((resolve) => this.#whenDurable.push(resolve));
  }

  #answer(message: Message, gone: AbortSignal): Answer | Promise<Answer | null> {
    switch (message.kind) {
      case 'step-done':
        return this.#stepDone(message);
      case 'get-prompt':
        return this.#prompt(message, gone);
      case 'get-session-id':
        return this.#sessionId(message);
      case 'event':
        return this.#event(message);
      case 'await-event':
        return this.#awaitEvent(message, gone);
      case 'step-status':
        return this.#stepStatus(message);
      case 'await-approval':
        return this.#awaitGate(message, gone);
      case 'approval':
      case 'answer':
        return this.#inTurn(() => this.#decide(message));
      case 'type-keys':
        return this.#keys().answer(message);
      case 'ping':
        return { kind: 'pong', workflow: this.#run.id };
    }
  }

  async #stepDone({ agent, step: named, outputs: given, notes, message }: Of<'step-done'>): Promise<Answer> {
    const { secrets } = this.#options;
    const outputs = secrets === undefined ? given : maskOutputs(given, secrets);
    const step = named ?? this.#previousStep(agent);
    const report = { agent, step, outputs, message };
    const about = step ?? this.#state.agents.get(agent ?? '')?.busy?.id ?? '';
    const verdict = checkReport(this.#state, report, this.#fileProblems(about, given));
    if (verdict.kind === 'refused') return this.#refuse(about, verdict.message);
    if (verdict.kind === 'repeated') return ACK;
    await this.#run.submit({ kind: 'step-reported', step: verdict.step, outputs: verdict.outputs, notes, message });
    // Another report, or the end of the step, may have been handled first.
    const after = checkReport(this.#state, { ...report, step: verdict.step });
    if (after.kind !== 'repeated') {
      return errorAnswer(after.kind === 'refused' ? after.message : 'the step no longer accepts a report');
    }
    const warnings = verdict.unknown.map(
      (name) => `the step does not declare the output ${name}; it is stored all the same`,
    );
    return { kind: 'ack', success: true, ...(warnings.length > 0 ? { warnings } : {}) };
  }

  /** Recorded, so that people see what an agent tried. */
  async #refuse(id: string, reason: string): Promise<Answer> {
    const step = this.#state.steps.get(id);
    if (step !== undefined && recordsRefusal(step))
      await this.#run.submit({ kind: 'report-refused', step: id, reason: reason.slice(0, REASON_MAX) });
    return errorAnswer(reason);
  }

  /** If an agent has not received its next prompt yet, it reports on its previous step; null means its current one. */
  #previousStep(agent: string | null): string | null {
    const busy = this.#state.agents.get(agent ?? '')?.busy ?? null;
    if (agent === null || busy === null) return null;
    if (this.#options.mayReportOn?.(agent, effectId(busy.id, busy.attempt)) !== false) return null;
    const before = [...this.#state.steps.values()].findLast(
      ({ agent: whose, status, definition: { act } }) =>
        whose === agent && status === 'done' && act.kind === 'effect' && act.effect.kind === 'prompt',
    );
    return before?.id ?? null;
  }

  #fileProblems(step: string, outputs: JsonMap): readonly FileProblem[] {
    return requiredFiles(this.#state, step, outputs).flatMap(({ name, path, from }) => {
      const problem = path.trim() === '' ? null : this.#options.fileProblem(path, from);
      return problem === null ? [] : [{ name, problem: `${problem}: ${path}` }];
    });
  }

  /** An agent that asks while its prompt is being delivered may have it already: the outcome of the delivery decides. */
  async #prompt({ agent }: Of<'get-prompt'>, gone: AbortSignal): Promise<Answer | null> {
    while (this.#isDelivering(agent) && this.#whenDurable.length < DELIVERY_WAITS_MAX) {
      await this.#recorded(gone);
      if (gone.aborted || this.#closed) return null;
    }
    const prompt = currentPromptOf(this.#state, agent);
    const step = this.#state.steps.get(prompt?.step ?? '');
    if (prompt === null || step === undefined || !this.#options.hasAccepted(agent, effectId(step.id, step.attempt))) {
      return { kind: 'prompt', content: '' };
    }
    const text = this.#options.promptText(prompt);
    return text.ok
      ? { kind: 'prompt', content: text.value, step: prompt.step }
      : errorAnswer(`the prompt of step ${prompt.step}: ${text.error}`);
  }

  /** Whether the prompt has been submitted, and nothing tells yet whether the agent has it. */
  #isDelivering(agent: string): boolean {
    const step = this.#state.steps.get(currentPromptOf(this.#state, agent)?.step ?? '');
    if (step?.delivery !== 'sending' && step?.delivery !== 'blocked-on-dialog') return false;
    const effect = effectId(step.id, step.attempt);
    if (this.#options.hasAccepted(agent, effect)) return false;
    return this.#options.mayReportOn?.(agent, effect) !== false;
  }

  /** Resolves at the next record, or when the caller goes away. */
  async #recorded(gone: AbortSignal): Promise<void> {
    if (gone.aborted) return;
    await new Promise<void>((resolve) => {
      this.#whenDurable.push(resolve);
      gone.addEventListener('abort', () => resolve(), { once: true });
    });
    if (!gone.aborted) await this.#durable();
  }

  #sessionId({ agent }: Of<'get-session-id'>): Answer {
    const known = this.#state.agents.get(agent);
    const session = known?.info?.session ?? null;
    if (session !== null) return { kind: 'session-id', session_id: session };
    return errorAnswer(`agent ${agent} ${known === undefined ? 'is unknown' : 'has no session'}`);
  }

  async #event({ id, eventType: type, agent, data }: Of<'event'>): Promise<Answer> {
    await this.#run.submit({ kind: 'event-emitted', event: { id: id ?? this.#options.newId(), type, agent, data } });
    return ACK;
  }

  async #awaitEvent(message: Of<'await-event'>, gone: AbortSignal): Promise<Answer | null> {
    const step = this.#stepOf(message);
    const refused = await this.#refuseWait(message, step);
    if (refused !== null) return refused;
    const until = this.#deadlineOf(message);
    const whole = (event: EmittedEvent): EmittedEvent => ({ ...event, data: this.#revealed(event.data) as JsonMap });
    const matches = (event: EmittedEvent): boolean => matchesFilter(whole(event), message.filter, this.#run.id);
    const { asking } = message;
    const attempt = step?.attempt ?? 0;
    const found = await this.#waits.event({ type: message.eventType, matches, step, asking, until, gone });
    const late = `no matching event ${message.eventType}${within(message)}`;
    if (found.kind !== 'event') return this.#unmatched(found, step, late);
    const { seq: event, type, agent, data } = { ...found.event, ...whole(found.event) };
    if (step !== null) await this.#run.submit({ kind: 'event-received', step: step.id, event, asking, attempt });
    return { kind: message.compat ? 'event-match' : 'event-received', event_type: type, agent, data };
  }

  #stepStatus({ step, asker, agent }: Of<'step-status'>): Answer {
    const found = findStep(this.#state, step, asker ?? this.#state.agents.get(agent ?? '')?.busy?.id ?? null);
    if (found === null) return errorAnswer(`run ${this.#run.id} has no step ${step}`, 'unknown-step');
    return { kind: 'step-status', step: found.id, status: found.status };
  }

  async #awaitGate(message: Of<'await-approval'>, gone: AbortSignal): Promise<Answer | null> {
    const { gate } = message;
    const step = this.#stepOf(message);
    if (step === null) return errorAnswer(`no step of run ${this.#run.id} asks for gate ${gate}`);
    const refused = await this.#refuseWait(message, step);
    if (refused !== null) return refused;
    if (this.#exceedsGates(gate)) return errorAnswer(`run ${this.#run.id} has too many gates`);
    const { prompt, approvers } = message;
    const question = { gate, step: step.id, text: JSON.stringify([prompt, approvers]) };
    for (const other of this.#questions) {
      if (other.gate !== gate || other.step !== step.id || other.text === question.text) continue;
      return errorAnswer(`step ${step.id} waits for gate ${gate} already, with another prompt or other approvers`);
    }
    this.#questions.add(question);
    try {
      return await this.#askGate(message, step, gone);
    } finally {
      this.#questions.delete(question);
    }
  }

  async #askGate(message: Of<'await-approval'>, step: StepState, gone: AbortSignal): Promise<Answer | null> {
    const { gate, prompt, approvers } = message;
    const until = this.#deadlineOf(message);
    const listed = approvers === null ? {} : { approvers };
    await this.#run.submit({ kind: 'gate-asked', gate, step: step.id, prompt, ...listed });
    await this.#durable();
    // The run may have begun to end first: then the gate was not opened.
    const tooLate = await this.#refuseWait(message, step);
    if (tooLate !== null) return tooLate;
    const verdict = (): GateVerdict | null => gateRequestOf(this.#state, step, gate)?.verdict ?? null;
    const decision = verdict();
    if (decision !== null) return this.#decided(gate, decision);
    const found = await this.#waits.gate(gate, { step, until, gone });
    if (found.kind === 'verdict') return this.#decided(gate, found.verdict);
    if (found.kind === 'timeout') {
      await this.#run.submit({ kind: 'gate-expired', gate, step: step.id });
      // Somebody may have decided at the last moment.
      const late = verdict();
      if (late !== null) return this.#decided(gate, late);
    }
    return this.#unmatched(found, step, `nobody decided gate ${gate}${within(message)}`);
  }

  #decided(gate: string, verdict: GateVerdict): Answer {
    const { notes, answer } = verdict;
    const revealed = this.#revealed({ notes, answer }) as unknown as Pick<GateVerdict, 'notes' | 'answer'>;
    return decided(gate, { ...verdict, ...revealed });
  }

  #revealed(value: Json): Json {
    const { secrets } = this.#options;
    return secrets === undefined ? value : revealJson(value, secrets);
  }

  async #unmatched(found: Unmatched, step: StepState | null, ifLate: string): Promise<Answer | null> {
    if (found.kind === 'released') return this.#release(step, found.message);
    return found.kind === 'timeout' ? { kind: 'timeout', message: ifLate } : null;
  }

  async #inTurn(decide: () => Promise<Answer | null>): Promise<Answer | null> {
    const answer = this.#decisions.then(async () => {
      await this.#durable();
      return this.#closed ? null : await decide();
    });
    this.#decisions = answer.catch(() => undefined);
    return answer;
  }

  async #decide(decision: GateDecision): Promise<Answer> {
    if (decision.gate !== null) return this.#decideGate(decision.gate, decision);
    if (this.#hasSeen(decision)) return ACK;
    const open = openGates(this.#state);
    const [gate] = open;
    if (gate === undefined) return errorAnswer(`run ${this.#run.id} has no open gate`);
    if (open.length > 1) {
      return errorAnswer(`run ${this.#run.id} has ${open.length} open gates: say which of ${open.join(', ')}`);
    }
    return this.#decideGate(gate, decision);
  }

  async #decideGate(gate: string, decision: GateDecision): Promise<Answer> {
    const authorized = await authorizeDecision(this.#run, gate, decision, this.#options.proofs);
    await this.#durable();
    if (!authorized.ok) return this.#refuseDecision(gate, authorized.error);
    if (this.#hasSeen(decision)) return ACK;
    const { verdict, asking } = authorized.value;
    const { end } = this.#state;
    if (end === 'done' || end === 'failed') return errorAnswer(`run ${this.#run.id} has ended: it is ${end}`, 'ended');
    const stale = askingProblem(this.#state, gate, asking);
    if (stale !== null) return this.#refuseDecision(gate, stale);
    const before = this.#state.gates.get(gate)?.verdict;
    if (before) return answerToSecondDecision(gate, before, verdict);
    if (this.#exceedsGates(gate)) return errorAnswer(`run ${this.#run.id} has too many gates`);
    const problem = approverProblem(this.#state, gate, verdict);
    if (problem !== null) return errorAnswer(problem);
    const isUnasked = !canBeDecided(this.#state, gate);
    if (isUnasked && end === null)
      return errorAnswer(`gate ${gate} was not decided in time: nobody waits for it any more`);
    const open = openGates(this.#state);
    const message = decision.message ?? this.#options.newId();
    await this.#run.submit({ kind: 'gate-decided', gate, verdict, message, asking });
    // The run may have reached the gate again at once, and then it has no verdict any more.
    if (!this.#state.seenMessages.has(message)) {
      const text = `run ${this.#run.id} accepts no decision while it ends: decide again when it has ended or continues`;
      return errorAnswer(text, 'ending');
    }
    if (open.includes(gate)) return ACK;
    const others = open.length === 0 ? 'no gate is open now' : `open now: ${open.join(', ')}`;
    const note = `no step has asked for gate ${gate} yet: the decision is stored until one does (${others})`;
    return { kind: 'ack', success: true, note };
  }

  async #refuseDecision(gate: string, why: string): Promise<Answer> {
    const message = `a decision about gate ${gate} was refused: ${why}`;
    if (this.#state.phase !== 'ended') await this.#run.submit({ kind: 'verdict-refused', message });
    return errorAnswer(message);
  }

  #hasSeen({ message }: GateDecision): boolean {
    return message !== null && this.#state.seenMessages.has(message);
  }

  #exceedsGates(gate: string): boolean {
    const { gates } = this.#state;
    return gates.size >= GATES_MAX && !gates.has(gate);
  }

  #stepOf({ step, agent }: Waiting): StepState | null {
    if (step !== null) return this.#state.steps.get(step) ?? null;
    return agent === null ? null : (this.#state.agents.get(agent)?.busy ?? null);
  }

  #deadlineOf({ deadline, timeoutMs }: Waiting): number | null {
    return deadline ?? (timeoutMs === null ? null : this.#options.clock.now() + timeoutMs);
  }

  async #refuseWait({ attempt }: Waiting, step: StepState | null): Promise<Answer | null> {
    const ending = endingMessage(this.#state);
    if (ending !== null) return this.#release(step, ending);
    if (step !== null && (isFinished(step) || (attempt !== null && attempt !== step.attempt))) {
      return { kind: 'released', message: `step ${step.id} no longer waits for this` };
    }
    if (this.#waits.isFull) return errorAnswer('too many calls are waiting already');
    return null;
  }

  /** Records that the run released the step, so that a failure of the step is not blamed on it. */
  async #release(step: StepState | null, message: string): Promise<Answer> {
    if (step !== null && this.#state.end !== null) await this.#run.submit({ kind: 'wait-released', step: step.id });
    return { kind: 'released', message };
  }
}

const ACK: Answer = { kind: 'ack', success: true };
const GATES_MAX = 10_000;
/** Characters of a refusal that are recorded. */
const REASON_MAX = 2_000;
const DELIVERY_WAITS_MAX = 1_000;

type Of<Kind extends Message['kind']> = Extract<Message, { kind: Kind }>;
function decided(gate: string, { approved, by, notes, answer }: GateVerdict): Answer {
  return { kind: 'gate-decided', gate, approved, by, notes, answer };
}

function openGates(state: RunState): readonly string[] {
  return [...state.gates.values()].filter((gate) => isOpenGate(state, gate)).map(({ name }) => name);
}

/** The answer to a second decision. The first one counts; repeating it does no harm. */
export function answerToSecondDecision(gate: string, first: GateVerdict, wanted: GateVerdict): Answer {
  const summary = `gate ${gate} was already ${verbOf(first)} by ${first.by}`;
  const isSame = first.approved === wanted.approved && first.answer === wanted.answer;
  if (isSame) return { kind: 'ack', success: true, note: summary };
  return errorAnswer(`${summary}, and the first decision counts`);
}

function within({ timeoutMs }: Waiting): string {
  return timeoutMs === null ? ' in time' : ` within ${formatDuration(timeoutMs)}`;
}

/** `agent` and `workflow` are compared with the event itself, other keys with its data. */
function matchesFilter(event: EmittedEvent, filter: Readonly<Record<string, string>>, runId: string): boolean {
  return Object.entries(filter).every(([key, wanted]) => {
    if (key === 'workflow') return wanted === runId;
    if (key === 'agent') return wanted === event.agent;
    const value = own<Json>(event.data, key);
    return value !== undefined && plainText(value) === wanted;
  });
}
