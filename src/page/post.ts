// Actions: POSTs to the server. A refusal is a value, because people read it where they acted.

import type { Done, Refusal } from '../web/protocol.ts';

export type ActionResult =
  | { readonly ok: true; readonly done: Done }
  | { readonly ok: false; readonly refusal: Refusal };

/** `keepalive`: the request outlives the page. */
export async function post(path: string, body: unknown, keepalive = false): Promise<ActionResult> {
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      keepalive,
    });
    const answer: unknown = await response.json();
    return response.ok ? { ok: true, done: answer as Done } : { ok: false, refusal: answer as Refusal };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { ok: false, refusal: { message: 'meow ui cannot be reached', cure: 'try again when the page is live' } };
  }
}
