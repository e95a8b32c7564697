// The bar at the top of every page: the current page, what needs a person, and whether the server is connected.

import { type Route, runAddress } from './addresses.ts';
import { connection } from './connection.ts';
import { wallClock } from './clock.ts';
import { exported } from './exported.ts';
import { findText } from './find.ts';
import { needCount } from './fleet-store.ts';
import { Cat } from './icons.tsx';
import { showsKeys } from './keys.ts';
import { route } from './router.ts';
import { age, line } from './shown-text.ts';
import { setTheme, type Theme, theme } from './theme.ts';

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
          {shown.view === 'agents' && shown.selection.agent !== null ? (
            <>
              <a href={runAddress(shown.of, 'agents', { ...shown.selection, agent: null })}>{line(shown.of.run)}</a>
              <span>/</span>
              <b>{line(shown.selection.agent, 60)}</b>
            </>
          ) : (
            <b>{line(shown.of.run)}</b>
          )}
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
      {exported === null && <Find />}
      <ConnectionStatus />
      <ThemeSwitch />
      <button type="button" class="b quiet s hide-s" aria-label="Keys" onClick={() => (showsKeys.value = true)}>
        <kbd>?</kbd>
      </button>
    </header>
  );
}

/** On phones, within reach of a thumb. */
export function BottomBar() {
  if (exported !== null) return null;
  const shown = route.value;
  return (
    <nav class="bottom" aria-label="Pages, below">
      {PAGES.map(({ kind, address, name }) => (
        <a key={kind} href={address} aria-current={shown.kind === kind ? 'page' : undefined}>
          {name}
          {kind === 'inbox' && <NeedBadge />}
        </a>
      ))}
    </nav>
  );
}

const FIND_ID = 'find';

function Find() {
  return (
    <div class="find" role="search">
      <input
        id={FIND_ID}
        type="text"
        aria-label="Find a run, gate or agent"
        placeholder="Find a run, gate, agent…"
        autocomplete="off"
        spellcheck={false}
        value={findText.value}
        onInput={({ currentTarget }) => (findText.value = currentTarget.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key === 'Escape') findText.value = '';
          if (key === 'Escape' || key === 'Enter') currentTarget.blur();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

/** False if the page has no such field now. */
export function focusFind(): boolean {
  const field = document.querySelector<HTMLInputElement>(`#${FIND_ID}`);
  if (field === null || field.offsetParent === null) return false;
  field.select();
  return true;
}

const NEXT_THEME: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };
const THEME_SIGNS: Readonly<Record<Theme, string>> = { system: '◐', light: '☼', dark: '☾' };

function ThemeSwitch() {
  const { value } = theme;
  const says = value === 'system' ? 'as the system' : value;
  return (
    <button
      type="button"
      class="b quiet s hide-s"
      aria-label={`Theme: ${says}`}
      title={`Theme: ${says}`}
      onClick={() => setTheme(NEXT_THEME[value])}
    >
      {THEME_SIGNS[value]}
    </button>
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
