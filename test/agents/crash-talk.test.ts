// An engine that dies while agents, people and the run communicate: the next engine receives the messages.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { latch, type Reply, shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { asking, onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep, step, toolEventsStep } from './rig/steps.ts';

const OUTPUTS = 'outputs = { count = { type = "number", required = true } }';

describe.skipIf(!AGENTS_INSTALLED)('an engine dies', () => {
  test('before an event arrives, and the event is still processed', async () => {
    await using stage = await AgentRig.setup((request): Reply => {
      const look = 'touch looking; until [ -e go ]; do sleep 0.05; done; echo nothing here';
      if (request.last.startsWith('Look around.')) return { call: [shellCall(request, look)] };
      return request.last.includes('nothing here') ? report()(request) : { say: 'fine' };
    });
    stage.workflow(
      toolEventsStep('hooks', stage.rig.folder),
      spawnStep('start', 'claude', 'needs = ["hooks.*"]'),
      agentStep('look', 'claude', 'Look around.', 'needs = ["start"]'),
      step(
        'watch',
        'branch',
        'condition = "meow await-event tool-completed --filter tool=Bash --timeout 25s"',
        'needs = ["start"]',
        'on_false = { inline = [{ id = "deaf", executor = "shell", command = "exit 1" }] }',
      ),
      killStep('stop', 'claude', 'needs = ["look", "watch"]'),
    );
    const run = stage.run();
    await stage.rig.appears('looking');
    await stage.crash(run);
    stage.rig.write('go', '');
    await stage.model.asked(({ last }) => last.includes('nothing here'));
    const { steps } = await stage.done(stage.resume());
    expect(steps['watch']?.outputs).toMatchObject({ outcome: 'true' });
  });

  test.each(['claude', 'codex'] as const)('and %s, which stops meanwhile, gets its task again', async (agent) => {
    const { hold, letGo } = latch();
    await using stage = await AgentRig.setup(
      onPrompts({
        'Tidy up.': () => ({ say: 'All is tidy.', hold }),
        'Stop hook feedback:': report('count=4'),
        '<hook_prompt ': report('count=4'),
        'You stopped': report('count=4'),
      }),
    );
    stage.workflow(
      spawnStep('start', agent),
      agentStep('tidy', agent, 'Tidy up.', `needs = ["start"]\n${OUTPUTS}`),
      killStep('stop', agent, 'needs = ["tidy"]'),
    );
    const run = stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Tidy up.'));
    await stage.crash(run);
    letGo();
    await stage.hooked(agent, 'Stop');
    const { steps } = await stage.done(stage.resume());
    expect(steps['tidy']).toMatchObject({ outputs: { count: 4 } });
  });

  describe.each([
    ['claude', '--permission-mode manual'],
    ['codex', '-a on-request -s read-only'],
  ] as const)('while a question of %s waits', (agent, args) => {
    test.each(['before', 'after'])('and a person’s decision %s the next engine starts counts', async (order) => {
      await using stage = await AgentRig.setup(asking());
      stage.workflow(
        spawnStep('start', agent, `spawn_args = "${args}"`),
        agentStep('make', agent, 'Make it.', 'needs = ["start"]'),
        killStep('stop', agent, 'needs = ["make"]'),
      );
      const run = stage.run();
      const gate = await stage.gate('make');
      await stage.crash(run);
      if (order === 'before') await stage.meow('approve', RUN, gate.id);
      const resumed = stage.resume();
      if (order === 'after') {
        await stage.decided('run-resumed');
        expect((await stage.gate('make')).id).toBe(gate.id);
        await stage.meow('approve', RUN, gate.id);
      }
      await stage.done(resumed);
      expect(stage.rig.exists('made')).toBe(true);
      expect(stage.timesPrompted('Make it.')).toBe(1);
    });
  });
});
