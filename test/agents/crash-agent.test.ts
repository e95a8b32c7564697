// An agent that dies during its work; and one that dies together with the engine.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import { latch } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep, step } from './rig/steps.ts';

const HEADLESS = 'channel = "headless"';

/** Holds every answer to the second prompt back, until it is released. */
function slow(hold: Promise<void>): ReturnType<typeof onPrompts> {
  return onPrompts({
    'Count them.': report('count=3'),
    'Now paint them.': (request) => ({ ...report('colour=teal')(request), hold }),
  });
}

describe.skipIf(!AGENTS_INSTALLED).each([
  ['claude', 'in a terminal', ''],
  ['codex', 'in a terminal', ''],
  ['claude', 'without a terminal', HEADLESS],
  ['codex', 'without a terminal', HEADLESS],
] as const)('%s %s', (agent, _where, channel) => {
  const count = agentStep(
    'count',
    agent,
    'Count them.',
    'needs = ["start"]\noutputs = { count = { type = "number" } }',
  );
  const paint = agentStep('paint', agent, 'Now paint them.', 'needs = ["count"]\noutputs = { colour = {} }');
  // An agent that finds a lock of a killed one takes time to exit.
  const stop = killStep('stop', agent, 'needs = ["paint"]\ngraceful = false');

  test('fails its step when it is killed', async () => {
    await using stage = await AgentRig.setup(slow(new Promise(() => undefined)));
    stage.workflow(spawnStep('start', agent, channel), count, paint);
    const run = stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Now paint them.'));
    for (const pid of stage.processesOf(agent)) process.kill(pid, 'SIGKILL');
    expect((await run.ended).code).toBe(1);
    const { steps } = await stage.status();
    expect(steps['count']?.status).toBe('done');
    expect(steps['paint']).toMatchObject({ status: 'failed', error: { type: 'agent_crashed' } });
  });

  test('is started again in its session if it was lost together with the engine', async () => {
    const { hold, letGo } = latch();
    await using stage = await AgentRig.setup(slow(hold));
    stage.workflow(spawnStep('start', agent, channel), count, paint, stop);
    stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Now paint them.'));
    await stage.killAll();
    letGo();
    const { steps } = await stage.done(stage.resume());
    expect(steps['paint']).toMatchObject({ status: 'done', outputs: { colour: 'teal' } });
    const last = stage.model.turns.at(-1);
    expect(last?.conversation.filter(({ by, text }) => by === 'user' && text.startsWith('Count them.'))).toHaveLength(
      1,
    );
    expect(new Set(stage.model.turns.map(({ session }) => session)).size).toBe(1);
  });

  test('is started again if it was lost before it had any work', async () => {
    await using stage = await AgentRig.setup(onPrompts({ 'Count them.': report('count=3') }));
    stage.workflow(
      spawnStep('start', agent, channel),
      step('wait', 'shell', 'command = "touch waits; until [ -e go ]; do sleep 0.05; done"', 'needs = ["start"]'),
      count.replace('"start"', '"wait"'),
      stop.replace('"paint"', '"count"'),
    );
    stage.run();
    await stage.rig.appears('waits');
    await stage.killAll();
    stage.rig.write('go', '');
    const { steps } = await stage.done(stage.resume());
    expect(steps['count']).toMatchObject({ status: 'done', outputs: { count: 3 } });
    expect(stage.timesPrompted('Count them.')).toBe(1);
  });
});

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'codex'] as const)('%s in a terminal', (agent) => {
  test('fails its step when its terminal is closed', async () => {
    const hold = new Promise<void>(() => undefined);
    await using stage = await AgentRig.setup(() => ({ say: 'I think', hold }));
    stage.workflow(spawnStep('start', agent), agentStep('think', agent, 'Think.', 'needs = ["start"]'));
    const run = stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Think.'));
    (await stage.terminal(agent)).kill();
    expect((await run.ended).code).toBe(1);
    const { steps } = await stage.status();
    expect(steps['think']).toMatchObject({ status: 'failed', error: { type: 'agent_crashed' } });
    await stage.leftNothing();
  });
});
