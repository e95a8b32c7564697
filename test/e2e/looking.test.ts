import { chmodSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { type Result, Rig, shellStep, timeless, waitingStep } from '../rig/rig.ts';

const WORKFLOW = `[main]
${shellStep('make', 'echo one; echo two >&2; echo made', 'outputs = { text = { source = "stdout" } }')}
${shellStep('flaky', 'echo try $MEOW_ATTEMPT; test $MEOW_ATTEMPT = 2', 'retry = { max_attempts = 2, delay = "1ms" }')}
${shellStep('break', 'echo broken >&2; exit 3', 'needs = ["make", "flaky"]')}
${shellStep('after', 'true', 'needs = ["break"]')}`;

test('every view works for a run that has ended', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  await rig.meow('run', 'w.meow.toml', '--id', 'look');

  const status = await rig.status('look');
  expect(Object.keys(status)).toEqual(
    'id language source status started_at ended_at forked_from result error vars meta steps agents gates counts cost pause warnings workspace engine interrupted'.split(
      ' ',
    ),
  );
  expect(status).toMatchObject({
    id: 'look',
    status: 'failed',
    error: { type: 'command_failed', step: 'break' },
    counts: { pending: 0, running: 0, done: 2, failed: 1, skipped: 1 },
    engine: null,
  });
  expect(
    timeless((await rig.meow('status')).stdout),
  ).toBe(`look w.meow.toml#main  failed  T  2 done, 1 failed, 1 skipped
  step break failed: the command exited with status 3
✓ make   T
✓ flaky  T  attempt 2
✗ break  T  the command exited with status 3 — broken
○ after
failed: break (exit 3): broken
next: meow logs look break · meow resume look
`);

  expect(await rig.meow('logs', 'look', 'make')).toEqual({ stdout: 'one\nmade\n', stderr: 'two\n', code: 0 });
  expect((await rig.meow('logs', 'lo', 'flaky')).stdout).toBe('try 2\n');
  expect((await rig.meow('logs', 'look', 'flaky', '--attempt', '1')).stdout).toBe('try 1\n');
  expect((await rig.meow('logs', 'look', 'make', '--follow')).stdout).toBe('one\nmade\n');
  expect(await rig.meow('logs', 'look', 'flaky', '--attempt', '3')).toEqual({
    stdout: '',
    stderr: 'meow: step flaky has no attempt 3: the latest is 2\n  meow logs look flaky\n',
    code: 2,
  });
  expect(await rig.meow('logs', 'look', 'after')).toEqual({
    stdout: '',
    stderr: 'meow: step after of run look has not started\n  see why: meow why look after\n',
    code: 2,
  });
  expect(await rig.meow('logs', 'look', 'braek')).toEqual({
    stdout: '',
    stderr: 'meow: run look has no step braek\n  did you mean break? its steps: meow show look --steps\n',
    code: 2,
  });

  expect((await rig.meow('why', 'look', 'after')).stdout).toMatch(/^after is skipped\.\n {2}.*break/);
  const trace = (await rig.meow('trace', 'look')).stdout;
  expect(trace).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z run started\n/);
  expect(trace).toMatch(/ run failed after .*\n$/);
  expect((await rig.meow('trace', 'look', '--follow')).stdout).toBe(trace);
  const decisions = (await rig.meow('trace', 'look', '--json')).stdout.trimEnd().split('\n');
  expect(decisions.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual(
    rig.decisions('look').map((text) => text.split(' ')[0]),
  );

  expect((await rig.meow('show', 'look')).stdout).toMatch(/^look\n[^]*status: +failed\n/);
  expect((await rig.meow('show', 'look', '--steps')).stdout).toMatch(/\nmake\b[^]*\nafter\b/);
  expect(JSON.parse((await rig.meow('show', 'look', 'flaky', '--json')).stdout)).toMatchObject({
    id: 'flaky',
    attempts: [
      { attempt: 1, status: 'failed' },
      { attempt: 2, status: 'done' },
    ],
  });
});

