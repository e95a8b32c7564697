// What agents may do without asking: from the configuration or the command line to the command that starts them.

import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';

const FOX = `[adapter]
name = "fox"
[headless]
command = "echo {{prompt}}"
permissions = { ask = "asks", edits = "edits", all = "never asks" }
prompt = "argument"
reader = "text"
session_id = "none"
`;

const workflow = (adapter: string): string => `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
adapter = "${adapter}"
channel = "headless"
[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "it"
needs = ["start"]
`;

async function setup(adapter = 'fox'): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', FOX);
  rig.write('w.meow.toml', workflow(adapter));
  return rig;
}

describe('the arguments of the agent', () => {
  test.each([
    ['', [], 'never asks'],
    ['', ['--permissions', 'ask'], 'asks'],
    ['permissions = "edits"', [], 'edits'],
    ['permissions = "edits"', ['--permissions', 'all'], 'never asks'],
  ])('configuration %j and flags %j: it %s', async (line, flags, args) => {
    await using rig = await setup();
    rig.write('.meow/config.toml', `[agents]\n${line}\n`);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'r', ...flags)).toMatchObject({ code: 0, stderr: '' });
    const { steps } = await rig.status('r');
    expect(steps['work']?.outputs?.['result']).toBe(`it ${args}`);
  });

  test('stay the same after a resume, whatever the configuration says then', async () => {
    await using rig = await setup();
    const first = '[[main.steps]]\nid = "first"\nexecutor = "shell"\ncommand = "test -e ready"\n';
    rig.write('w.meow.toml', `${workflow('fox').replace('id = "start"', 'id = "start"\nneeds = ["first"]')}${first}`);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'r', '--permissions', 'ask')).code).toBe(1);
    rig.write('ready', '');
    rig.write('.meow/config.toml', '[agents]\npermissions = "all"\n');
    expect((await rig.meow('resume', 'r')).code).toBe(0);
    expect((await rig.status('r')).steps['work']?.outputs?.['result']).toBe('it asks');
  });
});

describe('nothing starts', () => {
  test('if the agent cannot ask', async () => {
    await using rig = await setup('codex');
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'r', '--permissions', 'edits');
    expect(code).toBe(1);
    expect(
      stderr,
    ).toBe(`meow: the step start cannot start its agent: codex agents cannot ask for permission (channel "headless", permissions "edits"): channel = "terminal" can
  Choose --permissions all, or another adapter or channel.
`);
    expect(rig.exists('.meow/workflows/r')).toBe(false);
  });

  test('with a word that means nothing', async () => {
    await using rig = await setup();
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--permissions', 'everything');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'meow: --permissions cannot be "everything"\n  choose one of ask, edits, all\n',
    });
  });
});

describe('on a terminal, a run says first that its agents ask nobody', () => {
  const NOTE = /agents of this run may do what you may, without asking/;

  test('unless somebody chose', async () => {
    await using rig = await setup();
    using terminal = new Terminal(rig, { columns: 120, rows: 30 });
    terminal.type('meow run w.meow.toml --id one');
    expect(await terminal.shows(/one .*done[^]*\$$/)).toMatch(NOTE);
    terminal.type('clear; meow run w.meow.toml --id two --permissions all');
    expect(await terminal.shows(/two .*done[^]*\$$/)).not.toMatch(NOTE);
  });

  test('but not if they are simulated', async () => {
    await using rig = await setup('sim');
    using terminal = new Terminal(rig, { columns: 120, rows: 30 });
    terminal.type('meow run w.meow.toml --id one');
    expect(await terminal.shows(/one .*done[^]*\$$/)).not.toMatch(NOTE);
  });
});
