// An agent that is talked to by the Agent Client Protocol: one session, and one prompt in it at a time. A turn that has
// ended without a report is asked again for what is missing, a few times.
//
// Everything that is sent has an id that is derived from what it is sent for, so that it is sent once in all lives of the
// engine (once-writer.ts):
//
//   initialize, session      how it begins
//   prompt MESSAGE           a message that was handed over
//   again N MESSAGE          the same turn, asked for what is missing
//   cancel REQUEST           of either
//   key MESSAGE              a key that was pressed
//   answer ID                to what the agent asks of us

import { join } from 'node:path';
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { JsonMap } from '../../../base/json.ts';
import type { DialogVerdict, Note } from '../../../engine/ports.ts';
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
import { writePrivate } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import { sumOf } from '../headless/spending.ts';
import { Connection } from './connection.ts';
import { Dialogs } from './dialogs.ts';
import type { Question } from './dialogs.ts';
import { INITIALIZE, sessionOf, sessionRequest } from './handshake.ts';
import type { SessionWish } from './handshake.ts';
import type { LedRequest } from './agent-process.ts';
import { timeLimit, within } from '../../../sys/with-timeout.ts';
import type { TimeLimit } from '../../../sys/with-timeout.ts';
import { byRule, byVerdict, CANCELLED, isOwnTool, permissionDialog, selected } from './permission.ts';
import { keptResult } from './result.ts';
import { answerLine, METHOD_NOT_FOUND, notificationLine, refusalLine, requestLine } from './rpc.ts';
import type { RpcRequest } from './rpc.ts';
import type { Answered } from './conversation.ts';
import { PERMISSION } from './conversation.ts';
import { turnEnd } from './turn-end.ts';

/** In the folder of a start: made when it could take a prompt for the first time. */
export const READY = 'ready';

export interface AcpAgentOptions {
  readonly adapter: Adapter;
  readonly runFolder: string;
  readonly wish: SessionWish;
  readonly mcpServers: readonly JsonMap[];
  /** Resolves when all that agents have left for the run by now has been heard. */
  readonly heard: () => Promise<void>;
}

const AGAIN_MAX = 3;

