// Claude Code and Codex in one run, each in its own terminal.

import { describe, expect, test } from 'vitest';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

describe.skipIf(!AGENTS_INSTALLED)('two parallel agents', () => {
  test('one continues with the result of the other, and only their output is left', async () => {
    const script = onPrompts({
      'Name a colour.': report('colour=teal'),
      'Paint it teal.': report('done=true', 'coats=2'),
      'Were 2 coats enough?': report('enough=yes'),
    });
    await using stage = await AgentRig.setup(script);
    stage.workflow(
      spawnStep('one', 'claude'),
      spawnStep('two', 'codex'),
      agentStep('name', 'claude', 'Name a colour.', 'needs = ["one"]\noutputs = { colour = { required = true } }'),
      agentStep(
        'paint',
        'codex',
        'Paint it {{name.outputs.colour}}.',
        'needs = ["two", "name"]\noutputs = { done = { type = "boolean", required = true }, coats = { type = "number", required = true } }',
      ),
      agentStep(
        'judge',
        'claude',
        'Were {{paint.outputs.coats}} coats enough?',
        'needs = ["paint"]\noutputs = { enough = { required = true } }',
      ),
      killStep('stop-one', 'claude', 'needs = ["judge"]'),
      killStep('stop-two', 'codex', 'needs = ["judge"]'),
    );
    const { status, steps, agents } = await stage.done(stage.run());
    expect(status).toBe('done');
    expect(steps['paint']?.outputs).toEqual({ done: true, coats: 2 });
    expect(steps['judge']).toMatchObject({ outputs: { enough: 'yes' }, delivery: 'accepted', attempt: 1 });
    expect(agents.map((agent) => agent.status)).toEqual(['stopped', 'stopped']);
    await stage.leftNothing();
    // A program may print spaces between words, or move the cursor over them.
    const printed = (agent: string) => {
      const [file, ...others] = stage.rig
        .files(`.meow/workflows/${RUN}/agents/${agent}`)
        .filter((path) => path.endsWith('/transcript'));
      expect(others).toEqual([]);
      return stage.rig.read(file ?? expect.fail(`no transcript of ${agent}`));
    };
    expect(printed('claude')).toContain('colour');
    expect(printed('codex')).toContain('Paint');
  });
});
