// Workflows on the page: their mistakes with places, and the form that starts them. And runs side by side.

import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { shellStep } from '../rig/rig.ts';
import { pictureOf } from '../rig/run-picture.ts';
import { Stage } from '../rig/stage.ts';

const GREET = `[main]
description = "Greets somebody."
[main.variables]
name = { required = true, description = "Whom to greet" }
count = { type = "int", default = 2 }
loud = { type = "bool", default = false }
${shellStep('say', 'echo {{name}} {{count}} {{loud}} > greeted', 'outputs = { said = { source = "stdout" } }')}
${shellStep('maybe', 'test {{count}} -lt 5', 'needs = ["say"]')}`;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('greet.meow.toml', GREET);
  rig.write('.meow/workflows/stored.toml', `[main]\n${shellStep('a', 'true')}`);
  rig.write('.meow/templates/part.toml', `[main]\n${shellStep('a', 'true')}`);
  rig.write(
    'broken.meow.toml',
    '[main]\n[[main.steps]]\nid = "x"\nexecutor = "shel"\n\n[[main.steps]]\nid = "y"\nexecutor = "shell"\ncommand = "true"\nneeds = ["z"]\n',
  );
});
afterAll(() => stage[Symbol.asyncDispose]());

function workflow(page: Page, path: string): Locator {
  return page.getByRole('article', { name: new RegExp(`^${path.replaceAll('.', String.raw`\.`)}`) });
}

/** What the form says about a field, when it has marked it as wrong. */
async function problemOf(form: Locator, field: string): Promise<string> {
  const labelled = form.getByLabel(field, { exact: true });
  await expect.poll(() => labelled.getAttribute('aria-invalid')).toBe('true');
  const ids = ((await labelled.getAttribute('aria-describedby')) ?? '').split(' ');
  return (await Promise.all(ids.map((id) => form.locator(`[id="${id}"]`).innerText()))).join('\n');
}

test('all workflows of the project are listed; one with mistakes shows their places and cannot be started', async () => {
  const page = await stage.tab('/workflows');
  for (const path of ['greet.meow.toml', '.meow/workflows/stored.toml', '.meow/templates/part.toml'])
    expect(await workflow(page, path).getAttribute('data-status')).toBe('valid');
  const broken = workflow(page, 'broken.meow.toml');
  expect(await broken.getAttribute('data-status')).toBe('invalid');
  const { stdout, stderr } = await stage.rig.meow('validate', 'broken.meow.toml');
  const places = `${stdout}${stderr}`.match(/^broken\.meow\.toml:\d+:\d+/gm) ?? [];
  expect(places.length).toBeGreaterThanOrEqual(2);
  for (const place of places) await broken.getByText(place).waitFor();
  expect(await broken.getByRole('button', { name: /^Start/ }).count()).toBe(0);
  await page.goto(`${stage.ui.origin}/workflows?file=project/broken.meow.toml`);
  await workflow(page, 'broken.meow.toml').waitFor();
  for (const start of await page.getByRole('button', { name: 'Start', exact: true }).all())
    expect(await start.isDisabled()).toBe(true);
  await page.close();
});

test('a wrong value is refused at its field, and nothing starts; the right ones start the run, as the command shown does', async () => {
  const { rig } = stage;
  const page = await stage.tab('/workflows');
  await workflow(page, 'greet.meow.toml').getByRole('button', { name: 'Start…' }).click();
  const form = page.getByRole('form', { name: /greet\.meow\.toml/ });
  const command = form.getByText(/^meow run/);
  const start = form.getByRole('button', { name: 'Start', exact: true });
  await start.click();
  expect(await problemOf(form, 'name')).toMatch(/required/);
  await form.getByLabel('name', { exact: true }).fill('ann');
  await form.getByLabel('count', { exact: true }).fill('many');
  await start.click();
  expect(await problemOf(form, 'count')).toMatch(/many/);
  expect(await form.getByLabel('name', { exact: true }).getAttribute('aria-invalid')).not.toBe('true');
  expect(await form.getByLabel('loud', { exact: true }).getAttribute('aria-invalid')).not.toBe('true');
  expect(rig.exists('greeted')).toBe(false);
  expect(JSON.parse((await rig.meow('list', '--json')).stdout)).toEqual([]);

  await form.getByLabel('name', { exact: true }).fill("ann's $HOME");
  await form.getByLabel('count', { exact: true }).fill('3');
  await form.getByLabel('loud', { exact: true }).selectOption('true');
  await form.getByRole('checkbox', { name: /Try with sim/ }).check();
  const line = await command.innerText();
  expect(line).toContain('--adapter sim');
  await start.click();
  await expect.poll(() => page.url()).toMatch(/\/p\/project\/r\/[^/]+\/timeline$/);
  const id = /\/r\/([^/]+)\//.exec(page.url())?.[1] ?? '';
  await pictureOf(page, ({ status, rows }) => status === 'done' && rows.length === 2);
  expect(rig.read('greeted')).toBe("ann's $HOME 3 true\n");
  rig.write('greeted', '');
  expect((await rig.shell(line.replace('--detach', ''))).code).toBe(0);
  expect(rig.read('greeted')).toBe("ann's $HOME 3 true\n");
  expect((await rig.status(id)).vars).toMatchObject({ count: 3, loud: true });
  await page.close();
});

test('two runs are compared: what differs comes first, with where they part', async () => {
  const { rig } = stage;
  for (const [id, count] of [
    ['few', '2'],
    ['many', '7'],
  ] as const)
    await rig.meow('run', 'greet.meow.toml', '--id', id, '--var', 'name=ann', '--var', `count=${count}`);
  const page = await stage.tab('/compare?a=project/few&b=project/many');
  const rows = page.locator('tr[data-step]');
  await rows.first().waitFor();
  expect(await rows.first().getAttribute('data-step')).toBe('maybe');
  await rows.first().getByText('done → failed').waitFor();
  const difference = page.getByRole('status', { name: 'Difference' });
  expect(await difference.innerText()).toMatch(/Same program · variables differ: count 2 → 7 · they part at maybe/);
  await rows.first().getByRole('link').last().click();
  await page.getByRole('complementary', { name: 'maybe' }).waitFor();
  await page.goto(`${stage.ui.origin}/compare?a=project/few&b=project/none`);
  await page.getByText('These runs cannot be compared').waitFor();
  await page.close();
});
