// Headless agents: each prompt is a turn in their session.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Outcome, Progress } from '../../src/ir/effect.ts';
import { expected, failedWith, RUN_ENDS, SUCCESS, TIME_UP } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';
import { HeadlessRig, until } from './headless-rig.ts';
import { shellAdapter, withHoles } from './turn-rig.ts';

let rig: HeadlessRig;
beforeEach(() => {
  rig = new HeadlessRig();
});
afterEach(() => rig.close());

const TELLS = 'init; echo $1 $2 $3 >> begun; result "$1"';
const sessionOf = (outcome: Outcome): string => (outcome.kind === 'success' ? (outcome.session ?? '') : '');

describe('an agent', () => {
  test('is ready at once, in a chosen session, and nothing runs', async () => {
    const outcome = await rig.start(rig.spawning('worker'));
    expect(outcome).toMatchObject({
      outputs: { agent: 'worker', adapter: 'shell', terminal: null, session_id: sessionOf(outcome) },
    });
    expect(sessionOf(outcome)).toMatch(/^[0-9a-f-]{36}$/);
    expect(rig.run.left()).toEqual([]);
  });

  test('starts its session with the first prompt, and continues it with all others', async () => {
    const session = sessionOf(await rig.spawned('worker'));
    for (let count = 0; count < 3; count += 1) {
      expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject({ kind: 'success', session });
    }
    expect(rig.lines('begun')).toEqual([`fresh ${session}`, `resume ${session}`, `resume ${session}`]);
  });

  test('continues the given session, or a fork of it', async () => {
    await rig.spawned('worker', { resumeSession: 'old' });
    await rig.start(rig.prompting('worker', TELLS));
    const fork = sessionOf(await rig.spawned('other', { resumeSession: 'old', forks: true }));
    expect(fork).not.toBe('old');
    await rig.start(rig.prompting('other', TELLS));
    await rig.start(rig.prompting('other', TELLS));
    expect(rig.lines('begun')).toEqual(['resume old', `fork old ${fork}`, `resume ${fork}`]);
  });

  test('that the adapter cannot put into a session is refused', async () => {
    await rig.close();
    rig = new HeadlessRig(shellAdapter({ fork: null }));
    expect(await rig.start(rig.spawning('worker', { resumeSession: 'old', forks: true }))).toMatchObject({
      failure: {
        kind: 'spawn-failed',
        message: expect.stringContaining('has no way to fork a session without a terminal') as unknown,
      },
    });
  });

  test('without sessions starts with an empty memory for every prompt', async () => {
    await rig.close();
    rig = new HeadlessRig(shellAdapter({ sessionId: 'none', reader: 'text', command: 'sh', resume: null }));
    await rig.spawned('worker');
    for (const word of ['one', 'two']) {
      expect(await rig.start(rig.prompting('worker', `echo ${word}`))).toMatchObject({
        outputs: { result: word },
        session: null,
        usage: { usd: null, tokens: null },
      });
    }
  });

  test('reports its session as soon as its program does', async () => {
    await rig.close();
    rig = new HeadlessRig(shellAdapter({ sessionId: 'told', command: 'sh -s fresh theirs' }));
    expect(await rig.spawned('worker')).toMatchObject({ session: null });
    const told: Progress[] = [];
    void rig.start(rig.attending('worker'), told);
    await rig.start(rig.prompting('worker', TELLS));
    await rig.start(rig.prompting('worker', TELLS));
    expect(told).toEqual([{ session: 'theirs' }]);
    expect(rig.lines('begun')).toEqual(['fresh theirs', 'resume theirs']);
  });

  test('has the environment of its start, and the step of each prompt', async () => {
    await rig.spawned('worker', { env: { OWN: `it's` }, args: '--extra' });
    const script = 'init; result "$MEOW_AGENT|$MEOW_STEP|$OWN|${MEOW_ATTEMPT-none}|$3"';
    rig.nextLife();
    expect(await rig.start(rig.prompting('worker', script, { id: 'build#2' }))).toMatchObject({
      outputs: { result: `worker|build|it's|none|--extra` },
    });
  });
});

test('an agent has its own home folder with a copy of the user’s files', async () => {
  await rig.close();
  const home = { variable: 'ODD_HOME', from: '.odd', link: [], copy: ['config'] };
  rig = new HeadlessRig(shellAdapter({}, { home }));
  const users = join(rig.run.options.environment['HOME'] ?? '', '.odd');
  mkdirSync(users);
  writeFileSync(join(users, 'config'), 'theirs');
  await rig.spawned('worker');
  expect(await rig.start(rig.prompting('worker', 'init; result "$(cat "$ODD_HOME/config")"'))).toMatchObject({
    outputs: { result: 'theirs' },
  });
});

