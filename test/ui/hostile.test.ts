// Text of steps, agents and authors that tries to be more than text: it is shown as text, nothing of it runs, no request leaves,
// and the layout holds.

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { randomFrom } from '../../src/base/random.ts';
import type { Program } from '../../src/ir/program.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import { fileStore } from '../../src/stores/files.ts';
import { hashProgram } from '../../src/stores/journal-lines.ts';
import { parseProgram } from '../kernel-rig/program-text.ts';
import { shellStep } from '../rig/rig.ts';
import { Stage } from '../rig/stage.ts';
import { CALM, live } from '../simulation/simulate.ts';
import { World } from '../simulation/world.ts';

const MARKUP = '<img src=x onerror="pwned=1"><script>pwned=1</script></script>';
/** Overrides that would show `gnp.exe` as `exe.png`, and hide the rest of a line. */
const BIDI = 'safe\u202egnp.exe\u202c\u2066isolated\u2069';
const ESCAPES = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\u001b]52;c;cHduZWQ=\u0007\u001b[2J\u001b[6n\u009b31m';
const LINKS =
  'javascript:pwned=1 data:text/html,<script>pwned=1</script> https://example.com/?a=<b> //evil.test/x file:///etc/passwd';
const ALL = [MARKUP, BIDI, ESCAPES, LINKS].join('\n');

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('all.txt', ALL);
  rig.write(
    'invalid.bin',
    Buffer.from([0xff, 0xfe, 0x61, 0xc3, 0x28, 0x00, 0xf0, 0x9f, 0x90, 0x62, 0x0a, 0xed, 0xa0, 0x80, 0x0a]),
  );
  const agent = `[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
adapter = "sim"
channel = "headless"
[[main.steps]]
id = "prompt"
executor = "agent"
agent = "worker"
prompt = ${JSON.stringify(`${MARKUP}\n${'long prompt '.repeat(5).concat('\n').repeat(18_000)}\nits last words`)}
needs = ["start"]
`;
  const env = `env = { TEXT = ${JSON.stringify([MARKUP, BIDI, LINKS].join('\n'))} }`;
  rig.write(
    'nasty.meow.toml',
    `[main]
description = ${JSON.stringify(`${MARKUP} ${BIDI}`)}
[main.variables]
tricky = { default = ${JSON.stringify(MARKUP)}, description = ${JSON.stringify(MARKUP)} }
${shellStep('line', "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo the end")}
${shellStep('text', 'cat all.txt all.txt')}
${shellStep('bytes', 'cat invalid.bin; echo the end')}
${shellStep('wrong', 'cat all.txt >&2; exit 1', 'on_error = "continue"')}
${agent}
${shellStep('ask', 'meow await-approval push --prompt "$TEXT"', `${env}\nneeds = ["line", "text", "bytes", "wrong", "prompt"]`)}`,
  );
  rig.start('run', 'nasty.meow.toml', '--id', 'nasty', '--meta', `note=${MARKUP}`);
  await rig.decided('nasty', 'gate-asked ask');
});
afterAll(() => stage[Symbol.asyncDispose]());

test('of a run and its steps is text in every view and tab, and nothing of it runs', async () => {
  const page = await opened();
  const of = '/p/project/r/nasty';
  await shows(page, '/', /gnp\.exe/);
  await shows(page, '/inbox', /javascript:pwned/);
  await shows(page, '/workflows', /nasty\.meow\.toml/);
  for (const view of ['timeline', 'story', 'gates', 'cost']) await shows(page, `${of}/${view}`, /nasty/);
  for (const step of ['text', 'wrong'])
    for (const tab of ['output', 'prompt', 'outputs', 'why', 'cost', 'record'])
      await shows(page, `${of}/timeline?step=${step}&tab=${tab}`, new RegExp(step));
  await shows(page, `${of}/timeline?step=text&tab=output`, /<script>pwned=1<\/script>/);
  const drawer = page.getByRole('complementary', { name: 'text' });
  await drawer.getByText('javascript:pwned=1').first().waitFor();
  // Colours are classes, and the other sequences have no effect.
  expect(await page.title()).not.toContain('title');
  const links = await page.evaluate<string[]>(
    `[...document.querySelectorAll('aside a[href], [role=complementary] a[href]')].map((a) => a.href)`,
  );
  expect(links.filter((href) => !/^https?:/.test(href))).toEqual([]);
  await shows(page, `${of}/timeline?step=bytes&tab=output`, /the end/);
  await page.close();
});

test('with bidirectional controls cannot turn what is around it', async () => {
  const page = await opened();
  for (const address of [
    '/',
    '/inbox',
    '/p/project/r/nasty/gates',
    '/p/project/r/nasty/timeline?step=text&tab=output',
  ]) {
    await shows(page, address, /gnp\.exe/);
    const text = await page.evaluate<string>('document.body.innerText');
    expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
  }
  await page.close();
});

