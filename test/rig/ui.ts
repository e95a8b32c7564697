// The server of `meow ui` in the project of a rig, and a client that speaks to it as a page does: with the cookie, and with
// the address of the page as its origin.
//
//   await using ui = await Ui.start(rig); const { runs } = (await ui.fleet(({ runs }) => runs.length > 0));

import { request as httpRequest } from 'node:http';
import { WebSocket } from 'ws';

import type { PageMessage, RunName, ServerMessage } from '../../src/web/protocol.ts';
import { type Live, type Rig, until } from './rig.ts';

export interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string | Uint8Array;
}

export class Ui implements AsyncDisposable {
  readonly live: Live;
  /** As it was printed, with the token. */
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly #sockets: UiSocket[] = [];
  #cookie: string | null = null;

  /** With the cookie. */
  static async start(rig: Rig, ...flags: readonly string[]): Promise<Ui> {
    const live = rig.start('ui', '--port', '0', '--json', ...flags);
    const ui = new Ui(live, await live.firstLine());
    live.keep();
    await ui.enter();
    return ui;
  }

  private constructor(live: Live, line: string) {
    const { url, port } = JSON.parse(line) as { readonly url: string; readonly port: number };
    this.live = live;
    this.url = url;
    this.port = port;
    this.token = /#token=(.+)$/.exec(url)?.[1] ?? '';
  }

  /** `http://127.0.0.1:PORT`. */
  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get cookie(): string {
    return this.#cookie ?? '';
  }

  /** Exchanges the token for the cookie. */
  async enter(token = this.token): Promise<Response> {
    const response = await this.request('/do/token', { method: 'POST', body: JSON.stringify({ token }) });
    const [cookie = ''] = response.headers['set-cookie'] ?? [];
    if (response.status === 204) this.#cookie = cookie.split(';')[0] ?? '';
    return response;
  }

  /** As a page sends it; `headers` replace those of a page, null leaves one out. The path is sent as it is. */
  request(path: string, { method = 'GET', headers = {}, body }: RequestOptions = {}): Promise<Response> {
    const origin = method === 'GET' ? {} : { origin: this.origin, 'content-type': 'application/json' };
    const all = { host: `127.0.0.1:${this.port}`, cookie: this.#cookie, ...origin, ...headers };
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)) as Record<
      string,
      string
    >;
    return new Promise((resolve, reject) => {
      const made = httpRequest({ host: '127.0.0.1', port: this.port, path, method, headers: sent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode = 0, headers: received } = response;
          resolve({ status: statusCode, headers: received, text: Buffer.concat(chunks).toString('utf8') });
        });
      });
      made.on('error', reject);
      made.end(body);
    });
  }

  /** The JSON of a document; throws unless its status is 200. */
  async json<T = unknown>(path: string): Promise<T> {
    const { status, text } = await this.request(path);
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  post(path: string, body: unknown, headers: RequestOptions['headers'] = {}): Promise<Response> {
    return this.request(path, { method: 'POST', body: JSON.stringify(body), headers });
  }

  /** `headers`: in addition to those of a page. */
  socket(headers: Readonly<Record<string, string>> = {}): UiSocket {
    const all = { cookie: this.cookie, origin: this.origin, ...headers };
    const socket = new UiSocket(new WebSocket(`ws://127.0.0.1:${this.port}/socket`, { headers: all }));
    this.#sockets.push(socket);
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.close();
    this.live.kill('SIGTERM');
    await this.live.ended;
  }
}

/** What a page hears. Each kind of wait also sees messages that came before it. */
export class UiSocket {
  readonly messages: ServerMessage[] = [];
  readonly #socket: WebSocket;
  /** Null while it is open or connecting. */
  ended: { readonly code: number; readonly status: number | null } | null = null;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    let status: number | null = null;
    socket.on('message', (data) => this.messages.push(JSON.parse((data as Buffer).toString('utf8')) as ServerMessage));
    socket.on('unexpected-response', (_request, response) => {
      status = response.statusCode ?? null;
      response.resume();
      socket.terminate();
    });
    socket.on('error', () => {}); // `close` follows.
    socket.on('close', (code) => {
      this.ended = { code, status };
    });
  }

  async send(message: PageMessage): Promise<void> {
    await this.sendText(JSON.stringify(message));
  }

  async sendText(text: string | Uint8Array): Promise<void> {
    await this.opened();
    this.#socket.send(text);
  }

  async opened(): Promise<void> {
    await until(() => this.#socket.readyState !== WebSocket.CONNECTING, 'the socket to open');
  }

  /** Stops reading, as a page that hangs. */
  pause(): void {
    this.#socket.pause();
  }

  /** The first message of this kind that fits. */
  async heard<K extends ServerMessage['kind']>(
    kind: K,
    fits: (message: Extract<ServerMessage, { kind: K }>) => boolean = () => true,
  ): Promise<Extract<ServerMessage, { kind: K }>> {
    type Wanted = Extract<ServerMessage, { kind: K }>;
    const find = (): Wanted | undefined =>
      this.messages.find((each): each is Wanted => each.kind === kind && fits(each as Wanted));
    await until(() => find() !== undefined || this.ended !== null, `a message ${kind}`);
    const found = find();
    if (found === undefined) throw new Error(`the socket was closed (${JSON.stringify(this.ended)}) before a ${kind}`);
    return found;
  }

  /** Numbers of the records of a run, in the order of their arrival. */
  seqs({ project, run }: RunName): readonly number[] {
    return this.messages.flatMap((message) =>
      message.kind === 'records' && message.of.run === run && message.of.project === project
        ? message.records.map(({ seq }) => seq)
        : [],
    );
  }

  close(): void {
    this.#socket.terminate();
  }
}
