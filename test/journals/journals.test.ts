// Runs that earlier versions recorded (recording.ts): every one can be read, and every one that has not finished can be
// resumed to its end. Nothing that had finished runs again.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Rig, RunObject } from '../rig/rig.ts';
import { restoreRecording } from './recording.ts';
import { finishRun, type Language, LANGUAGES, type State, STATES } from './scenarios.ts';

const VERSIONS = readdirSync(import.meta.dirname).filter((name) => /^\d/.test(name));
const RECORDINGS = VERSIONS.flatMap((version) =>
  LANGUAGES.flatMap((language) => STATES.map((state) => [version, language, state] as const)),
);

/** What `meow status` calls the states that runs were recorded in. */
const SHOWN = { finished: 'done', failed: 'failed', paused: 'paused', waiting: 'waiting', killed: 'running' };

/** A version may compile Conductor to other steps than an earlier one did: then it must say so. */
const REFUSAL = /^meow: .*version/;

test('there is a recording', () => {
  expect(VERSIONS.length).toBeGreaterThan(0);
});

describe('is shown as it was', () => {
  test.each(RECORDINGS)('%s %s %s', async (...recording) => {
    const { rig, recorded } = await restore(...recording);
    const [, , state] = recording;
    await using _ = rig;
    const { steps } = recorded;
    expect(await rig.status('r')).toMatchObject(recorded);
    expect(recorded.status).toBe(SHOWN[state]);

    const shown = await rig.meow('show', 'r', '--steps');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    for (const step of Object.keys(steps)) expect(shown.stdout).toContain(step);
    const traced = await rig.meow('trace', 'r');
    expect(traced).toMatchObject({ code: 0, stderr: '' });
    expect(traced.stdout.split('\n').length).toBeGreaterThan(Object.keys(steps).length);
    // One step for each status.
    const byStatus = new Map(Object.entries(steps).map(([step, { status }]) => [status, step]));
    for (const step of byStatus.values()) {
      const why = await rig.meow('why', 'r', step);
      expect(why, step).toMatchObject({ code: 0, stderr: '' });
      expect(why.stdout).toContain(step);
    }
    const listed = state === 'killed' || state === 'waiting' ? 'interrupted' : SHOWN[state];
    expect((await rig.meow('list')).stdout).toMatch(new RegExp(`^r +${listed} `, 'm'));
  });
});

describe('is resumed to its end', () => {
  test.each(RECORDINGS.filter(([, , state]) => state !== 'finished'))('%s %s %s', async (...recording) => {
    const { rig, recorded } = await restore(...recording);
    const [, language, state] = recording;
    await using _ = rig;
    const { code, stderr } = await finishRun(rig, language);
    if (language === 'conductor' && code === 2) {
      expect(stderr).toMatch(REFUSAL);
      return expect(await rig.status('r'), 'nothing was changed').toMatchObject(recorded);
    }
    // A Conductor run that has come to a STOP with the verdict failure has nothing to try again.
    const end = language === 'conductor' && state === 'failed' ? [1, 'failed'] : [0, 'done'];
    const { status, steps } = await rig.status('r');
    expect([code, status], stderr).toEqual(end);
    for (const [id, step] of Object.entries(recorded.steps)) {
      if (step.status === 'done') expect(steps[id], `${id} had finished`).toMatchObject({ ...step });
    }
    if (language === 'meow' && state === 'killed') {
      // One had ended, one was lost, and the agent's report was in the inbox.
      expect(steps['compile']).toMatchObject({ status: 'done', attempt: 1, outputs: { state: 'compiled' } });
      expect(steps['test']).toMatchObject({ status: 'done', attempt: 2, outputs: { state: 'tested' } });
      expect(steps['draft']).toMatchObject({ status: 'done', attempt: 1, outputs: { title: 'A plan' } });
    }
  });
});

async function restore(version: string, language: Language, state: State): Promise<{ rig: Rig; recorded: RunObject }> {
  const { rig, status } = await restoreRecording(join(import.meta.dirname, version, language, state));
  const recorded = status as RunObject;
  // While a question is open, an agent is shown in the state that asked it; it was `ask` before.
  const agents = recorded.agents.map(({ state: shown, ...agent }) =>
    shown === 'ask' ? agent : { ...agent, state: shown },
  );
  return { rig, recorded: { ...recorded, agents } };
}
