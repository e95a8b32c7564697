// Who may talk to the server. The checks run in this order, before anything of the request is used:
//
//   access/1  Host names this server. A page of another host that resolves to this machine has another Host.
//   access/2  Only GET and POST.
//   access/3  A POST and a WebSocket come from a page of this server: Origin is present and ours.
//   access/4  Everything but assets, the terminal's frame and the token exchange needs the cookie of this start.
//   access/5  Under --read-only a POST does nothing, except for the token exchange.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';

import { type Reply, refusalReply } from './reply.ts';

export const TOKEN_PATH = '/do/token';

export interface GuardOptions {
  /** Where the server listens, as it was given: `127.0.0.1`, `0.0.0.0`, `build.example`. */
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly readOnly: boolean;
}

export class Guard {
  /** Valid for one start: the printed address has it in its fragment. */
  readonly token = randomBytes(16).toString('hex');
  readonly #secret = randomBytes(32).toString('hex');
  readonly #options: GuardOptions;
  readonly #hosts: ReadonlySet<string>;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#hosts = new Set(hostNames(options).map((name) => `${name}:${options.port}`));
  }

  /** Null if the request is allowed. */
  refuse(request: IncomingMessage, path: string): Reply | null {
    const { method = '' } = request;
    if (!this.hasOurHost(request)) return refusalReply(421, 'this address is not that of meow ui', this.#addressHint());
    if (method !== 'GET' && method !== 'POST') {
      return { ...refusalReply(405, `${method} is not a method of meow ui`), headers: { allow: 'GET, POST' } };
    }
    if (method === 'POST' && !this.hasOurOrigin(request))
      return refusalReply(403, 'the request does not come from a page of meow ui', this.#addressHint());
    if (method === 'POST' && path === TOKEN_PATH) return null;
    if (method === 'POST' && !this.isKnown(request)) return UNKNOWN;
    if (method === 'POST' && this.#options.readOnly)
      return refusalReply(
        403,
        'meow ui was started with --read-only',
        'start it without --read-only to decide and steer',
      );
    if (method === 'GET' && path.startsWith('/data/') && !this.isKnown(request)) return UNKNOWN;
    return null;
  }

  hasOurHost({ headers: { host } }: IncomingMessage): boolean {
    return host !== undefined && this.#hosts.has(withPort(host.toLowerCase(), this.#options.tls));
  }

  hasOurOrigin({ headers: { host = '', origin } }: IncomingMessage): boolean {
    return origin !== undefined && origin.toLowerCase() === `${this.#scheme()}://${host.toLowerCase()}`;
  }

  isKnown({ headers: { cookie = '' } }: IncomingMessage): boolean {
    const name = `${this.#cookieName()}=`;
    const values = cookie.split(';').map((part) => part.trim());
    return values.some((part) => part.startsWith(name) && isSame(part.slice(name.length), this.#secret));
  }

  /** The header that sets the cookie; null if the token is not that of this start. */
  cookieFor(token: unknown): string | null {
    if (typeof token !== 'string' || !isSame(token, this.token)) return null;
    const secure = this.#options.tls ? '; Secure' : '';
    return `${this.#cookieName()}=${this.#secret}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  }

  /** Cookies do not tell ports apart, so each has its own name. */
  #cookieName(): string {
    return `meow-${this.#options.port}`;
  }

  #scheme(): string {
    return this.#options.tls ? 'https' : 'http';
  }

  #addressHint(): string {
    return 'open the address that meow ui has printed';
  }
}

const UNKNOWN = refusalReply(
  401,
  'this browser has no access to this start of meow ui',
  'open the address that meow ui has printed, or start it again: meow ui --open',
);

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];
const EVERY_INTERFACE = new Set(['0.0.0.0', '::', '[::]']);

/** Names under which this server may be called. If it listens everywhere, those are the addresses of the machine. */
function hostNames({ host }: GuardOptions): readonly string[] {
  const name = host.toLowerCase();
  if (name === '127.0.0.1') return ['127.0.0.1', 'localhost'];
  if (!EVERY_INTERFACE.has(name)) return LOOPBACK.includes(name) ? LOOPBACK : [inUrl(name)];
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return [...LOOPBACK, ...addresses.map(({ address }) => inUrl(address.toLowerCase()))];
}

/** As in an address: an IPv6 address has brackets. */
export function inUrl(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** A browser leaves out the usual port. */
function withPort(host: string, tls: boolean): string {
  return /:\d+$/.test(host) ? host : `${host}:${tls ? 443 : 80}`;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
