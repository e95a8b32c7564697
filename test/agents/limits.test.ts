// An agent that has reached its usage limit: its step is parked until the limit resets, and that is not a failed
// attempt.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import type { ModelError, ModelRequest } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

const GO = onPrompts({ 'Go.': report('far=true') });
const OUTPUTS = 'outputs = { far = { type = "boolean", required = true } }';

/** The provider's format for subscribers. */
function limitError({ provider }: ModelRequest, resetsAt: number): ModelError {
  const seconds = Math.floor(resetsAt / 1_000);
  const message = 'no more for now';
  if (provider === 'openai') {
    return { status: 429, type: 'usage_limit_reached', message, details: { plan_type: 'plus', resets_at: seconds } };
  }
  const headers = {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': String(seconds),
    'anthropic-ratelimit-unified-representative-claim': 'five_hour',
    'anthropic-ratelimit-unified-overage-status': 'rejected',
  };
  return { status: 429, type: 'rate_limit_error', message, headers };
}

describe.skipIf(!AGENTS_INSTALLED)('a usage limit', () => {
  test('parks a step, which continues when the limit resets', async () => {
    let resetsAt = 0;
    const script = (request: ModelRequest): ReturnType<typeof GO> => {
      if (resetsAt === 0) resetsAt = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000;
      return Date.now() < resetsAt ? { error: limitError(request, resetsAt) } : GO(request);
    };
    await using stage = await AgentRig.setup(script, { isSubscribed: true });
    stage.workflow(
      spawnStep('start', 'claude', 'channel = "headless"'),
      agentStep('go', 'claude', 'Go.', `needs = ["start"]\n${OUTPUTS}`),
      killStep('stop', 'claude', 'needs = ["go"]'),
    );
    const { steps } = await stage.done(stage.run());
    expect(steps['go']).toMatchObject({ status: 'done', attempt: 2, outputs: { far: true } });
    const parked = (await stage.meow('trace', RUN, '--json')).stdout
      .split('\n')
      .filter((line) => line.includes('retryAt'));
    expect(parked.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { kind: 'step-failed-once', failure: { kind: 'limit-reached' }, retryAt: resetsAt, counts: false },
    ]);
  });

  test.each([
    ['claude', 'terminal'],
    ['codex', 'terminal'],
    ['codex', 'headless'],
  ] as const)('is told by %s (%s) to the minute, and the step waits for the end of that', async (agent, channel) => {
    const resetsAt = Math.ceil((Date.now() + 3 * 3_600_000) / 60_000) * 60_000;
    const script = (request: ModelRequest): ReturnType<typeof GO> => ({ error: limitError(request, resetsAt) });
    await using stage = await AgentRig.setup(script, { isSubscribed: true });
    stage.workflow(
      spawnStep('start', agent, `channel = "${channel}"`),
      agentStep('go', agent, 'Go.', `needs = ["start"]\n${OUTPUTS}`),
    );
    const run = stage.run();
    await stage.decided('step-failed-once go');
    expect((await stage.status()).steps['go']).toMatchObject({ status: 'pending', attempt: 1 });
    expect((await stage.meow('why', RUN, 'go')).stdout).toContain(waitsUntil(resetsAt + 60_000));
    expect((await stage.meow('stop', RUN)).code).toBe(0);
    await run.ended;
  });
});

function waitsUntil(moment: number): string {
  return `It waits for its next attempt, at ${new Date(moment).toISOString()}.`;
}
