// A permission request of an agent becomes a gate.

import { describe, expect, test } from 'vitest';
import { type Live, until } from '../rig/rig.ts';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { latch, type ModelRequest, shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { asking, onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

const ASK = ['--permissions', 'ask'];

describe.skipIf(!AGENTS_INSTALLED).each([
  {
    agent: 'claude',
    asked: /Bash command[^]*touch made[^]*Do you want to proceed\?/,
  },
  {
    agent: 'codex',
    asked: /Would you like to run the following command\?[^]*touch made/,
  },
] as const)('$agent', ({ agent, asked }) => {
  async function asks(script = asking()): Promise<AgentRig> {
    const stage = await AgentRig.setup(script);
    stage.workflow(
      spawnStep('start', agent),
      agentStep('make', agent, 'Make it.', 'needs = ["start"]'),
      killStep('stop', agent, 'needs = ["make"]'),
    );
    return stage;
  }

  test('continues after a person’s approval', async () => {
    await using stage = await asks();
    const run = stage.run(...ASK);
    const gate = await stage.gate('make');
    expect(gate.prompt).toMatch(asked);
    expect(stage.rig.exists('made')).toBe(false);
    expect((await stage.status()).steps['make']).toMatchObject({ status: 'running', delivery: 'accepted' });
    expect((await stage.meow('approve', RUN, gate.id)).code).toBe(0);
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(true);
    expect(stage.timesPrompted('Make it.')).toBe(1);
  });

  test('does not do what a person rejects, and follows the person’s instruction instead', async () => {
    await using stage = await asks();
    const run = stage.run(...ASK);
    const gate = await stage.gate('make');
    expect((await stage.meow('reject', RUN, gate.id, '--reason', 'not here')).code).toBe(0);
    const terminal = await stage.terminal(agent);
    await until(() => !asked.test(terminal.screen()), 'the question to be gone');
    await terminal.type('Do without.');
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(false);
  });

  test('is told to continue without the rejected action, and reports', async () => {
    await using stage = await asks();
    const run = stage.run(...ASK);
    const gate = await stage.gate('make');
    expect((await stage.meow('reject', RUN, gate.id, '--reason', 'not here')).code).toBe(0);
    const { steps } = await stage.done(run);
    expect(steps['make']).toMatchObject({ status: 'done', attempt: 1 });
    expect(stage.rig.exists('made')).toBe(false);
    const told = stage.model.turns.filter(({ last }) => last.startsWith('A person has rejected what you asked for'));
    expect(told).toHaveLength(1);
    expect(told[0]?.last).toContain('\n\nMake it.\n');
  });

  test('is not prompted again after the run paused at its dialog, and continues after the approval', async () => {
    await using stage = await asks();
    expect((await stage.meow('run', 'w.meow.toml', '--id', RUN, '--no-wait', ...ASK)).code).toBe(3);
    const run = stage.resume();
    await until(() => stage.decisions('gate-asked make').length === 2, 'the question to be asked again');
    const gate = await stage.gate('make');
    expect((await stage.meow('approve', RUN, gate.id)).code).toBe(0);
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(true);
    expect(stage.timesPrompted('Make it.')).toBe(1);
  });

  test('no longer asks once it was answered in its terminal', async () => {
    const { hold, letGo } = latch();
    await using stage = await asks(asking(hold));
    const run = stage.run(...ASK);
    await stage.gate('make');
    (await stage.terminal(agent)).press('Enter');
    await stage.decided('gate-expired make');
    expect((await stage.meow('gates', '--json')).stdout).toBe('[]\n');
    letGo();
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(true);
  });
});

describe.skipIf(!AGENTS_INSTALLED)('claude, headless', () => {
  async function asks(permissions: string): Promise<{ readonly stage: AgentRig; readonly run: Live }> {
    const stage = await AgentRig.setup(asking());
    stage.workflow(
      spawnStep('start', 'claude', 'channel = "headless"'),
      agentStep('make', 'claude', 'Make it.', 'needs = ["start"]'),
      killStep('stop', 'claude', 'needs = ["make"]'),
    );
    return { stage, run: stage.run('--permissions', permissions) };
  }

  test('makes a file in its folder without asking, if edits are permitted', async () => {
    const { stage, run } = await asks('edits');
    await using _ = stage;
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(true);
    expect(stage.decisions('gate-asked make')).toEqual([]);
  });

  test('continues after a person’s approval', async () => {
    const { stage, run } = await asks('ask');
    await using _ = stage;
    const gate = await stage.gate('make');
    expect(gate.prompt).toContain('touch made');
    expect(stage.rig.exists('made')).toBe(false);
    expect((await stage.meow('approve', RUN, gate.id)).code).toBe(0);
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(true);
  });

  test('with --no-wait pauses the run, and continues after a person’s approval and a resume', async () => {
    await using stage = await AgentRig.setup(asking());
    stage.workflow(
      spawnStep('start', 'claude', 'channel = "headless"'),
      agentStep('make', 'claude', 'Make it.', 'needs = ["start"]'),
      killStep('stop', 'claude', 'needs = ["make"]'),
    );
    expect((await stage.meow('run', 'w.meow.toml', '--id', RUN, '--no-wait', '--permissions', 'ask')).code).toBe(3);
    expect(stage.rig.exists('made')).toBe(false);
    expect((await stage.meow('approve', RUN)).code).toBe(0);
    await stage.done(stage.resume());
    expect(stage.rig.exists('made')).toBe(true);
  });

  test('asks before it runs a workflow, but not before it reports', async () => {
    const scripts = {
      'Make it.': (request: ModelRequest) => ({ call: [shellCall(request, 'meow run other.meow.toml')] }),
    };
    await using stage = await AgentRig.setup((request) =>
      request.conversation.some(({ by }) => by === 'tool') ? report()(request) : onPrompts(scripts)(request),
    );
    stage.rig.write('other.meow.toml', '[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "touch made"\n');
    stage.workflow(
      spawnStep('start', 'claude', 'channel = "headless"'),
      agentStep('make', 'claude', 'Make it.', 'needs = ["start"]'),
      killStep('stop', 'claude', 'needs = ["make"]'),
    );
    const run = stage.run('--permissions', 'edits');
    const gate = await stage.gate('make');
    expect(gate.prompt).toContain('meow run other.meow.toml');
    expect((await stage.meow('reject', RUN, gate.id)).code).toBe(0);
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(false);
    expect(stage.decisions('gate-asked make')).toHaveLength(1);
  });

  test('does not do what a person rejects', async () => {
    const { stage, run } = await asks('ask');
    await using _ = stage;
    const gate = await stage.gate('make');
    expect((await stage.meow('reject', RUN, gate.id, '--reason', 'not here')).code).toBe(0);
    await stage.done(run);
    expect(stage.rig.exists('made')).toBe(false);
  });
});
