// How a browser comes to see the runs: by the printed address, once, and without leaving the token anywhere.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { Rig, shellStep } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

test('the printed address shows the fleet, and the token leaves the address', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('build', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'first');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await browser.page();
  const requested: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  await page.goto(ui.url);
  await page.getByRole('status', { name: 'Connection' }).getByText('live').waitFor();
  await page.getByText('first').first().waitFor();
  expect(page.url()).toBe(`${ui.origin}/`);
  expect(await page.evaluate<number>('history.length')).toBeLessThanOrEqual(2);
  expect(requested.filter((url) => url.includes(ui.token) || !url.startsWith(ui.origin))).toEqual([]);
});

test('without the token the page says what to open, and nothing of the runs', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('build', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'first');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await browser.page();
  await page.goto(`${ui.origin}/p/project/r/first/timeline`);
  await page.getByText('Open the printed address').waitFor();
  expect(await page.content()).not.toContain('first');
});