test('graph shows a file and a run', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n[main.variables]\nx = { required = true }\n${shellStep('a', 'echo {{x}}')}${shellStep('b', 'true', 'needs = ["a"]')}`,
  );
  await rig.meow('run', 'w.meow.toml', '--var', 'x=1', '--id', 'g');
  expect((await rig.meow('graph', 'w.meow.toml')).stdout).toMatch(/b +shell +after a\n$/);
  expect((await rig.meow('graph', 'w.meow.toml', '--format', 'dot')).stdout).toMatch(/^digraph \{\n[^]*\n\}\n$/);
  expect((await rig.meow('graph', 'g', '--format', 'mermaid')).stdout).toMatch(/^flowchart TD\n[^]*:::done\n[^]* --> /);
  const drawn = JSON.parse((await rig.meow('graph', 'g', '--format', 'json')).stdout) as { edges: unknown[] };
  expect(drawn.edges).toEqual([{ from: 'a', to: 'b', kind: 'need', label: null }]);
  expect(rig.files().filter((file) => file.endsWith('.yaml'))).toEqual(['.meow/workflows/g.yaml']);
});

test('list shows the newest run first, and a run without its engine as interrupted', async () => {
  await using rig = await Rig.setup();
  rig.write('ok.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  expect(await rig.meow('list')).toEqual({
    stdout: '',
    stderr: 'there are no runs here yet; start with: meow run FILE (an example: meow init)\n',
    code: 0,
  });
  expect((await rig.meow('list', '--json')).stdout).toBe('[]\n');
  await rig.meow('run', 'ok.meow.toml', '--id', 'old');
  const run = rig.start('run', 'w.meow.toml', '--id', 'new');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  expect(timeless((await rig.meow('list')).stdout).replaceAll(/ +/g, ' ')).toBe(`ID STATUS STARTED TOOK WORKFLOW
new interrupted T ago T w.meow.toml#main (resume it: meow resume new)
old done T ago T ok.meow.toml#main
`);
  const [first, second] = JSON.parse((await rig.meow('list', '--json')).stdout) as object[];
  expect(first).toMatchObject({ id: 'new', status: 'running', ended_at: null, engine: null, interrupted: true });
  expect(second).toMatchObject({ id: 'old', language: 'meow', source: 'ok.meow.toml#main', status: 'done' });
  // The state file is a copy: without it the journal has the same information.
  rmSync(rig.path('.meow/workflows/old.yaml'));
  const listed = JSON.parse((await rig.meow('list', '--status', 'done', '--json')).stdout) as object[];
  expect(listed).toEqual([second]);
});

test('list reads only both ends of a journal of an ended run, and trusts the journal', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}${shellStep('b', 'test -e fixed', 'needs = ["a"]')}`);
  const row = async (): Promise<object | undefined> =>
    (JSON.parse((await rig.meow('list', '--json')).stdout) as object[])[0];
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  const failed = rig.read('.meow/workflows/r.yaml');
  expect(await row()).toMatchObject({ id: 'r', language: 'meow', source: 'w.meow.toml#main', status: 'failed' });
  rig.write('fixed', '');
  await rig.meow('resume', 'r');
  const done = await row();
  expect(done).toMatchObject({ status: 'done', started_at: /^started_at: (.*)$/m.exec(failed)?.[1] });

  // A state file from an earlier end is not used.
  const yaml = rig.read('.meow/workflows/r.yaml');
  rig.write('.meow/workflows/r.yaml', failed);
  expect(await row()).toEqual(done);
  rig.write('.meow/workflows/r.yaml', yaml);

  // The middle of the journal is not read, so damage there is not noticed.
  const journal = rig.read('.meow/workflows/r/journal.jsonl');
  rig.write('.meow/workflows/r/journal.jsonl', journal.replace('"run-requested"', '"run-requestet"'));
  expect((await rig.meow('status', 'r')).stderr).toContain('is damaged');
  expect(await row()).toEqual(done);
});

