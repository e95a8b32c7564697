import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import type { ModelError, ModelRequest } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';
import { setTimeout as sleep } from 'node:timers/promises';

function limit({ provider }: ModelRequest, resetsAt: number): ModelError {
  const seconds = Math.floor(resetsAt / 1_000);
  const message = 'no more for now';
  if (provider === 'openai') {
    const details = { plan_type: 'plus', resets_at: seconds, resets_in_seconds: 3 };
    return { status: 429, type: 'usage_limit_reached', message, details };
  }
  const headers = {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': String(seconds),
    'anthropic-ratelimit-unified-representative-claim': 'five_hour',
    'anthropic-ratelimit-unified-overage-status': 'rejected',
    'retry-after': '3',
  };
  return { status: 429, type: 'rate_limit_error', message, headers };
}

describe.skipIf(!AGENTS_INSTALLED).each([
  ['claude', 'headless'],
  ['codex', 'headless'],
  ['claude', 'terminal'],
  ['codex', 'terminal'],
] as const)('%s %s', (agent, channel) => {
  test('x', async () => {
    const until = Date.now() + 5000;
    await using stage = await AgentRig.setup(
      (request) => {
        if (Date.now() < until) return { error: limit(request, until) };
        return onPrompts({ 'Go.': report('a=b'), Continue: report('a=c') })(request);
      },
      { isSubscribed: true },
    );
    stage.workflow(
      spawnStep('start', agent, `channel = "${channel}"`),
      agentStep('go', agent, 'Go.', 'needs = ["start"]\noutputs = {a={required=true}}'),
      killStep('stop', agent, 'needs = ["go"]'),
    );
    const run = stage.run();
    await sleep(12000);
    if (channel === 'terminal') console.log((await stage.terminal(agent)).screen());
    console.log((await stage.meow('trace', RUN)).stdout, (await stage.meow('why', RUN, 'go')).stdout);
    console.log(stage.model.log.map((l) => `${l.method} ${l.path} ${l.request?.last.slice(0, 60)}`).join('\n'));
    await stage.meow('stop', RUN, '--force');
    await run.ended;
  });
});
