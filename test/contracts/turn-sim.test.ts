// `meow sim-turn` as a program: its reactions to a prompt, good and bad, as the turn driver sees them.

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';

import type { Effect, Outcome, Session } from '../../src/ir/effect.ts';
import { promptText } from '../../src/ir/prompt-text.ts';
import { bundled } from '../rig/bundle.ts';
import { expected, failedWith, TIME_UP } from './agent-rig.ts';
import { appears } from './driver-command-rig.ts';
import { outputsOf, shellAdapter, TurnRig, withHoles } from './turn-rig.ts';

const SIM_TURN = new URL('../fixtures/turns/sim-turn.ts', import.meta.url);

let rig: TurnRig;
afterEach(() => rig.close());

function simulated(script = ''): void {
  const sim = `${process.execPath} ${bundled(SIM_TURN)}`;
  const headless = {
    command: withHoles(`${sim} --session {{session_id}}`),
    resume: withHoles(`${sim} --resume {{session_id}}`),
    fork: withHoles(`${sim} --fork {{session_id}} --session {{new_session_id}}`),
    reader: 'sim',
  };
  rig = new TurnRig(
    shellAdapter(headless, { environment: { PATH: withHoles(`{{workdir}}/bin:${process.env['PATH']}`) } }),
  );
  writeFileSync(join(rig.runFolder, 'sim.toml'), script);
  mkdirSync(rig.path('bin'));
  writeFileSync(rig.path('bin/meow'), '#!/bin/sh\nprintf "%s\\n" "$MEOW_STEP|$*" >> calls\n[ ! -e refuses ]\n');
  chmodSync(rig.path('bin/meow'), 0o755);
}

function prompting(prompt: string, more: { step?: string; session?: Session } = {}): Effect {
  return rig.turn('', { ...more, prompt });
}

const give = (prompt: string, more: { step?: string; session?: Session } = {}): Promise<Outcome> =>
  rig.start(prompting(prompt, more));
const calls = (): readonly string[] =>
  existsSync(rig.path('calls')) ? readFileSync(rig.path('calls'), 'utf8').trimEnd().split('\n') : [];
