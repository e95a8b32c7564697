// A document of the server for a component, asked for when the component is drawn, and again when its address changes.

import { useEffect, useState } from 'preact/hooks';
import type { Refusal } from '../../web/protocol.ts';

export type Loaded<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly value: T }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** `path`: null asks for nothing. `version`: asks again when it changes, and shows the former answer until then. */
export function useDocument<T>(path: string | null, version: number | string = 0): Loaded<T> {
  const [loaded, setLoaded] = useState<{ readonly path: string | null; readonly answer: Loaded<T> }>(NOTHING);
  useEffect(() => {
    if (path === null) return undefined;
    const load = new AbortController();
    void fetchDocument<T>(path, load.signal).then((answer) => {
      if (!load.signal.aborted) setLoaded({ path, answer });
    });
    return () => load.abort();
  }, [path, version]);
  return loaded.path === path ? loaded.answer : { kind: 'loading' };
}

const NOTHING = { path: null, answer: { kind: 'loading' } } as const;

export function fetchDocument<T>(path: string, signal?: AbortSignal): Promise<Loaded<T>> {
  return unlessAway(async () => {
    const response = await fetchFrom(path, signal);
    return response.kind === 'ready' ? { kind: 'ready', value: (await response.value.json()) as T } : response;
  });
}

export function fetchText(path: string, signal?: AbortSignal): Promise<Loaded<string>> {
  return unlessAway(async () => {
    const response = await fetchFrom(path, signal);
    return response.kind === 'ready' ? { kind: 'ready', value: await response.value.text() } : response;
  });
}

export function fetchFrom(path: string, signal?: AbortSignal): Promise<Loaded<Response>> {
  return unlessAway(async () => {
    const response = await fetch(path, signal === undefined ? {} : { signal });
    if (response.ok) return { kind: 'ready', value: response };
    return { kind: 'refused', refusal: (await response.json()) as Refusal };
  });
}

/** A server that is away and an answer that was aborted, also in the middle of its body, are refusals. */
export async function unlessAway<T>(fetched: () => Promise<Loaded<T>>): Promise<Loaded<T>> {
  try {
    return await fetched();
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error;
    return { kind: 'refused', refusal: { message: 'meow ui cannot be reached', cure: 'it is asked again when it is' } };
  }
}
