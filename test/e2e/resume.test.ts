import { expect, test } from 'vitest';
import { type Live, Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

const CHAIN = `[main]\n${shellStep('first', 'echo first >> ran')}${waitingStep('hold', 'needs = ["first"]')}${shellStep('last', 'echo last >> ran', 'needs = ["hold"]')}`;

/** Runs until `hold` has started, then kills the engine. */
async function killedInTheMiddle(rig: Rig): Promise<void> {
  rig.write('w.meow.toml', CHAIN);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  await kill(run);
}

async function kill(run: Live): Promise<void> {
  run.kill('SIGKILL');
  await run.ended;
}

test('a command that is still running is found again, and no finished step runs again', async () => {
  await using rig = await Rig.setup();
  await killedInTheMiddle(rig);
  expect((await rig.meow('status', 'r')).stdout).toContain('  its engine is gone; resume it: meow resume r\n');

  const resumed = rig.start('resume', 'r');
  await rig.decided('r', 'run-resumed');
  rig.write('hold.go', '');
  const { stdout, code } = await resumed.ended;

  expect(code).toBe(0);
  expect(stdout.split('\n')[0]).toBe('r');
  expect(rig.read('ran')).toBe('first\nhold\nlast\n');
  expect(rig.read('hold.began').trimEnd().split('\n')).toHaveLength(1);
  expect((await rig.status('r')).steps['hold']).toMatchObject({ status: 'done', attempt: 1 });
});

test('a command that finished while no engine was running counts as finished', async () => {
  await using rig = await Rig.setup();
  await killedInTheMiddle(rig);
  rig.write('hold.go', '');
  await until(() => rig.processes().length === 0, 'the command to end');
  expect((await rig.meow('run', '--resume', 'r')).code).toBe(0);
  expect(rig.read('ran')).toBe('first\nhold\nlast\n');
  expect((await rig.status('r')).steps['hold']).toMatchObject({ status: 'done', attempt: 1 });
});

test('a lost command runs again, as a second attempt', async () => {
  await using rig = await Rig.setup();
  await killedInTheMiddle(rig);
  await rig.killAll();
  rig.write('hold.go', '');
  const { stdout, code } = await rig.meow('run', '--workflow', '.meow/workflows/r.yaml');
  expect(code).toBe(0);
  expect(stdout).toMatch(/hold +lost with an earlier engine — runs again\n/);
  expect(stdout).toMatch(/hold +started \(attempt 2\)\n/);
  expect(rig.read('ran')).toBe('first\nhold\nlast\n');
  expect((await rig.status('r')).steps['hold']).toMatchObject({ status: 'done', attempt: 2 });
});

test('resume retries failed steps, and with --only-pending it does not', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n${shellStep('good', 'echo good >> ran')}${shellStep('flaky', 'test -e fixed', 'needs = ["good"]')}`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'f')).code).toBe(1);
  expect((await rig.meow('resume', 'f', '--only-pending')).code).toBe(1);
  expect((await rig.status('f')).steps['flaky']).toMatchObject({ status: 'failed', attempt: 1 });
  rig.write('fixed', '');
  expect((await rig.meow('resume', 'f')).code).toBe(0);
  expect(rig.read('ran')).toBe('good\n');
  expect((await rig.status('f')).steps['flaky']).toMatchObject({ status: 'done', attempt: 2 });
});

test('killed after its last record, a run is done: nothing is resumed, and its state file is repaired', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'sleep 0.3; echo a >> ran')}`);
  expect((await rig.meowKilledAt('2:durable', 'run', 'w.meow.toml', '--id', 'd')).code).toBe(137);
  expect(rig.decisions('d')).toContain('run-ended');
  expect(rig.read('.meow/workflows/d.yaml')).toMatch(/^status: running$/m);
  // Commands that only inspect use the journal.
  expect((await rig.meow('list')).stdout).toMatch(/^d +done /m);
  expect(rig.read('.meow/workflows/d.yaml')).toMatch(/^status: running$/m);

  expect(await rig.meow('resume', 'd')).toEqual({
    stdout: '',
    stderr: 'meow: run d is done; there is nothing to resume\n  meow status d shows it\n',
    code: 2,
  });
  expect(rig.read('.meow/workflows/d.yaml')).toMatch(/^status: done$/m);
  expect(rig.exists('.meow/workflows/d.yaml.lock')).toBe(false);
  expect(rig.read('ran')).toBe('a\n');
});

