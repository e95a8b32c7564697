// Runs every workflow in examples/raymond with the built binary and simulated agents, as its README says. The last test
// fails if an example has no test.

import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rig, type RunObject } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/raymond');
const NAMES = readdirSync(EXAMPLES).filter((name) => !/README|\.(?:sim|test)\.toml$/.test(name));

/** Runs the example to its end. */
async function run(rig: Rig, name: string, ...flags: readonly string[]): Promise<RunObject> {
  const { code, stderr } = await rig.meow('run', join(EXAMPLES, name), '--adapter', 'sim', '--id', 'r', ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return rig.status('r');
}

/** The steps, each with the step that started its session: itself if the session is new. */
function sessions({ steps }: RunObject): readonly string[] {
  const begun = new Map<unknown, string>();
  return Object.entries(steps).map(([id, { outputs }]) => {
    const session = outputs['session_id'];
    if (session === undefined) return id;
    if (!begun.has(session)) begun.set(session, id);
    return `${id} in that of ${begun.get(session)}`;
  });
}

test('ralph: the same prompt in a loop, each time in a new session', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'ralph');
  expect(sessions(status)).toEqual([1, 2, 3].map((n) => `main.${n}.START in that of main.${n}.START`));
  expect(status).toMatchObject({ result: 'everything in todo.md is done' });
  expect(rig.read('done.txt')).toBe('done\ndone\n');
});

test('review-loop: commits after five reviews in one session', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'review-loop', '--var', 'input=a feature');
  expect(sessions(status)).toEqual(
    ['1.START', '2.REVIEW', '3.REVIEW', '4.REVIEW', '5.REVIEW', '6.REVIEW', '7.COMMIT'].map(
      (step) => `main.${step} in that of main.1.START`,
    ),
  );
  expect(rig.read('feature.txt')).toBe(`feature\n${'fixed\n'.repeat(5)}`);
});

test('research: the search is forgotten, and its result is kept', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'research', '--var', 'input=Where is it parsed?');
  expect(sessions(status)).toEqual([
    'main.1.START in that of main.1.START',
    'main.2.LOOK in that of main.2.LOOK',
    'main.3.LOOK in that of main.2.LOOK',
    'main.4.ANSWER in that of main.1.START',
  ]);
  expect(readFileSync(rig.path('.meow/workflows/r/steps/main.4.ANSWER.1.prompt'), 'utf8')).toMatch(
    'The search found this:\n\nparser.ts parses\n\n',
  );
  expect(status).toMatchObject({ result: 'It is parsed in parser.ts.' });
});

test('fan-out: three parallel workers, and a script that waits for them', async () => {
  await using rig = await Rig.setup();
  const { counts } = await run(rig, 'fan-out');
  expect(counts).toMatchObject({ done: 6, failed: 0 });
  expect(rig.read('index.md')).toBe('base\nir\nkernel\n');
  const decisions = rig.decisions('r');
  expect(decisions.indexOf('step-started main_worker3.1.WORKER')).toBeLessThan(
    decisions.indexOf('step-done main_worker1.1.WORKER'),
  );
});

test('poll: starts a worker for each item until it is told to stop', async () => {
  await using rig = await Rig.setup();
  mkdirSync(rig.path('inbox'));
  for (const name of ['one', 'two']) rig.write(`inbox/${name}`, '');
  const { steps } = await run(rig, 'poll');
  expect(rig.files('closed')).toEqual(['closed/main_worker1', 'closed/main_worker2']);
  expect(steps['main_worker2.2.CLOSE']).toMatchObject({ status: 'done' });
});

test('poll: killed while it waits, it waits again after resume', async () => {
  await using rig = await Rig.setup();
  const args = ['run', join(EXAMPLES, 'poll'), '--adapter', 'sim', '--id', 'r'];
  const killed = rig.start(...args);
  await rig.decided('r', 'step-started main.1.START');
  process.kill(rig.enginePid('r'), 'SIGKILL');
  await killed.ended;
  const live = rig.start('resume', 'r');
  rig.write('inbox/two', '');
  expect(await live.ended).toMatchObject({ code: 0 });
  expect(Object.keys((await rig.status('r')).steps).toSorted()).toEqual([
    'main.1.START',
    'main.2.START',
    'main_worker1.1.WORKER',
    'main_worker1.2.CLOSE',
  ]);
});

test('ask: waits for an answer, and continues with it', async () => {
  await using rig = await Rig.setup();
  const live = rig.start('run', join(EXAMPLES, 'ask'), '--adapter', 'sim', '--id', 'r');
  await rig.decided('r', 'gate-asked main.2.ask');
  expect(await rig.meow('answer', 'r', 'the second')).toMatchObject({ code: 0 });
  expect(await live.ended).toMatchObject({ code: 0 });
  expect(readFileSync(rig.path('.meow/workflows/r/steps/main.3.DECIDED.1.prompt'), 'utf8')).toMatch(
    'The answer is: the second\n',
  );
});

