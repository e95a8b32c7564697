// Kills the real binary with -9 at every append to its journal, at two moments of each, and resumes it. At any moment:
// no finished step runs again (G1), running commands are found again and not run twice (G2), the run ends the same with
// all outputs (G4), no expansion is made and no gate requested twice, and nothing is left running (G5). Then the same
// with commands and agents killed too, as in a power failure: running steps get another attempt, finished steps do not.
// Five workflows: plain steps, a long chain, everything that expands and waits, agents, and loops.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { approvedByPerson, forEveryAppend, SWEEP_MS } from '../rig/crash-sweep.ts';
import { Rig, type RunObject } from '../rig/rig.ts';

const FOLDER = join(import.meta.dirname, 'crash-sweep');
const KILLED = 137;

describe.each([
  ['sweep', 0],
  ['chain', 1],
  ['growth', 2],
  ['agents', 3],
  ['loop', 1],
])('%s', (name, sample) => {
  let calm: Sweep;
  beforeAll(async () => {
    calm = await sweep(name, null, false);
  });

  test.each([
    ['torn', 0],
    ['durable', 2],
  ])('killed at every append (%s), a run executes nothing twice', { timeout: SWEEP_MS }, async (moment, shift) => {
    await forEveryAppend(sample + shift, async (count) => {
      const rough = await sweep(name, `${count}:${moment}`, false);
      if (rough.killed) expect(rough, `killed at append ${count}`).toEqual({ ...calm, killed: true });
      return rough.killed;
    });
  });

  test('killed with all its commands at every append, a run repeats only what was running', {
    timeout: SWEEP_MS,
  }, async () => {
    await forEveryAppend(sample + 1, async (count) => {
      const rough = await sweep(name, `${count}:durable`, true);
      if (!rough.killed) return false;
      const where = `killed at append ${count}`;
      expect(rough.end, where).toEqual(calm.end);
      const commands = rough.ran.filter((line) => /\d$/.test(line));
      expect(new Set(commands).size, `${where}: an attempt ran twice: ${commands.join(', ')}`).toBe(commands.length);
      for (const step of rough.doneBefore) {
        const times = rough.ran.filter((line) => line.split(' ')[0] === step).length;
        const calmTimes = calm.ran.filter((line) => line.split(' ')[0] === step).length;
        expect(times, `${where}: ${step} had finished, and ran again`).toBe(calmTimes);
      }
      return true;
    });
  });
});

interface Sweep {
  readonly killed: boolean;
  /** Steps that had ended when everything was killed. */
  readonly doneBefore: readonly string[];
  /** One line for each command that ran. */
  readonly ran: readonly string[];
  readonly end: { readonly status: string; readonly yaml: string; readonly outcomes: readonly unknown[] };
}

/** Runs the workflow, kills it as requested, then resumes it to the end. */
async function sweep(name: string, killAt: string | null, withCommands: boolean): Promise<Sweep> {
  await using rig = await Rig.setup();
  for (const file of readdirSync(FOLDER).filter((each) => each.startsWith(`${name}.`))) {
    rig.write(file, readFileSync(join(FOLDER, file)));
  }
  const order = ['run', `${name}.meow.toml`, '--id', 'sweep'];
  const decision = name === 'growth' ? approvedByPerson(rig, 'sweep', 'review') : null;
  const first = killAt === null ? await rig.meow(...order) : await rig.meowKilledAt(killAt, ...order);
  const killed = first.code === KILLED;
  let doneBefore: readonly string[] = [];
  if (killed) {
    if (withCommands) {
      await rig.killAll();
      doneBefore = finished((await rig.meow('status', 'sweep', '--json')).stdout);
    }
    const again = await rig.meow('resume', 'sweep');
    // Killed before its first record was complete, the run never began; killed at its last one, it is done.
    if (again.stderr.includes('never began')) expect((await rig.meow(...order)).code).toBe(0);
    else if (!again.stderr.includes('is done')) expect(again.code, again.stderr + again.stdout).toBe(0);
  } else {
    expect(first.code, first.stderr + first.stdout).toBe(0);
  }
  await decision;
  const { status, steps } = await rig.status('sweep');
  const ran = rig.read('ran').trimEnd().split('\n').toSorted();
  const outcomes = Object.entries(steps)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, step]) => [id, step.status, withoutSession(step.outputs)]);
  expect(rig.read('.meow/workflows/sweep/journal.jsonl'), 'G3: a gate was asked for twice').not.toContain(
    '"anew":true',
  );
  const yaml = /^status: .*$/m.exec(rig.read('.meow/workflows/sweep.yaml'))?.[0] ?? 'none';
  expect(await rig.left(), 'G5: left running').toEqual([]);
  return { killed, doneBefore, ran, end: { status, yaml, outcomes } };
}

/** Session ids are random for every run, and the working directory differs. */
function withoutSession(outputs: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(outputs).filter(([name]) => name !== 'session_id' && name !== 'workdir'));
}

function finished(statusJson: string): readonly string[] {
  if (statusJson === '') return [];
  const { steps } = JSON.parse(statusJson) as RunObject;
  return Object.entries(steps).flatMap(([id, { status }]) => (status === 'done' || status === 'failed' ? [id] : []));
}
