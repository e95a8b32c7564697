// An agent that speaks the Agent Client Protocol: one session, with one prompt in flight. If a turn ends without a report,
// the agent is asked again for what is missing, a few times.
//
// The id of each line is derived from its purpose, so that it is sent once across all lives of the engine (once-writer.ts):
//
//   initialize, session      handshake
//   prompt MESSAGE           a message that was handed over
//   again N MESSAGE          asks for the missing outputs of the same message
//   cancel REQUEST           cancels either
//   key MESSAGE              a key that was pressed
//   answer ID                to a request of the agent

import { join } from 'node:path';
import type { McpServer, RequestPermissionResponse } from '@agentclientprotocol/sdk/unstable';

import { present } from '../../../base/errors.ts';
import type { DialogVerdict, Note, RunFiles } from '../../../engine/ports.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { success } from '../../../ir/effect.ts';
import type { FailureKind } from '../../../ir/failure.ts';
import type { Usage } from '../../../ir/output.ts';
import { answeredText, isInterrupt, promptText } from '../../../ir/prompt-text.ts';
import type { AgentMessage, KeyMessage, PromptMessage } from '../../../ir/prompt-text.ts';
import { timeLimit, type TimeLimit, within } from '../../../sys/clock.ts';
import { tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { readRecord, writeJsonFile, writePrivate } from '../../../sys/files.ts';
import type { Secrets } from '../../../sys/secrets.ts';
import { captureValue, failed } from '../../outputs.ts';
import { folderOfEffect } from '../../step-folder.ts';
import type { AgentCommand, AgentProcess } from '../agent-process.ts';
import type { AgentStart } from '../files.ts';
import { sumOf } from '../headless/sessions.ts';
import { type AgentExit, type AgentLimit, type Concluded, never, notTaken } from '../host.ts';
import type { HandRequest, Handover, HostedAgent, Readiness, WorkEnd } from '../host.ts';
import { Connection } from './connection.ts';
import { type Answered, PERMISSION, turnEnd } from './conversation.ts';
import { INITIALIZE, type SessionChoice, sessionOf, sessionRequest } from './handshake.ts';
import { byRule, byVerdict, CANCELLED, changesFilesIn, Dialogs, isOwnTool } from './permission.ts';
import { permissionDialog, type Question } from './permission.ts';
import { type AgentRequest, lineOf, METHOD_NOT_FOUND, type RpcRequest } from './rpc.ts';
import { fields, isNumber, isText, nullable } from '../../../base/shape.ts';

/** In the folder of a start: exists once the agent was ready for a prompt. */
export const READY = 'ready';

export interface AcpAgentOptions {
  readonly adapter: Adapter;
  readonly files: RunFiles;
  readonly secrets?: Secrets | undefined;
  readonly choice: SessionChoice;
  readonly mcpServers: readonly McpServer[];
  readonly heard: () => Promise<void>;
}

const AGAIN_MAX = 3;

type RecordedLimit = AgentLimit & { readonly request: string };
const isRecordedLimit = fields<RecordedLimit>({ text: isText, until: nullable(isNumber), request: isText });

export class AcpAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly process: AgentProcess;
  readonly ended: Promise<AgentExit>;
  session: string | null;
  readonly #options: AcpAgentOptions;
  readonly #connection: Connection;
  readonly #dialogs: Dialogs;
  /** Ids of the prompts sent for each message. */
  readonly #requests = new Map<string, Set<string>>();
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  #handshake: Promise<Readiness> = Promise.resolve(GONE);
  /** Ids of the prompt being written and of the last one sent. */
  #sending: string | null = null;
  #lastPrompt: string | null = null;

  constructor(start: AgentStart, options: AcpAgentOptions) {
    const { choice } = options;
    this.start = start;
    this.#options = options;
    this.session = start.session;
    this.#dialogs = new Dialogs(
      () => this.#firstQuestion(),
      ({ request }, verdict) => this.#answer(request, byVerdict(request, verdict)),
    );
    this.#connection = new Connection(start, choice.resumeSession === null, () => this.#serve());
    this.process = this.#connection.process;
    this.ended = this.process.ended;
    for (const id of this.#connection.writer.sent()) this.#remember(id);
  }

  /** Starts the process; null follows the one that another engine started. */
  begin(command: AgentCommand | null): void {
    if (command === null) this.process.adopt();
    else this.process.begin(command);
    this.#connection.open(this.start.folder.path);
    this.#handshake = this.#shakeHands();
  }

  get alive(): boolean {
    return this.process.alive;
  }

  async ready(timeoutMs: number): Promise<Readiness> {
    return (await within(this.#handshake, { timeoutMs })) ?? { kind: 'unready', reason: 'it did not answer' };
  }

  watchSession(onSession: (session: string) => void): void {
    this.#sessionWatchers.push(onSession);
    if (this.session !== null) onSession(this.session);
  }

  async hand(message: AgentMessage, { timeoutMs, note, givenUp }: HandRequest): Promise<Handover> {
    if (!this.alive) return AGENT_GONE;
    const readiness = (await within(this.#handshake, { timeoutMs, givenUp })) ?? LATE;
    if (readiness.kind === 'gone') return AGENT_GONE;
    if (readiness.kind === 'unready') return notTaken(readiness.reason);
    if (message.kind === 'key') return this.#press(message, { timeoutMs, givenUp });
    const { writer } = this.#connection;
    const request = `prompt ${message.id}`;
    if (writer.hasSent(request)) return TAKEN;
    if (writer.wasWithdrawn(request)) return notTaken(LATE.reason);
    const isQueued = this.#busyWith() !== null;
    if (isQueued) void note({ delivery: 'queued' });
    // Questions of the turn in flight go to the next waiter.
    const stopListening = isQueued ? this.#dialogs.listen(note) : null;
    const handover = await this.#prompt(request, answeredText(message), { timeoutMs, givenUp });
    stopListening?.();
    return handover;
  }

  hasBegun(id: string): boolean {
    return this.#requests.has(id);
  }

  async atWork(message: AgentMessage, over: AbortSignal, note: Note): Promise<WorkEnd> {
    if (message.kind === 'key') return never();
    const { ended: givenUp } = timeLimit({ signal: over });
    const stopListening = this.#dialogs.listen(note);
    try {
      for (;;) {
        const request = present(this.#lastFor(message.id), `not handed over: ${message.id}`);
        const answered = await this.#answerTo(request, { givenUp });
        // The observer of `ended` reports the exit.
        if (answered === null) return never();
        // Its report may be in the inbox.
        await this.#options.heard();
        if (over.aborted) return never();
        const end = await this.#workEnd(message, request, answered);
        if (end !== null) return end;
        const text = promptText('You have not reported your step yet.', message.mode, message.expects);
        const count = this.#requests.get(message.id)?.size ?? 1;
        const handover = await this.#prompt(`again ${count} ${message.id}`, text, { givenUp });
        if (handover.kind === 'agent-gone' || over.aborted) return never();
        if (handover.kind === 'not-taken')
          return this.#failed(message, 'not-delivered', `could not be asked again: ${handover.reason}`);
      }
    } finally {
      stopListening();
    }
  }

  decide(verdict: DialogVerdict): void {
    this.#dialogs.decide(verdict);
  }

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    const request = this.#lastFor(id);
    const isOver = request === null || (await this.#answerTo(request, { timeoutMs })) !== null;
    if (!isOver) void this.#cancel(`cancel ${request}`);
    return { session: this.session, usage: this.#usageOf(id) };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const request = this.#lastFor(id);
    if (request === null || this.#busyWith() !== request) return;
    const cancelled = this.#cancel(`cancel ${request}`);
    await within(Promise.all([cancelled, this.#answerTo(request)]), { timeoutMs });
  }

  async #shakeHands(): Promise<Readiness> {
    const { choice, mcpServers } = this.#options;
    const hello = await this.#ask('initialize', { method: 'initialize', params: INITIALIZE });
    if (hello === null) return this.#unready();
    const request = sessionRequest(hello, choice, { workdir: this.start.workdir, mcpServers });
    if (!request.ok) return { kind: 'unready', reason: request.error };
    const answered = await this.#ask('session', request.value);
    if (answered === null) return this.#unready();
    const session = sessionOf(answered, choice, hello);
    if (!session.ok) return { kind: 'unready', reason: session.error };
    if (session.value !== this.session) for (const onSession of this.#sessionWatchers) onSession(session.value);
    this.session = session.value;
    // Without this file, a later engine assumes that the agent never was ready.
    tolerate(UNUSABLE, undefined, () => writePrivate(join(this.start.folder.path, READY), ''));
    return { kind: 'ready' };
  }

  #unready(): Readiness {
    return this.alive ? { kind: 'unready', reason: 'lines for it cannot be recorded' } : GONE;
  }

  /** Null if the agent is gone, or the line could not be sent. */
  async #ask(id: string, request: AgentRequest): Promise<Answered | null> {
    const { writer } = this.#connection;
    const written = await writer.write(id, lineOf({ id, ...request }));
    return written.kind === 'sent' ? this.#answerTo(id) : null;
  }

  /** Null if the agent is gone, or the limit is reached first. */
  #answerTo(request: string, limit?: TimeLimit): Promise<Answered | null> {
    return this.#connection.when(() => this.#connection.conversation.answers.get(request) ?? null, limit);
  }

  /** Sends a prompt once the agent is idle. The timeout starts then. */
  async #prompt(request: string, text: string, limit: TimeLimit): Promise<Handover> {
    const { writer } = this.#connection;
    const { givenUp } = limit;
    // Only one of several waiting prompts may go.
    const claim = (): true | null => {
      if (this.#busyWith() !== null) return null;
      this.#sending = request;
      return true;
    };
    const claimed = await this.#connection.when(claim, { givenUp });
    if (claimed === null) return this.alive ? notTaken(LATE.reason) : AGENT_GONE;
    const sessionId = present(this.session, 'a prompt without a session');
    const params = { sessionId, prompt: [{ type: 'text' as const, text }] };
    const line = lineOf({ id: request, method: 'session/prompt', params });
    const { ended, cancel } = timeLimit(limit);
    const written = await writer.write(request, line, ended);
    cancel();
    this.#sending = null;
    if (written.kind === 'sent') this.#remember(request);
    this.#connection.wake();
    if (!this.alive) return AGENT_GONE;
    return written.kind === 'sent' ? TAKEN : notTaken(written.reason);
  }

  #busyWith(): string | null {
    const last = this.#lastPrompt;
    const isAnswered = last === null || this.#connection.conversation.answers.has(last);
    return this.#sending ?? (isAnswered ? null : last);
  }

  #remember(id: string): void {
    const message = /^(?:prompt|again \d+) (.*)$/s.exec(id)?.[1];
    if (message === undefined) return;
    this.#lastPrompt = id;
    this.#requests.set(message, (this.#requests.get(message) ?? new Set()).add(id));
  }

  #lastFor(message: string): string | null {
    return [...(this.#requests.get(message) ?? [])].at(-1) ?? null;
  }

  /** Null if the agent must be asked again. */
  async #workEnd(message: PromptMessage, request: string, answered: Answered): Promise<WorkEnd | null> {
    const limitFile = join(this.start.folder.path, LIMIT);
    const known = readRecord(limitFile, isRecordedLimit);
    if (known?.request === request) return { kind: 'limit', limit: { text: known.text, until: known.until } };
    const end = turnEnd(answered, this.#options.adapter.limits, Date.now());
    switch (end.kind) {
      case 'limit':
        // Recorded when first parsed, because a relative time depends on when it was reported. If that is refused, the
        // next engine parses it again, and may be a little late.
        tolerate(UNUSABLE, undefined, () => writeJsonFile(limitFile, { request, ...end.limit }));
        return end;
      case 'broken':
        return this.#failed(message, 'exit-nonzero', end.reason);
      case 'finished': {
        const missing = message.expects.filter(({ required }) => required).map(({ name }) => name);
        if (missing.length === 0) {
          const { files, secrets } = this.#options;
          const folder = folderOfEffect(files, message);
          const { outputs, kept } = await captureValue('result', answered.text, {
            files,
            secrets,
            folder,
            file: 'answer',
          });
          const more = { kept, session: this.session, usage: this.#usageOf(message.id) };
          return { kind: 'over', outcome: success(outputs, more) };
        }
        const reminders = (this.#requests.get(message.id)?.size ?? 1) - 1;
        if (reminders < AGAIN_MAX) return null;
        return this.#failed(message, 'output-missing', `finished its turn without reporting: ${missing.join(', ')}`);
      }
    }
  }

  /** `reason`: predicate of a sentence about the agent. */
  #failed({ id }: PromptMessage, kind: FailureKind, reason: string): WorkEnd {
    const more = { session: this.session, usage: this.#usageOf(id) };
    return { kind: 'over', outcome: failed(kind, `agent ${this.start.agent} ${reason}`, more) };
  }

  #usageOf(message: string): Usage | null {
    const { answers } = this.#connection.conversation;
    const requests = [...(this.#requests.get(message) ?? [])];
    return sumOf(requests.flatMap((request) => answers.get(request)?.usage ?? []));
  }

  async #press({ id, key }: KeyMessage, limit: TimeLimit): Promise<Handover> {
    if (!isInterrupt(key)) return notTaken(`it has no terminal to press ${key} in`);
    if (this.#busyWith() === null || this.#connection.writer.hasSent(`key ${id}`)) return TAKEN;
    const pressed = await within(this.#cancel(`key ${id}`), limit);
    if (!this.alive) return AGENT_GONE;
    return pressed === null ? notTaken(LATE.reason) : TAKEN;
  }

  /** Cancels the present turn, and answers its open permission requests, as the protocol demands. */
  async #cancel(id: string): Promise<true> {
    if ((await this.#handshake).kind !== 'ready') return true;
    const { writer, conversation } = this.#connection;
    const sessionId = present(this.session, 'a turn without a session');
    await writer.write(id, lineOf({ method: 'session/cancel', params: { sessionId } }));
    for (const request of conversation.requests.values()) {
      if (request.method === PERMISSION) this.#answer(request, CANCELLED);
    }
    return true;
  }

  /** Answers the agent's requests, except those that a person must decide. */
  #serve(): void {
    const { writer, conversation } = this.#connection;
    for (const [key, request] of conversation.requests) {
      if (writer.hasSent(answerId(request))) conversation.requests.delete(key);
      else if (request.method !== PERMISSION) {
        const error = { code: METHOD_NOT_FOUND, message: `Method not found: ${request.method}` };
        void writer.write(answerId(request), lineOf({ id: request.id, error }));
      } else {
        const rule = this.#ruleFor(request);
        if (rule !== 'ask') this.#answer(request, byRule(request, rule));
      }
    }
    this.#dialogs.update();
  }

  #ruleFor(request: RpcRequest): 'ask' | 'allow' | 'deny' {
    const { permission } = present(this.#options.adapter.acp, 'an adapter without acp');
    if (isOwnTool(request)) return 'allow';
    if (permission !== 'edits') return permission;
    return changesFilesIn(this.start.workdir, request) ? 'allow' : 'ask';
  }

  #answer(request: RpcRequest, result: RequestPermissionResponse): void {
    const written = this.#connection.writer.write(answerId(request), lineOf({ id: request.id, result }));
    void written.then(({ kind }) => {
      if (kind === 'sent') this.#connection.wake();
    });
  }

  #firstQuestion(): Question | null {
    for (const [key, request] of this.#connection.conversation.requests) {
      if (request.method !== PERMISSION || this.#ruleFor(request) !== 'ask') continue;
      return { key, request, dialog: permissionDialog(request) };
    }
    return null;
  }
}

/** In the folder of a start. */
const LIMIT = 'acp-limit';

const GONE: Readiness = { kind: 'gone' };
const LATE = { kind: 'unready', reason: 'timed out' } as const;
const TAKEN: Handover = { kind: 'taken' };
const AGENT_GONE: Handover = { kind: 'agent-gone' };

function answerId({ id }: RpcRequest): string {
  return `answer ${JSON.stringify(id)}`;
}
