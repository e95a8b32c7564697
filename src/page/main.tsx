// The page that `meow ui` serves: shows every run, and sends what people decide. It computes all it shows from the records.

import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './app.tsx';
import { startClock } from './clock.ts';
import { connect, connection } from './connection.ts';
import { sendWhenLeft } from './decisions.ts';
import { exported } from './exported.ts';
import { followFleet } from './fleet-store.ts';
import { listenToKeys } from './keys.ts';
import { followNeeds } from './needs.ts';
import { followAddress } from './router.ts';
import { askSession, exchangeToken, takeToken } from './session.ts';
import { applyTheme } from './theme.ts';

applyTheme();
if (exported === null) {
  const token = takeToken();
  // The printed address was opened in a browser that already has a cookie: of this start, or it would not see this page.
  if (token !== null) void exchangeToken(token);
  connect();
  // The server may have been started again with other options.
  effect(() => {
    if (connection.value.kind === 'live') void askSession();
  });
  followFleet();
  followNeeds();
  sendWhenLeft();
}
followAddress();
startClock();
listenToKeys();
render(<App />, document.querySelector('#page') ?? document.body);
