// The graph of a run: groups with counts, which open to what matters.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { openPage } from '../rig/open-page.ts';
import { Rig, shellStep } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

const EACH = `[main]
${shellStep('plan', 'true')}
[[main.steps]]
id = "each"
executor = "foreach"
items = ${JSON.stringify(JSON.stringify(Array.from({ length: 60 }, (_, index) => index)))}
item_var = "n"
template = ".one"
needs = ["plan"]
variables = { n = "{{n}}" }
${shellStep('last', 'true', 'needs = ["each"]')}
[one]
[one.variables]
n = { required = true }
[[one.steps]]
id = "fix"
executor = "shell"
command = "test {{n}} -ne 7"
on_error = "continue"
`;

test('a group is one node with its counts, and opens to what failed and to the chosen step', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', EACH);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await openPage(ui, browser, '/p/project/r/r/graph');
  const graph = page.getByRole('group', { name: 'Graph' });
  const group = graph.locator('[data-group="each"]');
  await group.waitFor();
  const nodes = (): Promise<readonly (string | null)[]> =>
    graph.locator('[data-step]').evaluateAll((all) => all.map((each) => each.getAttribute('data-step')));
  expect(await nodes()).toEqual(['plan', 'each', 'last']);
  const button = group.getByRole('button', { name: 'each foreach 59 done 1 failed' });
  expect(await group.locator('.mini i').count()).toBe(60);
  await button.focus();
  await page.keyboard.press('Enter');
  await graph.locator('[data-step="each.7.fix"][data-status="failed"]').waitFor();
  expect(await nodes()).toEqual(['plan', 'each', 'each.7.fix', 'last']);
  expect(await button.getAttribute('aria-expanded')).toBe('true');
  await page.goto(`${ui.origin}/p/project/r/r/graph?step=each.30.fix`);
  await graph.locator('[data-step="each.30.fix"] [aria-current="true"]').waitFor();
  await page.getByRole('complementary', { name: 'each.30.fix' }).waitFor();
});
