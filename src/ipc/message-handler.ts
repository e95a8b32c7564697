// Handles each kind of message for a live run: checks it against the run's state, passes it to the engine, and answers when
// the result is durable. It knows neither sockets nor files.
//
//   handler/1  An answer depends on durable records only.
//   handler/2  A step receives each event once. That it did is durable before the answer, and a caller that asks again
//              because the engine died in between gets the same answer.
//   handler/3  A waiting call is released when the run begins to end, when its attempt is over, and when its caller goes away.
//   handler/4  The number of waiting calls is bounded, and so is the number of gates that they can create.

import type { Json, JsonMap } from '../base/json.ts';
import { own } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { formatDuration } from '../base/time.ts';
import { UsageError } from '../base/usage-error.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Clock } from '../engine/ports.ts';
import { plainText } from '../ir/text.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { approversOf, gateRequestOf } from '../kernel/gates.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { CurrentPrompt } from '../kernel/current-prompt.ts';
import { currentPromptOf } from '../kernel/current-prompt.ts';
import { requiredFiles, checkReport } from '../kernel/report.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { effectId, isOpenGate, isFinished } from '../kernel/state.ts';
import { findStep } from './find-step.ts';
import type { Answer, EventMessage, Message, Waiting } from './protocol.ts';
import { errorAnswer } from './protocol.ts';
import type { EmittedEvent } from './pending-waits.ts';
import { PendingWaits } from './pending-waits.ts';

export interface MessageHandlerOptions {
  readonly run: Pick<LiveRun, 'id' | 'state' | 'durable' | 'submit'>;
  readonly clock: Clock;
  /** The prompt as its agent sees it; an error is a sentence. */
  promptText(prompting: CurrentPrompt): Result<string, string>;
  /** Whether an agent has accepted the prompt of an effect. Until then the prompt is still being delivered. */
  hasAccepted(agent: string, effectId: string): boolean;
  /** Whether a report of the agent can be about the prompt of an effect. */
  mayReportOn?(agent: string, effectId: string): boolean;
  /** Why a path, relative to that folder, is not a file; null if it is one. */
  fileProblem(path: string, from: string): string | null;
  /** Creates a unique id, for an event that came without one. */
  newId(): string;
}

type Of<Kind extends Message['kind']> = Extract<Message, { kind: Kind }>;

export class MessageHandler {
  readonly #options: MessageHandlerOptions;
  readonly #waits: PendingWaits;
  #whenDurable: (() => void)[] = [];
  #closed = false;

  constructor(options: MessageHandlerOptions) {
    this.#options = options;
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
    if (this.#options.run.durable) return Promise.resolve();
    return new Promise((resolve) => this.#whenDurable.push(resolve));
  }

  #answer(message: Message, gone: AbortSignal): Answer | Promise<Answer | null> {
    switch (message.kind) {
      case 'step-done':
        return this.#stepDone(message);
      case 'get-prompt':
        return this.#prompt(message);
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
        return this.#decideGate(message.gate, message.message, {
          approved: message.approved,
          by: message.by ?? UNNAMED,
          notes: message.notes,
          answer: null,
        });
      case 'answer':
        return this.#answerGate(message);
      case 'ping':
        return { kind: 'pong', workflow: this.#options.run.id };
    }
  }

