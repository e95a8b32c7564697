import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

test('every step knows how to contact its run, and only its user can', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'env | grep ^MEOW_ | sort > env; umask > umask')}`);
  const previous = process.umask(0);
  try {
    const run = rig.start('run', 'w.meow.toml', '--id', 'i');
    process.umask(previous);
    await run.ended;
  } finally {
    process.umask(previous);
  }
  const folder = rig.path('.meow/workflows/i');
  const env = rig.read('env');
  expect(env).toContain(`MEOW_ORCH_SOCK=${folder}/sock\n`);
  expect(env).toContain(`MEOW_INBOX=${folder}/inbox\n`);
  expect(env).toContain('MEOW_STEP=a\n');
  expect(env).toContain('MEOW_WORKFLOW=i\n');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('step-status prints a status from the engine or from the journal', async () => {
  await using rig = await Rig.setup();
  const script = [
    'meow step-status a > seen; meow step-status b --is pending >> seen; echo $? >> seen',
    'meow step-status a --is-not running >> seen; echo $? >> seen',
    'meow step-status nowhere >> seen 2>> said; echo $? >> seen; env > env',
  ].join('; ');
  rig.write('w.meow.toml', `[main]\n${shellStep('a', script)}${shellStep('b', 'true', 'needs = ["a"]')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'i');
  expect(rig.read('seen')).toBe('running\npending\n0\nrunning\n1\n2\n');
  expect(rig.read('said')).toBe('meow: run i has no step nowhere\n');
  const folder = rig.path('.meow/workflows/i');
  const inStep = { MEOW_INBOX: `${folder}/inbox`, MEOW_ORCH_SOCK: `${folder}/sock`, MEOW_WORKFLOW: 'i' };
  expect(await rig.meowWith(inStep, 'step-status', 'b')).toMatchObject({ stdout: 'done\n', code: 0 });
  expect(await rig.meowWith(inStep, 'step-status', 'x')).toMatchObject({ code: 2 });
});

test('a step that is not an agent step accepts no report', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'meow done --output x=1 2> said; echo $? > status')}`);
  await rig.meow('run', 'w.meow.toml');
  expect(rig.read('said')).toBe('Error: step a is not an agent step\n');
  expect(rig.read('status')).toBe('1\n');
});

test('without the socket, all messages go through the inbox', async () => {
  await using rig = await Rig.setup();
  const script = [
    'export MEOW_ORCH_SOCK=/nowhere/sock',
    'meow event tick --data n=1; meow await-event tick --timeout 5m > heard',
    'meow step-status a >> heard; meow done 2>> heard; meow await-approval g; echo $? >> heard',
  ].join('; ');
  rig.write('w.meow.toml', `[main]\n${shellStep('a', script)}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'i');
  await rig.decided('i', 'gate-asked a');
  await rig.meow('reject', 'i', 'g');
  expect((await run.ended).code).toBe(0);
  expect(rig.read('heard')).toBe('n=1\nrunning\nError: step a is not an agent step\n1\n');
});

test('steps with long ids can communicate too', async () => {
  await using rig = await Rig.setup();
  const talk = [
    'meow event tick --data n=1; meow await-event tick --timeout 5m > heard',
    'meow step-status work >> heard; meow step-status a-round-with-quite-a-long-name --is-not done >> heard',
    'printf %s "$MEOW_STEP" > id',
  ].join('; ');
  rig.write(
    'w.meow.toml',
    `
[main]
[[main.steps]]
id = "a-round-with-quite-a-long-name"
executor = "branch"
condition = "echo >> rounds; test $(wc -l < rounds) -lt 60"
on_true = { template = ".main" }
on_false = { template = ".bottom" }

[bottom]
internal = true
[[bottom.steps]]
id = "spawn"
executor = "spawn"
agent = "worker"
adapter = "sim"
[[bottom.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Do it."
needs = ["spawn"]
outputs = { said = { required = true } }
${shellStep('talk', talk, 'needs = ["work"]').replaceAll('main.', 'bottom.')}`,
  );
  const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'i');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(rig.read('id').length).toBeGreaterThan(1_800);
  expect(rig.read('heard')).toBe('n=1\ndone\nrunning\n');
});

test('a socket is placed elsewhere if the path of its run is too long', async () => {
  await using rig = await Rig.setup();
  const folder = rig.path('d'.repeat(110));
  mkdirSync(`${folder}/.meow`, { recursive: true });
  rig.write(
    `${'d'.repeat(110)}/w.meow.toml`,
    `[main]\n${shellStep('a', 'echo $MEOW_ORCH_SOCK > place; meow step-status a > seen')}`,
  );
  expect((await rig.meowIn(folder, 'run', 'w.meow.toml', '--id', 'i')).code).toBe(0);
  expect(rig.read(`${'d'.repeat(110)}/place`)).toMatch(/\/meow-[a-z0-9]{8}\/sock\n$/);
  expect(rig.read(`${'d'.repeat(110)}/seen`)).toBe('running\n');
});