test('a run that ended more than once has the logs of each cleanup', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\ncleanup_on_failure = "echo cleaned $MEOW_ATTEMPT"\n${shellStep('a', 'test -e fixed')}`,
  );
  rig.write('ok.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'c');
  await rig.meow('resume', 'c');
  expect((await rig.meow('logs', 'c', 'cleanup')).stdout).toBe('cleaned 2\n');
  expect((await rig.meow('logs', 'c', 'cleanup', '--follow')).stdout).toBe('cleaned 2\n');
  expect((await rig.meow('logs', 'c', 'cleanup', '--attempt', '1')).stdout).toBe('cleaned 1\n');
  expect(await rig.meow('logs', 'c', 'cleanup', '--attempt', '3')).toEqual({
    stdout: '',
    stderr: 'meow: the cleanup has no attempt 3: the latest is 2\n  meow logs c @cleanup\n',
    code: 2,
  });
  await rig.meow('run', 'ok.meow.toml', '--id', 'without');
  expect(await rig.meow('logs', 'without', 'cleanup')).toEqual({
    stdout: '',
    stderr:
      'meow: the cleanup of run without has not started\n  it runs when the run has ended, where the workflow has one: meow show without\n',
    code: 2,
  });
});

test('help lists what exists', async () => {
  await using rig = await Rig.setup();
  const graph = (await rig.meow('help', 'graph')).stdout;
  expect(graph).toContain('text, mermaid, dot, svg or json');
  expect((await rig.meow('help', 'run')).stdout.replaceAll(/\s+/g, ' ')).toContain(
    '--no-wait pause with exit code 3 when the run waits for a person',
  );
});

test('follow prints changes as they happen', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n${shellStep('talk', 'echo begun; echo $$ > talk.began; while [ ! -e talk.go ]; do sleep 0.02; done; echo over')}`,
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'f');
  await rig.appears('talk.began');
  const logs = rig.start('logs', 'f', 'talk', '--follow');
  const trace = rig.start('trace', 'f', '-f');
  const status = rig.start('status', 'f', '--watch', '--json');
  await Promise.all([logs.line(/begun/), trace.line(/talk started/), status.line(/"running"/)]);
  rig.write('talk.go', '');
  expect((await run.ended).code).toBe(0);
  expect((await logs.ended).stdout).toBe('begun\nover\n');
  expect((await trace.ended).stdout).toMatch(/talk done .*\n.*run done after .*\n$/);
  const last = (await status.ended).stdout.trimEnd().split('\n').at(-1) ?? '';
  expect(JSON.parse(last)).toMatchObject({ id: 'f', status: 'done' });
});

const branch = '[[main.steps]]\nid = "ask"\nexecutor = "branch"\ncondition = "meow await-approval ask"\n';

