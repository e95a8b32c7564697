// Gates, dialogs and questions in a browser, with real runs behind the page: who decides, when it is sent, and what all others
// see of it.

import { userInfo } from 'node:os';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { isAlive, type Live, type Rig, shellStep, until } from '../rig/rig.ts';
import { Stage } from '../rig/stage.ts';
import { Terminal } from '../rig/terminal.ts';

const USER = userInfo().username;
const GATED = `[main]\n${shellStep('ask', 'meow await-approval push --prompt "Push to main?" && touch $MEOW_WORKFLOW.pushed')}`;

/** Asks in its terminal before it does what it was prompted to do. */
const FOX = `#!/bin/sh
while :; do
  printf 'fox> '
  IFS= read -r line || exit 0
  case $line in *'meow done'*) ;; *) continue ;; esac
  echo heard; while ! grep -q accepted .meow/workflows/asks/journal.jsonl; do sleep 0.05; done
  printf 'rm -rf build\\nMay I run this? (y/n) '
  IFS= read -r answer
  echo "$answer" > answered
  clear
  meow done
done
`;
const FOX_ADAPTER = `[adapter]
name = "fox"
[spawn]
command = "sh ./fox"
[ready]
patterns = ['^fox>']
[[dialogs]]
name = "permission"
pattern = '^May I run this\\? \\(y/n\\)'
approve = ["y", "Enter"]
reject = ["n", "Enter"]
`;
const FOX_RUN = `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
adapter = "fox"
[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Go."
needs = ["start"]
[[main.steps]]
id = "end"
executor = "kill"
agent = "worker"
needs = ["work"]
`;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
  const { rig } = stage;
  rig.write('gated.meow.toml', GATED);
  rig.write('flow/START.sh', `echo '<ask next="END.sh">Which colour?</ask>'`);
  rig.write('flow/END.sh', "echo '<result>over</result>'");
  rig.write('fox', FOX);
  rig.write('.meow/adapters/fox/adapter.toml', FOX_ADAPTER);
  rig.write('fox.meow.toml', FOX_RUN);
});
afterAll(() => stage[Symbol.asyncDispose]());

test('a gate appears on a page that was open before the run existed; `a` approves it, and a second tab and top show who', async () => {
  const { rig } = stage;
  using terminal = new Terminal(rig, { columns: 120, rows: 24 });
  terminal.type('meow top');
  const page = await stage.tab('/');
  const other = await stage.tab('/inbox');
  await noteDecided(page);
  await noteDecided(other);
  const run = rig.start('run', 'gated.meow.toml', '--id', 'first');
  const article = gate(page, 'first', 'push');
  await article.waitFor();
  await terminal.shows(/push +first/);
  expect(await page.title()).toMatch(/^\(1\)/);
  await gate(other, 'first', 'push').waitFor();
  await page.keyboard.press('a');
  await article.getByRole('button', { name: 'Undo' }).waitFor();
  expect(verdicts(rig, 'first')).toEqual([]);
  expect((await run.ended).code).toBe(0);
  expect(rig.exists('first.pushed')).toBe(true);
  await article.waitFor({ state: 'detached' });
  await terminal.shows(new RegExp(`first push: approved by ${USER}`));
  await other.goto(`${stage.ui.origin}/p/project/r/first/gates`);
  await other
    .locator('article[data-status=approved]')
    .filter({ hasText: `by ${USER}` })
    .waitFor();
  terminal.press('q');
  const at = verdicts(rig, 'first')[0]?.at ?? Infinity;
  for (const seen of [await firstDecided(page), await firstDecided(other)])
    if (seen !== null) expect(seen).toBeGreaterThanOrEqual(at);
  await page.close();
  await other.close();
});

test('a decision is sent after three seconds, and Undo takes it back until then', async () => {
  const { rig } = stage;
  const run = rig.start('run', 'gated.meow.toml', '--id', 'undone');
  const page = await stage.tab('/inbox');
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/do/decide')) sent.push(request.postData() ?? '');
  });
  const article = gate(page, 'undone', 'push');
  await article.getByRole('button', { name: 'Reject' }).click();
  await article.getByRole('button', { name: 'Undo' }).click();
  await article.getByRole('button', { name: 'Approve' }).waitFor();
  const began = performance.now();
  await article.getByRole('textbox', { name: 'Note' }).fill('fine');
  await article.getByRole('button', { name: 'Approve' }).click();
  await until(() => sent.length > 0, 'the decision to be sent');
  expect(performance.now() - began).toBeGreaterThanOrEqual(2_900);
  expect(sent.map((body) => JSON.parse(body) as unknown)).toMatchObject([
    { run: 'undone', approved: true, notes: 'fine' },
  ]);
  expect((await run.ended).code).toBe(0);
  await page.close();
});

test('a page that is closed within the three seconds sends its decision at once', async () => {
  const { rig } = stage;
  const run = rig.start('run', 'gated.meow.toml', '--id', 'closed');
  const page = await stage.tab('/');
  await gate(page, 'closed', 'push').getByRole('button', { name: 'Approve' }).click();
  await page.close({ runBeforeUnload: false });
  expect((await run.ended).code).toBe(0);
  expect(verdicts(rig, 'closed')).toMatchObject([{ approved: true, by: USER }]);
});