  async #stepDone({ agent, step: named, outputs, notes, message }: Of<'step-done'>): Promise<Answer> {
    const { run } = this.#options;
    const step = named ?? this.#previousStep(agent);
    const report = { agent, step, outputs, message };
    const verdict = checkReport(run.state, report);
    if (verdict.kind === 'refused') {
      const about = step ?? run.state.agents.get(agent ?? '')?.busy?.id ?? '';
      return errorAnswer(withProblems(verdict.message, this.#fileProblems(about, outputs)), 'refused');
    }
    if (verdict.kind === 'repeated') return { kind: 'ack', success: true };
    const problems = this.#fileProblems(verdict.step, verdict.outputs);
    if (problems.length > 0) {
      const named = problems.map(({ name }) => name);
      return errorAnswer(withProblems(invalidOutputs(run.state, verdict.step, named), problems), 'refused');
    }
    await run.submit({ kind: 'step-reported', step: verdict.step, outputs: verdict.outputs, notes, message });
    // Another report, or the end of the step, may have been handled first.
    const after = checkReport(run.state, { ...report, step: verdict.step });
    if (after.kind !== 'repeated') {
      return errorAnswer(after.kind === 'refused' ? after.message : 'the step no longer accepts a report', 'refused');
    }
    const warnings = verdict.unknown.map(
      (name) => `the step does not declare the output ${name}; it is stored all the same`,
    );
    return { kind: 'ack', success: true, ...(warnings.length > 0 ? { warnings } : {}) };
  }

  /** If an agent has not received its next prompt yet, it reports on its previous step; null means its current one. */
  #previousStep(agent: string | null): string | null {
    const { state } = this.#options.run;
    const busy = state.agents.get(agent ?? '')?.busy ?? null;
    if (
      agent === null ||
      busy === null ||
      this.#options.mayReportOn?.(agent, effectId(busy.id, busy.attempt)) !== false
    )
      return null;
    const before = [...state.steps.values()].findLast(
      ({ agent: whose, status, definition: { act } }) =>
        whose === agent && status === 'done' && act.kind === 'effect' && act.effect.kind === 'prompt',
    );
    return before?.id ?? null;
  }

