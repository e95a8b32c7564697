// Validators: the outcome of their step, how they end, and how they are found again.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appears } from './driver-command-rig.ts';
import { builtin, OpcodeRig, outputsOf, recordOf, recordsOf } from './opcode-rig.ts';

let rig: OpcodeRig;
beforeEach(() => {
  rig = new OpcodeRig();
});
afterEach(async () => {
  await rig.over();
  await rig.close();
});

describe('the outcome of a step', () => {
  test('is completed if all its validators pass, each with its own record', async () => {
    const outcome = await rig.start(rig.validate([builtin('tests', 'echo fine'), builtin('lint', ':')]));
    expect(outcome).toMatchObject({ kind: 'success', route: 'completed' });
    expect(recordsOf(outcome)).toEqual([
      {
        id: 'tests',
        kind: 'builtin',
        command: 'echo fine',
        outcome: 'completed',
        exit_code: 0,
        message: null,
        duration_ms: expect.any(Number) as number,
        network: 'open',
        network_reason: "a project's own command is run as its user would",
        artifacts: [],
      },
      expect.objectContaining({ id: 'lint', outcome: 'completed' }),
    ]);
    expect(outputsOf(outcome)).toMatchObject({ harness_report: null, proposed_goldens: [], witness: null });
  });

  test('is the failure of the failing one, and later ones still run', async () => {
    const validators = [builtin('tests', 'echo broken >&2; exit 3'), builtin('lint', 'echo ran > lint-ran')];
    const outcome = await rig.start(rig.validate(validators));
    expect(outcome).toMatchObject({
      kind: 'failure',
      failure: {
        kind: 'exit-nonzero',
        message: 'tests: the command exited with status 3',
        code: 3,
        output: 'broken',
      },
    });
    expect(recordsOf(outcome).map((record) => record.outcome)).toEqual(['error', 'completed']);
    expect(existsSync(join(rig.worktree, 'lint-ran'))).toBe(true);
  });

  test('is the worst of all, with all messages', async () => {
    const validators = [
      builtin('one', 'exit 1'),
      builtin('late', 'sleep 600', { timeoutMs: 100 }),
      builtin('outside', ':', { cwd: '/' }),
      builtin('gone', 'kill -9 $$'),
    ];
    const outcome = await rig.start(rig.validate(validators));
    expect(recordsOf(outcome).map((record) => record.outcome)).toEqual([
      'error',
      'killed_timeout',
      'killed_policy',
      'error',
    ]);
    expect(outcome).toMatchObject({ failure: { kind: 'timeout' } });
    expect(outcome).toMatchObject({
      failure: {
        message:
          '4 of 4 validators failed; one: the command exited with status 1; late: it took longer than 100ms; ' +
          "outside: its folder / is neither in the worktree nor in the run's directory; " +
          'gone: the command ended with status 137, as one killed by SIGKILL does',
      },
    });
  });

  test('is `idle` before `policy`, and `policy` before an error', async () => {
    const [error, policy] = [builtin('error', 'exit 1'), builtin('policy', ':', { cwd: '/' })];
    const idle = builtin('idle', 'sleep 600');
    expect(await rig.start(rig.validate([error, policy]))).toMatchObject({ failure: { kind: 'policy' } });
    const outcome = await rig.start(rig.validate([policy, idle, error], { idleMs: 100 }));
    expect(outcome).toMatchObject({ failure: { kind: 'idle' } });
    expect(recordsOf(outcome)[1]).toMatchObject({ outcome: 'killed_idle', message: 'it was silent for 100ms' });
  });

  test('is an error if the working directory of a validator is missing', async () => {
    const outcome = await rig.start(rig.validate([builtin('tests', ':', { cwd: 'nowhere' })]));
    expect(outcome).toMatchObject({ failure: { kind: 'not-started' } });
    expect(recordOf(outcome).message).toContain('nowhere does not exist');
  });

  test('is a refusal if there is no working directory', async () => {
    const open = () => Promise.resolve({ ok: false as const, error: 'no repository; make one' });
    await rig.close();
    rig = new OpcodeRig({ workspace: { open, folder: rig.worktree } });
    expect(await rig.start(rig.validate([builtin('tests', ':')]))).toMatchObject({
      failure: { kind: 'refused', message: 'no repository; make one' },
    });
  });
});

