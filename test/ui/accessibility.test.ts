// The page for everybody: axe-core finds no violation of WCAG 2.1 A and AA, everything can be done with the keyboard alone, and on a
// phone nothing scrolls sideways and a thumb decides a gate.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { shellStep, waitingStep } from '../rig/rig.ts';
import { pictureOf } from '../rig/run-picture.ts';
import { isLive, Stage } from '../rig/stage.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const GATED = `[main]\n${shellStep('ask', 'meow await-approval push --prompt "Push to main?"')}`;
const HELD = `[main]\n${shellStep('one', 'true')}${waitingStep('held', 'needs = ["one"]')}${shellStep('last', 'true', 'needs = ["held"]')}`;
const GREET = `[main]
description = "Greets somebody."
[main.variables]
name = { required = true, description = "Whom to greet" }
count = { type = "int", default = 2 }
${shellStep('say', 'echo {{name}} {{count}} > greeted')}`;
const WIDE = `[main]
[[main.steps]]
id = "each"
executor = "foreach"
items = "[1, 2, 3, 4, 5]"
template = ".one"
[one]
${shellStep('build', 'echo {{item}}; test {{item}} != 4', 'on_error = "continue"').replace('main.steps', 'one.steps')}
${shellStep('ship', 'echo https://example.com/ >&2; exit 2', 'needs = ["each"]')}`;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('gated.meow.toml', GATED);
  rig.write('held.meow.toml', HELD);
  rig.write('greet.meow.toml', GREET);
  rig.write('wide.meow.toml', WIDE);
  rig.write('broken.meow.toml', '[main]\n[[main.steps]]\nid = "x"\nexecutor = "shel"\n');
  await rig.meow('run', 'wide.meow.toml', '--id', 'wide');
  rig.start('run', 'gated.meow.toml', '--id', 'asks');
  rig.start('run', 'held.meow.toml', '--id', 'works');
  await rig.decided('asks', 'gate-asked ask');
  await rig.appears('held.began');
});
afterAll(() => stage[Symbol.asyncDispose]());

const RUN = '/p/project/r/wide';
const PAGES: readonly (readonly [address: string, ready: RegExp])[] = [
  ['/', /Push to main/],
  ['/inbox', /Push to main/],
  ['/workflows', /broken\.meow\.toml/],
  ['/workflows?file=project/greet.meow.toml', /Whom to greet/],
  ['/compare?a=project/wide&b=project/works', /each/],
  ['/usage', /By run|cannot be shown/],
  ...['timeline', 'graph', 'story', 'agents', 'gates', 'cost'].map((view) => [`${RUN}/${view}`, /wide/] as const),
  ['/p/project/r/asks/gates', /Push to main/],
  ...['output', 'prompt', 'outputs', 'why', 'diff', 'cost', 'record'].map(
    (tab) => [`${RUN}/timeline?step=ship&tab=${tab}`, /ship[^]*Output/] as const,
  ),
  [`${RUN}/timeline?at=3`, /Live/],
  ['/p/project/r/none/timeline', /none/],
];

describe('axe-core finds no violation of WCAG 2.1 A and AA', () => {
  test.each(['light', 'dark'] as const)('on any page in the %s theme', async (theme) => {
    // axe-core makes styles of its own, which the policy of the page forbids.
    const profile = await stage.browser.profile({ bypassCSP: true, colorScheme: theme });
    const page = await stage.tab('/', profile);
    const problems: string[] = [];
    for (const [address, ready] of PAGES) {
      await page.goto(`${stage.ui.origin}${address}`);
      await has(page, ready);
      problems.push(...(await violations(page, address, theme)));
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    problems.push(...(await violations(page, 'the list of keys', theme)));
    expect(problems).toEqual([]);
    await profile.close();
  });

  test('on the page for a browser without the token', async () => {
    const page = await stage.browser.page({ bypassCSP: true });
    await page.goto(stage.ui.origin);
    expect(await violations(page, 'enter', 'light')).toEqual([]);
    await page.close();
  });
});

/** The same elements are in both themes, so in the second one only colours are checked. */
async function violations(page: Page, where: string, theme: 'light' | 'dark'): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const runOnly = theme === 'light' ? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] : ['color-contrast'];
  const found = await page.evaluate<
    string[]
  >(`axe.run(document, { runOnly: ${JSON.stringify(runOnly)}, resultTypes: ['violations'] }).then(
    ({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? '')))
  )`);
  return found.map((each) => `${where} (${theme}): ${each}`);
}

test('on a phone nothing scrolls sideways, and a thumb decides a gate', async () => {
  const profile = await stage.browser.profile({
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
  });
  const page = await stage.tab('/', profile);
  const wide: string[] = [];
  for (const [address, ready] of PAGES) {
    await page.goto(`${stage.ui.origin}${address}`);
    await has(page, ready);
    const [scroll = 0, client = 0] = await page.evaluate<number[]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    if (scroll > client) wide.push(`${address}: ${scroll} px`);
  }
  expect(wide).toEqual([]);
  stage.rig.start('run', 'gated.meow.toml', '--id', 'thumb');
  await page.goto(`${stage.ui.origin}/inbox`);
  const article = page.locator('article[data-status=open]').and(page.getByRole('article', { name: /thumb/ }));
  const approve = article.getByRole('button', { name: 'Approve' });
  await approve.scrollIntoViewIfNeeded();
  const box = await approve.boundingBox();
  expect(box?.height).toBeGreaterThanOrEqual(40);
  expect(box?.width).toBeGreaterThanOrEqual(40);
  await approve.tap();
  await stage.rig.decided('thumb', 'run-ended');
  expect(stage.rig.decisions('thumb')).toContain('step-done ask');
  await profile.close();
});

