// What a tab shows while its document is on the way, or if the server refuses it.

import type { ComponentChildren } from 'preact';
import type { Refusal } from '../../web/protocol.ts';
import { line } from '../shown-text.ts';
import type { Loaded } from './use-document.ts';

export function LoadedPart<T>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (loaded.kind === 'loading') return <p class="empty" aria-busy="true" />;
  return loaded.kind === 'refused' ? <Refused refusal={loaded.refusal} /> : <>{children(loaded.value)}</>;
}

export function Refused({ refusal: { message, cure } }: { readonly refusal: Refusal }) {
  return (
    <p class="empty" role="alert">
      {line(message)}
      {cure !== null && <span class="dim"> {line(cure)}</span>}
    </p>
  );
}