/** The history of a session. */
function history(session: unknown): readonly Record<string, unknown>[] {
  const text = readFileSync(join(rig.runFolder, 'sim-sessions', `${String(session)}.jsonl`), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('without a script', () => {
  test('it answers with a short text, at no cost', async () => {
    simulated();
    expect(await give('Say something.\nAnything.')).toMatchObject({
      outputs: { result: 'An answer to: Say something.' },
      usage: { usd: 0, tokens: 0 },
    });
    expect(calls()).toEqual([]);
  });

  test('it reports a value for every declared output', async () => {
    simulated();
    const expects = [
      expected('title'),
      expected('count', 'number'),
      { ...expected('more', 'boolean'), required: false },
    ];
    const prompt = promptText('Do it.', 'autonomous', expects);
    expect(outputsOf(await give(prompt, { step: 'build' }))).toMatchObject({ result: 'Reported.' });
    expect(calls()).toEqual(['build|done --json {"title":"sim-title","count":1,"more":false}']);
  });

  test('it tries once more when its report is rejected, and then ends its turn', async () => {
    simulated();
    writeFileSync(rig.path('refuses'), '');
    expect(await give(promptText('Do it.', 'autonomous', []))).toMatchObject({ kind: 'success' });
    expect(calls()).toHaveLength(2);
  });
});

describe('its sessions', () => {
  test('contain all their prompts, through resume and fork', async () => {
    simulated('[[on]]\ndo = [{ say = "{{n}}" }]');
    const { session_id: id } = outputsOf(await give('one')) as { session_id: string };
    await give('two', { session: { kind: 'resume', id } });
    const { session_id: fork } = outputsOf(await give('three', { session: { kind: 'fork', id } }));
    await give('four', { session: { kind: 'resume', id } });
    const prompts = (session: unknown): readonly unknown[] => history(session).flatMap(({ prompt }) => prompt ?? []);
    expect(prompts(id)).toEqual(['one', 'two', 'four']);
    expect(prompts(fork)).toEqual(['one', 'two', 'three']);
    expect(history(id)[0]).toMatchObject({ agent: 'main', model: null });
    expect(history(fork).at(-1)).toEqual({ answer: '3' });
  });

  test('are refused if they do not exist', async () => {
    simulated();
    expect(await give('go on', { session: { kind: 'resume', id: 'foreign' } })).toMatchObject({
      failure: { kind: 'exit-nonzero', code: 1, output: 'there is no session foreign' },
    });
  });
});

describe('with a script', () => {
  test('it prints, runs, reports, and costs as the script says', async () => {
    simulated(`
[[on]]
step = "build"
prompt = "go"
do = [
  { say = "I am {{agent}}" },
  { run = "echo $MEOW_STEP >> ran" },
  { cost = { usd = 0.25, tokens = 1200 } },
  { done = { a = 1 }, notes = "n" },
  { say = "and done" },
]`);
    expect(await give('go', { step: 'build' })).toMatchObject({
      outputs: { result: 'I am main\nand done' },
      usage: { usd: 0.25, tokens: 1200 },
    });
    expect(calls()).toEqual(['build|done --json {"a":1} --notes n']);
    expect(readFileSync(rig.path('ran'), 'utf8')).toBe('build\n');
  });

  test('it remembers how often it has followed a rule', async () => {
    simulated('[[on]]\ntimes = 1\ndo = [{ say = "first" }]\n[[on]]\ndo = [{ say = "later" }]');
    expect(outputsOf(await give('x'))).toMatchObject({ result: 'first' });
    expect(outputsOf(await give('x'))).toMatchObject({ result: 'later' });
  });

  test('it has an unknown cost', async () => {
    simulated('[[on]]\ndo = [{ cost = { tokens = 5 } }]');
    expect(await give('x')).toMatchObject({ usage: { usd: null, tokens: 5 } });
  });

  test('it fails', async () => {
    simulated('[[on]]\ndo = [{ cost = { usd = 1 } }, { fail = "no luck" }, { say = "never" }]');
    expect(await give('x')).toMatchObject({
      failure: { kind: 'exit-nonzero', message: 'the agent failed: no luck', code: 1, usage: { usd: 1 } },
    });
  });

  test('it reaches a limit that resets', async () => {
    simulated('[[on]]\ndo = [{ limit = "5m" }]');
    const before = Date.now();
    const outcome = await give('x');
    expect(outcome).toMatchObject(failedWith('limit-reached'));
    const { retryAt } = (outcome as Extract<Outcome, { kind: 'failure' }>).failure;
    expect(retryAt).toBeGreaterThanOrEqual(before + 300_000);
  });

  test('it crashes', async () => {
    simulated('[[on]]\ndo = [{ crash = "SIGSEGV" }]');
    expect(await give('x')).toMatchObject({ failure: { kind: 'signal', code: 139 } });
  });

  test('it hangs until it is stopped, and a command that it runs is a running tool', async () => {
    simulated('[[on]]\nprompt = "hang"\ndo = [{ hang = true }]\n[[on]]\ndo = [{ run = "echo > there; sleep 1" }]');
    const hanging = prompting('hang');
    const outcome = rig.start(hanging);
    await appears(rig.turnFile(hanging, 'stdout'), (text) => text.includes('hangs'));
    rig.driver.stop(hanging.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    const working = prompting('run');
    expect(await rig.start({ ...working, spec: { ...working.spec, idleMs: 300 } as Effect['spec'] })).toMatchObject({
      kind: 'success',
    });
  });

  test('that is invalid it says so', async () => {
    simulated('[[on]]\ndo = [{ cost = { euro = 1 } }]');
    expect(await give('x')).toMatchObject({
      failure: { code: 2, output: expect.stringMatching(/sim\.toml:2:\d+: .*euro/) as unknown },
    });
  });
});
