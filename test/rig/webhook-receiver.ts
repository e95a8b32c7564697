// A receiver of notifications over HTTP for tests.

import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** `respond` gets the number of the request, from 1. */
export class WebhookReceiver implements AsyncDisposable {
  readonly all: Received[] = [];
  readonly #server: Server;

  static async start(respond: (count: number, response: ServerResponse) => void, port = 0): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(respond);
    await new Promise<void>((resolve) => receiver.#server.listen(port, '127.0.0.1', resolve));
    return receiver;
  }

  private constructor(respond: (count: number, response: ServerResponse) => void) {
    this.#server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.on('end', () => {
        this.all.push({ headers: request.headers, body });
        respond(this.all.length, response);
      });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  messages(): readonly Readonly<Record<string, unknown>>[] {
    return this.all.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const accept = (_: number, response: ServerResponse): void => void response.end('ok');
