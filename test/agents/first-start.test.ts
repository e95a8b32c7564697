// What an agent asks in a folder in which it has never been stands in its way at the start: a gate says so, and how to be
// rid of it.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

describe.skipIf(!AGENTS_INSTALLED).each([
  { agent: 'claude', asks: /Is this a project you created or one you trust\?[^]*trust the folder once/ },
  { agent: 'codex', asks: /Trust this folder\?[^]*trust the folder once by hand/ },
] as const)('$agent in a folder that it does not know', ({ agent, asks }) => {
  async function unknown(): Promise<AgentRig> {
    const stage = await AgentRig.setup(onPrompts({ 'Go.': report() }), { isTrusted: false });
    stage.workflow(
      spawnStep('start', agent),
      agentStep('go', agent, 'Go.', 'needs = ["start"]'),
      killStep('stop', agent, 'needs = ["go"]'),
    );
    return stage;
  }

  test('waits for a person, and begins when that one approves', async () => {
    await using stage = await unknown();
    const run = stage.run();
    const gate = await stage.gate('start');
    expect(gate.prompt).toMatch(asks);
    expect((await stage.status()).status).toBe('waiting');
    expect((await stage.meow('approve', RUN, gate.id)).code).toBe(0);
    await stage.done(run);
    expect(stage.timesPrompted('Go.')).toBe(1);
    await stage.leftNothing();
  });

  test('still waits when the engine has died, and begins when a person approves', async () => {
    await using stage = await unknown();
    const run = stage.run();
    const gate = await stage.gate('start');
    await stage.crash(run);
    const resumed = stage.resume();
    await stage.decided('run-resumed');
    expect((await stage.meow('approve', RUN, gate.id)).code).toBe(0);
    await stage.done(resumed);
    expect(stage.timesPrompted('Go.')).toBe(1);
    await stage.leftNothing();
  });

  test('is not started where a person rejects it', async () => {
    await using stage = await unknown();
    const run = stage.run();
    const gate = await stage.gate('start');
    expect((await stage.meow('reject', RUN, gate.id)).code).toBe(0);
    expect((await run.ended).code).toBe(1);
    const { steps } = await stage.status();
    expect(steps['start']).toMatchObject({ status: 'failed', error: { type: 'spawn_failed' } });
    expect(stage.model.turns).toEqual([]);
    await stage.leftNothing();
  });
});
