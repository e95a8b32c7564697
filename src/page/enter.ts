// The document for a browser without the cookie of this start of the server. It exchanges the token in the address for the
// cookie, and loads the address again. Another tab may bring the cookie too.

import { askSession, exchangeToken, takeToken } from './session.ts';

const CHECK_MS = 2000;

void enter();

async function enter(): Promise<void> {
  const token = takeToken();
  if (token !== null) {
    if (await exchangeToken(token)) {
      location.reload();
      return;
    }
    const title = document.querySelector('#title');
    if (title !== null) title.textContent = 'This address is no longer valid';
  }
  setInterval(() => void check(), CHECK_MS);
}

async function check(): Promise<void> {
  if (!document.hidden && (await askSession()) === 'accepted') location.reload();
}
