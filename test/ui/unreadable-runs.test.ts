// Runs that cannot be shown, or not any further: the page says what is wrong where it is wrong, and the rest keeps working.

import { appendFileSync, chmodSync, readFileSync, writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { decodeRecords, encodeRecords } from '../../src/stores/journal-lines.ts';
import { shellStep, waitingStep } from '../rig/rig.ts';
import { agreesWithStatus } from '../rig/run-picture.ts';
import { Stage } from '../rig/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('w.meow.toml', `[main]\n${shellStep('one', 'true')}${shellStep('two', 'true', 'needs = ["one"]')}`);
  rig.write('held.meow.toml', `[main]\n${shellStep('one', 'true')}${waitingStep('held', 'needs = ["one"]')}`);
  for (const id of ['fine', 'harmed', 'later', 'denied', 'backwards']) await rig.meow('run', 'w.meow.toml', '--id', id);
});
afterAll(() => stage[Symbol.asyncDispose]());

function journalOf(run: string): string {
  return stage.rig.path(`.meow/workflows/${run}/journal.jsonl`);
}

/** Changes a byte in the middle of a record. */
function damage(run: string): void {
  const text = readFileSync(journalOf(run), 'latin1');
  writeFileSync(journalOf(run), text.replace('"step-done"', '"step-d0ne"'), 'latin1');
}

async function refusal(page: Page, run: string): Promise<string> {
  const response = await page.goto(`${stage.ui.origin}/p/project/r/${run}/timeline`);
  expect(response?.status()).toBeLessThan(500);
  const main = page.locator('main');
  await main.getByRole('heading').first().waitFor();
  return main.innerText();
}

test('a damaged run, one of a later format and one of another user say so, with what the command says, and others are shown', async () => {
  const { rig } = stage;
  damage('harmed');
  const later = '.meow/workflows/later/program.json';
  rig.write(later, rig.read(later).replace('"format":2', '"format":99'));
  const denies = process.getuid?.() !== 0;
  if (denies) chmodSync(journalOf('denied'), 0);
  const page = await stage.tab('/');
  for (const run of ['harmed', 'later', ...(denies ? ['denied'] : [])]) {
    const { code, stderr } = await rig.meow('status', run);
    expect(code).toBe(2);
    const [message = ''] = stderr.split('\n');
    expect(await refusal(page, run)).toContain(message.replace(/^meow: /, ''));
  }
  await page.goto(`${stage.ui.origin}/`);
  // They keep their rows, with what is wrong.
  const row = page.getByRole('row', { name: /^harmed,/ });
  await row.waitFor();
  await row
    .getByText(/damaged|changed/)
    .first()
    .waitFor();
  await page.getByRole('row', { name: /^fine,/ }).waitFor();
  await page.goto(`${stage.ui.origin}/p/project/r/fine/timeline`);
  await agreesWithStatus(page, rig, 'fine');
  await page.close();
});

test('a run that is damaged while it is shown says so, and what was shown of it stays', async () => {
  const { rig } = stage;
  rig.start('run', 'held.meow.toml', '--id', 'shown');
  await rig.appears('held.began');
  const page = await stage.tab('/p/project/r/shown/timeline');
  await agreesWithStatus(page, rig, 'shown');
  // Before the next record of the engine.
  appendFileSync(journalOf('shown'), '{"seq":4,"at":1,"decisions":[]}\n');
  rig.write('held.go', '');
  await page
    .getByRole('alert')
    .getByText(/damaged/)
    .first()
    .waitFor();
  await page.locator('[data-step=one]').waitFor();
  await page.close();
});

test('a run whose clock went backwards is shown with all its steps', async () => {
  const { rig } = stage;
  const decoded = decodeRecords(readFileSync(journalOf('backwards')));
  if (!decoded.ok) throw new Error('the journal cannot be read');
  const { records } = decoded.value;
  const turned = records.map((record, index) => ({ ...record, at: record.at - index * 3_600_000 }));
  writeFileSync(journalOf('backwards'), encodeRecords(turned, 0));
  const page = await stage.tab('/p/project/r/backwards/timeline');
  await agreesWithStatus(page, rig, 'backwards');
  expect(await page.locator('main').innerText()).not.toMatch(/NaN|-\d+[smh]\b|Invalid/);
  for (const view of ['story', 'cost', 'gates']) {
    await page.goto(`${stage.ui.origin}/p/project/r/backwards/${view}`);
    await page.getByRole('heading', { name: 'backwards' }).waitFor();
    expect(await page.locator('main').innerText()).not.toMatch(/NaN|Invalid/);
  }
  await page.close();
});

test('a run, a project and a page that do not exist are named, with status 404', async () => {
  const page = await stage.tab('/');
  for (const [path, named] of [
    ['/p/project/r/nobody/timeline', 'nobody'],
    ['/p/nowhere/r/fine/timeline', 'nowhere'],
    ['/p/project/r/fine/nothing', 'fine/nothing'],
    ['/nothing', '/nothing'],
  ] as const) {
    const response = await page.goto(`${stage.ui.origin}${path}`);
    expect(response?.status()).toBe(404);
    await page.locator('main').getByText(named).first().waitFor();
  }
  await page.close();
});
