// Prompts for the real Claude Code on an overloaded machine, which is stopped once during each delivery: none is lost,
// doubled, given up, or taken for accepted. The model has the truth.
//
// MEOW_DELIVERIES=50 makes more of them, MEOW_SEED=7 others.

import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import type { Script } from './rig/model-server.ts';
import { shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { step } from './rig/steps.ts';

const DELIVERIES = Number(process.env['MEOW_DELIVERIES'] ?? 3);
const SEED = Number(process.env['MEOW_SEED'] ?? 1);
const BUSY_LOOPS = 4;
const STOPPED_MS = { min: 500, max: 10_000 };
/** Deliveries of one run: the rig ends a run after some minutes. */
const BATCH = 5;
const TEST_MS = 900_000;

/** The adapter that the specification of MEOW shows: no hooks, no patterns. */
const PLAIN = `
[adapter]
name = "plain"

[spawn]
command = "claude --dangerously-skip-permissions"
resume_command = "claude --dangerously-skip-permissions --resume {{session_id}}"
startup_delay = "3s"

[environment]
TMUX = ""

[prompt_injection]
pre_keys = ["Escape"]
pre_delay = "100ms"
method = "literal"
post_keys = ["Enter"]

[graceful_stop]
keys = ["C-c"]
wait = "2s"
`;

const promptOf = (number: number): string => `Task ${number}.\nDo it once.`;

/** Reports each task, by the command. */
const WORKER: Script = (request) => {
  const said = request.conversation.findLast(({ by }) => by === 'user' || by === 'tool');
  if (said?.by === 'tool') return { say: 'fine' };
  return /Task \d+\./.test(request.last) ? { call: [shellCall(request, 'meow done')] } : { say: 'What is it?' };
};

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'plain'])('Claude Code with the adapter %s', (adapter) => {
  const batches = Array.from({ length: Math.ceil(DELIVERIES / BATCH) }, (_, at) => at);
  test.each(batches)('gets each prompt once, however slow it is (%d)', { timeout: TEST_MS }, async (batch) => {
    await using stage = await AgentRig.setup(WORKER);
    using _loops = busyLoops();
    stage.rig.write('.meow/adapters/plain/adapter.toml', PLAIN);
    const ids = Array.from({ length: Math.min(BATCH, DELIVERIES - batch * BATCH) }, (_, at) => `task-${at}`);
    stage.workflow(
      step('start', 'spawn', `agent = "worker"\nadapter = "${adapter}"`),
      ...ids.map((id, at) => {
        const prompt = `agent = "worker"\nprompt = ${JSON.stringify(promptOf(at))}`;
        return step(
          id,
          'agent',
          prompt,
          `needs = ["${ids[at - 1] ?? 'start'}"]\ntimeout = "90s"\non_error = "continue"`,
        );
      }),
      step('stop', 'kill', 'agent = "worker"', `needs = ["${ids.at(-1)}"]`),
    );
    const run = stage.run();
    const random = seeded(SEED * 1_009 + batch);
    try {
      for (const id of ids) {
        await stage.decided(`step-started ${id}`);
        await pause(random(0, 1_500));
        await stopped(stage.processesOf('claude'), random(STOPPED_MS.min, STOPPED_MS.max));
      }
    } catch (error) {
      throw new Error(await stage.scene(), { cause: error });
    }
    const { steps } = await stage.done(run);
    const outcomes = ids.map((id, at) => ({
      id,
      status: steps[id]?.status,
      error: steps[id]?.error?.message ?? null,
      times: stage.timesPrompted(`Task ${at}.`),
    }));
    expect(outcomes).toEqual(ids.map((id) => ({ id, status: 'done', error: null, times: 1 })));
  });
});

/** More than twice as many as this machine has cores. */
function busyLoops(): Disposable {
  const loops = Array.from({ length: BUSY_LOOPS }, () => spawn('sh', ['-c', 'while :; do :; done']));
  return {
    [Symbol.dispose]: () => {
      for (const loop of loops) loop.kill('SIGKILL');
    },
  };
}

async function stopped(processes: readonly number[], ms: number): Promise<void> {
  for (const pid of processes) process.kill(pid, 'SIGSTOP');
  await pause(ms);
  for (const pid of processes) process.kill(pid, 'SIGCONT');
}

/** Uniform between two numbers (mulberry32). */
function seeded(seed: number): (from: number, to: number) => number {
  let state = seed;
  return (from, to) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return from + (((t ^ (t >>> 14)) >>> 0) / 4_294_967_296) * (to - from);
  };
}
