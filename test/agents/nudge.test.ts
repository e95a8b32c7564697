// An agent that stops during its step gets its task again, from its own hook.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import type { Script } from './rig/model-server.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report, say } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

const NUDGE = /^(?:Stop hook feedback:\n|<hook_prompt [^>]*>)You stopped before this step was reported/;

/** A model that forgets to report until it is told to. */
const FORGETFUL: Script = onPrompts({
  'Tidy up.': say('All is tidy.'),
  'Stop hook feedback:': report('things=4'),
  '<hook_prompt ': report('things=4'),
  'Please report.': report('things=5'),
});

const OUTPUTS = 'outputs = { things = { type = "number", required = true } }';

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'codex'] as const)('%s', (agent) => {
  test('continues when it stops before it has reported', async () => {
    await using stage = await AgentRig.setup(FORGETFUL);
    stage.workflow(
      spawnStep('start', agent),
      agentStep('tidy', agent, 'Tidy up.', `needs = ["start"]\n${OUTPUTS}`),
      killStep('stop', agent, 'needs = ["tidy"]'),
    );
    const { steps } = await stage.done(stage.run());
    expect(steps['tidy']).toMatchObject({ outputs: { things: 4 }, attempt: 1 });
    const nudges = stage.model.turns.filter(({ last }) => NUDGE.test(last));
    expect(nudges).toHaveLength(1);
    expect(nudges[0]?.last).toMatch(/Tidy up\.\n[^]*meow done --output things=/);
  });

  test('is left alone while a person talks with it', async () => {
    await using stage = await AgentRig.setup(FORGETFUL);
    stage.workflow(
      spawnStep('start', agent),
      agentStep('tidy', agent, 'Tidy up.', `needs = ["start"]\nmode = "interactive"\n${OUTPUTS}`),
      killStep('stop', agent, 'needs = ["tidy"]'),
    );
    const run = stage.run();
    await stage.hooked(agent, 'Stop');
    await (await stage.terminal(agent)).type('Please report.');
    const { steps } = await stage.done(run);
    expect(steps['tidy']?.outputs).toEqual({ things: 5 });
    expect(stage.model.turns.filter(({ last }) => NUDGE.test(last))).toEqual([]);
  });
});
