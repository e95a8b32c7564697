// A dialog in a new folder blocks the start of an agent: it becomes a gate with advice.

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

  test('waits for a person, and starts after the approval', async () => {
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

  test('still waits after the engine has died, and starts after the approval', async () => {
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

  test('is not started after a rejection', async () => {
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
