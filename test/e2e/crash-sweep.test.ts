// The real binary is killed with -9 at every append of its journal, in two moments of each, and resumed. Whatever the
// moment: no finished step runs again (G1), what was running is found again and not run twice (G2), the run ends as it
// would have ended, with all its outputs (G4), and nothing is left running (G5). Once more with the commands killed too, as
// when the machine goes down: then what was running is a further attempt, and what had finished still is not.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunObject } from '../rig/rig.ts';
import { Rig } from '../rig/rig.ts';

const WORKFLOW = readFileSync(join(import.meta.dirname, 'crash-sweep/sweep.meow.toml'), 'utf8');
const MOMENTS = ['torn', 'durable'] as const;
const APPENDS_MAX = 40;
const KILLED = 137;

test.each(MOMENTS)('killed at every append (%s), the run is resumed and nothing runs twice', async (moment) => {
  const calm = await sweep(null, false);
  for (let count = 1; count <= APPENDS_MAX; count++) {
    const rough = await sweep(`${count}:${moment}`, false);
    if (!rough.killed) return expect(count).toBeGreaterThan(5);
    expect(rough, `killed at append ${count}`).toEqual({ ...calm, killed: true });
  }
  expect.fail('the run has more appends than the sweep expects');
});

test('killed with all its commands at every append, only what was running runs again', async () => {
  const calm = await sweep(null, true);
  for (let count = 1; count <= APPENDS_MAX; count++) {
    const rough = await sweep(`${count}:durable`, true);
    if (!rough.killed) return expect(count).toBeGreaterThan(5);
    const where = `killed at append ${count}`;
    expect(rough.end, where).toEqual(calm.end);
    expect(new Set(rough.ran).size, `${where}: an attempt ran twice: ${rough.ran.join(', ')}`).toBe(rough.ran.length);
    for (const step of rough.doneBefore) {
      const times = rough.ran.filter((line) => line.startsWith(`${step} `)).length;
      const calmTimes = calm.ran.filter((line) => line.startsWith(`${step} `)).length;
      expect(times, `${where}: ${step} had finished, and ran again`).toBe(calmTimes);
    }
  }
  expect.fail('the run has more appends than the sweep expects');
});

interface Sweep {
  readonly killed: boolean;
  /** Steps that had ended when all were killed. */
  readonly doneBefore: readonly string[];
  /** A line for each command that ran. */
  readonly ran: readonly string[];
  readonly end: { readonly status: string; readonly yaml: string; readonly outcomes: readonly unknown[] };
}

/** Runs the workflow, killed as told, then resumed to its end. */
async function sweep(killAt: string | null, withCommands: boolean): Promise<Sweep> {
  await using rig = await Rig.setup();
  rig.write('sweep.meow.toml', WORKFLOW);
  const order = ['run', 'sweep.meow.toml', '--id', 'sweep'];
  const first = killAt === null ? await rig.meow(...order) : await rig.meowKilledAt(killAt, ...order);
  const killed = first.code === KILLED;
  let doneBefore: readonly string[] = [];
  if (killed) {
    if (withCommands) {
      await rig.killAll();
      doneBefore = finished((await rig.meow('status', 'sweep', '--json')).stdout);
    }
    const again = await rig.meow('resume', 'sweep');
    // Killed before its first record was whole, the run never began; killed at its last one, it is done.
    if (again.stderr.includes('never began')) expect((await rig.meow(...order)).code).toBe(0);
    else if (!again.stderr.includes('is done')) expect(again.code, again.stderr + again.stdout).toBe(0);
  } else {
    expect(first.code, first.stderr + first.stdout).toBe(0);
  }
  const { status, steps } = await rig.status('sweep');
  const ran = rig.read('ran').trimEnd().split('\n').toSorted();
  const outcomes = Object.entries(steps).map(([id, step]) => [id, step.status, step.outputs]);
  const yaml = /^status: .*$/m.exec(rig.read('.meow/workflows/sweep.yaml'))?.[0] ?? 'none';
  expect(rig.processes(), 'G5: left running').toEqual([]);
  return { killed, doneBefore, ran, end: { status, yaml, outcomes } };
}

function finished(statusJson: string): readonly string[] {
  if (statusJson === '') return [];
  const { steps } = JSON.parse(statusJson) as RunObject;
  return Object.entries(steps).flatMap(([id, { status }]) => (status === 'done' || status === 'failed' ? [id] : []));
}
