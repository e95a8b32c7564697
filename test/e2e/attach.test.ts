import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const ADAPTER = `[adapter]
name = "fox"
[spawn]
command = "sh -c 'echo hello; while [ ! -e go ]; do sleep 0.05; done; echo \\"fox>\\"; exec cat'"
[ready]
patterns = ['^fox>']
`;
const START = '[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "fox"\n';

async function setup(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', ADAPTER);
  rig.write('w.meow.toml', `[main]\n${START}`);
  return rig;
}

test('attach works while the agent is still starting', async () => {
  await using rig = await setup();
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('.meow/workflows/r/agents/worker/start#1/status');
  const { stdout, code } = await rig.meow('attach', 'r', 'worker', '--print', '--read-only');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^tmux -S \S+ attach-session -r -t '=meow-r-worker'\n$/);
  rig.write('go', '');
  expect((await run.ended).code).toBe(0);
});

test('attach finds an agent whose tmux session was renamed', async () => {
  await using rig = await setup();
  rig.write('go', '');
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  const rename = `eval "$(meow attach r worker | sed s/attach-session/rename-session/)" "'of mine'"`;
  expect(await rig.shell(rename)).toMatchObject({ code: 0, stderr: '' });
  expect((await rig.meow('attach', 'r', 'worker')).stdout).toMatch(/ attach-session -t '=of mine'\n$/);
});

test('attach reports a terminal that is gone, and names the transcript', async () => {
  await using rig = await setup();
  const end = '[[main.steps]]\nid = "end"\nexecutor = "kill"\nagent = "worker"\nneeds = ["start"]\n';
  rig.write('w.meow.toml', `[main]\n${START}${end}`);
  rig.write('go', '');
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  for (const flags of [[], ['--print']]) {
    const { stdout, stderr, code } = await rig.meow('attach', 'r', 'worker', ...flags);
    expect({ stdout, code }).toEqual({ stdout: '', code: 1 });
    expect(stderr).toMatch(/^meow: the terminal of agent worker is gone\n {2}its output: (\S+)\n/);
    const [, transcript = ''] = /output: (\S+)/.exec(stderr) ?? [];
    expect(rig.read(transcript)).toContain('fox>');
  }
});

test('attach refuses agents without a terminal and unknown agents', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${START.replace('"fox"', '"sim"')}`);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  expect(await rig.meow('attach', 'r', 'worker')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('agent worker has no terminal (adapter sim)') as string,
  });
  expect((await rig.meow('attach', 'r', 'nobody')).stderr).toContain('run r has no agent nobody\n  it has: worker');
});
