// Reports of agents are checked against the step's outputs, whatever the way of reporting and the channel.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import type { Script } from './rig/model-server.ts';
import { type Call, type ModelRequest, shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

const OUTPUTS = 'outputs = { summary = { required = true }, count = { type = "number", required = true } }';

/** A model whose first report is wrong, and correct after the rejection. */
function learner(wrong: (request: ModelRequest) => Call, right: (request: ModelRequest) => Call): Script {
  return (request) => {
    if (request.conversation.every(({ by }) => by !== 'tool')) return { call: [wrong(request)] };
    return /✗ count/.test(request.last) ? { call: [right(request)] } : { say: 'fine' };
  };
}

const BY_COMMAND = learner(
  (request) => shellCall(request, 'meow done --output summary=short --output count=many'),
  (request) => shellCall(request, 'meow done --output summary=short --output count=3'),
);
const BY_TOOL = learner(
  () => ({ tool: 'mcp__meow__done', input: { outputs: { summary: 'short' } } }),
  () => ({ tool: 'mcp__meow__done', input: { outputs: { summary: 'short', count: 3 } } }),
);

describe.skipIf(!AGENTS_INSTALLED).each([
  { agent: 'claude', where: 'a terminal', channel: '' },
  { agent: 'codex', where: 'a terminal', channel: '' },
  { agent: 'claude', where: 'headless mode', channel: 'channel = "headless"' },
  { agent: 'codex', where: 'headless mode', channel: 'channel = "headless"' },
] as const)('$agent in $where', ({ agent, channel }) => {
  test.each([
    { means: 'command', wrong: 'of the wrong type', script: BY_COMMAND, told: /Invalid outputs[^]*✗ count/ },
    { means: 'tool', wrong: 'with a missing output', script: BY_TOOL, told: /Missing required outputs[^]*✗ count/ },
  ])('is told about a report $wrong by the $means, and corrects it', async ({ script, told }) => {
    await using stage = await AgentRig.setup(script);
    stage.workflow(
      spawnStep('start', agent, channel),
      agentStep('count', agent, 'Count them.', `needs = ["start"]\n${OUTPUTS}`),
      killStep('stop', agent, 'needs = ["count"]'),
    );
    const { steps } = await stage.done(stage.run());
    expect(steps['count']).toMatchObject({ status: 'done', attempt: 1, outputs: { summary: 'short', count: 3 } });
    expect(stage.model.turns.filter(({ last }) => told.test(last))).toHaveLength(1);
    expect(stage.timesPrompted('Count them.')).toBe(1);
  });
});
