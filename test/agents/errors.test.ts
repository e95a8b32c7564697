// An agent in a terminal whose model fails becomes idle, and its step fails with the provider's message, from a hook or
// from the screen.

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import type { ModelError } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { type AgentName, agentStep, spawnStep } from './rig/steps.ts';

const BAD: ModelError = {
  status: 400,
  type: 'invalid_request_error',
  message: `this will not do: ${'so '.repeat(150)}`,
};
const DOWN: ModelError = { status: 500, type: 'server_error', message: 'down' };

/** It has a minute to continue by itself. */
const FAILS_MS = 100_000;

async function failed(stage: AgentRig, step: string): Promise<void> {
  const deadline = Date.now() + FAILS_MS;
  while (stage.decisions(`step-failed ${step}`).length === 0) {
    if (Date.now() > deadline) throw new Error(`${step} has not failed: ${JSON.stringify(await stage.status())}`);
    await pause(500);
  }
}

describe.skipIf(!AGENTS_INSTALLED)('a model that fails', () => {
  test.concurrent.for<[AgentName, string, ModelError, RegExp]>([
    ['codex', '400', BAD, /"message":"this will not do: (?:so ){150}"/],
    ['codex', '500', DOWN, /currently experiencing high demand/],
    ['claude', '400', BAD, /API Error: 400 .*this will not do: so/],
  ])('fails the step of %s (%s)', { timeout: FAILS_MS + 50_000 }, async ([agent, , error, message]) => {
    await using stage = await AgentRig.setup(() => ({ error }));
    stage.workflow(spawnStep('start', agent), agentStep('go', agent, 'Go.', 'needs = ["start"]'));
    expect((await stage.meow('run', 'w.meow.toml', '--id', RUN, '--detach')).code).toBe(0);
    await failed(stage, 'go');
    const { steps } = await stage.status();
    expect(steps['go']).toMatchObject({ status: 'failed', delivery: 'accepted', error: { type: 'agent_crashed' } });
    expect(steps['go']?.error?.message).toMatch(message);
    expect(steps['go']?.error?.message).toMatch(/^the agent stopped with an error: /);
  });
});
