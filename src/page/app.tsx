// The whole page: the bar, and what the address names.

import { connection } from './connection.ts';
import { FleetPage } from './fleet-page.tsx';
import { MessagePage } from './message-page.tsx';
import { route } from './router.ts';
import { RunPage } from './run/run-page.tsx';
import { line } from './shown-text.ts';
import { TopBar } from './top-bar.tsx';

export function App() {
  return (
    <>
      <TopBar />
      <LostBar />
      <Shown />
    </>
  );
}

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