export class AcpAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly #options: AcpAgentOptions;
  readonly #connection: Connection;
  readonly #dialogs: Dialogs<Asking>;
  /** What was sent for a message, by its id. */
  readonly #requests = new Map<string, string[]>();
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  #greeted: Promise<Readiness> = Promise.resolve(GONE);
  #session: string | null;
  /** The prompt that is being written, and the last that was. */
  #sending: string | null = null;
  #lastPrompt: string | null = null;

  constructor(start: AgentStart, options: AcpAgentOptions) {
    const { wish } = options;
    this.start = start;
    this.#options = options;
    this.#session = start.session;
    this.#dialogs = new Dialogs(
      () => this.#firstAsking(),
      ({ request }, verdict) => this.#answer(request, selected(byVerdict(request, verdict))),
    );
    this.#connection = new Connection(start, wish.resumeSession === null, () => this.#serve());
    for (const id of this.#connection.pen.sent()) this.#remember(id);
  }

  begin(request: LedRequest): void {
    this.#connection.process.begin(request);
    this.#open();
  }

  /** Somebody else's child. */
  adopt(): void {
    this.#connection.process.adopt();
    this.#open();
  }

  /** It cannot be begun. */
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
    return (await within(this.#greeted, { timeoutMs })) ?? { kind: 'unready', reason: 'it did not answer' };
  }

  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    if (this.#session !== null) told(this.#session);
  }

  async hand(message: AgentMessage, { timeoutMs, note, givenUp }: HandRequest): Promise<Handover> {
    if (!this.alive) return AGENT_GONE;
    const greeted = (await within(this.#greeted, { timeoutMs, givenUp })) ?? LATE;
    if (greeted.kind === 'gone') return AGENT_GONE;
    if (greeted.kind === 'unready') return notTaken(greeted.reason);
    if (message.kind === 'key') return this.#press(message, { timeoutMs, givenUp });
    const { pen } = this.#connection;
    const request = `prompt ${message.id}`;
    if (pen.hasSent(request)) return TAKEN;
    if (pen.wasWithdrawn(request)) return notTaken(LATE.reason);
    const isQueued = this.#busyWith() !== null;
    if (isQueued) void note({ delivery: 'queued' });
    // What it asks in a turn that nobody else waits for is asked of whoever comes next.
    const silence = isQueued ? this.#dialogs.listen(note) : null;
    const handover = await this.#prompt(request, answeredText(message), { timeoutMs, givenUp });
    silence?.();
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
    const silence = this.#dialogs.listen(note);
    try {
      for (;;) {
        const request = present(this.#lastFor(message.id), `not handed over: ${message.id}`);
        const answered = await this.#answerTo(request, { givenUp });
        // That it is gone is told by whoever attends it.
        if (answered === null) return never();
        // Its report may be on its way.
        await this.#options.heard();
        if (over.aborted) return never();
        const end = await this.#workEnd(message, request, answered);
        if (end !== null) return end;
        const asked = await this.#askAgain(message, givenUp);
        if (asked.kind === 'agent-gone' || over.aborted) return never();
        if (asked.kind === 'not-taken')
          return this.#failed(message, 'not-delivered', `was not asked again: ${asked.reason}`);
      }
    } finally {
      silence();
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
    this.#greeted = this.#greet();
  }

  async #greet(): Promise<Readiness> {
    const { wish, mcpServers } = this.#options;
    const hello = await this.#ask('initialize', 'initialize', INITIALIZE);
    if (hello === null) return this.#unready();
    const request = sessionRequest(hello, wish, { workdir: this.start.workdir, mcpServers });
    if (!request.ok) return { kind: 'unready', reason: request.error };
    const answered = await this.#ask('session', request.value.method, request.value.params);
    if (answered === null) return this.#unready();
    const session = sessionOf(answered, wish, hello);
    if (!session.ok) return { kind: 'unready', reason: session.error };
    if (session.value !== this.#session) for (const told of this.#sessionWatchers) told(session.value);
    this.#session = session.value;
    this.#markReady();
    return { kind: 'ready' };
  }

  #unready(): Readiness {
    return this.alive ? { kind: 'unready', reason: 'what is said to it cannot be kept' } : GONE;
  }

  /** Null where it is gone, or cannot be asked. */
  async #ask(id: string, method: string, params: JsonMap): Promise<Answered | null> {
    const { pen } = this.#connection;
    const written = await pen.write(id, requestLine(id, method, params));
    return written.kind === 'sent' ? this.#answerTo(id) : null;
  }

  /** Null if the agent exits or the time is over first. */
  #answerTo(request: string, limit?: TimeLimit): Promise<Answered | null> {
    return this.#connection.when(() => this.#connection.talk.answers.get(request) ?? null, limit);
  }

  /** When it is idle. The time is for being taken then. */
  async #prompt(request: string, text: string, limit: PromptLimit): Promise<Handover> {
    const { pen } = this.#connection;
    const { givenUp } = limit;
    const claimed = await this.#connection.when(() => this.#claim(request), { givenUp });
    if (claimed === null) return this.alive ? notTaken(LATE.reason) : AGENT_GONE;
    const sessionId = present(this.#session, 'a prompt without a session');
    const line = requestLine(request, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
    const { ended, cancel } = timeLimit(limit);
    const written = await pen.write(request, line, ended);
    cancel();
    this.#sending = null;
    if (written.kind === 'sent') this.#remember(request);
    this.#connection.wake();
    if (!this.alive) return AGENT_GONE;
    return written.kind === 'sent' ? TAKEN : notTaken(written.reason);
  }

  /** Of several that wait, one. */
  #claim(request: string): true | null {
    if (this.#busyWith() !== null) return null;
    this.#sending = request;
    return true;
  }

  #busyWith(): string | null {
    if (this.#sending !== null) return this.#sending;
    return this.#lastPrompt === null || this.#connection.talk.answers.has(this.#lastPrompt) ? null : this.#lastPrompt;
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

  /** Null: it is to be asked again. */
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
      case 'rested': {
        const missing = message.expects.filter(({ required }) => required).map(({ name }) => name);
        if (missing.length === 0) {
          const { outputs, kept } = await keptResult(message, answered.text, this.#options.runFolder);
          const more = { kept, session: this.#session, usage: this.#usageOf(message.id) };
          return { kind: 'over', outcome: success(outputs, more) };
        }
        const asked = (this.#requests.get(message.id)?.length ?? 1) - 1;
        if (asked < AGAIN_MAX) return null;
        return this.#failed(message, 'output-missing', `has come to rest without reporting: ${missing.join(', ')}`);
      }
    }
  }

  /** `reason`: a part of a sentence, about the agent. */
  #failed({ id }: PromptMessage, kind: FailureKind, reason: string): WorkEnd {
    const more = { session: this.#session, usage: this.#usageOf(id) };
    return {
      kind: 'over',
      outcome: { kind: 'failure', failure: failure(kind, `agent ${this.start.agent} ${reason}`, more) },
    };
  }

  #askAgain({ id, mode, expects }: PromptMessage, givenUp: Promise<unknown>): Promise<Handover> {
    const text = promptText('The step that you were given has not been reported yet.', mode, expects);
    return this.#prompt(`again ${this.#requests.get(id)?.length ?? 1} ${id}`, text, { givenUp });
  }

  /** What it means is relative to when it was said: it is kept when it is first understood. */
  #keepLimit(request: string, limit: AgentLimit): void {
    try {
      writeJsonFile(this.#path(LIMIT), { request, ...limit });
    } catch (error) {
      // The next life understands it anew, and may be a little late.
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
      // Whoever finds it gone will think that it never was ready.
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  #usageOf(message: string): Usage | null {
    const { answers } = this.#connection.talk;
    const requests = this.#requests.get(message) ?? [];
    return sumOf(requests.flatMap((request) => answers.get(request)?.usage ?? []));
  }

  async #press({ id, key }: KeyMessage, limit: TimeLimit): Promise<Handover> {
    if (!isInterrupt(key)) return notTaken(`it has no terminal in which ${key} could be pressed`);
    if (this.#busyWith() === null || this.#connection.pen.hasSent(`key ${id}`)) return TAKEN;
    const pressed = await within(this.#cancel(`key ${id}`), limit);
    if (!this.alive) return AGENT_GONE;
    return pressed === null ? notTaken(LATE.reason) : TAKEN;
  }

  /** Makes it leave its present turn. What it asks in it needs no answer any more, and gets one. */
  async #cancel(id: string): Promise<true> {
    if ((await this.#greeted).kind !== 'ready') return true;
    const { pen, talk } = this.#connection;
    const sessionId = present(this.#session, 'a turn without a session');
    await pen.write(id, notificationLine('session/cancel', { sessionId }));
    for (const request of talk.requests.values()) {
      if (request.method === PERMISSION) this.#answer(request, CANCELLED);
    }
    return true;
  }

  /** Answers what it asks, save what a person must decide. */
  #serve(): void {
    const { pen, talk } = this.#connection;
    for (const [key, request] of talk.requests) {
      if (pen.hasSent(answerId(request))) talk.requests.delete(key);
      else if (request.method !== PERMISSION) {
        const line = refusalLine(request.id, METHOD_NOT_FOUND, `Method not found: ${request.method}`);
        void pen.write(answerId(request), line);
      } else {
        const rule = this.#ruleFor(request);
        if (rule !== 'ask') this.#answer(request, selected(byRule(request, rule)));
      }
    }
    this.#dialogs.look();
  }

  #ruleFor(request: RpcRequest): AcpProfile['permission'] {
    const { permission } = present(this.#options.adapter.acp, 'an adapter without acp');
    return isOwnTool(request) ? 'allow' : permission;
  }

  #answer(request: RpcRequest, result: JsonMap): void {
    const written = this.#connection.pen.write(answerId(request), answerLine(request.id, result));
    void written.then(({ kind }) => {
      if (kind === 'sent') this.#connection.wake();
    });
  }

  #firstAsking(): Asking | null {
    for (const [key, request] of this.#connection.talk.requests) {
      if (request.method !== PERMISSION || this.#ruleFor(request) !== 'ask') continue;
      return { key, request, dialog: permissionDialog(request) };
    }
    return null;
  }

  #path(name: string): string {
    return join(this.start.folder.path, name);
  }
}

type PromptLimit = TimeLimit & { readonly givenUp: Promise<unknown> };

interface Asking extends Question {
  readonly request: RpcRequest;
}

const LIMIT = 'acp-limit';

const GONE: Readiness = { kind: 'gone' };
const LATE = { kind: 'unready', reason: 'its time was up' } as const;
const TAKEN: Handover = { kind: 'taken' };
const AGENT_GONE: Handover = { kind: 'agent-gone' };

/** Each its own: what waits for it is forgotten with it. */
function never(): Promise<never> {
  return new Promise(() => {});
}

function notTaken(reason: string): Handover {
  return { kind: 'not-taken', delivery: 'not-ready', reason };
}

function answerId({ id }: RpcRequest): string {
  return `answer ${JSON.stringify(id)}`;
}