test('an open connection of a finished step does not delay the end of the run', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'i');
  await rig.appears('hold.began');
  const connections = Array.from({ length: 300 }, () => {
    const connection = createConnection(rig.path('.meow/workflows/i/sock'));
    connection.on('error', () => {}); // Refused or disconnected: both are expected.
    connection.write('{"type":"await_event","event_type":"never"}\n{"type":"half');
    return connection;
  });
  rig.write('hold.go', '');
  expect((await run.ended).code).toBe(0);
  for (const connection of connections) connection.destroy();
});

test('random bytes on the socket and invalid files in the inbox do not harm a run', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n${waitingStep('hold')}${shellStep('after', 'meow step-status hold > seen', 'needs = ["hold"]')}`,
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'i');
  await rig.appears('hold.began');
  const folder = '.meow/workflows/i';
  for (let n = 0; n < 50; n++) {
    const bytes = Buffer.from(Array.from({ length: 2_000 }, () => Math.floor(Math.random() * 256)));
    const connection = createConnection(rig.path(`${folder}/sock`));
    connection.on('error', () => {}); // Disconnected, as expected.
    connection.write(bytes);
    rig.write(`${folder}/inbox/${n}.tell`, bytes);
    rig.write(`${folder}/inbox/${n}.event`, bytes);
  }
  const huge = createConnection(rig.path(`${folder}/sock`));
  huge.on('error', () => {}); // Disconnected, as expected.
  huge.write(Buffer.alloc(5_000_000, '['));
  await until(() => huge.destroyed, 'the long line to be refused');
  rig.write('hold.go', '');
  const { code } = await run.ended;
  expect(code).toBe(0);
  expect(rig.read('seen')).toBe('done\n');
  expect((await rig.meow('status', 'i')).stdout).toContain(
    '32 refused messages are in .meow/workflows/i/inbox/refused\n',
  );
});

test('a hostile client cannot stop the engine or exhaust its memory', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'i');
  await rig.appears('hold.began');
  const path = rig.path('.meow/workflows/i/sock');
  const connect = (): Socket => createConnection(path).on('error', () => {}); // Disconnected or refused: both are expected.
  const before = residentMb(rig.enginePid('i'));
  const deaf = connect();
  deaf.pause();
  for (let n = 0; n < 100; n++) deaf.write(`${JSON.stringify({ type: 'x'.repeat(250) })}\n`.repeat(1_000));
  const endless = connect();
  for (let n = 0; n < 100 && !endless.destroyed; n++) {
    await new Promise<void>((resolve) => {
      endless.once('close', resolve).write(Buffer.alloc(1_000_000, 'x'), () => resolve());
    });
  }
  for (let batch = 0; batch < 20; batch++) {
    const many = Array.from({ length: 500 }, connect);
    for (const one of many) one.write(`{"type":"step_done","outputs":{"__proto__":${'['.repeat(5_000)}`);
    await new Promise((resolve) => many.at(-1)?.once('close', resolve).once('connect', resolve));
    if (batch % 2 === 0) for (const one of many) one.destroy();
  }
  expect(residentMb(rig.enginePid('i')) - before).toBeLessThan(200);
  expect((await rig.meow('status', 'i')).code).toBe(0);
  rig.write('hold.go', '');
  expect((await run.ended).code).toBe(0);
});

function residentMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

test('a step that is killed while it waits leaves no pending wait', async () => {
  await using rig = await Rig.setup();
  const script =
    'timeout 0.3 meow await-event tick; meow event tick; meow await-event tick --timeout 5m; echo $? > status';
  rig.write('w.meow.toml', `[main]\n${shellStep('a', script)}`);
  await rig.meow('run', 'w.meow.toml');
  expect(rig.read('status')).toBe('0\n');
});

test('if the inbox cannot be created, the run fails before anything starts, and says why', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'i');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  chmodSync(rig.path('.meow/workflows/i/inbox'), 0o755);
  const { stderr, code } = await rig.meow('resume', 'i');
  expect(stderr).toContain('inbox is not a private folder of yours');
  expect(code).toBe(2);
  chmodSync(rig.path('.meow/workflows/i/inbox'), 0o700);
  rig.write('hold.go', '');
  expect((await rig.meow('resume', 'i')).code).toBe(0);
});
