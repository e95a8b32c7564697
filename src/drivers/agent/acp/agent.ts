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
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { DialogVerdict, Note, RunFiles } from '../../../engine/ports.ts';
import type { AcpProfile, Adapter } from '../../../ir/adapter.ts';
import { success } from '../../../ir/effect.ts';
import { failure } from '../../../ir/failure.ts';
import type { FailureKind } from '../../../ir/failure.ts';
import { answeredText } from '../../../ir/prompt-text.ts';
import type { AgentMessage, KeyMessage, PromptMessage } from '../../../ir/prompt-text.ts';
import { isInterrupt, promptText } from '../../../ir/prompt-text.ts';
import type { Usage } from '../../../ir/usage.ts';
import type { AgentStart } from '../files.ts';
import type {
  AgentExit,
  AgentLimit,
  Concluded,
  HandRequest,
  Handover,
  HostedAgent,
  Readiness,
  WorkEnd,
} from '../host.ts';
import { makeFolder, writePrivate } from '../../../sys/private-file.ts';
import { capture } from '../../capture-outputs.ts';
import type { Captured } from '../../capture-outputs.ts';
import { stepFolder } from '../../step-folder.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import { sumOf } from '../headless/spending.ts';
import { timeLimit, within } from '../../../sys/with-timeout.ts';
import type { TimeLimit } from '../../../sys/with-timeout.ts';
import { Connection } from './connection.ts';
import { Dialogs } from './dialogs.ts';
import type { Question } from './dialogs.ts';
import { INITIALIZE, sessionOf, sessionRequest } from './handshake.ts';
import type { SessionChoice } from './handshake.ts';
import type { ProcessRequest } from './agent-process.ts';
import { byRule, byVerdict, CANCELLED, isOwnTool, permissionDialog, selected } from './permission.ts';
import { answerLine, cancelLine, errorLine, METHOD_NOT_FOUND, requestLine } from './rpc.ts';
import type { AgentRequest, RpcRequest } from './rpc.ts';
import type { Answered } from './conversation.ts';
import { PERMISSION, turnEnd } from './conversation.ts';

/** In the folder of a start: exists once the agent was ready for a prompt. */
export const READY = 'ready';

export interface AcpAgentOptions {
  readonly adapter: Adapter;
  readonly files: RunFiles;
  readonly choice: SessionChoice;
  readonly mcpServers: readonly McpServer[];
  /** Resolves when every message that agents have left for the run so far has been handled. */
  readonly heard: () => Promise<void>;
}

const AGAIN_MAX = 3;

