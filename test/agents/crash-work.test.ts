// An engine that dies while agents work: they work on, and the next engine takes up what has become of it.

import { describe, expect, test } from 'vitest';
import { until } from '../rig/rig.ts';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import type { Reply } from './rig/model-talk.ts';
import { latch, shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { asking, onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep, step } from './rig/steps.ts';

const OUTPUTS = 'outputs = { count = { type = "number", required = true } }';

describe.skipIf(!AGENTS_INSTALLED)('an engine dies', () => {
  describe.each([
    ['claude', 'in its terminal', ''],
    ['codex', 'in its terminal', ''],
    ['claude', 'without a terminal', 'channel = "headless"'],
    ['codex', 'without a terminal', 'channel = "headless"'],
  ] as const)('while %s works %s', (agent, _where, channel) => {
    test.each([
      ['while there is none', 'before'],
      ['when there is another', 'after'],
    ])('what it reports %s is taken', async (_when, order) => {
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
      const reported = (): boolean => stage.rig.files(`.meow/workflows/${RUN}/inbox`).length > 0;
      if (order === 'before') {
        letGo();
        await until(reported, 'the report in the inbox');
      }
      const resumed = stage.resume();
      if (order === 'after') {
        await stage.decided('run-resumed');
        letGo();
      }
      const { steps } = await stage.done(resumed);
      expect(steps['count']).toMatchObject({ status: 'done', attempt: 1, outputs: { count: 3 } });
      expect(stage.timesPrompted('Count them.')).toBe(1);
      expect(stage.decisions('agent-opened')).toHaveLength(1);
      await stage.leftNothing();
    });
  });

  test('between two agents, and what the one has found is used by the other', async () => {
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
    'after a report of %s was refused, and the mended one is taken',
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

  test('before an event comes, and it is heard all the same', async () => {
    await using stage = await AgentRig.setup((request): Reply => {
      const look = 'touch looking; until [ -e go ]; do sleep 0.05; done; echo nothing here';
      if (request.last.startsWith('Look around.')) return { call: [shellCall(request, look)] };
      return request.last.includes('nothing here') ? report()(request) : { say: 'fine' };
    });
    stage.workflow(
      step(
        'hooks',
        'expand',
        'template = "lib/claude-events#setup-hooks"',
        `variables = { worktree = ${JSON.stringify(stage.rig.folder)}, events = "tools-only" }`,
      ),
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

  test.each(['claude', 'codex'] as const)('and %s, which stops meanwhile, is told its task again', async (agent) => {
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
    test.each(['before', 'after'])('and what a person decides %s there is another counts', async (order) => {
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
