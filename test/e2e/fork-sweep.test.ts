// Kills a fork with -9 while it is being made and at every append to its journal, in all three languages, and resumes it.
// At any moment: a kept step never runs, no step runs twice, the end is the same, and nothing is left of a fork that never
// began, or it resumes.

import { beforeAll, describe, expect, test } from 'vitest';
import { ConductorRig, validate, work } from '../fixtures/conductor/rig.ts';
import { forEveryAppend, SWEEP_MS } from '../rig/crash-sweep.ts';
import { Rig, shellStep } from '../rig/rig.ts';

const KILLED = 137;

interface Made extends AsyncDisposable {
  readonly rig: Rig;
  readonly source: string;
  /** What has run since the original ended, a line each. */
  ran(): readonly string[];
}

/** A run `r` that is done, and a workflow that has changed since. */
const ORIGINALS: Readonly<Record<string, () => Promise<Made>>> = {
  async meow() {
    const rig = await Rig.setup();
    const workflow = `[main]
${shellStep('big', 'echo big >> ran; head -c 1500000 /dev/zero', 'outputs = { text = "stdout" }')}
${shellStep('list', `echo list >> ran; echo '["a", "b"]'`, 'outputs = { items = { source = "stdout", type = "json" } }')}
[[main.steps]]
id = "each"
executor = "foreach"
items = "{{list.outputs.items}}"
item_var = "it"
template = ".one"
needs = ["list"]
${shellStep('end', 'echo end >> ran', 'needs = ["each", "big"]')}
[one]
${shellStep('build', 'echo build {{it}} >> ran').replace('main.steps', 'one.steps')}
${shellStep('check', 'echo check {{it}} >> ran', 'needs = ["build"]').replace('main.steps', 'one.steps')}`;
    rig.write('w.meow.toml', workflow);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
    rig.write('ran', '');
    rig.write('w.meow.toml', workflow.replace('echo check', 'echo test'));
    return own(rig, 'w.meow.toml', () => rig.read('ran').split('\n').slice(0, -1).toSorted());
  },
  async raymond() {
    const rig = await Rig.setup();
    const next = (name: string, tag: string): void =>
      rig.write(`flow/${name}.sh`, `echo ${name} >> ran; echo '${tag}'`);
    next('START', '<fork next="WORK">LOOP</fork>');
    next('LOOP', '<goto>LAST</goto>');
    next('WORK', '<goto>LAST</goto>');
    next('LAST', '<result>over</result>');
    expect((await rig.meow('run', 'flow', '--id', 'r')).code).toBe(0);
    rig.write('ran', '');
    rig.write('flow/WORK.sh', `echo OTHER >> ran; echo '<goto>LAST</goto>'`);
    return own(rig, 'flow', () => rig.read('ran').split('\n').slice(0, -1).toSorted());
  },
  async conductor() {
    const check = { id: 'check', kind: 'script', entrypoint: 'check.sh' };
    const made = await ConductorRig.setup(
      { 'a.txt': 'one\n', 'check.sh': '#!/bin/sh\ncat a.txt\n' },
      '[conductor]\nallowed_entrypoints = ["check.sh"]\n',
    );
    made.agents({ implement: 'echo two >> a.txt; echo new > b.txt', polish: 'echo three >> a.txt' });
    const steps = { implement: work('check'), check: validate('polish', [check]), polish: work('STOP') };
    made.workflow(steps);
    expect((await made.run()).code).toBe(0);
    const before = made.turns().length;
    made.workflow({ ...steps, check: validate('polish', [{ ...check, args: ['again'] }]) });
    const ran = (): readonly string[] => [
      ...made.turns().slice(before),
      ...made.rig.read('.meow/worktrees/f/a.txt').split('\n'),
      made.rig.read('.meow/worktrees/r/a.txt'),
    ];
    return { rig: made.rig, source: 'w.yaml', ran, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() };
  },
};

function own(rig: Rig, source: string, ran: Made['ran']): Made {
  return { rig, source, ran, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

interface Sweep {
  readonly killed: boolean;
  readonly ran: readonly string[];
  readonly steps: readonly (readonly [string, string, string | null])[];
}

async function sweep(language: string, killAt: string | null): Promise<Sweep> {
  await using made = (await ORIGINALS[language]?.()) ?? expect.fail();
  const { rig, source } = made;
  const order = ['fork', 'r', '--source', source, '--id', 'f'];
  const first = killAt === null ? await rig.meow(...order) : await rig.meowKilledAt(killAt, ...order);
  const killed = first.code === KILLED;
  if (killed) {
    const again = await rig.meow('resume', 'f');
    if (/never began|there is no run f/.test(again.stderr)) {
      const anew = await rig.meow(...order);
      expect(anew.code, anew.stderr + anew.stdout).toBe(0);
    } else if (!again.stderr.includes('is done')) expect(again.code, again.stderr + again.stdout).toBe(0);
  } else expect(first.code, first.stderr + first.stdout).toBe(0);
  const { status, steps } = await rig.status('f');
  expect(status).toBe('done');
  expect(await rig.left(), 'left running').toEqual([]);
  const found = Object.entries(steps).map(([id, step]) => [id, step.status, step.kept_from] as const);
  return { killed, ran: made.ran(), steps: found.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}

describe.each([
  ['meow', 0],
  ['raymond', 1],
  ['conductor', 2],
])('%s', (language, sample) => {
  let calm: Sweep;
  beforeAll(async () => {
    calm = await sweep(language, null);
  });

  test('without crashes a fork runs what has changed', () => {
    const kept = calm.steps.filter(([, , from]) => from === 'r').map(([id]) => id);
    expect(calm.ran).toEqual(
      {
        meow: ['end', 'test a', 'test b'],
        raymond: ['LAST', 'OTHER'],
        conductor: ['polish#1.turn 1', 'one', 'two', 'three', '', 'one\ntwo\nthree\n'],
      }[language],
    );
    expect(kept).toEqual(
      {
        meow: ['big', 'each.0.build', 'each.1.build', 'list'],
        raymond: ['main.1.START', 'main_loop1.1.LOOP', 'main_loop1.2.LAST'],
        conductor: ['implement#1'],
      }[language],
    );
  });

  test.each([
    ['torn', 0],
    ['durable', 1],
  ])('killed at every append (%s), it ends the same', { timeout: SWEEP_MS }, async (moment, shift) => {
    await forEveryAppend(sample + shift, async (count) => {
      const rough = await sweep(language, `${count}:${moment}`);
      if (rough.killed) expect(rough, `killed at append ${count}`).toEqual({ ...calm, killed: true });
      return rough.killed;
    });
  });
});
