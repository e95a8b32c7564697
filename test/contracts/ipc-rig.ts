// The endpoint of a run in its own folder, for a run that only makes decisions.

import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ok } from '../../src/base/errors.ts';
import { type Address, addressOf } from '../../src/ipc/run-endpoint.ts';
import { proofChecks } from '../../src/ipc/decision-proof.ts';
import { RunEndpoint } from '../../src/ipc/run-endpoint.ts';
import { systemClock } from '../../src/sys/clock.ts';
import { fakeRun, type FakeRun } from '../kernel-rig/fake-run.ts';
import { decisionKey, type Provable, proven } from '../rig/decision.ts';

export class IpcRig implements AsyncDisposable {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-ipc-')));
  readonly runFolder: string;
  readonly mark: string;
  readonly address: Address;
  readonly notes: string[] = [];
  readonly run: FakeRun;
  #endpoint: RunEndpoint | null = null;

  constructor({ folder = 'run', program = ['a', 'b needs a'] }: { folder?: string; program?: readonly string[] } = {}) {
    this.runFolder = join(this.base, folder);
    mkdirSync(this.runFolder, { recursive: true, mode: 0o700 });
    this.mark = `t${process.pid}x${Math.random().toString(36).slice(2, 8)}`;
    this.address = addressOf(this.runFolder, this.mark);
    this.run = fakeRun(program);
  }

  /** As an engine does. */
  open(): void {
    const { runFolder, mark, run } = this;
    const endpoint = new RunEndpoint({
      run,
      mark,
      runFolder,
      clock: systemClock,
      promptText: ({ prompt }) => ok(JSON.stringify(prompt)),
      hasAccepted: () => true,
      note: (line) => this.notes.push(line),
      proofs: proofChecks({ MEOW_DECISION_KEY: join(this.base, 'decision.key') }, join(this.base, 'allowed_signers')),
    });
    run.watch((records, state) => endpoint.observe(records, state));
    endpoint.open();
    this.#endpoint = endpoint;
  }

  async close(): Promise<void> {
    await this.#endpoint?.close();
    this.#endpoint = null;
  }

  /** With the proof of a person. */
  proven(message: Provable, asking = 1): object {
    const { mark = '' } = this.run.state.request ?? {};
    return proven(message, { run: this.run.id, mark, asking, key: decisionKey(join(this.base, 'decision.key')) });
  }

  connect(): Talk {
    return new Talk(createConnection({ path: this.address.socket }));
  }

  /** One request on its own connection. */
  async ask(message: object): Promise<Reply> {
    using talk = this.connect();
    talk.say(message);
    return await talk.next();
  }

  inbox(): readonly string[] {
    return readdirSync(this.address.inbox).toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    rmSync(this.base, { recursive: true, force: true });
  }
}

export type Reply = Readonly<Record<string, unknown>>;

/** A connection for tests. */
export class Talk implements Disposable {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #text = '';
  #wake: () => void = () => {};
  #over = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
      this.#wake();
    });
    socket.on('error', () => {}); // The other side has closed the connection, and 'close' follows.
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#over = true;
        this.#wake();
        resolve();
      });
    });
  }

  say(message: object | string): void {
    this.socket.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`);
  }

  /** The next reply. */
  async next(): Promise<Reply> {
    for (;;) {
      const end = this.#text.indexOf('\n');
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return JSON.parse(line) as Reply;
      }
      if (this.#over) throw new Error('hung up');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}
