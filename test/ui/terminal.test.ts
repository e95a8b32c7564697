// The terminal of an agent on the page: it is watched without touching tmux, and a person types only after they chose Type.

import { expect, test } from 'vitest';

import { Browser } from '../rig/browser.ts';
import { startFox, terminalOf } from '../rig/fox.ts';
import { openPage } from '../rig/open-page.ts';
import { Rig } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

test('hostile output is shown in its colours and changes nothing else, and keys of a person arrive once', async () => {
  await using rig = await Rig.setup();
  const hostile = [
    String.raw`printf '\033]0;stolen title\007\033]52;c;c3RvbGVu\007\033[31mreading\033[0m\n'`,
    String.raw`printf '\033]8;;javascript:alert(1)\007a link\033]8;;\007\n'`,
    // Each asks the terminal something, which answers as if a person typed.
    String.raw`stty -echo; printf '\033[c\033[>c\033[5n\033[6n\033]11;?\007\033P$q m\033\\asked\n'; stty echo`,
  ];
  await startFox(rig, 'r', hostile.join('\n'));
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await openPage(ui, browser, '/p/project/r/r/agents?agent=writer');
  const opened: string[] = [];
  page.on('popup', () => opened.push('popup'));
  page.on('dialog', () => opened.push('dialog'));
  const terminal = terminalOf(page, 'writer');
  await terminal.getByText('reading').waitFor();
  await terminal.getByText('asked').waitFor();
  const frame = page.frame({ name: 'Terminal of writer' });
  const colour = await frame?.evaluate<string>(
    `getComputedStyle([...document.querySelectorAll('span')].find(({ textContent }) => textContent === 'reading')).color`,
  );
  expect(colour).toBe('rgb(242, 154, 146)');
  await terminal.getByText('a link').click({ force: true });
  await page.getByRole('button', { name: 'Type', exact: true }).click();
  await page.keyboard.type('one');
  await page.keyboard.press('Enter');
  await terminal.getByText(/^heard: .*one/).waitFor();
  await page.keyboard.type('two é\n');
  await terminal.getByText('heard: two').waitFor();
  // tmux itself answers what it knows, once. The page adds nothing.
  const transcript = rig.read(rig.files('.meow/workflows/r/agents').find((file) => file.endsWith('transcript')) ?? '');
  const heard = /heard: (.*one)/.exec(transcript)?.[1] ?? '';
  expect(heard.match(/\^\[\[\?1;2c/g)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(heard.match(/\^\[\[\d+;\d+R/g)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(heard).not.toMatch(/rgb:/);
  expect(await page.title()).toBe('r · meow');
  expect(opened).toEqual([]);
});

test('a question of the agent ends the typing, and its answer can be typed after Type is chosen again', async () => {
  await using rig = await Rig.setup();
  const orders = `echo working; while [ ! -e ask ]; do sleep 0.05; done; printf 'May I? (y/n)\\n'; IFS= read -r yn; echo "got $yn"`;
  await startFox(rig, 'r', orders);
  await using ui = await Ui.start(rig);
  await using browser = await Browser.start();
  const page = await openPage(ui, browser, '/p/project/r/r/agents?agent=writer');
  const terminal = terminalOf(page, 'writer');
  const type = page.getByRole('button', { name: 'Type', exact: true });
  await type.click();
  rig.write('ask', '');
  await page.getByRole('article', { name: /^Dialog/ }).waitFor();
  await page.locator('[data-agent="writer"][data-status="waiting"]').waitFor();
  expect(await type.getAttribute('aria-pressed')).toBe('false');
  // As a page would send it that does not know of the question yet.
  const socket = ui.socket();
  const of = { project: 'project', run: 'r' };
  const bytes = Buffer.from('leaked\r').toString('base64');
  await socket.send({ kind: 'type-keys', of, agent: 'writer', bytes, intoDialog: false });
  expect((await socket.heard('keys-refused')).message).toContain('asks something');
  await terminal.getByText('May I?').waitFor();
  await type.click();
  await page.keyboard.type('yes');
  await page.keyboard.press('Enter');
  await terminal.getByText('got yes').waitFor();
});

test('without an engine the page types by itself, and with --read-only nobody does', async () => {
  await using rig = await Rig.setup();
  await startFox(rig, 'r', 'echo working');
  process.kill(rig.enginePid('r'), 'SIGKILL');
  await using browser = await Browser.start();
  {
    await using ui = await Ui.start(rig);
    const page = await openPage(ui, browser, '/p/project/r/r/agents?agent=writer');
    await terminalOf(page, 'writer').getByText('working').first().waitFor();
    await page.getByRole('button', { name: 'Type', exact: true }).click();
    await page.keyboard.type('still here');
    await page.keyboard.press('Enter');
    await terminalOf(page, 'writer').getByText('heard: still here').waitFor();
  }
  await using ui = await Ui.start(rig, '--read-only');
  const page = await openPage(ui, browser, '/p/project/r/r/agents?agent=writer');
  await terminalOf(page, 'writer').getByText('heard: still here').waitFor();
  expect(await page.getByRole('button', { name: 'Type', exact: true }).count()).toBe(0);
  const socket = ui.socket();
  const of = { project: 'project', run: 'r' };
  const bytes = Buffer.from('no\r').toString('base64');
  await socket.send({ kind: 'type-keys', of, agent: 'writer', bytes, intoDialog: false });
  await socket.send({ kind: 'ping' });
  await socket.heard('pong');
  const transcript = rig.files('.meow/workflows/r/agents').find((file) => file.endsWith('transcript')) ?? '';
  expect(rig.read(transcript)).not.toContain('heard: no');
});
