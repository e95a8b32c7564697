// A part of the page that most visits do not show is a file of its own, and is loaded when it is shown for the first time.
//
//   load-later/1  What was loaded is drawn at once from then on, also without a server.
//   load-later/2  A file that could not be loaded is asked for again after a reconnection and when it is shown again; the
//                 page says so, and the rest of it keeps working.

import { signal } from '@preact/signals';
import type { FunctionComponent } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { connection } from './connection.ts';
import { MessagePage, MessagePart } from './message-page.tsx';
import { line } from './shown-text.ts';

type Part<P> =
  | { readonly kind: 'absent' | 'loading' }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'loaded'; readonly Part: FunctionComponent<P> };

/** `load` imports it. `as`: how much of the page it is. */
export function loadLater<P extends object>(
  as: 'page' | 'part',
  load: () => Promise<FunctionComponent<P>>,
): FunctionComponent<P> {
  const part = signal<Part<P>>({ kind: 'absent' });
  const ask = (): void => {
    const { kind } = part.peek();
    if (kind === 'loading' || kind === 'loaded') return;
    part.value = { kind: 'loading' };
    void load().then(
      (Part) => void (part.value = { kind: 'loaded', Part }),
      (error: unknown) => void (part.value = { kind: 'failed', why: String(error) }),
    );
  };
  return function Later(props) {
    const { value } = part;
    const isLive = connection.value.kind === 'live';
    useLayoutEffect(ask, [isLive]);
    if (value.kind === 'loaded') return <value.Part {...props} />;
    const isPage = as === 'page';
    if (value.kind !== 'failed') return isPage ? <main class="message" aria-busy="true" /> : <p aria-busy="true" />;
    const Message = isPage ? MessagePage : MessagePart;
    return (
      <Message title="This part of the page could not be loaded">
        <p>It is asked for again when meow ui can be reached. If meow was installed again, reload the page.</p>
        <p class="dim">{line(value.why)}</p>
      </Message>
    );
  };
}
