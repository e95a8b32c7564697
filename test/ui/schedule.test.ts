// What runs when, and how the last runs went.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { Rig, shellStep } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

test('schedules are listed with their next time and the results of their runs', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'exit 3')}`);
  await rig.meow('schedule', 'add', 'nightly', '0 3 * * *', 'w.meow.toml', '--timezone', 'UTC');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await browser.page();
  await page.goto(ui.url);
  await page.getByRole('link', { name: 'Schedule', exact: true }).first().click();
  const row = page.getByRole('row', { name: /^nightly/ });
  await row.getByText('none yet').waitFor();
  expect(await row.textContent()).toMatch(/0 3 \* \* \*.*UTC.*03:00, in /);
  await rig.meow('schedule', 'run', 'nightly');
  await row.locator('[data-status="failed"]').waitFor();
  await row.getByRole('link').last().click();
  await page.getByRole('treegrid', { name: 'Steps' }).waitFor();
});
