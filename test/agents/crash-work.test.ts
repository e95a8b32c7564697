// An engine that dies while agents work: they continue, and the next engine uses their results.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import { INPUT_TOKENS, latch, OUTPUT_TOKENS, type Reply } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

const OUTPUTS = 'outputs = { count = { type = "number", required = true } }';

describe.skipIf(!AGENTS_INSTALLED)('an engine dies', () => {
  describe.each([
    ['claude', 'in its terminal', ''],
    ['codex', 'in its terminal', ''],
    ['claude', 'without a terminal', 'channel = "headless"'],
    ['codex', 'without a terminal', 'channel = "headless"'],
  ] as const)('while %s works %s', (agent, _where, channel) => {
    test.each([
      ['without an engine', 'before'],
      ['to the next engine', 'after'],
    ])('a report %s is accepted', async (_when, order) => {
      const { hold, letGo } = latch();
      await using stage = await AgentRig.setup(
        onPrompts({ 'Count them.': (request) => ({ ...report('count=3')(request), hold }) }),
      );
      stage.workflow(
        spawnStep('start', agent, channel),
        agentStep('count', agent, 'Count them.', `needs = ["start"]\n${OUTPUTS}`),
        killStep('stop', agent, 'needs = ["count"]'),
      );
      const run = stage.run();
      await stage.model.asked(({ last }) => last.startsWith('Count them.'));
      await stage.crash(run);
      if (order === 'before') {
        letGo();
        await stage.questionWaits();
      }
      const resumed = stage.resume();
      if (order === 'after') {
        await stage.decided('run-resumed');
        letGo();
      }
      const { steps, cost } = await stage.done(resumed);
      expect(steps['count']).toMatchObject({ status: 'done', attempt: 1, outputs: { count: 3 } });
      expect(stage.timesPrompted('Count them.')).toBe(1);
      if (channel !== '') expect(cost.tokens).toBe(stage.model.turns.length * (INPUT_TOKENS + OUTPUT_TOKENS));
      expect(stage.decisions('agent-opened')).toHaveLength(1);
      await stage.leftNothing();
    });
  });

  test('between two agents, and the second uses the result of the first', async () => {
    const { hold, letGo } = latch();
    await using stage = await AgentRig.setup(
      onPrompts({
        'Name a colour.': report('colour=teal'),
        'Paint it teal.': (request) => ({ ...report()(request), hold }),
      }),
    );
    stage.workflow(
      spawnStep('one', 'claude'),
      spawnStep('two', 'codex'),
      agentStep('name', 'claude', 'Name a colour.', 'needs = ["one"]\noutputs = { colour = { required = true } }'),
      agentStep('paint', 'codex', 'Paint it {{name.outputs.colour}}.', 'needs = ["two", "name"]'),
      killStep('stop-one', 'claude', 'needs = ["paint"]'),
      killStep('stop-two', 'codex', 'needs = ["paint"]'),
    );
    const run = stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Paint it teal.'));
    await stage.crash(run);
    letGo();
    await stage.done(stage.resume());
    expect([stage.timesPrompted('Name a colour.'), stage.timesPrompted('Paint it teal.')]).toEqual([1, 1]);
    expect(stage.decisions('agent-opened')).toHaveLength(2);
    await stage.leftNothing();
  });

  test.each(['claude', 'codex'] as const)(
    'after a report of %s was rejected, and the corrected one is accepted',
    async (agent) => {
      const { hold, letGo } = latch();
      await using stage = await AgentRig.setup((request): Reply => {
        if (request.last.startsWith('Count them.')) return report('count=many')(request);
        return request.last.includes('✗ count') ? { ...report('count=3')(request), hold } : { say: 'fine' };
      });
      stage.workflow(
        spawnStep('start', agent),
        agentStep('count', agent, 'Count them.', `needs = ["start"]\n${OUTPUTS}`),
        killStep('stop', agent, 'needs = ["count"]'),
      );
      const run = stage.run();
      await stage.model.asked(({ last }) => last.includes('✗ count'));
      await stage.crash(run);
      letGo();
      const { steps } = await stage.done(stage.resume());
      expect(steps['count']).toMatchObject({ attempt: 1, outputs: { count: 3 } });
      expect(stage.timesPrompted('Count them.')).toBe(1);
    },
  );
});
