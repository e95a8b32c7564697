// The system has no file descriptor left when the engine starts a helper: it says so, waits, and goes on.

import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ConductorRig, work } from '../fixtures/conductor/rig.ts';
import { Live, MEOW, Rig, shellStep, waitingStep } from '../rig/rig.ts';

const PRELOADED = fileURLToPath(new URL('../fixtures/shortage/no-files-left.cjs', import.meta.url));

/** `helper`: a pattern for its command line. */
function runShort(rig: Rig, helper: string, file: string): Live {
  const environment = { ...rig.environment, NODE_OPTIONS: `--require=${PRELOADED}`, SHORT_FOR: helper };
  const limited = ['-c', 'ulimit -n 128; exec "$0" "$@"', MEOW, 'run', file, '--id', 'r'];
  return new Live('/bin/sh', limited, rig.folder, environment);
}

async function outlasts(rig: Rig, run: Live): Promise<void> {
  const { stderr, code } = await run.ended;
  expect(code).toBe(0);
  // What it could do without, it says by its name.
  expect(stderr).toMatch(/^(?:.*EMFILE.*\n)*$/);
  expect(stderr).not.toContain('bug in meow');
  expect(rig.exists('short')).toBe(true);
}

describe('a run without a free file descriptor waits, and goes on when there are some', () => {
  test('while it starts the helper of many commands', async () => {
    await using rig = await Rig.setup();
    const ids = Array.from({ length: 10 }, (_, index) => `s${index}`);
    rig.write('w.meow.toml', `[main]\n${ids.map((id) => shellStep(id, `echo ${id} >> ran`)).join('')}`);
    await outlasts(rig, runShort(rig, 'perl -e', 'w.meow.toml'));
    expect(rig.read('ran').trimEnd().split('\n').toSorted()).toEqual(ids);
  });

  test('while it locks the run', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo a >> ran')}`);
    await outlasts(rig, runShort(rig, '^flock', 'w.meow.toml'));
    expect(rig.read('ran')).toBe('a\n');
  });

  test('while it starts an agent in a terminal', async () => {
    await using rig = await Rig.setup();
    const command = `while :; do printf 'fox> '; read -r line || exit 0; case $line in *'meow done'*) meow done;; esac; done`;
    rig.write(
      '.meow/adapters/fox/adapter.toml',
      `[adapter]\nname = "fox"\n[spawn]\ncommand = "sh ./fox"\n[ready]\npatterns = ['^fox>']\n`,
    );
    rig.write('fox', command);
    rig.write('w.meow.toml', AGENT_STEPS);
    await outlasts(rig, runShort(rig, 'new-session', 'w.meow.toml'));
  });

  test('while it starts a turn of an agent', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/adapters/fox/adapter.toml', '[adapter]\nname = "fox"\n[headless]\ncommand = "cat"\n');
    rig.write('w.meow.toml', AGENT_STEPS);
    await outlasts(rig, runShort(rig, 'command.*eval', 'w.meow.toml'));
  });

  test.for(['rev-parse', 'worktree.*add', 'write-tree'])('while it asks git (%s)', async (command) => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    made.agents({ work: 'echo ok > done.txt; echo done' });
    made.workflow({ work: work('end'), end: { opcode: 'STOP', verdict: 'success' } });
    await outlasts(rig, runShort(rig, `git .*${command}`, 'w.yaml'));
  });
});

describe('with a limit on open files that is too low', () => {
  const limited = (rig: Rig, files: number): Live =>
    new Live(
      '/bin/sh',
      ['-c', `ulimit -n ${files}; exec "$0" "$@"`, MEOW, 'run', 'w.meow.toml', '--id', 'r'],
      rig.folder,
      rig.environment,
    );
  const WAITS =
    'meow: waiting for file descriptors: this process has too many open files (EMFILE); raise the limit: ulimit -n\n';

  test('a run that cannot be locked says so, and is refused after a while', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo a >> ran')}`);
    const { code, stderr } = await limited(rig, 22).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `${WAITS}meow: cannot create the run r: this process has too many open files (EMFILE: flock)\n  raise the limit: ulimit -n\n`,
    });
    expect(rig.exists('ran')).toBe(false);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  });

  // With the fewest, Node starts at all; with more, the run is locked, and its command waits.
  test.for([22, 24, 26])('of %s, a run that waits says so, and SIGTERM ends it', async (files) => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo a >> ran')}`);
    const run = limited(rig, files);
    await run.line(/waiting for file descriptors/);
    run.kill('SIGTERM');
    const { code, stderr } = await run.ended;
    expect(code).toBe(143);
    expect(stderr).not.toContain('bug in meow');
    expect(stderr.split(WAITS)).toHaveLength(2);
    expect(rig.exists('ran')).toBe(false);
    expect(await rig.left()).toEqual([]);
  });
});

const AGENT_STEPS = `[main]
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

test('a shortage that meow cannot wait for is named, and holds the run', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'fault.cjs',
    `const { existsSync, openSync, watch } = require('node:fs');
     if (process.argv[1].endsWith('/meow'))
       watch('.', function () { if (existsSync('take')) for (this.close(); ; ) openSync('/dev/null', 'r'); }).unref();`,
  );
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const environment = { ...rig.environment, NODE_OPTIONS: `--require=${rig.path('fault.cjs')}` };
  const limited = ['-c', 'ulimit -n 128; exec "$0" "$@"', MEOW, 'run', 'w.meow.toml', '--id', 'r'];
  const run = new Live('/bin/sh', limited, rig.folder, environment);
  await rig.appears('hold.began');
  rig.write('take', '');
  const { stderr, code } = await run.ended;
  expect(
    stderr,
  ).toBe(`meow: run r is held: this process has too many open files (EMFILE: too many open files, open '/dev/null')
  raise the limit: ulimit -n
  its journal is complete, and nothing more is started; resume it: meow resume r
`);
  expect(code).toBe(3);
  rig.write('hold.go', '');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
});
