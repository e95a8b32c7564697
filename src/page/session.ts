// What the server knows about this browser. The token in the fragment of the printed address becomes a cookie, and leaves
// the address at once.

import { signal } from '@preact/signals';
import type { SessionDocument, TokenRequest } from '../web/protocol.ts';

/** Null until the server has said it. */
export const session = signal<SessionDocument | null>(null);

/** `refused`: the browser has no cookie of this start. */
export type SessionAnswer = 'accepted' | 'refused' | 'unreachable';

/** A server that hangs is asked again and again: no question stays open. */
const ANSWER_MS = 5000;

export async function askSession(): Promise<SessionAnswer> {
  try {
    const response = await fetch('/data/session', { signal: AbortSignal.timeout(ANSWER_MS) });
    if (!response.ok) return 'refused';
    session.value = (await response.json()) as SessionDocument;
    return 'accepted';
  } catch (error) {
    const isSilent = error instanceof DOMException && error.name === 'TimeoutError';
    if (error instanceof TypeError || isSilent) return 'unreachable';
    throw error;
  }
}

/** The token in the address, which then no longer contains it; null if there is none. */
export function takeToken(): string | null {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1] ?? null;
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return token;
}

/** Whether the server accepts the token. */
export async function exchangeToken(token: string): Promise<boolean> {
  const response = await fetch('/do/token', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token } satisfies TokenRequest),
  });
  return response.ok;
}