test('a run that was killed while stopping continues when it is resumed', async () => {
  await using rig = await Rig.setup();
  const command = "trap '' TERM; echo $$ >> hold.began; while [ ! -e hold.go ]; do sleep 0.02; done; echo hold >> ran";
  rig.write(
    'w.meow.toml',
    `[main]\n${shellStep('hold', command)}${shellStep('last', 'echo last >> ran', 'needs = ["hold"]')}`,
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  run.kill('SIGINT');
  await rig.decided('r', 'steps-stopping');
  await kill(run);
  rig.write('hold.go', '');
  const { stdout, code } = await rig.meow('resume', 'r');
  expect(stdout).toContain(' run resumed; the stop is withdrawn');
  expect(code).toBe(0);
  expect((await rig.status('r')).status).toBe('done');
  expect(rig.read('ran').trimEnd().split('\n').at(-1)).toBe('last');
});

test('a run is not shown, resumed or stopped with the program of another', async () => {
  await using rig = await Rig.setup();
  for (const id of ['one', 'two']) {
    rig.write(`${id}.meow.toml`, `[main]\n${shellStep(id, 'test -e fixed')}`);
    expect((await rig.meow('run', `${id}.meow.toml`, '--id', id)).code).toBe(1);
  }
  const [one, two] = ['one', 'two'].map((id) => rig.read(`.meow/workflows/${id}/program.json`));
  rig.write('.meow/workflows/one/program.json', two ?? '');
  rig.write('.meow/workflows/two/program.json', one ?? '');
  rig.write('fixed', '');
  const state = rig.read('.meow/workflows/one.yaml');
  for (const args of [
    ['resume'],
    ['resume', '--detach'],
    ['status'],
    ['status', '--json'],
    ['show'],
    ['trace'],
    ['stop'],
    ['graph'],
  ]) {
    expect([args, await rig.meow(...args, 'one')]).toEqual([
      args,
      {
        stdout: '',
        stderr:
          'meow: program.json of run one is not the program that the run was started with\n' +
          '  restore the original program.json, or start the workflow again with meow run\n',
        code: 2,
      },
    ]);
  }
  expect(rig.read('.meow/workflows/one.yaml')).toBe(state);
  rig.write('.meow/workflows/one/program.json', one ?? '');
  expect((await rig.meow('resume', 'one')).code).toBe(0);
});

test('a run that cannot be resumed is refused with a reason', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'mine');
  await rig.appears('hold.began');
  const held = await rig.meow('resume', 'mine');
  expect(held.stderr.replace(/since \S+/, 'since T')).toBe(
    `meow: run mine is locked by another engine (pid ${rig.enginePid('mine')}, since T
  stop it: meow stop mine · watch it: meow status mine
`,
  );
  expect(held.code).toBe(2);
  rig.write('hold.go', '');
  await run.ended;

  const refusals: readonly (readonly [readonly string[], string])[] = [
    [['resume', 'mine'], 'meow: run mine is done; there is nothing to resume\n  meow status mine shows it\n'],
    [['resume', 'mien'], 'meow: there is no run mien\n  did you mean mine? all runs: meow list\n'],
    [['resume', '../mine'], 'meow: "../mine" is not a run id\n  a run id has 1 to 40 letters, digits, "-" and "_"\n'],
    [
      ['run', '--resume', 'mine', '--var', 'a=1'],
      'meow: a resumed run keeps its original workflow and flags: --var cannot be given\n  leave it out, or start a new run: meow run PATH\n',
    ],
    [
      ['run', 'w.meow.toml', '--id', 'mine'],
      'meow: run mine already exists\n  choose another --id, or look at that run: meow status mine\n',
    ],
    [['run', 'mine'], 'meow: mine is a run, and meow run starts a new one\n  resume it: meow resume mine\n'],
  ];
  for (const [args, stderr] of refusals) expect(await rig.meow(...args)).toEqual({ stdout: '', stderr, code: 2 });
});

const DEEP = `[main]
[[main.steps]]
id = "loop"
executor = "expand"
template = ".again"
[again]
[[again.steps]]
id = "more"
executor = "branch"
condition = "echo x >> rounds; test $(wc -l < rounds) -lt 9"
on_true = { template = ".again" }
`;

test('a run that has reached a limit continues with a higher one, from a flag or from the configuration', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', DEEP);
  rig.write('.meow/config.toml', '[limits]\nmax_expansion_depth = 2\n');
  const failed = await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(failed.code).toBe(1);
  expect(failed.stdout).toContain('max expansion depth exceeded: 2\n');
  expect(failed.stdout).toContain('meow resume r --max-depth N\n');
  expect((await rig.meow('resume', 'r')).stdout).toContain('max expansion depth exceeded: 2\n');
  expect((await rig.meow('resume', 'r', '--max-depth', '3')).stdout).toContain('max expansion depth exceeded: 3\n');
  rig.write('.meow/config.toml', '[limits]\nmax_expansion_depth = 20\n');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  const { limits } = JSON.parse((await rig.meow('show', 'r', '--json')).stdout) as { limits: object };
  expect(limits).toMatchObject({ expansion_depth: 20 });
});

test('a limit of steps is raised by --max-steps, for a new run, a resumed one, and a detached one', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', DEEP);
  rig.write('.meow/config.toml', '[limits]\nmax_total_steps = 3\n');
  const failed = await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(failed.stdout).toContain('max steps exceeded: 3\n');
  expect(failed.stdout).toContain('meow resume r --max-steps N\n');
  expect((await rig.meow('resume', 'r', '--max-steps', '20')).code).toBe(0);
  rig.write('rounds', '');
  expect((await rig.meow('run', 'w.meow.toml', '--max-steps', '20')).code).toBe(0);
  rig.write('rounds', '');
  expect((await rig.meow('run', '-d', 'w.meow.toml', '--max-steps', '20', '--id', 'd')).code).toBe(0);
  await rig.decided('d', 'run-ended');
  expect((await rig.status('d')).status).toBe('done');
});
