// A page that only says something: not found, not connected yet, cannot be shown.

import type { ComponentChildren } from 'preact';

export function MessagePage({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <main class="message">
      <h1>{title}</h1>
      {children}
    </main>
  );
}

/** The same in a part of a page. */
export function MessagePart({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <section class="message" role="alert">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
