// The one socket of a tab, and whether it works.
//
//   connection/1  While the page is open it tries to be connected: again after at most RETRY_MAX_MS, and at once when the
//                 computer wakes up or the page is shown.
//   connection/2  After a reconnection every subscription is sent again, as it is then: a run asks for what it lacks.
//   connection/3  A server that does not answer a ping for SILENCE_MS is gone, even if the socket looks open.
//   connection/4  A server that was started again refuses the cookie of the last start. The page says so and keeps trying:
//                 another tab may bring the new one.

import { signal } from '@preact/signals';
import { type PageMessage, type ServerMessage, SOCKET_PATH } from '../web/protocol.ts';
import { askSession } from './session.ts';

export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** `refused`: the address of the new start must be opened once. */
  | { readonly kind: 'lost'; readonly since: number; readonly refused: boolean };

/** A subscription is sent now and after each reconnection. */
export interface Subscription {
  message(): PageMessage;
  /** Every message of the server: a subscription knows its own. */
  receive(message: ServerMessage): void;
}

export const connection = signal<Connection>({ kind: 'connecting' });

const RETRY_MIN_MS = 200;
const RETRY_MAX_MS = 1600;
const PING_MS = 1500;
const SILENCE_MS = 3500;
/** A timer that comes this late means that the computer slept. */
const SLEEP_MS = 5000;

const subscriptions = new Set<Subscription>();
let socket: WebSocket | null = null;
let retryMs = RETRY_MIN_MS;
let retry: ReturnType<typeof setTimeout> | null = null;
let heardAt = 0;
let tickedAt = 0;

/** Call once. */
export function connect(): void {
  open();
  tickedAt = Date.now();
  setInterval(tick, PING_MS);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) checkNow();
  });
  addEventListener('online', checkNow);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) checkNow();
  });
}

/** Returns what ends it. `goodbye`: tells the server, if the connection outlives the subscription. */
export function subscribe(subscription: Subscription, goodbye: PageMessage | null): () => void {
  subscriptions.add(subscription);
  send(subscription.message());
  return () => {
    subscriptions.delete(subscription);
    if (goodbye !== null) send(goodbye);
  };
}

/** Dropped while the page is not connected. */
export function send(message: PageMessage): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function open(): void {
  retry = null;
  const opened = new WebSocket(`${location.protocol === 'https:' ? 'wss:' : 'ws:'}//${location.host}${SOCKET_PATH}`);
  socket = opened;
  heardAt = Date.now();
  opened.addEventListener('open', () => {
    if (socket !== opened) return;
    retryMs = RETRY_MIN_MS;
    heardAt = Date.now();
    for (const subscription of subscriptions) send(subscription.message());
    connection.value = { kind: 'live' };
  });
  opened.addEventListener('message', ({ data }) => {
    if (socket !== opened) return;
    heardAt = Date.now();
    const message = JSON.parse(String(data)) as ServerMessage;
    for (const subscription of subscriptions) subscription.receive(message);
  });
  opened.addEventListener('close', () => {
    if (socket === opened) lost();
  });
}

function lost(): void {
  socket?.close();
  socket = null;
  const { value } = connection;
  if (value.kind !== 'lost') connection.value = { kind: 'lost', since: Date.now(), refused: false };
  void askSession().then((answer) => {
    const now = connection.value;
    const refused = answer === 'refused';
    if (now.kind === 'lost' && answer !== 'unreachable' && now.refused !== refused) {
      connection.value = { ...now, refused };
    }
  });
  if (retry !== null) return;
  retry = setTimeout(open, retryMs);
  retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
}

function tick(): void {
  const now = Date.now();
  const slept = Math.abs(now - tickedAt) > SLEEP_MS;
  tickedAt = now;
  if (slept && !document.hidden) reopen();
  else if (isSilent(now)) lost();
  else send({ kind: 'ping' });
}

/** Timers of a hidden page are slow: what it has not heard in time says nothing. */
function isSilent(now: number): boolean {
  if (socket === null || document.hidden || now - heardAt <= SILENCE_MS) return false;
  return socket.readyState === WebSocket.CONNECTING || socket.readyState === WebSocket.OPEN;
}

/** While a page is hidden a socket may be lost without a sign. */
function checkNow(): void {
  tickedAt = Date.now();
  if (socket === null) reopen();
  else if (socket.readyState === WebSocket.OPEN) {
    heardAt = Date.now();
    send({ kind: 'ping' });
  }
}

function reopen(): void {
  if (retry !== null) clearTimeout(retry);
  const former = socket;
  socket = null;
  former?.close();
  retryMs = RETRY_MIN_MS;
  open();
}
