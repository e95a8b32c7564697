// The engine is killed with -9 between any two of its actions. Each time the next engine finds one agent, prompted
// once.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Effect } from '../../src/ir/effect.ts';
import { bundled } from '../rig/bundle.ts';
import { sample } from '../rig/sample.ts';
import { AgentRig, failedWith, SUCCESS } from './agent-rig.ts';

const SCRIPT =
  '[[on]]\nstep = "note"\ndo = [{ say = "noted" }]\n[[on]]\nstep = "task"\ndo = [{ say = "works" }, { hang = true }]';

let rig: AgentRig;
beforeEach(() => {
  rig = new AgentRig({ script: SCRIPT });
});
afterEach(() => rig.close());

const effects = (): readonly Effect[] => [
  rig.spawning('worker'),
  rig.prompting('worker', 'note this', { id: 'note#1', mode: 'fire-forget' }),
  rig.prompting('worker', 'do this', { id: 'task#1' }),
];

/** Another process with the same driver. */
function engineOf(asked: readonly Effect[], more: Record<string, string>): ChildProcessByStdio<null, Readable, null> {
  const program = bundled(new URL('../fixtures/agents/engine.ts', import.meta.url));
  const { files: _, ...options } = { ...rig.options, runFolder: rig.runFolder };
  const args = [program, ...[options, ...asked].map((value) => JSON.stringify(value))];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...more } });
}

/** Kills it when it has said `until`, after this many more milliseconds. */
async function killedEngine(asked: readonly Effect[], until: string, laterMs = 0): Promise<void> {
  const engine = engineOf(asked, {});
  const ended = new Promise((resolve) => engine.once('exit', resolve));
  for await (const line of createInterface({ input: engine.stdout })) {
    if (line === until) break;
  }
  if (laterMs > 0) await pause(laterMs);
  engine.kill('SIGKILL');
  await ended;
}

/** The next engine resumes the requests of the previous one, until the agent works on the last of them. */
async function takeUp(): Promise<void> {
  rig.nextLife();
  const [spawning, note, work] = effects() as [Effect, Effect, Effect];
  expect(await rig.find(spawning)).toMatchObject(SUCCESS);
  const attended = rig.find(rig.attending('worker'));
  expect(await rig.find(note)).toMatchObject(SUCCESS);
  const worked = rig.find(work);
  await rig.says('worker', 'hangs');
  rig.driver.conclude?.(work.id);
  expect(await worked).toMatchObject(SUCCESS);
  expect(rig.left()).toHaveLength(2);
  expect(rig.timesBegun({ ...spawning, step: 'worker' })).toBe(1);
  for (const words of ['> note this', '> do this', 'noted', 'works']) {
    expect(rig.transcript('worker').split(`${words}\n`), words).toHaveLength(2);
  }
  expect(await rig.find(rig.killing('worker', 100))).toMatchObject(SUCCESS);
  expect(await attended).toMatchObject(SUCCESS);
  expect(rig.left()).toEqual([]);
}

describe('after kill -9 of the engine', () => {
  test('before any request, everything is requested once', () => takeUp());

  test.each(sample([0, 1, 3, 6, 10, 20, 40]))(
    '%i ms after the request for the agent, exactly one exists',
    async (ms) => {
      await killedEngine(effects(), 'asks spawn-worker#1', ms);
      await takeUp();
    },
  );

  test.each(['answered spawn-worker#1 success', 'asks note#1', 'answered note#1 success', 'asks task#1'])(
    'after it said %j, each prompt is delivered once',
    async (said) => {
      await killedEngine(effects(), said);
      await takeUp();
    },
  );

  test('while the agent works, the agent keeps working', async () => {
    const engine = engineOf(effects(), {});
    const ended = new Promise((resolve) => engine.once('exit', resolve));
    await rig.says('worker', 'hangs');
    engine.kill('SIGKILL');
    await ended;
    await takeUp();
  });

  test('several times in a row, each prompt is delivered once', async () => {
    await killedEngine(effects().slice(0, 1), 'answered spawn-worker#1 success');
    await killedEngine(effects().slice(1), 'answered note#1 success');
    await killedEngine(effects().slice(2), 'asks task#1');
    await takeUp();
  });

  test('while it kills the agent, the agent is killed', async () => {
    await killedEngine([rig.spawning('worker'), rig.killing('worker')], 'asks kill-1#1', 5);
    rig.nextLife();
    expect(await rig.find(rig.killing('worker'))).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
    const attended = await rig.find(rig.attending('worker'));
    expect([SUCCESS.kind, failedWith('lost').kind]).toContain(attended.kind);
  });
});

test('an engine with nothing else to do exits, although its agent is alive', async () => {
  const engine = engineOf([rig.spawning('worker'), rig.attending('worker')], { ENDS: '1' });
  expect(await new Promise((resolve) => engine.once('exit', resolve))).toBe(0);
  expect(rig.left()).toHaveLength(2);
});
