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