  #fileProblems(step: string, outputs: JsonMap): readonly FileProblem[] {
    return requiredFiles(this.#options.run.state, step, outputs).flatMap(({ name, path, from }) => {
      const problem = path.trim() === '' ? null : this.#options.fileProblem(path, from);
      return problem === null ? [] : [{ name, problem: `${problem}: ${path}` }];
    });
  }

  #prompt({ agent }: Of<'get-prompt'>): Answer {
    const { state } = this.#options.run;
    const prompt = currentPromptOf(state, agent);
    const step = state.steps.get(prompt?.step ?? '');
    if (prompt === null || step === undefined || !this.#hasAccepted(agent, step))
      return { kind: 'prompt', content: '' };
    const text = this.#options.promptText(prompt);
    return text.ok
      ? { kind: 'prompt', content: text.value, step: prompt.step }
      : errorAnswer(`the prompt of step ${prompt.step}: ${text.error}`, 'refused');
  }

  #hasAccepted(agent: string, { id, attempt }: StepState): boolean {
    return this.#options.hasAccepted(agent, effectId(id, attempt));
  }

  #sessionId({ agent }: Of<'get-session-id'>): Answer {
    const known = this.#options.run.state.agents.get(agent);
    const session = known?.info?.session ?? null;
    if (session !== null) return { kind: 'session-id', session_id: session };
    return errorAnswer(`agent ${agent} ${known === undefined ? 'is unknown' : 'has no session'}`, 'refused');
  }

  async #event({ id, eventType, agent, data }: EventMessage): Promise<Answer> {
    const known = id ?? this.#options.newId();
    await this.#options.run.submit({ kind: 'event-emitted', event: { id: known, type: eventType, agent, data } });
    return { kind: 'ack', success: true };
  }

  async #awaitEvent(message: Of<'await-event'>, gone: AbortSignal): Promise<Answer | null> {
    const { run, clock } = this.#options;
    const step = this.#stepOf(message);
    const refused = await this.#refuseWait(message, step);
    if (refused !== null) return refused;
    const until = deadlineOf(message, clock.now());
    const matches = (event: EmittedEvent): boolean => matchesFilter(event, message.filter, run.id);
    const { asking } = message;
    const attempt = step?.attempt ?? 0;
    const found = await this.#waits.event({ type: message.eventType, matches, step, asking, until, gone });
    switch (found.kind) {
      case 'event': {
        const { event } = found;
        if (step !== null)
          await run.submit({ kind: 'event-received', step: step.id, event: event.seq, asking, attempt });
        const { type, agent, data } = event;
        return { kind: message.compat ? 'event-match' : 'event-received', event_type: type, agent, data };
      }
      case 'timeout':
        return { kind: 'timeout', message: `no matching event ${message.eventType}${within(message)}` };
      case 'released':
        return this.#release(step, found.message);
      case 'gone':
        return null;
    }
  }

  #stepStatus({ step, asker, agent }: Of<'step-status'>): Answer {
    const { run } = this.#options;
    const found = findStep(run.state, step, asker ?? run.state.agents.get(agent ?? '')?.busy?.id ?? null);
    if (found === null) return errorAnswer(`run ${run.id} has no step ${step}`, 'unknown-step');
    return { kind: 'step-status', step: found.id, status: found.status };
  }

  async #awaitGate(message: Of<'await-approval'>, gone: AbortSignal): Promise<Answer | null> {
    const { run, clock } = this.#options;
    const { gate } = message;
    const step = this.#stepOf(message);
    if (step === null) return errorAnswer(`no step of run ${run.id} asks for gate ${gate}`, 'refused');
    const refused = await this.#refuseWait(message, step);
    if (refused !== null) return refused;
    if (this.#exceedsGates(gate)) return errorAnswer(`run ${run.id} has too many gates`, 'refused');
    const until = deadlineOf(message, clock.now());
    await run.submit({ kind: 'gate-asked', gate, step: step.id, prompt: message.prompt });
    await this.#durable();
    // The run may have begun to end first: then the gate was not opened.
    const tooLate = await this.#refuseWait(message, step);
    if (tooLate !== null) return tooLate;
    const decision = gateRequestOf(run.state, step, gate)?.verdict ?? null;
    if (decision !== null) return decided(gate, decision);
    const found = await this.#waits.gate({ gate, step, until, gone });
    switch (found.kind) {
      case 'verdict':
        return decided(gate, found.verdict);
      case 'timeout': {
        await run.submit({ kind: 'gate-expired', gate, step: step.id });
        // Somebody may have decided at the last moment.
        const verdict = gateRequestOf(run.state, step, gate)?.verdict ?? null;
        if (verdict !== null) return decided(gate, verdict);
        return { kind: 'timeout', message: `nobody decided gate ${gate}${within(message)}` };
      }
      case 'released':
        return this.#release(step, found.message);
      case 'gone':
        return null;
    }
  }

  #answerGate({ gate, text, by, message }: Of<'answer'>): Answer | Promise<Answer> {
    const { run } = this.#options;
    if (message !== null && run.state.seenMessages.has(message)) return { kind: 'ack', success: true };
    const open = openGates(run.state);
    const [only] = open;
    const meant = gate ?? only;
    if (meant === undefined) return errorAnswer(`run ${run.id} has no open gate`, 'refused');
    if (gate === null && open.length > 1) {
      return errorAnswer(`run ${run.id} has ${open.length} open gates: say which of ${open.join(', ')}`, 'refused');
    }
    return this.#decideGate(meant, message, { approved: true, by: by ?? UNNAMED, notes: null, answer: text });
  }

  async #decideGate(gate: string, message: string | null, verdict: GateVerdict): Promise<Answer> {
    const { run } = this.#options;
    if (message !== null && run.state.seenMessages.has(message)) return { kind: 'ack', success: true };
    const { end } = run.state;
    if (end === 'done' || end === 'failed') return errorAnswer(`run ${run.id} has ended: it is ${end}`, 'ended');
    const before = run.state.gates.get(gate)?.verdict;
    if (before) return answerToSecondDecision(gate, before, verdict);
    if (this.#exceedsGates(gate)) return errorAnswer(`run ${run.id} has too many gates`, 'refused');
    const problem = approverProblem(run.state, gate, verdict);
    if (problem !== null) return errorAnswer(problem, 'refused');
    const open = openGates(run.state);
    await run.submit({ kind: 'gate-decided', gate, verdict, message });
    // Another decision may have come first. A gate that the run reaches again at once has no verdict any more.
    const isSeen = message !== null && run.state.seenMessages.has(message);
    const first = run.state.gates.get(gate)?.verdict ?? (isSeen ? verdict : null);
    if (first === null)
      return errorAnswer(
        `run ${run.id} accepts no decision while it ends: decide again when it has ended or continues`,
        'ending',
      );
    if (!isSame(first, verdict)) return answerToSecondDecision(gate, first, verdict);
    if (open.includes(gate)) return { kind: 'ack', success: true };
    const others = open.length === 0 ? 'no gate is open now' : `open now: ${open.join(', ')}`;
    return {
      kind: 'ack',
      success: true,
      note: `no step has asked for gate ${gate} yet: the decision is stored until one does (${others})`,
    };
  }

  #exceedsGates(gate: string): boolean {
    const { gates } = this.#options.run.state;
    return gates.size >= GATES_MAX && !gates.has(gate);
  }

  #stepOf({ step, agent }: Waiting): StepState | null {
    const { state } = this.#options.run;
    if (step !== null) return state.steps.get(step) ?? null;
    return agent === null ? null : (state.agents.get(agent)?.busy ?? null);
  }

  async #refuseWait({ attempt }: Waiting, step: StepState | null): Promise<Answer | null> {
    const { run } = this.#options;
    if (run.state.end !== null) return this.#release(step, `the run is ending: it is ${run.state.end}`);
    if (step !== null && (isFinished(step) || (attempt !== null && attempt !== step.attempt))) {
      return { kind: 'released', message: `step ${step.id} no longer waits for this` };
    }
    if (this.#waits.isFull) return errorAnswer('too many calls are waiting already', 'refused');
    return null;
  }

  /** Records that the run released the step, so that a failure of the step is not blamed on it. */
  async #release(step: StepState | null, message: string): Promise<Answer> {
    const { run } = this.#options;
    if (step !== null && run.state.end !== null) await run.submit({ kind: 'wait-released', step: step.id });
    return { kind: 'released', message };
  }
}

