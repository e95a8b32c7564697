// The agents of a run, and the page of one.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { startFox, terminalOf } from '../rig/fox.ts';
import { Rig } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

test('an agent is listed with its step, and its page shows what became of its prompt', async () => {
  await using rig = await Rig.setup();
  await startFox(rig, 'r', 'echo first; echo second; echo third');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await browser.page();
  await page.goto(ui.url);
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByText('third').waitFor();
  expect(await agents.locator('li[data-status="active"] pre div').count()).toBeLessThanOrEqual(3);
  await page.goto(`${ui.origin}/p/project/r/r/agents`);
  const row = page.locator('[data-agent="writer"]');
  await row.waitFor();
  expect(await row.getAttribute('data-status')).toBe('active');
  await row.getByRole('link', { name: 'writer' }).click();
  await terminalOf(page, 'writer').getByText('third').waitFor();
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/p/project/r/r/agents?agent=writer');
  const about = page.getByRole('complementary', { name: 'About the agent' });
  for (const state of ['journalled', 'being delivered', 'accepted', 'at work'])
    await about.getByText(state, { exact: false }).first().waitFor();
  await rig.meow('stop', 'r', '--force');
  await page.locator('[data-agent="writer"]:not([data-status="active"])').waitFor();
});
