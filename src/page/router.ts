// The route that is shown follows the address, and links change the address without loading a document. In an exported file
// the address of the page is the fragment of that of the file.

import { signal } from '@preact/signals';
import { parseAddress, type Route, runAddress, type RunSelection } from './addresses.ts';
import { exported } from './exported.ts';

export const route = signal<Route>(readRoute());

/** `replace`: without a history entry, for what back should not undo. */
export function navigate(address: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (address === shownAddress()) return;
  const url = exported === null ? address : `#${address}`;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  const before = route.value.kind;
  readAddress();
  if (!replace && (before !== 'run' || route.value.kind !== 'run')) scrollTo(0, 0);
}

/** Changes the selection on the page of a run. Choosing a step adds a history entry, all else replaces it. */
export function select(changes: Partial<RunSelection>): void {
  const { value } = route;
  if (value.kind !== 'run') return;
  const choosesStep = changes.step !== undefined && changes.step !== value.selection.step;
  navigate(runAddress(value.of, value.view, { ...value.selection, ...changes }), { replace: !choosesStep });
}

/** Call once: follows the back and forward buttons, and clicks on links to this page. */
export function followAddress(): void {
  addEventListener('popstate', readAddress);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.origin !== location.origin || link.hasAttribute('download')) return;
    // A document of the server, such as an output as it is.
    if (link.pathname.startsWith('/data/')) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}

function readAddress(): void {
  route.value = readRoute();
}

function readRoute(): Route {
  const [path = '', query = ''] = shownAddress().split('?', 2);
  return parseAddress(path, query);
}

function shownAddress(): string {
  if (exported === null) return location.pathname + location.search;
  return location.hash.length > 1 ? location.hash.slice(1) : runAddress(exported.name);
}
