// `meow top` in a real terminal: what it shows at each width, what its keys do, and that it leaves the terminal as it was.

import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { Rig, shellStep, waitingStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';
import { Ui } from '../rig/ui.ts';

const GATED = `[main]\n${shellStep('ask', 'meow await-approval push --prompt "Push to main?" && touch pushed')}`;
const HELD = `[main]\n${shellStep('build', 'echo built')}${waitingStep('test', 'needs = ["build"]')}`;

/** A run that waits for a person, one that works, and one that failed. */
async function fleet(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('gated.meow.toml', GATED);
  rig.write('held.meow.toml', HELD);
  rig.write('wrong.meow.toml', `[main]\n${shellStep('deploy', 'echo 502 from /health >&2; exit 1')}`);
  expect((await rig.meow('run', 'wrong.meow.toml', '--id', 'deploy-7')).code).toBe(1);
  for (const [file, id] of [
    ['held', 'nightly'],
    ['gated', 'pair'],
  ] as const)
    expect((await rig.meow('run', `${file}.meow.toml`, '--id', id, '--detach')).code).toBe(0);
  await rig.decided('pair', 'gate-asked ask');
  await rig.appears('test.began');
  return rig;
}

function open(rig: Rig, columns = 100, rows = 24): Terminal {
  const terminal = new Terminal(rig, { columns, rows });
  terminal.type('meow top; echo status $?');
  return terminal;
}

test.each([200, 80, 60])('at %i columns every run has a row, and nothing wraps', async (columns) => {
  await using rig = await fleet();
  using terminal = open(rig, columns, 20);
  const screen = await terminal.shows(/nightly/);
  const lines = screen.split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
  expect(lines[0]).toMatch(/^meow {2}all projects +1 needs you · 3 runs/);
  // Also the last column is shown.
  if (columns > 72) expect(lines[0]).toMatch(/\d\d:\d\d:\d\d$/);
  expect(screen).toMatch(/Push to main\? +[\d.]+m?s$/m);
  expect(screen).toMatch(/◆ push +pair +Push to main\?/);
  expect(screen).toMatch(/^›◆ pair .*\n ✗ deploy-7 .*\n ● nightly/m);
  if (columns > 60) expect(screen).toMatch(/nightly .* test is running/);
  expect(lines.at(-1)).toMatch(/^ \? keys {2}q quit .*approve/);
});

test('a change of the size draws everything anew, and new runs appear by themselves', async () => {
  await using rig = await fleet();
  using terminal = open(rig);
  await terminal.shows(/nightly/);
  for (const columns of [60, 150]) {
    terminal.resize(columns, 18);
    const screen = await terminal.shows(columns === 60 ? /^(?![^]*why)[^]*quit/ : /filter/);
    expect(screen.match(/^.{1,2} nightly/gm)).toHaveLength(1);
    expect(screen.split('\n')).toHaveLength(18);
  }
  rig.write('quick.meow.toml', `[main]\n${shellStep('one', 'true')}`);
  await rig.meow('run', 'quick.meow.toml', '--id', 'later');
  await terminal.shows(/✓ later/);
});

test('a gate is approved by `a` and `y`; any other key cancels, and a paste decides nothing', async () => {
  await using rig = await fleet();
  using terminal = open(rig);
  await terminal.shows(/›◆ pair/);
  terminal.press('a');
  await terminal.shows(/approve\? y {2}push of pair: Push to main\?/);
  terminal.press('n');
  await terminal.shows(/nothing was decided/);
  terminal.press('a');
  await terminal.shows(/approve\? y/);
  terminal.paste('y');
  await terminal.shows(/nothing was decided/);
  terminal.paste('ay');
  terminal.press('j');
  terminal.press('a');
  await terminal.shows(/run deploy-7 has no open gate/);
  expect(rig.decisions('pair').filter((decision) => decision.startsWith('gate-decided'))).toEqual([]);
  terminal.press('k');
  terminal.press('a');
  await terminal.shows(/approve\? y/);
  terminal.press('y');
  await terminal.shows(new RegExp(`pair push: approved by ${userInfo().username}`));
  await rig.appears('pushed');
  await terminal.shows(/✓ pair/);
});

test('a gate of a run without an engine is rejected by `x` and `y`, and takes effect when it is resumed', async () => {
  await using rig = await fleet();
  process.kill(rig.enginePid('pair'), 'SIGKILL');
  using terminal = open(rig, 140);
  await terminal.shows(/push +pair +Push to main\? \(no engine\)/);
  terminal.press('x');
  await terminal.shows(/reject\? y/);
  terminal.press('y');
  await terminal.shows(/rejected; run pair has no engine, so this takes effect when you run: meow resume pair/);
  await terminal.shows(/^(?![^]*Needs you)/);
  expect(rig.decisions('pair').filter((decision) => decision.startsWith('gate-decided'))).toEqual([]);
  terminal.press('q');
  expect((await rig.meow('resume', 'pair')).code).toBe(1);
  expect(rig.exists('pushed')).toBe(false);
});

test('a question is answered with a text', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', `echo '<ask next="END.sh">Which colour?</ask>'`);
  rig.write('flow/END.sh', "echo '<result>over</result>'");
  const live = rig.start('run', 'flow', '--id', 'asks');
  await rig.decided('asks', 'gate-asked main.2.ask');
  using terminal = open(rig);
  await terminal.shows(/main\.2\.ask +asks +Which colour\?/);
  terminal.press('a');
  await terminal.shows(/answer to main\.2\.ask: _/);
  terminal.paste('the\nblue');
  for (const key of ['Space', 'o', 'n', 'BSpace', 'n', 'e', 'q']) terminal.press(key);
  terminal.press('BSpace');
  await terminal.shows(/answer to main\.2\.ask: the blue one_/);
  terminal.press('Enter');
  await live.ended;
  await terminal.shows(/asks main\.2\.ask: answered by .*: the blue one/);
  expect(rig.read('.meow/workflows/asks/journal.jsonl')).toContain('"answer":"the blue one"');
});

