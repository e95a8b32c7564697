import { test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentRig, RUN } from './rig/agent-rig.ts';
import { latch } from './rig/model-talk.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';
test('x', async () => {
    const agent='claude';
    const { hold, letGo } = latch();
    await using stage = await AgentRig.setup(
      onPrompts({
        'Tidy up.': () => ({ say: 'All is tidy.', hold }),
        'Stop hook feedback:': report('count=4'),
        'You stopped': report('count=4'),
      }),
    );
    stage.workflow(
      spawnStep('start', agent),
      agentStep('tidy', agent, 'Tidy up.', `needs = ["start"]`),
      killStep('stop', agent, 'needs = ["tidy"]'),
    );
    const run = stage.run();
    await stage.model.asked(({ last }) => last.startsWith('Tidy up.'));
    await stage.crash(run);
    letGo();
    await stage.hooked(agent, 'Stop');
    stage.resume();
    await sleep(9000); if (stage.decisions("step-done tidy").length) return;
    console.log((await stage.terminal(agent)).screen().replaceAll(/\n\n+/g,'\n'), (await stage.terminal(agent)).tmuxx('display-message','-p','-t','=meow-r-claude:','#{pane_title}'));
    console.log((await stage.meow('trace', RUN)).stdout);
    console.log(stage.rig.files('.meow/workflows/r/agents'));
    for (const f of stage.rig.files('.meow/workflows/r/agents')) if (f.includes('deliveries/') && f.endsWith('json')) console.log(f, stage.rig.read(f));
});
