// The whole page: the bar, and what the address names.

import { wallClock } from './clock.ts';
import { connection } from './connection.ts';
import { exported } from './exported.ts';
import { FleetPage } from './fleet-page.tsx';
import { ITEM_KEYS, type KeyCommand, showsKeys, useKeys } from './keys.ts';
import { KeysDialog } from './keys-dialog.tsx';
import { loadLater } from './load-later.tsx';
import { MessagePage } from './message-page.tsx';
import { navigate, route } from './router.ts';
import { RunPage } from './run/run-page.tsx';
import { age, line, moment } from './shown-text.ts';
import { BottomBar, focusFind, TopBar } from './top-bar.tsx';

const InboxPage = loadLater('page', async () => (await import('./pages.ts')).InboxPage);
const WorkflowsPage = loadLater('page', async () => (await import('./pages.ts')).WorkflowsPage);
const ComparePage = loadLater('page', async () => (await import('./pages.ts')).ComparePage);
const UsagePage = loadLater('page', async () => (await import('./pages.ts')).UsagePage);
const SchedulePage = loadLater('page', async () => (await import('./pages.ts')).SchedulePage);

export function App() {
  useKeys('Everywhere', exported === null ? [...PAGE_KEYS, ...KEYS] : KEYS);
  return (
    <>
      <TopBar />
      <LostBar />
      <Shown />
      <BottomBar />
      <KeysDialog />
    </>
  );
}

const KEYS: readonly KeyCommand[] = [
  ...ITEM_KEYS,
  { key: '?', label: 'this list', press: () => void (showsKeys.value = !showsKeys.peek()) },
];
const PAGE_KEYS: readonly KeyCommand[] = [
  { key: 'g f', label: 'go to the fleet', press: () => navigate('/') },
  { key: 'g i', label: 'go to the inbox', press: () => navigate('/inbox') },
  { key: 'g w', label: 'go to the workflows', press: () => navigate('/workflows') },
  { key: 'g u', label: 'go to the usage', press: () => navigate('/usage') },
  { key: 'g s', label: 'go to the schedule', press: () => navigate('/schedule') },
  { key: 'g c', label: 'compare two runs', press: () => navigate('/compare') },
  { key: '/', label: 'find', press: focusFind },
];

function LostBar() {
  const { value } = connection;
  if (value.kind !== 'lost') return null;
  return (
    <div class="lost">
      <LostSince since={value.since} />
      {value.refused
        ? ': meow ui was started again. Open the address that it printed once, in any tab.'
        : ', trying again. Times stand still until then.'}
    </div>
  );
}

function LostSince({ since }: { readonly since: number }) {
  return (
    <>
      Not connected for {age(wallClock.value - since)} (since {moment(since, wallClock.value)})
    </>
  );
}

function Shown() {
  const shown = route.value;
  switch (shown.kind) {
    case 'fleet':
      return <FleetPage />;
    case 'run':
      return <RunPage of={shown.of} view={shown.view} selection={shown.selection} />;
    case 'inbox':
      return <InboxPage gate={shown.gate} />;
    case 'workflows':
      return <WorkflowsPage file={shown.file} />;
    case 'compare':
      return <ComparePage a={shown.a} b={shown.b} />;
    case 'usage':
      return <UsagePage />;
    case 'schedule':
      return <SchedulePage />;
    case 'not-found':
      return (
        <MessagePage title="Not found">
          <p>
            There is no page at <code>{line(location.pathname)}</code>.
          </p>
        </MessagePage>
      );
  }
}