test('everything can be done with the keyboard alone', async () => {
  const { rig } = stage;
  const page = await stage.tab('/');
  const { keyboard } = page;
  const at = async (path: RegExp): Promise<void> => {
    await expect.poll(() => page.url()).toMatch(path);
  };

  // The list of keys, and finding.
  await keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
  await keyboard.press('/');
  await keyboard.type('works');
  await page.getByRole('row', { name: /^asks/ }).waitFor({ state: 'detached' });
  await keyboard.press('Escape');
  await page.getByRole('row', { name: /^asks/ }).waitFor();

  // A gate in the inbox: rejected, undone, approved.
  await keyboard.press('g');
  await keyboard.press('i');
  await at(/\/inbox$/);
  await page.locator('article.gate').waitFor();
  await keyboard.press('x');
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  await keyboard.press('u');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await keyboard.press('a');
  await rig.decided('asks', 'run-ended');
  expect(rig.decisions('asks')).toContain('step-done ask');

  // A run: its steps, views and records.
  await keyboard.press('g');
  await keyboard.press('f');
  await focusBy(page, 'j', /^works,/);
  await keyboard.press('Enter');
  await at(/\/p\/project\/r\/works\/timeline$/);
  await pictureOf(page, ({ rows }) => rows.length === 3);
  await focusBy(page, 'j', /^held shell/);
  await keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'held' }).waitFor();
  for (const [key, tab] of [
    ['w', 'Why'],
    ['l', 'Output'],
  ] as const) {
    await keyboard.press(key);
    await page.getByRole('tab', { name: tab, selected: true }).waitFor();
  }
  await focusBy(page, 'Tab', /^Output$/);
  await keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: 'Prompt', selected: true }).waitFor();
  await keyboard.press('Escape');
  await page.getByRole('complementary').waitFor({ state: 'detached' });
  for (const [key, view] of ['timeline', 'graph', 'story', 'agents', 'gates', 'cost'].map((name, index) => [
    String(index + 1),
    name,
  ])) {
    await keyboard.press(key ?? '');
    await at(new RegExp(`/${view}$`));
  }
  await keyboard.press('1');
  await keyboard.press('[');
  await at(/\?at=\d+$/);
  await keyboard.press(']');
  await at(/\/timeline$/);
  await focusBy(page, 'Tab', /^Record$/);
  await keyboard.press('Home');
  await at(/\?at=1$/);
  await keyboard.press('End');
  await at(/\/timeline$/);

  // Pause, resume, stop, retry.
  await press(page, 'Pause');
  await rig.decided('works', 'run-ending');
  rig.write('held.go', '');
  await press(page, 'Resume');
  await rig.decided('works', 'step-done last');
  rig.write('held.go', '');
  await page.goto(`${stage.ui.origin}${RUN}/timeline`);
  await press(page, 'Retry');
  await expect.poll(() => rig.decisions('wide').filter((each) => each === 'run-ended').length).toBe(2);
  rig.start('run', 'gated.meow.toml', '--id', 'halted');
  await rig.decided('halted', 'gate-asked ask');
  await page.goto(`${stage.ui.origin}/p/project/r/halted/timeline`);
  await press(page, 'Stop$');
  await press(page, 'Stop it');
  await rig.decided('halted', 'run-ended');

  // A start from the form.
  await keyboard.press('g');
  await keyboard.press('w');
  await at(/\/workflows$/);
  await focusBy(page, 'j', /^greet\.meow\.toml/);
  await focusBy(page, 'Tab', /^Start…/);
  await keyboard.press('Enter');
  await page.getByRole('form', { name: /greet/ }).waitFor();
  await focusBy(page, 'Tab', /^name$/);
  await keyboard.type('ann');
  await keyboard.press('Enter');
  await at(/\/p\/project\/r\/[^/]+\/timeline$/);
  await rig.appears('greeted');

  // The theme, and back.
  await press(page, 'Theme');
  await page.goBack();
  await at(/\/workflows/);
  await page.close();
});

/** Presses the key until the element with the focus has this name. */
async function focusBy(page: Page, key: string, name: RegExp): Promise<void> {
  const named = `(() => {
    const { activeElement: element } = document;
    return element?.getAttribute('aria-label') ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? '';
  })()`;
  await expect
    .poll(
      async () => {
        await page.keyboard.press(key);
        // A row has the focus in the next frame.
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
        return page.evaluate<string>(named);
      },
      { interval: 5 },
    )
    .toMatch(name);
}

/** Moves the focus to the button, and presses it. */
async function press(page: Page, name: string): Promise<void> {
  await page
    .getByRole('button', { name: new RegExp(`^${name}`) })
    .first()
    .waitFor();
  await focusBy(page, 'Tab', new RegExp(`^${name}`));
  await page.keyboard.press('Enter');
}

async function has(page: Page, text: RegExp): Promise<void> {
  await isLive(page);
  await expect.poll(() => page.evaluate<string>('document.body.innerText'), { message: page.url() }).toMatch(text);
}