describe('the output of a visit', () => {
  test('is in its own folder, and named', async () => {
    const effect = rig.validate([builtin('tests', 'echo out; echo err >&2; exit 1')], { visit: 7 });
    const outcome = await rig.start(effect);
    const [path, required] = ['artifacts/check/7', true];
    expect(outputsOf(outcome)['artifacts']).toEqual([
      { role: 'validation_stdout', path: `${path}/tests.stdout`, media_type: 'text/plain', required },
      { role: 'validation_stderr', path: `${path}/tests.stderr`, media_type: 'text/plain', required },
      { role: 'validation_report', path: `${path}/validation_report.json`, media_type: 'application/json', required },
    ]);
    expect(rig.artifact(`${path}/tests.stdout`)).toBe('out\n');
    expect(rig.artifact(`${path}/tests.stderr`)).toBe('err\n');
    const report = JSON.parse(rig.artifact(`${path}/validation_report.json`)) as unknown;
    expect(report).toMatchObject({ outcome: 'error', validators: [{ id: 'tests', exit_code: 1 }] });
  });

  test('may be any bytes', async () => {
    await rig.start(rig.validate([builtin('tests', String.raw`printf '\377\000\376'`)], { visit: 1 }));
    expect(rig.artifact('artifacts/check/1/tests.stdout')).toBe('\xff\0\xfe');
  });

  test('is complete, whatever its size', async () => {
    await rig.start(rig.validate([builtin('tests', 'head -c 3000000 /dev/zero')], { visit: 1 }));
    expect(rig.artifact('artifacts/check/1/tests.stdout')).toHaveLength(3_000_000);
  });
});

describe('a validator that is killed', () => {
  // A child in its own session that ignores SIGTERM, and whose parent does not wait for it.
  const DETACHED = `setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 600; done' & sleep 600`;

  test.for([
    ['it exceeded its time', { timeoutMs: 400 }, null, 'killed_timeout'],
    ['it was silent for too long', {}, 400, 'killed_idle'],
  ] as const)('because %s leaves no process', async ([, more, idleMs, expected]) => {
    const outcome = await rig.start(rig.validate([builtin('tests', DETACHED, more)], { idleMs }));
    expect(recordOf(outcome).outcome).toBe(expected);
    expect(existsSync(join(rig.worktree, 'pid'))).toBe(true);
    expect(rig.left()).toEqual([]);
  });

  test('is not one that prints something now and then', async () => {
    const chatty = 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done';
    expect(await rig.start(rig.validate([builtin('tests', chatty)], { idleMs: 500 }))).toMatchObject({
      kind: 'success',
    });
  });
});

describe('processes that a validator leaves running', () => {
  test.for(['exit 0', 'exit 1', 'kill -9 $$'])('are killed before the next one starts (%s)', async (end) => {
    const first = builtin('first', `(while :; do sleep 600; done) & echo $! > pid; ${end}`);
    // A zombie is not alive.
    const second = builtin('second', 'grep "^State:" "/proc/$(cat pid)/status" | grep -v Z');
    const outcome = await rig.start(rig.validate([first, second]));
    expect(recordsOf(outcome)[1]).toMatchObject({ outcome: 'error', exit_code: 1 });
    expect(rig.left()).toEqual([]);
  });
});

describe('after a restart of the engine', () => {
  test('finished validators do not run again, and a running one is awaited', async () => {
    const validators = [
      builtin('first', 'echo x >> first-ran; exit 4'),
      builtin('held', rig.holding('held')),
      builtin('last', 'echo x >> last-ran'),
    ];
    const effect = rig.validate(validators);
    void rig.start(effect);
    await appears(join(rig.worktree, 'held'));
    rig.nextLife();
    const outcome = rig.find(effect);
    await rig.letGo('held');
    expect(recordsOf(await outcome)).toMatchObject([
      { id: 'first', exit_code: 4 },
      { id: 'held', exit_code: 0 },
      { id: 'last', exit_code: 0 },
    ]);
    for (const name of ['first-ran', 'held', 'last-ran'])
      expect(readFileSync(join(rig.worktree, name), 'utf8')).toBe('x\n');
  });

  test('one that was killed at its timeout stays killed', async () => {
    const effect = rig.validate([builtin('tests', 'echo begun > begun; sleep 600', { timeoutMs: 200 })]);
    const first = await rig.start(effect);
    rig.nextLife();
    expect(await rig.find(effect)).toEqual(first);
    expect(recordOf(first).outcome).toBe('killed_timeout');
  });

  test('the timeout is not extended', async () => {
    const effect = rig.validate([builtin('tests', 'echo begun > begun; sleep 600', { timeoutMs: 1_000 })]);
    void rig.start(effect);
    await appears(join(rig.worktree, 'begun'));
    rig.nextLife();
    expect(recordOf(await rig.find(effect)).outcome).toBe('killed_timeout');
  });
});