export class AcpAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly #options: AcpAgentOptions;
  readonly #connection: Connection;
  readonly #dialogs: Dialogs<PermissionQuestion>;
  /** Ids of the prompts sent for each message. */
  readonly #requests = new Map<string, string[]>();
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  #handshake: Promise<Readiness> = Promise.resolve(GONE);
  #session: string | null;
  /** Ids of the prompt being written and of the last one sent. */
  #sending: string | null = null;
  #lastPrompt: string | null = null;

  constructor(start: AgentStart, options: AcpAgentOptions) {
    const { choice } = options;
    this.start = start;
    this.#options = options;
    this.#session = start.session;
    this.#dialogs = new Dialogs(
      () => this.#firstQuestion(),
      ({ request }, verdict) => this.#answer(request, selected(byVerdict(request, verdict))),
    );
    this.#connection = new Connection(start, choice.resumeSession === null, () => this.#serve());
    for (const id of this.#connection.writer.sent()) this.#remember(id);
  }

  begin(request: ProcessRequest): void {
    this.#connection.process.begin(request);
    this.#open();
  }

  /** Follows a process that another engine started. */
  adopt(): void {
    this.#connection.process.adopt();
    this.#open();
  }

  /** The agent cannot be started. */
  refuse(reason: string): void {
    this.#connection.process.refuse(reason);
  }

  get alive(): boolean {
    return this.#connection.process.alive;
  }

  get ended(): Promise<AgentExit> {
    return this.#connection.process.ended;
  }

  get session(): string | null {
    return this.#session;
  }

  async ready(timeoutMs: number): Promise<Readiness> {
    return (await within(this.#handshake, { timeoutMs })) ?? { kind: 'unready', reason: 'it did not answer' };
  }

  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    if (this.#session !== null) told(this.#session);
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
    const givenUp = new Promise<void>((resolve) => {
      over.addEventListener('abort', () => resolve(), { once: true });
      if (over.aborted) resolve();
    });
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
        const asked = await this.#askAgain(message, givenUp);
        if (asked.kind === 'agent-gone' || over.aborted) return never();
        if (asked.kind === 'not-taken')
          return this.#failed(message, 'not-delivered', `could not be asked again: ${asked.reason}`);
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
    return { session: this.#session, usage: this.#usageOf(id) };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const request = this.#lastFor(id);
    if (request === null || this.#busyWith() !== request) return;
    const cancelled = this.#cancel(`cancel ${request}`);
    await within(Promise.all([cancelled, this.#answerTo(request)]), { timeoutMs });
  }

  #open(): void {
    this.#connection.open(this.start.folder.path);
    this.#handshake = this.#shakeHands();
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
    if (session.value !== this.#session) for (const told of this.#sessionWatchers) told(session.value);
    this.#session = session.value;
    this.#markReady();
    return { kind: 'ready' };
  }

  #unready(): Readiness {
    return this.alive ? { kind: 'unready', reason: 'lines for it cannot be recorded' } : GONE;
  }

  /** Null if the agent is gone, or the line could not be sent. */
  async #ask(id: string, request: AgentRequest): Promise<Answered | null> {
    const { writer } = this.#connection;
    const written = await writer.write(id, requestLine(id, request));
    return written.kind === 'sent' ? this.#answerTo(id) : null;
  }

  /** Null if the agent is gone, or the limit is reached first. */
  #answerTo(request: string, limit?: TimeLimit): Promise<Answered | null> {
    return this.#connection.when(() => this.#connection.conversation.answers.get(request) ?? null, limit);
  }

  /** Sends a prompt once the agent is idle. The timeout starts then. */
  async #prompt(request: string, text: string, limit: PromptLimit): Promise<Handover> {
    const { writer } = this.#connection;
    const { givenUp } = limit;
    const claimed = await this.#connection.when(() => this.#claim(request), { givenUp });
    if (claimed === null) return this.alive ? notTaken(LATE.reason) : AGENT_GONE;
    const sessionId = present(this.#session, 'a prompt without a session');
    const params = { sessionId, prompt: [{ type: 'text' as const, text }] };
    const line = requestLine(request, { method: 'session/prompt', params });
    const { ended, cancel } = timeLimit(limit);
    const written = await writer.write(request, line, ended);
    cancel();
    this.#sending = null;
    if (written.kind === 'sent') this.#remember(request);
    this.#connection.wake();
    if (!this.alive) return AGENT_GONE;
    return written.kind === 'sent' ? TAKEN : notTaken(written.reason);
  }

  /** Lets one of several waiting prompts go. */
  #claim(request: string): true | null {
    if (this.#busyWith() !== null) return null;
    this.#sending = request;
    return true;
  }

  #busyWith(): string | null {
    if (this.#sending !== null) return this.#sending;
    return this.#lastPrompt === null || this.#connection.conversation.answers.has(this.#lastPrompt)
      ? null
      : this.#lastPrompt;
  }

  #remember(id: string): void {
    const message = /^(?:prompt|again \d+) (.*)$/s.exec(id)?.[1];
    if (message === undefined) return;
    this.#lastPrompt = id;
    const known = this.#requests.get(message);
    if (known === undefined) this.#requests.set(message, [id]);
    else if (!known.includes(id)) known.push(id);
  }

  #lastFor(message: string): string | null {
    return this.#requests.get(message)?.at(-1) ?? null;
  }

  /** Null if the agent must be asked again. */
  async #workEnd(message: PromptMessage, request: string, answered: Answered): Promise<WorkEnd | null> {
    const known = this.#limitKept(request);
    if (known !== null) return { kind: 'limit', limit: known };
    const end = turnEnd(answered, this.#options.adapter.limits, Date.now());
    switch (end.kind) {
      case 'limit':
        this.#keepLimit(request, end.limit);
        return end;
      case 'broken':
        return this.#failed(message, 'exit-nonzero', end.reason);
      case 'finished': {
        const missing = message.expects.filter(({ required }) => required).map(({ name }) => name);
        if (missing.length === 0) {
          const { outputs, kept } = await capturedResult(message, answered.text, this.#options.files);
          const more = { kept, session: this.#session, usage: this.#usageOf(message.id) };
          return { kind: 'over', outcome: success(outputs, more) };
        }
        const asked = (this.#requests.get(message.id)?.length ?? 1) - 1;
        if (asked < AGAIN_MAX) return null;
        return this.#failed(message, 'output-missing', `finished its turn without reporting: ${missing.join(', ')}`);
      }
    }
  }

  /** `reason`: predicate of a sentence about the agent. */
  #failed({ id }: PromptMessage, kind: FailureKind, reason: string): WorkEnd {
    const more = { session: this.#session, usage: this.#usageOf(id) };
    return {
      kind: 'over',
      outcome: { kind: 'failure', failure: failure(kind, `agent ${this.start.agent} ${reason}`, more) },
    };
  }

  #askAgain({ id, mode, expects }: PromptMessage, givenUp: Promise<unknown>): Promise<Handover> {
    const text = promptText('You have not reported your step yet.', mode, expects);
    return this.#prompt(`again ${this.#requests.get(id)?.length ?? 1} ${id}`, text, { givenUp });
  }

  /** Recorded when first parsed, because a relative time depends on when it was reported. */
  #keepLimit(request: string, limit: AgentLimit): void {
    try {
      writeJsonFile(this.#path(LIMIT), { request, ...limit });
    } catch (error) {
      // The next engine parses it again, and may be a little late.
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  #limitKept(request: string): AgentLimit | null {
    const kept = readJsonFile(this.#path(LIMIT)) as (AgentLimit & { readonly request: string }) | null;
    return kept?.request === request ? { text: kept.text, until: kept.until } : null;
  }

  #markReady(): void {
    try {
      writePrivate(this.#path(READY), '');
    } catch (error) {
      // Then a later engine will assume that the agent never was ready.
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  #usageOf(message: string): Usage | null {
    const { answers } = this.#connection.conversation;
    const requests = this.#requests.get(message) ?? [];
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
    const sessionId = present(this.#session, 'a turn without a session');
    await writer.write(id, cancelLine({ sessionId }));
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
        const line = errorLine(request.id, METHOD_NOT_FOUND, `Method not found: ${request.method}`);
        void writer.write(answerId(request), line);
      } else {
        const rule = this.#ruleFor(request);
        if (rule !== 'ask') this.#answer(request, selected(byRule(request, rule)));
      }
    }
    this.#dialogs.update();
  }

  #ruleFor(request: RpcRequest): AcpProfile['permission'] {
    const { permission } = present(this.#options.adapter.acp, 'an adapter without acp');
    return isOwnTool(request) ? 'allow' : permission;
  }

  #answer(request: RpcRequest, result: RequestPermissionResponse): void {
    const written = this.#connection.writer.write(answerId(request), answerLine(request.id, result));
    void written.then(({ kind }) => {
      if (kind === 'sent') this.#connection.wake();
    });
  }

  #firstQuestion(): PermissionQuestion | null {
    for (const [key, request] of this.#connection.conversation.requests) {
      if (request.method !== PERMISSION || this.#ruleFor(request) !== 'ask') continue;
      return { key, request, dialog: permissionDialog(request) };
    }
    return null;
  }

  #path(name: string): string {
    return join(this.start.folder.path, name);
  }
}

type PromptLimit = TimeLimit & Required<Pick<TimeLimit, 'givenUp'>>;

interface PermissionQuestion extends Question {
  readonly request: RpcRequest;
}

const LIMIT = 'acp-limit';

const GONE: Readiness = { kind: 'gone' };
const LATE = { kind: 'unready', reason: 'timed out' } as const;
const TAKEN: Handover = { kind: 'taken' };
const AGENT_GONE: Handover = { kind: 'agent-gone' };

/** A new promise each time, so that nothing that waits for it is retained. */
function never(): Promise<never> {
  return new Promise(() => {});
}

function notTaken(reason: string): Handover {
  return { kind: 'not-taken', delivery: 'not-ready', reason };
}

function answerId({ id }: RpcRequest): string {
  return `answer ${JSON.stringify(id)}`;
}

/** The agent's answer as the output `result`. A file holds it if it is too large for the journal. */
async function capturedResult({ id, step }: PromptMessage, text: string, files: RunFiles): Promise<Captured> {
  if (Buffer.byteLength(text) <= JOURNAL_BYTES_MAX) return { outputs: { result: text }, kept: [], problems: [] };
  const folder = stepFolder(files, step, Number(id.slice(id.lastIndexOf('#') + 1)));
  makeFolder(folder.path);
  const path = join(folder.path, 'answer');
  writePrivate(path, text);
  const result = { name: 'result', from: { kind: 'file', path }, type: 'any', required: true } as const;
  return capture([result], { files, folder, cwd: folder.path, status: 0 });
}

const JOURNAL_BYTES_MAX = 1_000_000;