test('the keys open a run, its reasons and its output, filter, and go back, as the help says', async () => {
  await using rig = await fleet();
  using terminal = open(rig);
  await terminal.shows(/›◆ pair/);
  terminal.press('?');
  await terminal.shows(/Keys of meow top\n[^]*approve or allow/);
  terminal.press('Escape');
  await terminal.shows(/›◆ pair/);
  terminal.press('G');
  await terminal.shows(/›● nightly/);
  terminal.press('Enter');
  await terminal.shows(/^nightly held\.meow\.toml#main {2}running .*\n✓ build .*\n● test/);
  terminal.press('w');
  await terminal.shows(/^test is running\.\n/);
  terminal.press('x');
  await terminal.shows(/^nightly held/);
  rig.write('test.go', '');
  await terminal.shows(/^nightly .* done [^]*✓ test/);
  terminal.press('Escape');
  await terminal.shows(/✓ nightly/);
  terminal.press('/');
  for (const key of 'DEP') terminal.press(key);
  await terminal.shows(/filter: DEP_/);
  terminal.press('Enter');
  await terminal.shows(/^(?![^]*nightly)[^]*›✗ deploy-7/);
  terminal.press('Escape');
  await terminal.shows(/✓ nightly/);
});

test('`o` opens the page of the run, if one is served', async () => {
  await using rig = await fleet();
  rig.write('browser', '#!/bin/sh\ncp "$1" opened.part && mv opened.part opened');
  using terminal = new Terminal(rig, { columns: 100, rows: 24 });
  terminal.type(`BROWSER='sh ${rig.path('browser')}' meow top`);
  await terminal.shows(/›◆ pair/);
  terminal.press('o');
  await terminal.shows(/no page is served now/);
  await using ui = await Ui.start(rig);
  terminal.press('o');
  await terminal.shows(/opened in the browser/);
  await rig.appears('opened');
  expect(rig.read('opened')).toContain(`${ui.origin}/p/project/r/pair/timeline#token=${ui.token}`);
});

test('`l` pages the output of the step that failed, without obeying it, and `t` attaches to an agent', async () => {
  await using rig = await Rig.setup();
  const adapter = ['[adapter]', 'name = "fox"', '[spawn]', `command = "sh -c 'echo fox-is-here; exec cat'"`];
  rig.write('.meow/adapters/fox/adapter.toml', adapter.join('\n'));
  rig.write('w.meow.toml', `[main]\n${shellStep('says', "printf 'a\\033[2Jb\\n\\033]0;t\\007end\\n'; exit 1")}`);
  const spawn = '[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "fox"\n';
  rig.write('agent.meow.toml', `[main]\n${spawn}${waitingStep('hold', 'needs = ["start"]')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'talks');
  await rig.meow('run', 'agent.meow.toml', '--id', 'works', '--detach');
  await rig.appears('hold.began');
  using terminal = new Terminal(rig, { columns: 100, rows: 20 });
  terminal.type(`PAGER='cat -A; read line </dev/tty #' meow top`);
  await terminal.shows(/›✗ talks/);
  terminal.press('l');
  await terminal.shows(/^ab\$\nend\$/m);
  terminal.press('Enter');
  await terminal.shows(/›✗ talks/);
  terminal.press('j');
  terminal.press('t');
  await terminal.shows(/^fox-is-here/);
  terminal.press('C-b');
  terminal.press('d');
  await terminal.shows(/›● works/);
});

test('quitting, suspending and killing leave the terminal as it was', async () => {
  await using rig = await fleet();
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('set -m; stty -a > before; clear; echo above');
  const isClean = (): boolean => {
    terminal.type('stty -a > after; echo checked; cmp before after && echo same');
    return !terminal.isAlternate() && terminal.cursorIsShown();
  };
  for (const [leave, status] of [
    [() => terminal.press('q'), 0],
    [() => terminal.press('C-c'), 130],
    [() => kill(rig, 'SIGTERM'), 143],
    [() => kill(rig, 'SIGHUP'), 129],
  ] as const) {
    terminal.type('clear; echo above; meow top; echo status $?');
    await terminal.shows(/quit/);
    expect([terminal.isAlternate(), terminal.cursorIsShown()]).toEqual([true, false]);
    await leave();
    await terminal.shows(new RegExp(`^above\\n[^]*status ${status}\\n`));
    expect(isClean()).toBe(true);
    await terminal.shows(/checked\nsame/);
  }
  terminal.type('clear; echo above; meow top');
  await terminal.shows(/quit/);
  terminal.press('C-z');
  await terminal.shows(/^above\n[^]*Stopped[^]*\$$/);
  expect(isClean()).toBe(true);
  await terminal.shows(/checked\nsame/);
  terminal.type('clear; fg');
  await terminal.shows(/^meow [^]*›◆ pair[^]*quit/);
  terminal.press('j');
  await terminal.shows(/›✗ deploy-7/);
  terminal.press('q');
  await terminal.shows(/^(?![^]*quit)[^]*\$$/);
  expect(isClean()).toBe(true);
  await terminal.shows(/checked\nsame/);
});

test('without a terminal it prints the runs once', async () => {
  await using rig = await fleet();
  const { stdout, code } = await rig.meow('top');
  expect(code).toBe(0);
  expect(stdout).toMatch(/ ◆ push +pair +Push to main\?[^]* ◆ pair [^]* ✗ deploy-7 [^]* ● nightly /);
});

/** The interactive `meow top` of this rig. */
async function kill(rig: Rig, signal: NodeJS.Signals): Promise<void> {
  const { stdout } = await rig.shell('pgrep -x -f "node .*/meow top"');
  process.kill(Number(stdout), signal);
}