test('of ten megabytes in one line, and a prompt of one megabyte, are cut and can be read on', async () => {
  const page = await opened();
  await shows(page, '/p/project/r/nasty/timeline?step=line&tab=output', /the end/);
  expect(await page.evaluate<number>('document.body.innerText.length')).toBeLessThan(2_000_000);
  await shows(page, '/p/project/r/nasty/timeline?step=prompt&tab=prompt', /long prompt long prompt/);
  const more = page.getByRole('button', { name: /^Show more/ });
  while (await more.isVisible()) await more.click();
  await page.getByText(/its last words/).waitFor();
  await isHarmless(page);
  await page.close();
});

test('in ids of steps and gates of a planted run is text in the rows, the drawer and the cards', async () => {
  const { rig } = stage;
  const names = {
    stepa: MARKUP,
    stepb: `${BIDI} ${ESCAPES}`,
    stepc: 'javascript:pwned=1',
    gated: '"><svg onload=pwned=1>',
  };
  const store = fileStore({ folder: rig.path('.meow/workflows') });
  const { program, records } = await planted(names, 'planted');
  const journal = await store.create('planted', program);
  await journal.append(records);
  await journal.close();
  const page = await opened();
  await shows(page, '/p/project/r/planted/timeline', /<img src=x/);
  const rows = await page.evaluate<string[]>(
    `[...document.querySelectorAll('[data-step]')].map((row) => row.dataset.step)`,
  );
  expect(rows.toSorted()).toEqual(Object.values(names).toSorted());
  for (const step of Object.values(names)) {
    await shows(page, `/p/project/r/planted/timeline?step=${encodeURIComponent(step)}`, /Output/);
    await page.getByRole('complementary').waitFor();
    for (const tab of ['why', 'record', 'outputs'])
      await shows(page, `/p/project/r/planted/timeline?step=${encodeURIComponent(step)}&tab=${tab}`, /Output/);
  }
  for (const view of ['story', 'gates', 'cost']) await shows(page, `/p/project/r/planted/${view}`, /planted/);
  await page.close();
});

test('in an address names nothing, and the page says so as text', async () => {
  const page = await opened();
  for (const path of [
    '/p/%3Cimg%20src=x%20onerror=pwned=1%3E/r/x/timeline',
    '/p/project/r/%3Cscript%3Epwned=1%3C%2Fscript%3E/timeline',
    '/%22%3E%3Cscript%3Epwned=1%3C%2Fscript%3E',
  ]) {
    const response = await page.goto(`${stage.ui.origin}${path}`);
    expect(response?.status()).toBe(404);
    await page
      .locator('main')
      .getByText(/There is no|no such|nothing/i)
      .first()
      .waitFor();
    await isHarmless(page);
  }
  await page.close();
});

/** A page that notes all requests. */
async function opened(): Promise<Page> {
  const page = await stage.tab('/');
  page.on('request', (request) => {
    const { origin, pathname } = new URL(request.url());
    const isKnown =
      /^\/(?:assets|data|do|p|inbox|workflows|terminal-frame)?(?:\/|$)/.test(pathname) || pathname.startsWith('/%22');
    if (origin !== stage.ui.origin || !isKnown) stage.mistakes.push(`request to ${request.url()}`);
  });
  page.on('dialog', (dialog) => {
    stage.mistakes.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return page;
}

/** Opens the address, in a wide and a narrow window, and waits until the text is there. */
async function shows(page: Page, address: string, text: RegExp): Promise<void> {
  await page.goto(`${stage.ui.origin}${address}`);
  await expect.poll(() => page.evaluate<string>('document.body.innerText'), { message: address }).toMatch(text);
  await isHarmless(page);
}

async function isHarmless(page: Page): Promise<void> {
  const found = await page.evaluate<string[]>(`[
    ...('pwned' in globalThis ? ['code ran'] : []),
    ...[...document.querySelectorAll('img, script:not([src]), iframe, object, embed, [onerror], [onload], [src=x]')].map((each) => each.outerHTML.slice(0, 100)),
    ...[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => !/^(\\/|https?:)/.test(href) || href.startsWith('//')),
  ]`);
  expect(found, page.url()).toEqual([]);
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    const [scroll = 0, client = 0] = await page.evaluate<number[]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    expect(scroll, `${page.url()} at ${width} px`).toBeLessThanOrEqual(client);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** A run of the simulator whose steps have these names, as somebody could write it into the folder of a project. */
async function planted(
  names: Readonly<Record<string, string>>,
  id: string,
): Promise<{ readonly program: Program; readonly records: readonly JournalRecord[] }> {
  const plain = parseProgram([
    'block main',
    'stepa',
    'stepb needs stepa',
    'stepc needs stepb',
    'gated gate gated needs stepa',
  ]);
  const world = new World(plain, randomFrom(1), CALM);
  await live(world, randomFrom(1), { meddle: 0, problems: [] });
  let text = JSON.stringify({ program: plain, records: world.records });
  for (const [name, hostile] of Object.entries(names))
    text = text.replaceAll(name, () => JSON.stringify(hostile).slice(1, -1));
  const { program } = JSON.parse(text) as { program: Program };
  const hash = hashProgram(program);
  const hashed = text
    .replaceAll('"programHash":"hash"', `"programHash":"${hash}"`)
    .replaceAll('"wf-sim"', JSON.stringify(id));
  return JSON.parse(hashed) as { program: Program; records: readonly JournalRecord[] };
}
