import { expect, test } from 'vitest';
import { Rig, shellStep, until } from '../rig/rig.ts';

function workflow(...steps: readonly string[]): string {
  return `[main]\n${steps.join('')}`;
}

test('a step receives an event of another step, with its data', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    workflow(
      shellStep('waits', 'meow await-event tool --filter tool=Write --timeout 5m > heard'),
      shellStep('emits', "meow event tool --data tool=Read; meow event tool --data tool=Write --data 'text=a b\"c'"),
    ),
  );
  const { code, stderr } = await rig.meow('run', 'w.meow.toml');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(rig.read('heard')).toBe('tool=Write\ntext=a b"c\n');
});

test('an event before the call of await-event is not lost, and each is delivered once', async () => {
  await using rig = await Rig.setup();
  const script = [
    'meow event tick --data n=1; meow event tick --data n=2',
    'meow await-event tick --timeout 5m >> heard; meow await-event tick --json --timeout 5m >> heard',
    'meow await-event tick --timeout 100ms; echo $? >> heard',
  ].join('; ');
  rig.write('w.meow.toml', workflow(shellStep('a', script)));
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'e')).code).toBe(0);
  expect(rig.read('heard')).toBe('n=1\n{"type":"tick","agent":null,"data":{"n":"2"}}\n1\n');
  expect(rig.exists('.meow/workflows/e/inbox')).toBe(false);
  expect(rig.exists('.meow/workflows/e/sock')).toBe(false);
});

test('any bytes reach the journal unchanged, from the shell client and from the program', async () => {
  await using rig = await Rig.setup();
  const value = `two\nlines 'single' "double" \\n $HOME \`x\` é 🐈`;
  rig.write('value', value);
  const script = 'v=$(cat value); meow event by-shell --data "v=$v"; meow event by-node --data "v=$v" --data "w"= ';
  rig.write('w.meow.toml', workflow(shellStep('a', `${script}; MEOW_INBOX= meow event by-node --data "v=$v"`)));
  await rig.meow('run', 'w.meow.toml', '--id', 'e');
  const events = rig
    .read('.meow/workflows/e/journal.jsonl')
    .split('\n')
    .filter((line) => line.includes('"event-emitted"'))
    .map((line) => (JSON.parse(line) as { input: { event: { type: string; data: unknown } } }).input.event);
  expect(events.map(({ type }) => type)).toEqual(['by-shell', 'by-node', 'by-node']);
  expect(events.map(({ data }) => data)).toEqual([{ v: value }, { v: value, w: '' }, { v: value }]);
});

test('an event that is too large is refused, and one just below the limit is accepted', async () => {
  await using rig = await Rig.setup();
  const script = [
    "v=$(head -c 65000 /dev/zero | tr '\\0' x)",
    'meow event fits --data "v=$v" && meow await-event fits --timeout 5m | wc -c > heard',
    'meow event large --data "v=$v" --data "w=$v" 2> said; echo $? > status',
    'meow event "$v" 2>> said; echo $? >> status',
  ].join('; ');
  rig.write('w.meow.toml', workflow(shellStep('a', script)));
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'e')).code).toBe(0);
  expect(rig.read('heard').trim()).toBe('65003');
  expect(rig.read('status')).toBe('1\n1\n');
  expect(rig.read('said').split('\n')).toEqual([
    'meow: the event "large" is refused: "data" is larger than 65536 bytes',
    `meow: the event "${'x'.repeat(40)}" is refused: "event_type" is longer than 256 characters`,
    '',
  ]);
  expect(rig.decisions('e').filter((made) => made === 'event-emitted')).toHaveLength(1);
});

test('an event that is sent while the engine is down is processed at resume', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    workflow(
      shellStep(
        'emits',
        'echo > began; while [ ! -e go ]; do sleep 0.02; done; meow event tick --data n=7; echo > sent',
      ),
      shellStep('waits', 'meow await-event tick --timeout 5m > heard'),
    ),
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'e');
  await rig.appears('began');
  await until(() => rig.decisions('e').filter((made) => made.startsWith('step-started')).length === 2, 'both steps');
  run.kill('SIGKILL');
  await run.ended;
  rig.write('go', '');
  await rig.appears('sent');
  expect(rig.exists('heard') && rig.read('heard') !== '').toBe(false);
  expect((await rig.meow('resume', 'e')).code).toBe(0);
  expect(rig.read('heard')).toBe('n=7\n');
  expect(rig.decisions('e').filter((made) => made === 'event-emitted')).toHaveLength(1);
});

test.each(Array.from({ length: 9 }, (_, n) => n + 1))(
  'events survive a crash of the engine: append %i',
  async (append) => {
    await using rig = await Rig.setup();
    const wait = 'meow await-event tick --timeout 5m >> heard';
    rig.write(
      'w.meow.toml',
      workflow(
        shellStep('emits', 'meow event tick --data n=1; meow event tick --data n=2'),
        shellStep('waits', `${wait}; ${wait}`),
      ),
    );
    await rig.meowKilledAt(`${append}:durable`, 'run', 'w.meow.toml', '--id', 'e');
    if ((await rig.status('e')).status !== 'done') expect((await rig.meow('resume', 'e')).code).toBe(0);
    expect(rig.read('heard')).toBe('n=1\nn=2\n');
    expect(rig.decisions('e').filter((made) => made === 'event-emitted')).toHaveLength(2);
  },
);

test('await-event returns when the run fails', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    workflow(
      shellStep('waits', 'meow await-event never; echo $? > status; echo > over'),
      shellStep('fails', 'while [ ! -e go ]; do sleep 0.02; done; exit 1'),
    ),
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'e');
  await rig.decided('e', 'step-started waits');
  rig.write('go', '');
  expect((await run.ended).code).toBe(1);
  expect(rig.read('status')).toBe('1\n');
});

test('outside a run, event does nothing and await-event is an error', async () => {
  await using rig = await Rig.setup();
  expect(await rig.meow('event', 'tick', '--data', 'n=1')).toEqual({ stdout: '', stderr: '', code: 0 });
  expect(await rig.meow('prime')).toEqual({ stdout: '', stderr: '', code: 0 });
  for (const args of [['await-event', 'x'], ['await-approval', 'x'], ['done'], ['step-status', 'x'], ['session-id']]) {
    const { stderr, code } = await rig.meow(...args);
    expect(stderr).toBe(`meow: meow ${args[0]} works only inside a run\n`);
    expect(code).toBe(2);
  }
});

test.each([
  [['event'], "missing required argument 'type'"],
  [['event', 'x', '--data'], 'option --data needs a value'],
  [['event', 'x', '--data', 'nothing'], '--data "nothing" is not NAME=VALUE'],
  [['event', 'x', '--dta', 'a=b'], "unknown option '--dta'"],
  [['await-event', 'x', '--timeout', 'soon'], '"soon" is not a duration'],
  [['step-status', 'x', '--is', 'don'], 'unknown status "don"'],
  [['prime', '--format', 'xml'], 'unknown format "xml"'],
  [['done', '--json', '[1]'], '--json must be an object'],
])('%j is explained', async (args, message) => {
  await using rig = await Rig.setup();
  const { stderr, code } = await rig.meowWith({ MEOW_INBOX: rig.home, MEOW_ORCH_SOCK: '/nowhere' }, ...args);
  expect(stderr).toContain(`meow: ${message}`);
  expect(code).toBe(2);
});