const UNNAMED = 'somebody';
const GATES_MAX = 10_000;

function decided(gate: string, { approved, by, notes, answer }: GateVerdict): Answer {
  return { kind: 'gate-decided', gate, approved, by, notes, answer };
}

function openGates(state: RunState): readonly string[] {
  return [...state.gates.values()].filter((gate) => isOpenGate(state, gate)).map(({ name }) => name);
}

/** Why this person may not decide the gate, as a sentence; null if they may. */
export function approverProblem(state: RunState, gate: string, { by }: GateVerdict): string | null {
  const approvers = approversOf(state, gate);
  if (approvers === null || approvers.includes(by)) return null;
  return `${by} may not decide gate ${gate}: its approvers are ${approvers.join(', ')} (use --as NAME to say who decides)`;
}

/** The answer to a second decision. The first one counts; repeating it does no harm. */
export function answerToSecondDecision(gate: string, first: GateVerdict, wanted: GateVerdict): Answer {
  const how = first.answer !== null ? 'answered' : first.approved ? 'approved' : 'rejected';
  const summary = `gate ${gate} was already ${how} by ${first.by}`;
  if (isSame(first, wanted)) return { kind: 'ack', success: true, note: summary };
  return errorAnswer(`${summary}, and the first decision counts`, 'refused');
}

function isSame(a: GateVerdict, b: GateVerdict): boolean {
  return a.approved === b.approved && a.answer === b.answer;
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

function deadlineOf({ deadline, timeoutMs }: Waiting, now: number): number | null {
  return deadline ?? (timeoutMs === null ? null : now + timeoutMs);
}

function within({ timeoutMs }: Waiting): string {
  return timeoutMs === null ? ' in time' : ` within ${formatDuration(timeoutMs)}`;
}

interface FileProblem {
  /** The name of the output. */
  readonly name: string;
  readonly problem: string;
}

/** Adds problems with files to a refusal about outputs, so that the agent can fix everything at once. */
function withProblems(refusal: string, problems: readonly FileProblem[]): string {
  const usage = refusal.lastIndexOf(USAGE);
  if (usage < 0 || problems.length === 0) return refusal;
  const heading = refusal.includes(INVALID) ? '\n' : INVALID;
  const lines = problems.map(({ name, problem }) => `  ✗ ${name} (file_path): ${problem}`);
  return `${refusal.slice(0, usage)}${heading}${lines.join('\n')}${refusal.slice(usage)}`;
}

const USAGE = '\n\nUsage:\n';
const INVALID = '\n\nInvalid:\n';

/** In the form of `judgeReport`. The usage line names required outputs, and those that must be fixed. */
function invalidOutputs({ steps }: RunState, stepId: string, names: readonly string[]): string {
  const act = steps.get(stepId)?.definition.act;
  const expects = act?.kind === 'effect' && act.effect.kind === 'prompt' ? act.effect.expects : [];
  const wanted = expects.filter(({ name, required }) => required || names.includes(name));
  return `Invalid outputs${USAGE}  ${['meow done', ...wanted.map(({ name }) => `--output ${name}=<value>`)].join(' ')}`;
}
