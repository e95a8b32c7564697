// Documents of the server that pages show: loaded when a page is shown, again after a reconnection, and when `key` changes.
// What was loaded stays on the page while the server is away.

import { useEffect, useState } from 'preact/hooks';
import type { Refusal } from '../web/protocol.ts';
import { connection } from './connection.ts';

export type Loaded<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'loaded'; readonly document: T }
  | { readonly kind: 'refused'; readonly status: number; readonly refusal: Refusal };

/** `path`: null loads nothing. */
export function useDocument<T>(path: string | null, key: unknown = null): Loaded<T> {
  const [loaded, setLoaded] = useState<{ readonly path: string | null; readonly answer: Loaded<T> }>(() => ({
    path,
    answer: LOADING,
  }));
  const isLive = connection.value.kind === 'live';
  useEffect(() => {
    if (path === null || !isLive) return undefined;
    const load = new AbortController();
    void read<T>(path, load.signal).then((answer) => {
      if (answer !== null) setLoaded({ path, answer });
    });
    return () => load.abort();
  }, [path, key, isLive]);
  return loaded.path === path ? loaded.answer : LOADING;
}

const LOADING = { kind: 'loading' } as const;

/** Null if the server cannot be reached, which the connection says, or does not know this browser any more. */
async function read<T>(path: string, signal: AbortSignal): Promise<Loaded<T> | null> {
  try {
    const response = await fetch(path, { signal });
    if (response.status === 401) return null;
    const answer: unknown = await response.json();
    if (response.ok) return { kind: 'loaded', document: answer as T };
    return { kind: 'refused', status: response.status, refusal: answer as Refusal };
  } catch (error) {
    if (signal.aborted || error instanceof TypeError) return null;
    throw error;
  }
}