test('release: scripts between prompts, and a judge that has not seen the work', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'release');
  expect(sessions(status)).toEqual([
    'main.1.START',
    'main.2.NOTES in that of main.2.NOTES',
    'main.3.JUDGE in that of main.3.JUDGE',
    'main.4.DONE',
    'main.5.NOTES in that of main.2.NOTES',
    'main.6.JUDGE in that of main.6.JUDGE',
    'main.7.DONE',
  ]);
  expect(status).toMatchObject({ result: 'notes.md is ready' });
});

test('composed: calls another workflow in a session of its own', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'composed', '--var', 'input=Where?');
  expect(sessions(status)).toEqual([
    'main.1.START in that of main.1.START',
    'main.2.research-START in that of main.2.research-START',
    'main.3.research-LOOK in that of main.3.research-LOOK',
    'main.4.research-ANSWER in that of main.2.research-START',
    'main.5.REPLY in that of main.1.START',
  ]);
});

test('desk: several parallel workflows, each with its own sessions, and one note for all', async () => {
  await using rig = await Rig.setup();
  rig.write('orders.txt', 'feature a dark mode\nquestion Where?\nquestion Why?\n');
  const status = await run(rig, 'desk', '--meta', 'customer=Ada');
  const named = (agent: string): readonly string[] => sessions(status).filter((step) => step.startsWith(`${agent}.`));
  expect(named('main')).toEqual(['main.1.START', 'main.2.LOG in that of main.2.LOG']);
  expect(named('main_review1')).toEqual(
    ['1.review-loop-START', '2.review-loop-REVIEW', '3.review-loop-COMMIT'].map(
      (step) => `main_review1.${step} in that of main_review1.1.review-loop-START`,
    ),
  );
  for (const agent of ['main_resear2', 'main_resear3']) {
    expect(named(agent)).toEqual([
      `${agent}.1.research-START in that of ${agent}.1.research-START`,
      `${agent}.2.research-LOOK in that of ${agent}.2.research-LOOK`,
      `${agent}.3.research-ANSWER in that of ${agent}.1.research-START`,
    ]);
  }
  expect(status).toMatchObject({ meta: { customer: 'Ada' }, result: 'the orders are logged' });
  expect(rig.read('log.md')).toBe('Ada\n');
});

test('single: all states in one file', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'single.yaml');
  expect(Object.keys(status.steps)).toEqual([
    'main.1.START',
    'main.2.FIX',
    'main.3.START',
    'main.4.FIX',
    'main.5.START',
  ]);
  expect(status).toMatchObject({ result: 'all tests pass' });
});

test.each(NAMES)('%s runs to its end without a script for its agents', async (name) => {
  await using rig = await Rig.setup();
  cpSync(EXAMPLES, rig.path('flows'), { recursive: true, filter: (file) => !file.endsWith('.sim.toml') });
  rig.write('orders.txt', 'feature a dark mode\nquestion Where?\n');
  rig.write('inbox/195', 'It is slow.\n');
  rig.write('stop', '');
  const first = await rig.meow(
    'run',
    `flows/${name}`,
    '--adapter',
    'sim',
    '--id',
    'r',
    '--meta',
    'customer=Ada',
    '--no-wait',
  );
  if (name === 'ask') expect(await rig.meow('answer', 'r', 'the second')).toMatchObject({ code: 0 });
  const { code, stdout } = name === 'ask' ? await rig.meow('resume', 'r') : first;
  expect({ code, isRetried: /attempt [2-9]/.test(stdout) }).toEqual({ code: 0, isRetried: false });
});

test('meow validate finds only the expected warnings', async () => {
  await using rig = await Rig.setup();
  const { code, stdout } = await rig.meow('validate', ...NAMES.map((name) => join(EXAMPLES, name)));
  expect(code).toBe(0);
  // One example needs a customer, and one intentionally never ends.
  expect(stdout.match(/\w+\/\w+\.\w+:\S+ (?:error|warning) \S+:/g)).toEqual([
    'desk/LOG.md:5:15: warning unknown-placeholder:',
    expect.stringMatching(/^poll\/START\.sh:.* warning unbounded-fork:$/),
  ]);
});

test('every example has a test', () => {
  const tests = readFileSync(import.meta.filename, 'utf8');
  for (const name of NAMES) {
    expect(tests, name).toContain(`test('${name.replace('.yaml', '')}:`);
  }
});