describe('a prompt', () => {
  beforeEach(async () => {
    await rig.spawned('worker');
  });

  test('without required outputs ends with the turn, with its answer and its cost', async () => {
    const expects = [{ ...expected('extra'), required: false }];
    const told: Progress[] = [];
    const effect = rig.prompting('worker', 'init; TOTAL=0.5 TOKENS=7 result "all done"', { expects });
    expect(await rig.start(effect, told)).toMatchObject({
      outputs: { result: 'all done' },
      usage: { usd: 0.5, tokens: 7 },
    });
    expect(told.map(({ delivery }) => delivery)).toEqual(['sending', 'accepted']);
  });

  test('that has been reported ends with the turn, and includes its cost', async () => {
    rig.run.pipe('hold');
    const effect = rig.prompting('worker', 'init; echo > there; read -r l < hold.pipe; TOTAL=0.75 result fine');
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    rig.driver.conclude?.(effect.id);
    await rig.run.write('hold');
    expect(await outcome).toMatchObject({
      kind: 'success',
      usage: { usd: 0.75 },
      session: expect.any(String) as unknown,
    });
  });

  test('that has been reported does not wait forever for its turn to end', async () => {
    await rig.close();
    rig = new HeadlessRig(shellAdapter(), { graceMs: 100 });
    await rig.spawned('worker');
    const effect = rig.prompting('worker', 'init; echo > there; sleep 1000');
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    rig.driver.conclude?.(effect.id);
    expect(await outcome).toMatchObject({ kind: 'success', usage: { usd: null } });
    expect(rig.run.left()).toEqual([]);
  });

  test('that is not reported is followed by a reminder, which says what is missing and how to report', async () => {
    const expects = [expected('title'), { ...expected('extra'), required: false }, expected('count', 'number')];
    const effect = rig.prompting('worker', 'init; result hm', { expects });
    await rig.start(effect);
    const again = readFileSync(rig.turnFile(effect, 'ask-2.prompt'), 'utf8');
    expect(again).toContain('title, count must be');
    expect(again).toMatch(/\n {2}meow done --output title=<string> --output extra=<string> --output count=<number>$/);
  });

  test('whose turn fails also fails, and the next continues the session', async () => {
    expect(await rig.start(rig.prompting('worker', 'init; TOTAL=0.5 error broken; exit 1'))).toMatchObject({
      failure: { kind: 'exit-nonzero', message: 'the agent failed: broken', usage: { usd: 0.5 } },
    });
    expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject(SUCCESS);
    expect(rig.lines('begun')).toEqual([expect.stringMatching(/^resume /)]);
  });

  test('that reaches a limit reports when it resets', async () => {
    await rig.close();
    rig = new HeadlessRig(shellAdapter({}, { limits: [{ pattern: String.raw`limit\|(\d+)`, reset: 'epoch' }] }));
    await rig.spawned('worker');
    expect(await rig.start(rig.prompting('worker', 'init; error "limit|1794700000"; exit 1'))).toMatchObject({
      failure: {
        kind: 'limit-reached',
        message: 'agent worker has reached a usage limit: limit|1794700000',
        retryAt: 1_794_700_000_000,
      },
    });
  });

  test('waits for the previous turn, and is not delivered if it is cancelled meanwhile', async () => {
    rig.run.pipe('hold');
    const first = rig.start(rig.prompting('worker', `echo > there; read -r l < hold.pipe; ${TELLS}`));
    await appears(rig.path('there'));
    const told: Progress[] = [];
    const second = rig.start(rig.prompting('worker', TELLS), told);
    const third = rig.prompting('worker', 'echo > late');
    const heard: Progress[] = [];
    const givenUp = rig.start(third, heard);
    await until(() => heard.some(({ delivery }) => delivery === 'queued'));
    rig.driver.stop(third.id, RUN_ENDS);
    expect(await givenUp).toMatchObject(failedWith('stopped'));
    expect(rig.lines('begun')).toEqual([]);
    await rig.run.write('hold');
    expect([(await first).kind, (await second).kind]).toEqual(['success', 'success']);
    expect(told.map(({ delivery }) => delivery)).toEqual(['sending', 'queued', 'accepted']);
    expect(rig.lines('begun')).toHaveLength(2);
    expect(existsSync(rig.path('late'))).toBe(false);
  });

  test('in mode fire_forget ends when its turn has started', async () => {
    rig.run.pipe('hold');
    const note = rig.prompting('worker', 'echo > there; read -r l < hold.pipe; init; result', { mode: 'fire-forget' });
    expect(await rig.start(note)).toMatchObject(SUCCESS);
    await appears(rig.path('there'));
    await rig.run.write('hold');
    expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject(SUCCESS);
  });

  test('that is a key is refused', async () => {
    const key = rig.prompting('worker', '', { mode: 'fire-forget', prompt: 'Escape' });
    expect(await rig.start(key)).toMatchObject({
      failure: { kind: 'not-delivered', message: 'agent worker did not take the prompt: it has no keys' },
    });
  });

  test('is killed at its timeout, with all its processes', async () => {
    const script = "init; setsid sh -c 'echo $$ > tool; exec sleep 1000' & echo > there; sleep 1000";
    const effect = rig.prompting('worker', script);
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    const tool = Number(await appears(rig.path('tool')));
    rig.driver.stop(effect.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    await gone(tool);
    expect(rig.run.left()).toEqual([]);
    expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject(SUCCESS);
  });

  test('has started once its agent has it', async () => {
    rig.run.pipe('hold');
    const effect = rig.prompting('worker', 'echo > there; read -r l < hold.pipe; init; result');
    expect(rig.driver.hasTaken('worker', effect.id)).toBe(false);
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    expect(rig.driver.hasTaken('worker', effect.id)).toBe(true);
    await rig.run.write('hold');
    await outcome;
    rig.nextLife();
    expect(rig.driver.hasTaken('worker', effect.id)).toBe(true);
  });
});

describe('an agent that gets a reminder', () => {
  // Counts its prompts. A reminder is not a script.
  const COUNTS = withHoles(
    `n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; cat > asked-$n; set -- resume s; . "$FUNCTIONS"; init; TOTAL=$n TOKENS=$n result "$n"`,
  );

  beforeEach(async () => {
    await rig.close();
    const environment = { FUNCTIONS: rig.run.functions };
    rig = new HeadlessRig(shellAdapter({ command: COUNTS, resume: COUNTS, sessionId: 'told' }, { environment }));
    await rig.spawned('worker');
  });

  test('and does not report fails, and all turns are counted', async () => {
    const effect = rig.prompting('worker', '', { expects: [expected('title')] });
    expect(await rig.start(effect)).toMatchObject({
      failure: {
        kind: 'output-missing',
        message: 'the agent has not reported title, though it was asked again 3 times',
        usage: { usd: 4, tokens: 4 },
      },
    });
    expect(rig.lines('count')).toEqual(['4']);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject({ failure: { kind: 'output-missing', usage: { usd: 4 } } });
    expect(rig.lines('count')).toEqual(['4']);
  });

  test('gets it once, even if an engine died just before sending it', async () => {
    const effect = rig.prompting('worker', '', { expects: [expected('title')] });
    mkdirSync(dirname(rig.turnFile(effect, 'ask-2.prompt')), { recursive: true });
    writeFileSync(rig.turnFile(effect, 'ask-2.prompt'), '');
    expect(await rig.start(effect)).toMatchObject(failedWith('output-missing'));
    expect(rig.lines('count')).toEqual(['4']);
  });

  test('and then reports is done, and all turns are counted', async () => {
    const effect = rig.prompting('worker', '', { expects: [expected('title')] });
    const outcome = rig.start(effect);
    await appears(rig.path('asked-2'));
    rig.driver.conclude?.(effect.id);
    expect(await outcome).toMatchObject({ kind: 'success', usage: { usd: 2, tokens: 2 } });
    expect(rig.lines('count')).toEqual(['2']);
  });
});

describe('the end of an agent', () => {
  beforeEach(async () => {
    await rig.spawned('worker');
  });

  test('is reported when it is killed, and not before', async () => {
    let answered = false;
    const attended = rig.start(rig.attending('worker')).then((outcome) => {
      answered = true;
      return outcome;
    });
    await rig.start(rig.prompting('worker', 'exit 3'));
    expect(answered).toBe(false);
    expect(await rig.start(rig.killing('worker'))).toMatchObject(SUCCESS);
    expect(await attended).toMatchObject(SUCCESS);
    expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject(failedWith('agent-not-found'));
    rig.nextLife();
    expect(await rig.find(rig.attending('worker'))).toMatchObject(SUCCESS);
  });

  test('ends its turn, and processes that earlier turns left', async () => {
    const server = "setsid sh -c 'echo $$ > server; exec sleep 1000' >/dev/null 2>&1 & init; result";
    await rig.start(rig.prompting('worker', server));
    await appears(rig.path('server'));
    void rig.start(rig.prompting('worker', 'init; echo > there; sleep 1000'));
    await appears(rig.path('there'));
    expect(await rig.start(rig.killing('worker', 100))).toMatchObject(SUCCESS);
    expect(rig.run.left()).toEqual([]);
  });

  test('also ends its turn if another engine started it', async () => {
    void rig.start(rig.prompting('worker', 'init; echo > there; trap "" TERM; sleep 1000; sleep 1000'));
    await appears(rig.path('there'));
    rig.nextLife();
    expect(await rig.find(rig.killing('worker', 50))).toMatchObject(SUCCESS);
    expect(rig.run.left()).toEqual([]);
  });

  test('frees its name', async () => {
    await rig.start(rig.killing('worker'));
    expect(await rig.start(rig.spawning('worker', { id: 'again#1' }))).toMatchObject(SUCCESS);
    expect(await rig.start(rig.prompting('worker', TELLS))).toMatchObject(SUCCESS);
  });
});
