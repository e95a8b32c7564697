// What a step or an agent of a run asks of that run, whatever face it uses (a command, an MCP tool). Requests go to the
// engine's socket, or to the run's inbox if no engine answers there. The commands that use this file start often and run
// briefly, so it imports little.

import { basename, dirname } from 'node:path';

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import type { JsonMap } from '../base/json.ts';
import { parseDuration } from '../base/time.ts';
import { ask, type AskOptions, askSocket, type EngineAddress, leaveMessage, newMessageId } from '../ipc/client.ts';
import { type Answer, errorAnswer, parseMessage } from '../ipc/protocol.ts';
import { mayBeLocked } from '../stores/peek.ts';
import { type RunContext, unreachable } from './run-context.ts';

export type { Answer } from '../ipc/protocol.ts';
export { plainText } from '../ir/text.ts';
export { EXPIRED_EXIT_CODE } from '../kernel/gates.ts';

export interface Report {
  readonly outputs: JsonMap;
  readonly notes: string | null;
}

export interface ReportOptions {
  /** Aborted when the caller no longer waits for the answer. The report is delivered all the same. */
  readonly signal?: AbortSignal;
  /** Called once if no engine works on the run: the report stays in the inbox until one does. */
  onNoEngine?(): void;
}

/** Reports that the work of a step is finished. The engine checks the outputs. */
export async function reportDone(context: RunContext, report: Report, options: ReportOptions): Promise<Answer> {
  const { workflow, agent, step, inbox } = context;
  const message = { type: 'step_done', id: newMessageId(), workflow, agent, step, ...report };
  const onWaiting = (): void => {
    if (inbox !== null && !mayBeLocked(dirname(inbox))) options.onNoEngine?.();
  };
  const { signal } = options;
  return reached(context, await ask(context, message, { deadline: null, keep: 'always', signal, onWaiting }));
}

/** The prompt that an agent should be working on; null if no engine answers. */
export function currentPrompt(context: RunContext, agent: string, signal?: AbortSignal): Promise<Answer | null> {
  return askEngine(context, { type: 'get_prompt', workflow: context.workflow, agent }, signal);
}

export async function sessionIdOf(context: RunContext, agent: string): Promise<Answer> {
  return reached(context, await askEngine(context, { type: 'get_session_id', workflow: context.workflow, agent }));
}

/** Sends an event without waiting. False if the run has ended and nobody will receive it; an error is a sentence. */
export async function emitEvent(context: RunContext, type: string, data: JsonMap): Promise<Result<boolean, string>> {
  const { workflow, agent } = context;
  const message = { type: 'event', id: newMessageId(), workflow, agent, event_type: type, data };
  // Refused here, with or without an engine, if an engine would refuse it.
  const parsed = parseMessage(JSON.stringify(message), workflow ?? '');
  const answer = parsed.ok ? await askSocket(context, message) : errorAnswer(parsed.error, 'malformed');
  if (answer?.kind === 'error' && answer.code === 'malformed') {
    return err(`the event ${JSON.stringify(type.slice(0, SHOWN_MAX))} is refused: ${answer.message}`);
  }
  return ok(answer?.kind === 'ack' || leaveMessage(context, message));
}

const SHOWN_MAX = 40;

export interface EventWait {
  readonly type: string;
  readonly filter: Readonly<Record<string, string>>;
  /** As the caller wrote it; null waits without limit. */
  readonly timeout: string | null;
}

export async function awaitEvent(context: RunContext, { type, filter, timeout }: EventWait): Promise<Answer> {
  const { fields, options } = readTimeout(timeout, 'never');
  const wait = { type: 'await_event', ...askerOf(context), event_type: type, filter, asking: newMessageId() };
  return reached(context, await ask(context, { ...wait, ...fields }, options));
}

export interface Question {
  readonly gate: string;
  readonly prompt: string | null;
  /** As the caller wrote it; null waits without limit. */
  readonly timeout: string | null;
  /** Only these may decide; empty: any person. */
  readonly approvers?: readonly string[];
}

export async function requestApproval(context: RunContext, question: Question, signal?: AbortSignal): Promise<Answer> {
  // The message outlives its timeout, so that an engine that starts later knows that the gate has expired.
  const { fields, options } = readTimeout(question.timeout, 'when-late');
  const approvers = question.approvers ?? [];
  const listed = approvers.length === 0 ? {} : { approvers };
  const gate = { gate_id: question.gate, prompt: question.prompt, ...listed };
  const message = { type: 'await_approval', ...askerOf(context), ...gate, ...fields };
  return reached(context, await ask(context, message, { ...options, signal }));
}

/** The status of a step of the run: from its engine, or from the journal if no engine answers. */
export async function stepStatus(context: RunContext, step: string, signal?: AbortSignal): Promise<string> {
  const { workflow, inbox, step: asker, agent } = context;
  const unknown = `run ${workflow ?? ''} has no step ${step}`;
  const answer = await askEngine(context, { type: 'step_status', workflow, step, asker, agent }, signal);
  if (answer?.kind === 'step-status') return answer.status;
  if (answer?.kind === 'error') throw new UsageError(answer.code === 'unknown-step' ? unknown : answer.message);
  if (inbox === null) throw unreachable(context);
  const runFolder = dirname(inbox);
  const { storedStepStatus } = await import('./offline-step-status.ts');
  const stored = await storedStepStatus(dirname(runFolder), basename(runFolder), step, asker);
  if (stored.ok && stored.value !== null) return stored.value;
  throw new UsageError(stored.ok ? unknown : stored.error);
}

export function messageOf(answer: Answer): string {
  return 'message' in answer ? answer.message : answer.kind;
}

function askerOf({ workflow, step, attempt, agent }: RunContext): JsonMap {
  return { workflow, step, attempt, agent };
}

function reached(context: RunContext, answer: Answer | null): Answer {
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw unreachable(context);
  return answer;
}

/** How long an engine that has no reachable socket may take to answer through the inbox. */
const INBOX_ANSWER_MS = 2_000;

/** A question that only a live engine can answer; null if none does. */
async function askEngine(address: EngineAddress, message: JsonMap, signal?: AbortSignal): Promise<Answer | null> {
  const { inbox } = address;
  if (inbox === null || !mayBeLocked(dirname(inbox))) return askSocket(address, message, signal);
  const answer = await ask(address, message, { deadline: Date.now() + INBOX_ANSWER_MS, keep: 'never', signal });
  if (answer?.kind === 'timeout' || (answer?.kind === 'error' && answer.code === 'ended')) return null;
  return answer;
}

/** The engine enforces the timeout; the caller gives up this much later, in case there is no engine. */
const GRACE_MS = 2_000;

function readTimeout(
  text: string | null,
  keep: AskOptions['keep'],
): { readonly fields: JsonMap; readonly options: AskOptions } {
  if (text === null) return { fields: {}, options: { deadline: null, keep } };
  const ms = parseDuration(text);
  if (ms === null) throw new UsageError(`${JSON.stringify(text)} is not a duration`, 'write it as 30s, 5m or 1h30m');
  const deadline = Date.now() + ms;
  return { fields: { timeout_ms: ms, deadline }, options: { deadline: deadline + GRACE_MS, keep } };
}