test('an unreadable run does not block the others', async (context) => {
  await using rig = await Rig.setup();
  // Permissions do not restrict root, so root switches to the user nobody.
  const isRoot = process.getuid?.() === 0;
  const meow = (args: string): Promise<Result> =>
    rig.shell(`${isRoot ? 'setpriv --reuid 65534 --clear-groups ' : ''}meow ${args}`);
  chmodSync(dirname(rig.folder), 0o755);
  if ((await meow('--version')).code !== 0) context.skip('nobody else may read this program');
  rig.write('gate.meow.toml', `[main]\n${branch}`);
  await rig.meow('run', 'gate.meow.toml', '--no-wait', '--id', 'good');
  await rig.meow('run', 'gate.meow.toml', '--no-wait', '--id', 'mute');
  await rig.meow('run', 'gate.meow.toml', '--no-wait', '--id', 'shut');
  await rig.shell('chmod -R a+rX .meow; chmod 000 .meow/workflows/mute/journal.jsonl; chmod 000 .meow/workflows/shut*');

  const listed = await meow('list');
  expect(listed).toMatchObject({ stderr: '', code: 0 });
  expect(listed.stdout.split('\n').map((line) => line.split(/ +/).slice(0, 2).join(' '))).toEqual([
    'ID STATUS',
    'mute unreadable',
    'good paused',
    'shut unreadable',
    '',
  ]);
  const rows = JSON.parse((await meow('list --json')).stdout) as { id: string; status: string | null }[];
  expect(rows.map(({ id, status }) => [id, status])).toEqual([
    ['mute', null],
    ['good', 'paused'],
    ['shut', null],
  ]);
  expect((await meow('status goo')).code).toBe(0);
  for (const command of ['gates --json', 'agents --json']) {
    const { stdout, stderr, code } = await meow(command);
    expect(JSON.parse(stdout)).toHaveLength(command.startsWith('gates') ? 1 : 0);
    expect(stderr).toBe(
      'run mute is unreadable (see why: meow status mute)\nrun shut is unreadable (see why: meow status shut)\n',
    );
    expect(code).toBe(0);
  }
  const asked =
    'status ID · status ID --watch · show ID · trace ID --follow · graph ID · resume ID · stop ID · approve ID ask';
  for (const command of asked.split(' · ')) {
    for (const id of ['mute', 'shut']) {
      const { stderr, code } = await meow(command.replace('ID', id));
      expect(stderr).toMatch(
        /^meow: cannot (read|open) the run \w+: permission denied \(EACCES: .*\n {2}see who owns it: ls -la .*\n$/,
      );
      expect(code).toBe(2);
    }
  }
  // For the rig, which cleans up.
  await rig.shell('chmod -R u+rwX .meow');
});

test('an emptied journal is not a new run', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  rig.write('.meow/workflows/r/journal.jsonl', '');
  const { stderr } = await rig.meow('resume', 'r');
  expect(stderr).toMatch(
    /^meow: the journal of run r is empty or missing, although the run had begun; .*\n {2}restore it: /,
  );
  for (const command of ['status', 'show', 'trace', 'graph', 'stop']) {
    expect(await rig.meow(command, 'r')).toEqual({ stdout: '', stderr, code: 2 });
  }
  expect((await rig.meow('list')).stdout).toMatch(/^r +unreadable +- +- +\(see why: meow status r\)$/m);
});

test('output that cannot be written because the disk is full is reported, and is a failure', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo hello; echo oops >&2')}`);
  const full = 'meow: cannot write the output: the disk is full (ENOSPC)';
  expect(await rig.shell('meow run w.meow.toml --id r > /dev/full')).toEqual({
    stdout: '',
    stderr: `${full}; the run continues\n`,
    code: 0,
  });
  expect((await rig.status('r')).status).toBe('done');
  const asked =
    'logs r a · logs r a --follow · status r · status r --json · list · validate w.meow.toml · graph r · help';
  for (const command of [...asked.split(' · '), 'run w.meow.toml --dry-run']) {
    expect(await rig.shell(`meow ${command} > /dev/full`)).toEqual({ stdout: '', stderr: `${full}\n`, code: 1 });
  }
  expect(await rig.shell('meow logs r a 2> /dev/full')).toEqual({ stdout: 'hello\n', stderr: '', code: 1 });
  // A process limit accepts only a part of the output, like a disk that is nearly full.
  rig.write('long.meow.toml', `[main]\n${shellStep('a', 'seq 100000')}`);
  await rig.meow('run', 'long.meow.toml', '--id', 'long');
  const part = await rig.shell('trap "" XFSZ; ulimit -f 100; meow logs long a > part');
  expect(part.stderr).toContain('cannot write the output: the file would become larger than allowed');
  expect(part.code).toBe(1);
  expect((await rig.shell('meow logs long a | head -n 1; meow status r | true')).stderr).toBe('');
});
