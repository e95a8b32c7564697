// Pages of others in the browser of a person who has the page of `meow ui` open: they see and change nothing. And what is left of
// the token in the browser. Attacks without a browser: test/attacks/page-server.test.ts.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { shellStep } from '../rig/rig.ts';
import { isLive, Stage } from '../rig/stage.ts';
import { Ui } from '../rig/ui.ts';

const DECIDE = { project: 'project', run: 'secret-run', gate: 'push', approved: true };

let stage: Stage;
/** Another web page, on another port of this machine: to a browser that is the same site. */
let evil: Server;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('w.meow.toml', `[main]\n${shellStep('ask', 'meow await-approval push')}`);
  rig.start('run', 'w.meow.toml', '--id', 'secret-run');
  await rig.decided('secret-run', 'gate-asked ask');
  evil = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>evil</title>'),
  );
  await new Promise<void>((resolve) => {
    evil.listen(0, '127.0.0.1', resolve);
  });
});
afterAll(async () => {
  evil.close();
  await stage[Symbol.asyncDispose]();
});

async function evilPage(): Promise<Page> {
  const page = await stage.profile.newPage();
  await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
  return page;
}

test('a page on another port decides nothing and reads nothing, although the browser has the cookie', async () => {
  const { ui, rig } = stage;
  const own = await stage.tab('/');
  const page = await evilPage();
  const body = JSON.stringify(JSON.stringify(DECIDE));
  const attempt = (expression: string): Promise<string> =>
    page.evaluate<string>(
      `(async () => { try { return String(await (${expression})); } catch (error) { return 'refused'; } })()`,
    );
  const answers = await Promise.all([
    // A simple request goes out without asking first.
    attempt(
      `fetch('${ui.origin}/do/decide', { method: 'POST', mode: 'no-cors', credentials: 'include', body: ${body} }).then((r) => r.type)`,
    ),
    attempt(
      `fetch('${ui.origin}/do/decide', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: ${body} }).then((r) => r.status)`,
    ),
    attempt(`navigator.sendBeacon('${ui.origin}/do/decide', ${body})`),
    attempt(`fetch('${ui.origin}/data/session', { credentials: 'include' }).then((r) => r.text())`),
    attempt(
      `fetch('${ui.origin}/data/run/project/secret-run/records', { mode: 'no-cors', credentials: 'include' }).then((r) => r.type)`,
    ),
    attempt(
      `new Promise((done) => { const socket = new WebSocket('ws://127.0.0.1:${ui.port}/socket'); socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })`,
    ),
    attempt(
      `new Promise((done) => { const script = document.createElement('script'); script.src = '${ui.origin}/data/session'; script.onload = () => done('loaded'); script.onerror = () => done('refused'); document.body.append(script); })`,
    ),
    attempt(
      `new Promise((done) => { const frame = document.createElement('iframe'); frame.src = '${ui.origin}/'; frame.onload = () => { try { done(frame.contentDocument === null ? 'refused' : frame.contentDocument.body.innerText); } catch { done('refused'); } }; document.body.append(frame); })`,
    ),
    attempt(
      `(() => { const opened = window.open('${ui.origin}/'); return opened === null || opened.closed || opened.length === 0 ? 'refused' : opened.document.title; })()`,
    ),
  ]);
  for (const answer of answers) expect(answer).toMatch(/^(?:refused|opaque|true|)$/);
  // A form is a navigation, which needs no permission either.
  await page.evaluate(`{
    const form = document.createElement('form');
    form.method = 'post'; form.enctype = 'text/plain'; form.action = '${ui.origin}/do/decide';
    const field = document.createElement('input');
    field.name = ${body}.slice(0, -1) + ',"x":"'; field.value = '"}';
    form.append(field); document.body.append(form); form.submit();
  }`);
  await expect.poll(() => page.content()).toContain('does not come from a page of meow ui');
  expect(rig.decisions('secret-run').filter((each) => each.startsWith('gate-decided'))).toEqual([]);
  await isLive(own);
  await page.close();
  await own.close();
});

