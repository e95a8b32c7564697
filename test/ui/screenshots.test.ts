// The pictures of docs/ui.md and the README: pages of real runs. They are written only with UPDATE=1, because each time shows in
// them; otherwise the test checks that the pages that they show can be drawn.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { Rig, shellStep } from '../rig/rig.ts';
import { Browser } from '../rig/browser.ts';
import { isLive } from '../rig/stage.ts';
import { Ui } from '../rig/ui.ts';

const FOLDER = resolve(import.meta.dirname, '../../docs/ui');
const WRITES = process.env['UPDATE'] === '1';
/** Of each picture. Documents that nobody can load quickly are not read. */
const BYTES_MAX = 200_000;

const RELEASE = `[main]
${shellStep('test', 'sleep 0.4; echo 412 passed')}
[[main.steps]]
id = "package"
executor = "foreach"
items = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]"
template = ".one"
max_concurrent = 6
needs = ["test"]
[one]
${shellStep('build', 'sleep 0.{{item}}; echo built {{item}}; if [ {{item}} = 11 ]; then echo "error: no space left" >&2; exit 1; fi', 'on_error = "continue"').replace('main.steps', 'one.steps')}
${shellStep('push', "meow await-approval push --prompt 'Push release 2.4 to production?'", 'needs = ["package"]')}
${shellStep('announce', 'true', 'needs = ["push"]')}`;

const FIX = `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
adapter = "sim"
channel = "headless"
${['plan', 'fix', 'review']
  .map(
    (id, index) => `[[main.steps]]
id = "${id}"
executor = "agent"
agent = "worker"
prompt = "${id} it"
needs = ["${['start', 'plan', 'fix'][index]}"]
`,
  )
  .join('')}${shellStep('wait', 'while [ ! -e go ]; do sleep 0.1; done', 'needs = ["review"]')}`;
const FIX_SIM = `[[on]]
prompt = "plan"
do = [{ wait = "300ms" }, { cost = { usd = 0.12, tokens = 21000 } }, { done = true }]
[[on]]
prompt = "fix"
do = [{ wait = "900ms" }, { cost = { usd = 1.87, tokens = 310000 } }, { done = true }]
[[on]]
do = [{ wait = "400ms" }, { cost = { usd = 0.42, tokens = 52000 } }, { done = true }]
`;

test('the fleet, a run, the inbox and a phone are drawn from real runs', async () => {
  await using rig = await Rig.setup();
  const shop = rig.path('shop');
  rig.write('shop/.meow/config.toml', '');
  rig.write('shop/release.meow.toml', RELEASE);
  rig.write('shop/fix.meow.toml', FIX);
  rig.write('shop/fix.sim.toml', FIX_SIM);
  rig.write(
    'shop/nightly.meow.toml',
    `[main]\n${shellStep('lint', 'true')}${shellStep('deploy', 'echo 502 from /health >&2; exit 1', 'needs = ["lint"]')}`,
  );
  rig.write('shop/flow/START.sh', `echo '<ask next="END.sh">Which login page: the old one or the new one?</ask>'`);
  rig.write('shop/flow/END.sh', "echo '<result>over</result>'");
  await rig.meowIn(shop, 'run', 'nightly.meow.toml', '--id', 'nightly');
  for (const [file, id] of [
    ['fix.meow.toml', 'fix-login'],
    ['flow', 'redesign'],
    ['release.meow.toml', 'release-24'],
  ] as const)
    expect(await rig.meowIn(shop, 'run', file, '--id', id, '--detach')).toMatchObject({ code: 0 });
  await using ui = await Ui.start(rig, '--project', 'shop');
  await using browser = await Browser.start();
  const page = await browser.page({ viewport: { width: 1100, height: 700 }, colorScheme: 'light' });
  await page.goto(ui.url);
  await page.getByRole('article', { name: /push/ }).waitFor();
  await page.getByRole('article', { name: /redesign/ }).waitFor();
  await page
    .getByRole('row', { name: /^fix-login/ })
    .getByText('wait is running')
    .waitFor();
  await taken(page, 'fleet');
  await page.setViewportSize({ width: 1280, height: 760 });
  const run = `${ui.origin}/p/shop/r/release-24`;
  await page.goto(`${run}/timeline`);
  await page.locator('[data-group=package]').press('ArrowRight');
  await page.locator('[data-step="package.11.build"]').or(page.locator('[data-group="package.11"]')).first().click();
  await page.goto(`${run}/timeline?step=package.11.build`);
  await page.getByRole('tabpanel').getByText('no space left').waitFor();
  await taken(page, 'run');
  await page.goto(`${ui.origin}/inbox?gate=shop/release-24/push`);
  await page.getByText('If you approve').first().waitFor();
  await page.setViewportSize({ width: 1100, height: 620 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await taken(page, 'inbox');
  await page.setViewportSize({ width: 390, height: 700 });
  await page.goto(`${ui.origin}/`);
  await page.getByRole('article', { name: /push/ }).waitFor();
  await taken(page, 'phone');
});

async function taken(page: Page, name: string): Promise<void> {
  await isLive(page);
  const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  expect(picture.length).toBeLessThan(BYTES_MAX);
  if (!WRITES) return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.png`), picture);
}
