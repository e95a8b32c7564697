// Sessions: an agent remembers its session, another may continue it or a fork of it; and the costs, if the agent
// reports them.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { INPUT_TOKENS, type ModelRequest, OUTPUT_TOKENS } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report, say } from './rig/scripts.ts';
import { type AgentName, agentStep, killStep, spawnStep, step } from './rig/steps.ts';

const ANSWERS = {
  'Take a number.': 'I took 7.',
  'Add one.': 'That is 8.',
  'Double it.': 'That is 16.',
  'Forget it.': 'It is forgotten.',
  'What was it?': 'It was 16.',
};
const ANSWERING = onPrompts(Object.fromEntries(Object.entries(ANSWERS).map(([prompt, text]) => [prompt, say(text)])));
const REPORTING = onPrompts(Object.fromEntries(Object.keys(ANSWERS).map((prompt) => [prompt, report()])));

/** Three prompts in one session; a fork of it; then another agent resumes the session. */
function workflow(agent: AgentName, channel: 'headless' | 'terminal'): readonly string[] {
  const on = `channel = "${channel}"`;
  const inSession = `${on}\nresume_session = "{{session.outputs.id}}"`;
  return [
    spawnStep('start', agent, on),
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
      `${inSession}\nfork_session = true`,
      'needs = ["session"]',
    ),
    agentStep('forget', 'fork', 'Forget it.', 'needs = ["copy"]'),
    killStep('stop', agent, 'needs = ["forget"]'),
    step('again', 'spawn', `agent = "later"\nadapter = "${agent}"`, inSession, 'needs = ["stop"]'),
    agentStep('ask', 'later', 'What was it?', 'needs = ["again"]'),
  ];
}

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'codex'] as const)('%s', (agent) => {
  test('continues its session headless, and a turn costs what it has added', async () => {
    await using stage = await AgentRig.setup(ANSWERING);
    stage.workflow(...workflow(agent, 'headless'));
    const { steps, cost } = await stage.done(stage.run());
    expect(steps['double']?.outputs).toMatchObject({ result: 'That is 16.' });
    checkSessions(stage);
    const turns = stage.model.turns.length;
    expect(cost.tokens).toBe(turns * (INPUT_TOKENS + OUTPUT_TOKENS));
    if (agent === 'claude') {
      const stdout = stage.rig.read(`.meow/workflows/${RUN}/steps/take.1.stdout`);
      const price = Number(/"total_cost_usd":([\d.]+)/.exec(stdout)?.[1]);
      expect(price).toBeGreaterThan(0);
      expect(cost.usd).toBeCloseTo(turns * price, 8);
      expect(cost.unknown_turns).toBe(0);
    } else {
      expect(cost).toMatchObject({ usd: null, unknown_turns: turns });
    }
  });

  test('continues its session in terminals', async () => {
    await using stage = await AgentRig.setup(REPORTING);
    stage.workflow(...workflow(agent, 'terminal'));
    const { cost } = await stage.done(stage.run());
    checkSessions(stage);
    // From the session files that the hooks name.
    expect(cost).toEqual({ usd: null, tokens: expect.any(Number) as unknown, unknown_turns: 5 });
  });
});

/** The fork has the history from before it was made, and no other session has the fork's history. */
function checkSessions({ model }: AgentRig): void {
  const prompted = model.turns.filter(({ last }) => Object.keys(ANSWERS).some((prompt) => last.startsWith(prompt)));
  expect(prompted.map(told)).toEqual([
    ['Take a number.'],
    ['Take a number.', 'Add one.'],
    ['Take a number.', 'Add one.', 'Double it.'],
    ['Take a number.', 'Add one.', 'Double it.', 'Forget it.'],
    ['Take a number.', 'Add one.', 'Double it.', 'What was it?'],
  ]);
  const [first, second, third, fork, later] = prompted.map(({ session }) => session);
  expect([second, third, later]).toEqual([first, first, first]);
  expect(fork).not.toBe(first);
}

/** The first line of each prompt; the rest says how to report. */
function told({ conversation }: ModelRequest): readonly (string | undefined)[] {
  return conversation.flatMap(({ by, text }) => (by === 'user' ? [text.split('\n')[0]] : []));
}
