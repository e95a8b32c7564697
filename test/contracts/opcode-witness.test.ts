// Witnesses: an outcome does not count if the engine's own check fails.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { workspaceFor } from '../../src/drivers/conductor/workspace.ts';
import type { Witness } from '../../src/ir/conductor.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import { appears } from './driver-command-rig.ts';
import { GitRig } from './git-rig.ts';
import { builtin, OpcodeRig, outputsOf } from './opcode-rig.ts';

let rig: OpcodeRig;
beforeEach(() => {
  rig = new OpcodeRig();
});
afterEach(async () => {
  await rig.over();
  await rig.close();
});

type Wish = Partial<Omit<Witness, 'expect'>> & { readonly expect?: Partial<Witness['expect']> };

function witness(command: string, { expect: wanted, ...more }: Wish = {}): Witness {
  return { command, expect: { exitCode: 0, output: null, ...wanted }, dependsOn: [], timeoutMs: null, ...more };
}

function run(completed: Witness, validators = [builtin('tests', ':')]): Promise<Outcome> {
  return rig.start(rig.validate(validators, { witness: completed }));
}

describe('a witness', () => {
  test('that passes leaves its record', async () => {
    const outcome = await run(
      witness('echo "3 passed"; echo "4 passed"; echo note >&2', { expect: { output: String.raw`^\d+ passed$` } }),
    );
    expect(outcome).toMatchObject({ kind: 'success', route: 'completed' });
    expect(outputsOf(outcome)['witness']).toEqual({
      command: 'echo "3 passed"; echo "4 passed"; echo note >&2',
      expected_exit_code: 0,
      exit_code: 0,
      expected_output: String.raw`^\d+ passed$`,
      output_fits: true,
      counts: { stdout_lines: 2, stderr_lines: 1, matches: 2 },
      tree: null,
      depends_on: [],
      touched: [],
      holds: true,
    });
  });

  test.for<[string, Witness, string]>([
    ['with another exit code', witness('exit 1'), 'it exited with status 1, not 0'],
    ['that should fail and does not', witness(':', { expect: { exitCode: 1 } }), 'it exited with status 0, not 1'],
    ['with another output', witness('echo no', { expect: { output: 'yes' } }), 'its output does not fit yes'],
    ['that takes too long', witness('sleep 600', { timeoutMs: 100 }), 'it took longer than 100ms'],
    ['with an invalid expression', witness(':', { expect: { output: '(' } }), '( is not a regular expression'],
  ])('%s fails', async ([, one, reason]) => {
    const outcome = await run(one);
    expect(outcome).toMatchObject({
      failure: { kind: 'unproven', message: `the witness does not bear it out: ${reason}` },
    });
    expect(outputsOf(outcome)).toMatchObject({ witness: { holds: false }, validators: [{ outcome: 'completed' }] });
    const report = JSON.parse(rig.artifact('artifacts/check/1/validation_report.json')) as unknown;
    expect(report).toMatchObject({ outcome: 'error', witness: { holds: false } });
  });

  test('with an expression that takes forever is given up', async () => {
    const one = witness(`printf '%s!' ${'a'.repeat(60)}`, { expect: { output: '^(a+)+$' } });
    expect(await run(one)).toMatchObject({
      failure: { kind: 'unproven', message: expect.stringContaining('takes too long') as string },
    });
  });

  test('may expect a failure', async () => {
    expect(await run(witness('exit 7', { expect: { exitCode: 7 } }))).toMatchObject({ kind: 'success' });
  });

  test('is checked only for the outcome that it is for', async () => {
    const outcome = await run(witness('echo x > heard'), [builtin('tests', 'exit 1')]);
    expect(outcome).toMatchObject({ failure: { kind: 'exit-nonzero' } });
    expect(outputsOf(outcome)['witness']).toBeNull();
  });

  test('runs once, across restarts', async () => {
    const one = witness(`${rig.holding('held')}; exit 3`, { expect: { exitCode: 3 } });
    const effect = rig.validate([builtin('tests', 'echo x >> ran')], { witness: one });
    void rig.start(effect);
    await appears(join(rig.worktree, 'held'));
    rig.nextLife();
    const outcome = rig.find(effect);
    await rig.letGo('held');
    expect(await outcome).toMatchObject({ kind: 'success' });
    expect(readFileSync(join(rig.worktree, 'held'), 'utf8')).toBe('x\n');
    expect(readFileSync(join(rig.worktree, 'ran'), 'utf8')).toBe('x\n');
  });
});

describe('in a worktree', () => {
  test('the files that the witness depends on must not have changed since the start of the run', async () => {
    await using repository = await GitRig.setup();
    const { base, user, environment } = repository;
    const workspace = workspaceFor({
      runId: 'wf-1',
      project: user,
      runDir: join(base, 'run-dir'),
      environment,
      kind: 'worktree',
    });
    const opened = await workspace.open();
    if (!opened.ok) throw new Error(opened.error);
    await rig.close();
    rig = new OpcodeRig({ workspace: { open: () => workspace.open(), folder: opened.value.folder } });

    const one = witness('test -e dir/c.txt', { dependsOn: ['dir/**', 'run.sh'] });
    const before = await run(one, [builtin('tests', 'echo new > new.txt; echo changed > a.txt')]);
    expect(outputsOf(before)).toMatchObject({
      witness: { holds: true, touched: [], tree: expect.stringMatching(/^[0-9a-f]{40}$/) as string },
    });
    const after = await run(one, [builtin('tests', 'echo changed > dir/c.txt; rm run.sh')]);
    expect(after).toMatchObject({
      failure: {
        kind: 'unproven',
        message: 'the witness does not bear it out: what it depends on was touched: dir/c.txt, run.sh',
      },
    });

    const report = `{"suite_id":"s","cases":[],"summary":{},"proposed_goldens":["g.png"]}`;
    const proposing = {
      ...builtin('tests', `echo '${report}' > report.json; rm -rf "$(git rev-parse --git-common-dir)/objects"`),
      artifacts: ['report.json'],
    };
    const unseen = await run(one, [proposing]);
    expect(unseen).toMatchObject({ failure: { kind: 'refused', outputs: { proposed_goldens: ['g.png'] } } });
  });
});
