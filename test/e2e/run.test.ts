import { expect, test } from 'vitest';
import { Rig, shellStep, timeless, waitingStep } from '../rig/rig.ts';

test('steps run in the order of their needs, with one line for each change', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'build.meow.toml',
    `[main]
${shellStep('compile', 'echo object; echo compile >> ran', 'outputs = { file = { source = "stdout" } }')}
${shellStep('link', 'echo linked {{compile.outputs.file}}; echo link >> ran', 'needs = ["compile"]')}`,
  );

  const { stdout, stderr, code } = await rig.meow('run', 'build.meow.toml', '--id', 'first');

  expect(timeless(stdout)).toBe(`first
+T run started
+T compile started
+T compile done T
+T link    started
+T link    done T
done in T: 2 done
`);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(rig.read('ran')).toBe('compile\nlink\n');
  expect((await rig.meow('logs', 'first', 'link')).stdout).toBe('linked object\n');
  expect(rig.files('.meow')).toEqual([
    '.meow/workflows/',
    '.meow/workflows/first/',
    '.meow/workflows/first/journal.jsonl',
    '.meow/workflows/first/program.json',
    '.meow/workflows/first/steps/',
    ...['compile', 'link'].flatMap((step) =>
      ['status', 'stderr', 'stdout'].map((file) => `.meow/workflows/first/steps/${step}.1.${file}`),
    ),
    '.meow/workflows/first.yaml',
  ]);
});

test('without --id the id is random, and is the first thing printed', async () => {
  await using rig = await Rig.setup();
  rig.write('a.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  const ids = await Promise.all([rig.meow('run', 'a.meow.toml'), rig.meow('run', 'a.meow.toml')]);
  const [one, other] = ids.map(({ stdout }) => stdout.split('\n')[0]);
  expect(one).toMatch(/^wf-[a-z0-9]{8}$/);
  expect(other).toMatch(/^wf-[a-z0-9]{8}$/);
  expect(one).not.toBe(other);
});

test('--json prints an object for each decision and a last one for the end', async () => {
  await using rig = await Rig.setup();
  rig.write('a.meow.toml', `[main]\n${shellStep('a', 'exit 3')}`);
  const { stdout, code } = await rig.meow('run', 'a.meow.toml', '--json', '--id', 'j');
  const objects = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(objects[0]).toMatchObject({ run: 'j', seq: 1, kind: 'run-started' });
  expect(objects.map(({ kind }) => kind)).toEqual([
    ...rig.decisions('j').map((text) => text.split(' ')[0]),
    'run-ended',
  ]);
  expect(objects.at(-1)).toEqual({ kind: 'run-ended', id: 'j', status: 'failed', exit: 1 });
  expect(code).toBe(1);
});

test('variables have their declared types', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'vars.meow.toml',
    `[main]
[main.variables]
count = { type = "int", required = true, description = "How many" }
label = "it's {{workflow_id}}"
data = { type = "json", default = [] }
${shellStep('show', 'echo {{count}} {{label}} "$MEOW_VAR_DATA"')}`,
  );
  const given = ['--var', 'count=7', '--var-json', 'data={"a":[1]}', '--meta', 'who=me=you'];
  const { code } = await rig.meow('run', 'vars.meow.toml', '--id', 'v', ...given);
  expect(code).toBe(0);
  const { vars, meta } = await rig.status('v');
  expect(vars).toEqual({ count: 7, data: { a: [1] }, label: "it's v" });
  expect(meta).toEqual({ who: 'me=you' });
  expect((await rig.meow('logs', 'v', 'show')).stdout).toBe('7 it\'s v {"a":[1]}\n');
});

test('#WORKFLOW selects another workflow of the file, and a bare name is searched', async () => {
  await using rig = await Rig.setup();
  rig.write(
    '.meow/templates/two.meow.toml',
    `[main]\n${shellStep('a', 'echo main >> ran')}[other]\n${shellStep('b', 'echo other >> ran').replaceAll('main.', 'other.')}`,
  );
  expect((await rig.meow('run', 'two')).code).toBe(0);
  expect((await rig.meow('run', 'two#other')).code).toBe(0);
  rig.write('../home/.meow/workflows/mine.meow.toml', `[main]\n${shellStep('c', 'echo home >> ran')}`);
  expect((await rig.meow('run', 'mine')).code).toBe(0);
  expect(rig.read('ran')).toBe('main\nother\nhome\n');
});

