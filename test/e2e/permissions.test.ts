// What agents may do without asking: from the configuration or the command line to the command that starts them.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConductorRig, work } from '../fixtures/conductor/rig.ts';
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

const STATE = '---\nallowed_transitions:\n  - { tag: result }\n---\nMake it.\n';

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

  test.each([
    ['aider', 'edits', 'only permissions = "all" is possible'],
    ['aider', 'ask', 'only permissions = "all" is possible'],
    ['opencode', 'edits', 'channel = "acp" can'],
    ['gemini', 'ask', 'channel = "terminal" can'],
  ])('if a headless %s agent cannot %s', async (adapter, permissions, cure) => {
    await using rig = await setup(adapter);
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'r', '--permissions', permissions);
    const reason = `${adapter} agents cannot ask for permission (channel "headless", permissions "${permissions}"): ${cure}`;
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `meow: the step start cannot start its agent: ${reason}\n  Choose --permissions all, or another adapter or channel.\n`,
    });
  });

  describe.each(['aider', 'codex', 'gemini', 'opencode'])(
    'if a turn of %s cannot ask; no channel is recommended',
    (name) => {
      const refused = (step: string): object => {
        const reason = `${name} agents cannot ask for permission (channel "headless", permissions "edits")`;
        return {
          code: 1,
          stderr: `meow: the step ${step} cannot start its agent: ${reason}: only permissions = "all" is possible
  Choose --permissions all, or another adapter.
`,
        };
      };

      test('in a state', async () => {
        await using rig = await setup();
        rig.write('ray/START.md', STATE);
        expect(await rig.meow('run', 'ray', '--adapter', name, '--permissions', 'edits')).toMatchObject(
          refused('START'),
        );
      });

      test('in an opcode', async () => {
        await using made = await ConductorRig.setup();
        made.workflow({ fix: work('good', { agent: name }), good: { opcode: 'STOP', verdict: 'success' } });
        expect(await made.run('--permissions', 'edits')).toMatchObject(refused('fix'));
      });
    },
  );

  test('with a word that means nothing', async () => {
    await using rig = await setup();
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--permissions', 'everything');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'meow: --permissions cannot be "everything"\n  choose one of ask, edits, all\n',
    });
  });
});

/** Asks for permission as Claude Code does without a terminal: by a tool of meow, and each time with another id. */
const ASKING = `
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
readFileSync(0);
appendFileSync('turns', 'one\\n');
const server = spawn('meow', ['mcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
const send = (id, method, params) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n');
const command = 'touch made';
const ask = (id) =>
  send(id, 'tools/call', {
    name: 'permission',
    arguments: { tool_name: 'Bash', input: { command }, tool_use_id: randomUUID() },
  });
const times = Number(process.argv[2]);
let asked = 1;
let rest = '';
server.stdout.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) {
    const { id, result } = JSON.parse(line);
    if (id === 1) { ask(2); continue; }
    const said = result.content[0].text;
    appendFileSync('told', said + '\\n');
    if (!result.isError && JSON.parse(said).behavior === 'allow') writeFileSync('made', '');
    if (asked++ < times) { ask(id + 1); continue; }
    console.log('<result>finished</result>');
    server.stdin.end();
  }
});
send(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'fox', version: '1' } });
`;

describe('a permission that nobody has decided', () => {
  async function asking(times = 1): Promise<Rig> {
    const rig = await setup();
    rig.write('ask.mjs', ASKING);
    rig.write('.meow/adapters/fox/adapter.toml', FOX.replace('echo {{prompt}}', `node ask.mjs ${times}; : {{prompt}}`));
    rig.write('ray/START.md', STATE);
    return rig;
  }

  test.each([
    ['w.meow.toml', []],
    ['ray', ['--adapter', 'fox']],
  ])('pauses %s with --no-wait, and is decided before the run resumes', async (workflow, flags) => {
    await using rig = await asking();
    const run = ['run', workflow, '--id', 'r', '--permissions', 'ask', ...flags];
    const { code, stdout } = await rig.meow(...run, '--no-wait');
    expect({ code, stdout }).toEqual({
      code: 3,
      stdout: expect.stringMatching(/waiting for a person: gate permission-/),
    });
    expect(rig.exists('made')).toBe(false);
    const approved = await rig.meow('approve', 'r');
    expect(approved).toMatchObject({ code: 0, stderr: '' });
    expect((await rig.meow('resume', 'r')).code).toBe(0);
    expect(rig.exists('made')).toBe(true);
    expect(rig.read('turns')).toBe('one\none\n');
    expect(rig.read('told').trimEnd().split('\n').at(-1)).toBe(
      '{"behavior":"allow","updatedInput":{"command":"touch made"}}',
    );
  });

  test('is not the permission for a second call of the same kind', async () => {
    await using rig = await asking(2);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'r', '--permissions', 'ask', '--no-wait')).code).toBe(3);
    expect((await rig.meow('approve', 'r')).code).toBe(0);
    expect((await rig.meow('resume', 'r', '--no-wait')).code).toBe(3);
    expect((await rig.meow('reject', 'r', '--reason', 'once is enough')).code).toBe(0);
    expect((await rig.meow('resume', 'r')).code).toBe(0);
    expect(rig.read('told')).toContain('Reason: once is enough');
  });
});

describe('on a terminal, a run says first that its agents ask nobody', () => {
  const NOTE = /agents of this run may do what you may, without asking/;

  test('once in a project, unless somebody chose', async () => {
    await using rig = await setup();
    using terminal = new Terminal(rig, { columns: 120, rows: 30 });
    terminal.type('meow run w.meow.toml --id zero --permissions all');
    expect(await terminal.shows(/zero .*done[^]*\$$/)).not.toMatch(NOTE);
    terminal.type('clear; meow run w.meow.toml --id one');
    expect(await terminal.shows(/one .*done[^]*\$$/)).toMatch(NOTE);
    terminal.type('clear; meow run w.meow.toml --id two');
    expect(await terminal.shows(/two .*done[^]*\$$/)).not.toMatch(NOTE);
  });

  test('even if it cannot record that, and then again', async () => {
    await using rig = await setup();
    writeFileSync(join(rig.home, '.meow'), 'a file');
    using terminal = new Terminal(rig, { columns: 120, rows: 30 });
    for (const id of ['one', 'two']) {
      terminal.type(`clear; meow run w.meow.toml --id ${id}`);
      expect(await terminal.shows(new RegExp(`${id} .*done[^]*\\$$`))).toMatch(NOTE);
    }
  });

  test('but not if they are simulated', async () => {
    await using rig = await setup('sim');
    using terminal = new Terminal(rig, { columns: 120, rows: 30 });
    terminal.type('meow run w.meow.toml --id one');
    expect(await terminal.shows(/one .*done[^]*\$$/)).not.toMatch(NOTE);
  });
});