test('a name of somebody else that resolves to this machine shows nothing', async () => {
  await using browser = await Browser.start('--host-resolver-rules=MAP evil.test 127.0.0.1');
  const page = await browser.page();
  for (const path of ['/', '/p/project/r/secret-run/timeline', '/data/session']) {
    const response = await page.goto(`http://evil.test:${stage.ui.port}${path}#token=${stage.ui.token}`);
    expect(response?.status()).toBe(421);
    expect(await page.content()).not.toContain('secret-run');
  }
});

test('the token is in no address, history, storage, title or text of the browser, and scripts cannot read the cookie', async () => {
  const { ui } = stage;
  const page = await stage.tab('/');
  await page.goto(`${ui.origin}/p/project/r/secret-run/timeline#token=${ui.token}`);
  await isLive(page);
  expect(page.url()).toBe(`${ui.origin}/p/project/r/secret-run/timeline`);
  const found = await page.evaluate<string>(`JSON.stringify([
    document.cookie, document.referrer, location.href, document.documentElement.outerHTML, history.state,
    { ...localStorage }, { ...sessionStorage },
    performance.getEntriesByType('resource').map((entry) => entry.name),
  ])`);
  expect(found).not.toContain(ui.token);
  expect(await page.evaluate<string>('document.cookie')).toBe('');
  const [cookie] = (await stage.profile.cookies()).filter(({ name }) => name === `meow-${ui.port}`);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', expires: -1 });
  expect(cookie?.value).not.toBe(ui.token);
  await page.goBack();
  expect(page.url()).not.toContain(ui.token);
  await page.close();
});

test('a wrong or old token is refused with what to do, and shows nothing of a run', async () => {
  const page = await stage.browser.page();
  for (const token of ['0'.repeat(32), 'x', '']) {
    await page.goto(`${stage.ui.origin}/p/project/r/secret-run/timeline#token=${token}`);
    await page.reload();
    await page
      .getByText(/valid until meow ui ends|no longer valid/)
      .first()
      .waitFor();
    expect(await page.content()).not.toContain('secret-run');
  }
  await page.close();
});

test('under --read-only the page shows everything, and has no button that decides or steers', async () => {
  await using reader = await Ui.start(stage.rig, '--project', '.', '--read-only');
  const page = await stage.browser.page();
  await page.goto(`${reader.origin}/#token=${reader.token}`);
  await isLive(page);
  for (const path of [
    '/',
    '/inbox',
    '/workflows',
    '/p/project/r/secret-run/timeline',
    '/p/project/r/secret-run/gates',
  ]) {
    await page.goto(`${reader.origin}${path}`);
    await isLive(page);
    await page
      .getByText(path.startsWith('/workflows') ? 'w.meow.toml' : 'secret-run')
      .first()
      .waitFor();
    for (const name of [
      'Approve',
      'Reject',
      'Allow',
      'Deny',
      'Send',
      'Type',
      'Start',
      'Start…',
      'Stop',
      'Resume',
      'Pause',
      'Retry',
    ])
      for (const button of await page.getByRole('button', { name, exact: true }).all())
        expect(await button.isDisabled(), `${name} on ${path}`).toBe(true);
    await page.keyboard.press('a');
  }
  expect(stage.rig.decisions('secret-run').filter((each) => each.startsWith('gate-decided'))).toEqual([]);
  await page.close();
});

test('without JavaScript the page says what to do instead, with and without the cookie', async () => {
  const profile = await stage.browser.profile({ javaScriptEnabled: false });
  const page = await profile.newPage();
  await page.goto(`${stage.ui.origin}/`);
  // Playwright finds no text in this element.
  await page.locator('noscript code').first().waitFor();
  expect(await page.locator('noscript').innerHTML()).toContain('meow gates');
  expect(await page.content()).not.toContain('secret-run');
  const [name = '', value = ''] = stage.ui.cookie.split('=');
  await profile.addCookies([{ name, value, url: stage.ui.origin }]);
  await page.goto(`${stage.ui.origin}/p/project/r/secret-run/timeline`);
  await page.locator('noscript h1').waitFor();
  expect(await page.locator('noscript').innerHTML()).toContain('meow status RUN');
  await profile.close();
});
