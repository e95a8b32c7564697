// The bar at the top of every page: where one is, what needs a person, whether the page is connected.

import type { Route } from './addresses.ts';
import { connection } from './connection.ts';
import { wallClock } from './clock.ts';
import { exported } from './exported.ts';
import { needCount } from './fleet-store.ts';
import { Cat } from './icons.tsx';
import { route } from './router.ts';
import { age, line } from './shown-text.ts';

const PAGES: readonly { readonly kind: Route['kind']; readonly address: string; readonly name: string }[] = [
  { kind: 'fleet', address: '/', name: 'Fleet' },
  { kind: 'inbox', address: '/inbox', name: 'Inbox' },
  { kind: 'workflows', address: '/workflows', name: 'Workflows' },
  { kind: 'usage', address: '/usage', name: 'Usage' },
  { kind: 'schedule', address: '/schedule', name: 'Schedule' },
];

export function TopBar() {
  const shown = route.value;
  return (
    <header class="top">
      <a class="brand" href="/">
        <Cat />
        meow
      </a>
      {shown.kind === 'run' && (
        <div class="crumbs">
          <a href="/">Fleet</a>
          <span>/</span>
          <span>{line(shown.of.project)}</span>
          <span>/</span>
          <b>{line(shown.of.run)}</b>
        </div>
      )}
      <nav class="nav" aria-label="Pages">
        {PAGES.map(({ kind, address, name }) => (
          <a key={kind} href={address} aria-current={shown.kind === kind ? 'page' : undefined}>
            {name}
            {kind === 'inbox' && <NeedBadge />}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <ConnectionStatus />
    </header>
  );
}

export function NeedBadge() {
  const count = needCount.value;
  return count === 0 ? null : (
    <span class="badge" role="img" aria-label={`${count} ${count === 1 ? 'waits' : 'wait'} for you`}>
      {count}
    </span>
  );
}

function ConnectionStatus() {
  const { value } = connection;
  const says = exported !== null ? 'saved file' : value.kind === 'lost' ? lostText(value.since) : value.kind;
  return (
    <div class={`live ${value.kind}`} role="status" aria-label="Connection">
      <i />
      <span>{says}</span>
    </div>
  );
}

function lostText(since: number): string {
  return `Not connected for ${age(wallClock.value - since)}`;
}