test('a decision about a run without an engine is kept in its inbox, and applied when it is resumed', async () => {
  const { rig } = stage;
  const run = rig.start('run', 'gated.meow.toml', '--id', 'dead');
  await rig.decided('dead', 'gate-asked ask');
  await killEngine(rig, run, 'dead');
  const page = await stage.tab('/');
  const article = gate(page, 'dead', 'push');
  await article.getByText('takes effect when the run is resumed').waitFor();
  await article.getByRole('button', { name: 'Approve' }).click();
  await article.getByText(/^sent: .*meow resume dead/).waitFor();
  expect(verdicts(rig, 'dead')).toEqual([]);
  expect(await page.locator('[data-status=approved]').count()).toBe(0);
  await page.goto(`${stage.ui.origin}/p/project/r/dead/gates`);
  await page.getByRole('button', { name: 'Resume' }).click();
  await page
    .locator('article[data-status=approved]')
    .filter({ hasText: `by ${USER}` })
    .waitFor();
  await rig.decided('dead', 'run-ended');
  expect(rig.exists('dead.pushed')).toBe(true);
  await page.close();
});

test("an agent's dialog is shown with its screen, and a click presses the key in the agent's terminal", async () => {
  const { rig } = stage;
  const page = await stage.tab('/');
  const path = `PATH=${process.cwd()}/bin:$PATH`;
  const run = rig.shell(`${path} meow run fox.meow.toml --id asks`);
  const article = page.getByRole('article', { name: /asks/ });
  await article.getByText('May I run this? (y/n)').waitFor();
  expect(await article.innerText()).toContain('rm -rf build');
  await article.getByRole('button', { name: 'Allow' }).click();
  expect(await run).toMatchObject({ code: 0 });
  expect(rig.read('answered')).toBe('y\n');
  await page.close();
});

test('a question is answered with a text, in which no key is a command', async () => {
  const { rig } = stage;
  const run = rig.start('run', 'flow', '--id', 'colour');
  const page = await stage.tab('/inbox');
  const article = page.getByRole('article', { name: /colour/ });
  await article.getByText('Which colour?').waitFor();
  await page.keyboard.press('a');
  const field = article.getByRole('textbox', { name: 'Answer' });
  await field.waitFor();
  await page.keyboard.type('a jade x');
  expect(await field.inputValue()).toBe('a jade x');
  await article.getByRole('button', { name: 'Send' }).click();
  await run.ended;
  expect(verdicts(rig, 'colour')).toMatchObject([{ approved: true, answer: 'a jade x', by: USER }]);
  await page.goto(`${stage.ui.origin}/p/project/r/colour/gates`);
  await page.locator('article[data-status=answered]').filter({ hasText: 'a jade x' }).waitFor();
  await page.close();
});

test('with several gates `a` decides only the one that has the focus', async () => {
  const { rig } = stage;
  const runs = ['one', 'two'].map((id) => rig.start('run', 'gated.meow.toml', '--id', id));
  const page = await stage.tab('/');
  await gate(page, 'one', 'push').waitFor();
  await gate(page, 'two', 'push').waitFor();
  await page.keyboard.press('a');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  const rejected = await page.evaluate<string>('document.activeElement.getAttribute("aria-label")');
  const [id, other] = /\bone\b/.test(rejected) ? ['one', 'two'] : ['two', 'one'];
  await rig.decided(id, 'run-ended');
  expect(verdicts(rig, id)).toMatchObject([{ approved: false }]);
  expect(verdicts(rig, other)).toEqual([]);
  await gate(page, other, 'push').getByRole('button', { name: 'Approve' }).click();
  await Promise.all(runs.map((run) => run.ended));
  await page.close();
});

function gate(page: Page, run: string, id: string): Locator {
  return page.locator('article[data-status=open]').and(page.getByRole('article', { name: named(run, id) }));
}

function named(run: string, id: string): RegExp {
  return new RegExp(`(?=.*\\b${id}\\b)(?=.*\\b${run}\\b)`);
}

async function killEngine(rig: Rig, run: Live, id: string): Promise<void> {
  const engine = rig.enginePid(id);
  process.kill(engine, 'SIGKILL');
  await run.ended;
  await until(() => !isAlive(engine), 'the engine to die');
}

interface Verdict {
  readonly at: number;
  readonly approved: boolean;
  readonly by: string;
  readonly answer: string | null;
}

/** Of the journal. */
function verdicts(rig: Rig, run: string): readonly Verdict[] {
  interface Line {
    readonly at: number;
    readonly decisions: readonly { readonly kind: string; readonly verdict?: Omit<Verdict, 'at'> }[];
  }
  return rig
    .read(`.meow/workflows/${run}/journal.jsonl`)
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line)
    .flatMap(({ at, decisions }) =>
      decisions.flatMap(({ kind, verdict }) =>
        kind === 'gate-decided' && verdict !== undefined ? [{ at, ...verdict }] : [],
      ),
    );
}

/** Remembers when an element first said that something is decided. */
async function noteDecided(page: Page): Promise<void> {
  await page.evaluate(`{
    globalThis.firstDecided = null;
    const look = () => {
      if (document.querySelector('[data-status=approved], [data-status=rejected], [data-status=answered]') !== null)
        globalThis.firstDecided ??= Date.now();
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
  }`);
}

function firstDecided(page: Page): Promise<number | null> {
  return page.evaluate<number | null>('globalThis.firstDecided ?? null');
}
