// The whole page: the bar, and what the address names.

import { connection } from './connection.ts';
import { exported } from './exported.ts';
import { FleetPage } from './fleet-page.tsx';
import { ITEM_KEYS, type KeyCommand, showsKeys, useKeys } from './keys.ts';
import { KeysDialog } from './keys-dialog.tsx';
import { MessagePage } from './message-page.tsx';
import { navigate, route } from './router.ts';
import { RunPage } from './run/run-page.tsx';
import { line } from './shown-text.ts';
import { TopBar } from './top-bar.tsx';

export function App() {
  useKeys('Everywhere', exported === null ? [...PAGE_KEYS, ...KEYS] : KEYS);
  return (
    <>
      <TopBar />
      <LostBar />
      <Shown />
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
];

function LostBar() {
  const { value } = connection;
  if (value.kind !== 'lost') return null;
  return (
    <div class="lost">
      {value.refused
        ? 'Not connected: meow ui was started again. Open the address that it printed once, in any tab.'
        : 'Not connected, trying again. Times stand still until then.'}
    </div>
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
    case 'workflows':
    case 'compare':
    case 'usage':
    case 'schedule':
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
