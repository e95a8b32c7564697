// Agents without a terminal: a process a prompt, one session for all of them, and what they cost.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { INPUT_TOKENS, OUTPUT_TOKENS } from './rig/model-talk.ts';
import type { ModelRequest } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, say } from './rig/scripts.ts';
import type { AgentName } from './rig/steps.ts';
import { agentStep, killStep, spawnStep, step } from './rig/steps.ts';

const SCRIPT = onPrompts({
  'Take a number.': say('I took 7.'),
  'Add one.': say('That is 8.'),
  'Double it.': say('That is 16.'),
  'Forget it.': say('It is forgotten.'),
  'What was it?': say('It was 16.'),
});

const HEADLESS = 'channel = "headless"';
const IN_SESSION = `${HEADLESS}\nresume_session = "{{session.outputs.id}}"`;

/** Three prompts in one session; a copy of it goes its own way; then another agent takes the session up. */
function workflow(agent: AgentName): readonly string[] {
  return [
    spawnStep('start', agent, HEADLESS),
    agentStep('take', agent, 'Take a number.', 'needs = ["start"]'),
    agentStep('add', agent, 'Add one.', 'needs = ["take"]'),
    agentStep('double', agent, 'Double it.', 'needs = ["add"]'),
    step(
      'session',
      'shell',
      `command = "meow session-id --agent ${agent}"`,
      'outputs = { id = { source = "stdout" } }',
      'needs = ["double"]',
    ),
    step(
      'copy',
      'spawn',
      `agent = "fork"\nadapter = "${agent}"`,
      `${IN_SESSION}\nfork_session = true`,
      'needs = ["session"]',
    ),
    agentStep('forget', 'fork', 'Forget it.', 'needs = ["copy"]'),
    killStep('stop', agent, 'needs = ["forget"]'),
    step('again', 'spawn', `agent = "later"\nadapter = "${agent}"`, IN_SESSION, 'needs = ["stop"]'),
    agentStep('ask', 'later', 'What was it?', 'needs = ["again"]'),
  ];
}

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'codex'] as const)('%s without a terminal', (agent) => {
  test('remembers in its session what it was told, and a fork goes its own way', async () => {
    await using stage = await AgentRig.setup(SCRIPT);
    stage.workflow(...workflow(agent));
    const { steps, cost } = await stage.done(stage.run());
    expect(steps['double']?.outputs).toMatchObject({ result: 'That is 16.' });
    expect(stage.model.turns.map(told)).toEqual([
      ['Take a number.'],
      ['Take a number.', 'Add one.'],
      ['Take a number.', 'Add one.', 'Double it.'],
      ['Take a number.', 'Add one.', 'Double it.', 'Forget it.'],
      ['Take a number.', 'Add one.', 'Double it.', 'What was it?'],
    ]);
    const [first, second, third, fork, later] = stage.model.turns.map(({ session }) => session);
    expect([second, third, later]).toEqual([first, first, first]);
    expect(fork).not.toBe(first);
    const turns = stage.model.turns.length;
    expect(cost.tokens).toBe(turns * (INPUT_TOKENS + OUTPUT_TOKENS));
    if (agent === 'claude') {
      const stdout = stage.rig.read(`.meow/workflows/${RUN}/steps/take/1/stdout`);
      const price = Number(/"total_cost_usd":([\d.]+)/.exec(stdout)?.[1]);
      expect(price).toBeGreaterThan(0);
      expect(cost.usd).toBeCloseTo(turns * price, 8);
      expect(cost.unknown_turns).toBe(0);
    } else {
      expect(cost).toMatchObject({ usd: null, unknown_turns: turns });
    }
  });
});

function told({ conversation }: ModelRequest): readonly string[] {
  return conversation.flatMap(({ by, text }) => (by === 'user' ? [text] : []));
}
