// Usage limits of MEOW steps.

import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

test.each(['terminal', 'headless'])(
  'a %s agent with a usage limit without a readable reset parks its step, and a resume tries again',
  async (channel) => {
    await using rig = await Rig.setup();
    rig.write(
      'flow.meow.toml',
      `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "w"
adapter = "sim"
${channel === 'headless' ? 'channel = "headless"' : ''}
[[main.steps]]
id = "work"
executor = "agent"
agent = "w"
prompt = "Work."
needs = ["start"]
`,
    );
    rig.write(
      'flow.sim.toml',
      '[[on]]\nprompt = "Work"\ntimes = 1\ndo = [{ limit = "resets at 5pm" }]\n\n[[on]]\nprompt = "Work"\ndo = [{ done = {} }]\n',
    );
    const { code, stdout } = await rig.meow('run', 'flow.meow.toml', '--id', 'r');
    expect({ code, stdout }).toEqual({ code: 3, stdout: expect.stringContaining('continues on resume') });
    expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  },
);
