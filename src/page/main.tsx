// The page that `meow ui` serves: shows every run, and sends what people decide. It computes all it shows from the records.

import { render } from 'preact';
import { App } from './app.tsx';
import { startClock } from './clock.ts';
import { connect } from './connection.ts';
import { sendWhenLeft } from './decisions.ts';
import { exported } from './exported.ts';
import { followFleet } from './fleet-store.ts';
import { listenToKeys } from './keys.ts';
import { followAddress } from './router.ts';
import { askSession, exchangeToken, takeToken } from './session.ts';
import { applyTheme } from './theme.ts';

applyTheme();
if (exported === null) {
  const token = takeToken();
  // The printed address was opened in a browser that already has a cookie: of this start, or it would not see this page.
  if (token !== null) void exchangeToken(token);
  connect();
  followFleet();
  sendWhenLeft();
}
followAddress();
startClock();
listenToKeys();
render(<App />, document.querySelector('#page') ?? document.body);