test('a failed run exits with 1 and says what to type next', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'bad.meow.toml',
    `[main]\ncleanup_on_failure = "echo cleaned > cleaned"\n${shellStep('break', 'echo no such thing >&2; exit 4')}${shellStep('after', 'true', 'needs = ["break"]')}`,
  );
  const { stdout, stderr, code } = await rig.meow('run', 'bad.meow.toml', '--id', 'bad');
  expect(timeless(stdout).split('\n').slice(-4).join('\n')).toBe(
    `failed in T: 1 failed, 1 skipped
failed: break (exit 4): no such thing
next: meow logs bad break · meow resume bad
`,
  );
  expect(stderr).toBe('');
  expect(code).toBe(1);
  expect(rig.read('cleaned')).toBe('cleaned\n');
});

test('steps find this meow on their PATH, and know their run', async () => {
  await using rig = await Rig.setup();
  rig.write('env.meow.toml', `[main]\n${shellStep('ask', 'meow status $MEOW_WORKFLOW --json; echo $MEOW_STEP >&2')}`);
  expect((await rig.meow('run', 'env.meow.toml', '--id', 'e')).code).toBe(0);
  const { stdout, stderr } = await rig.meow('logs', 'e', 'ask');
  expect(JSON.parse(stdout)).toMatchObject({ id: 'e', status: 'running', steps: { ask: { status: 'running' } } });
  expect(stderr).toBe('ask\n');
});

test('several runs of one project run in parallel', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const runs = ['one', 'two', 'three'].map((id) => rig.start('run', 'w.meow.toml', '--id', id));
  await Promise.all(['one', 'two', 'three'].map((id) => rig.decided(id, 'step-started hold')));
  const { stdout } = await rig.meow('list', '--status', 'running', '--json');
  expect((JSON.parse(stdout) as { id: string }[]).map(({ id }) => id).toSorted()).toEqual(['one', 'three', 'two']);
  rig.write('hold.go', '');
  expect((await Promise.all(runs.map(({ ended }) => ended))).map(({ code }) => code)).toEqual([0, 0, 0]);
});

test('--dry-run prints the steps and leaves no trace', async () => {
  await using rig = await Rig.setup();
  rig.write('d.meow.toml', `[main]\n${shellStep('a', 'touch ran')}${shellStep('b', 'true', 'needs = ["a"]')}`);
  const { stdout, code } = await rig.meow('run', 'd.meow.toml', '--dry-run');
  expect(stdout).toBe(`d.meow.toml#main: 2 steps; nothing was started

a  (shell)
    touch ran

b  (shell; needs a)
    true
`);
  expect(code).toBe(0);
  expect(rig.files()).toEqual(['d.meow.toml']);
});

test('runs are stored in the nearest .meow above, and steps run in the working directory of meow', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/templates/where.meow.toml', `[main]\n${shellStep('pwd', 'pwd')}`);
  rig.write('deep/er/file', '');
  const { code } = await rig.meowIn(rig.path('deep/er'), 'run', 'where', '--id', 'w');
  expect(code).toBe(0);
  expect((await rig.meow('logs', 'w', 'pwd')).stdout).toBe(`${rig.path('deep/er')}\n`);
});

test('a closed stdout does not end the run', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n${waitingStep('hold')}${shellStep('after', 'echo after >> ran', 'needs = ["hold"]')}`,
  );
  const piped = rig.shell('{ meow run w.meow.toml --id q; echo $? > status; } | head -1');
  await rig.decided('q', 'step-started hold');
  rig.write('hold.go', '');
  await rig.decided('q', 'run-ended');
  expect((await piped).stdout).toBe('q\n');
  expect(rig.read('status')).toBe('0\n');
  expect((await rig.status('q')).counts).toMatchObject({ done: 2 });
});

test('a run whose state file would exceed its limit pauses, and continues when the limit is raised', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/config.toml', '[limits]\nmax_workflow_file_size = "2KB"\n');
  rig.write(
    'big.meow.toml',
    `[main]\n${shellStep('much', 'printf %03000d 1', 'outputs = { text = { source = "stdout" } }')}${waitingStep('hold', 'needs = ["much"]')}`,
  );
  const run = rig.start('run', 'big.meow.toml', '--id', 'big');
  await rig.decided('big', 'run-ending');
  rig.write('hold.go', '');
  const { stdout, code } = await run.ended;
  expect(code).toBe(3);
  expect(stdout).toContain(
    '(workflow file size exceeded: 2KB, max_workflow_file_size under [limits])\nnext: meow resume big\n',
  );
  expect(await rig.meow('stop', 'big')).toEqual({
    stdout: 'run big is paused; it has no running commands\n',
    stderr: '',
    code: 0,
  });
  rig.write('.meow/config.toml', '');
  expect((await rig.meow('resume', 'big')).code).toBe(0);
  expect((await rig.status('big')).steps['much']).toMatchObject({ status: 'done', attempt: 1 });
});
