// What the page loads: the fleet and the timeline of a run at once, and every other part when it is shown.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { openPage } from '../rig/open-page.ts';
import { Rig, shellStep } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

test('the fleet and a timeline load what the document names, and a part is loaded once, when it is shown', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await openPage(ui, browser, '/');
  const loaded: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    // Browsers ask for the icon at each navigation.
    if (pathname.startsWith('/assets/') && !pathname.endsWith('.svg')) loaded.push(pathname);
  });
  const answer = await page.reload();
  const document = (await answer?.text()) ?? '';
  await page.getByRole('link', { name: 'r', exact: true }).click();
  await page.getByRole('treegrid', { name: 'Steps' }).waitFor();
  expect(loaded.filter((path) => !document.includes(`"${path}"`))).toEqual([]);
  const first = loaded.length;
  await page.getByRole('link', { name: 'Graph', exact: true }).click();
  await page.getByRole('group', { name: 'Graph' }).waitFor();
  const withGraph = loaded.length;
  expect(withGraph).toBeGreaterThan(first);
  await page.getByRole('link', { name: 'Timeline', exact: true }).click();
  await page.getByRole('link', { name: 'Story', exact: true }).click();
  await page.getByRole('region', { name: 'Story' }).waitFor();
  expect(loaded.slice(withGraph)).toEqual([]);
});

test('a part that cannot be loaded says so, and the rest of the page keeps working', async () => {
  await using rig = await Rig.setup();
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await openPage(ui, browser, '/');
  await page.route('**/assets/pages-*', (route) => route.abort());
  await page.getByRole('link', { name: 'Usage', exact: true }).first().click();
  const failed = page.getByRole('heading', { name: 'This part of the page could not be loaded' });
  await failed.waitFor();
  await page.unroute('**/assets/pages-*');
  await page.getByRole('link', { name: 'Fleet', exact: true }).first().click();
  await page.getByRole('region', { name: 'Needs you' }).waitFor();
  await page.getByRole('link', { name: 'Usage', exact: true }).first().click();
  await page.getByRole('region', { name: 'By day' }).waitFor();
  expect(await failed.count()).toBe(0);
});
