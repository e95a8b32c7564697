import { expect, test } from 'vitest';
import type { Live } from '../rig/rig.ts';
import { Rig, until } from '../rig/rig.ts';

const WORKFLOW = `
[main]

[[main.steps]]
id = "spawn"
executor = "spawn"
agent = "worker"
adapter = "sim"

[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Write the thing."
needs = ["spawn"]

[main.steps.outputs]
summary = { required = true, type = "string" }
count = { required = true, type = "number" }
file = { required = false, type = "file_path" }
`;

/** The agent takes its prompt and does nothing about it: the test reports in its place. */
const IDLE = '[[on]]\ndo = [{ hang = true }]\n';

class Agent {
  readonly rig: Rig;
  readonly run: Live;

  static async setup(): Promise<Agent> {
    const rig = await Rig.setup();
    rig.write('w.meow.toml', WORKFLOW);
    rig.write('w.sim.toml', IDLE);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.decided('r', 'step-started work');
    return new Agent(rig, run);
  }

  private constructor(rig: Rig, run: Live) {
    this.rig = rig;
    this.run = run;
  }

  get environment(): Readonly<Record<string, string>> {
    const folder = this.rig.path('.meow/workflows/r');
    return {
      MEOW_WORKFLOW: 'r',
      MEOW_AGENT: 'worker',
      MEOW_ORCH_SOCK: `${folder}/sock`,
      MEOW_INBOX: `${folder}/inbox`,
    };
  }

  meow(...args: readonly string[]): ReturnType<Rig['meow']> {
    return this.rig.meowWith(this.environment, ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}

test('a report is accepted when it has what was asked for, and typed', async () => {
  await using agent = await Agent.setup();
  const refused = await agent.meow('done', '--output', 'summary=fine');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toBe(
    'Error: Missing required outputs\n\nRequired:\n  ✗ count (number): Not provided\n\nUsage:\n' +
      '  meow done --output summary=<value> --output count=<value>\n',
  );
  const nofile = await agent.meow('done', '--json', '{"summary":"fine","count":3}', '--output', 'file=nowhere.txt');
  expect(nofile.code).toBe(1);
  expect(nofile.stderr).toContain('✗ file (file_path)');
  const args = ['done', '--output', 'summary=fine', '--output', 'count=3', '--notes', 'slow'];
  expect(await agent.meow(...args)).toEqual({ stdout: 'Complete\n', stderr: '', code: 0 });
  expect((await agent.run.ended).code).toBe(0);
  expect((await agent.rig.status('r')).steps['work']?.outputs).toEqual({ summary: 'fine', count: 3 });
  expect((await agent.meow(...args)).code).toBe(2);
});

test('an agent that stops is told its task again, with what to report', async () => {
  await using agent = await Agent.setup();
  const { stdout, code } = await agent.meow('prime');
  expect(code).toBe(0);
  expect(stdout).toContain('Write the thing.');
  expect(stdout).toContain('meow done --output summary=');
  expect(JSON.parse((await agent.meow('prime', '--format', 'json')).stdout)).toEqual({
    agent: 'worker',
    step: 'work',
    prompt: stdout.trimEnd(),
  });
  expect((await agent.meow('session-id')).stdout).toMatch(/^[0-9a-f-]{36}\n$/);
  expect(await agent.meow('session-id', '--agent', 'nobody')).toMatchObject({
    stderr: 'meow: the agent nobody is not known\n',
    code: 1,
  });
});

test('a report that is sent while the engine is down is heard at resume', async () => {
  await using agent = await Agent.setup();
  const { rig, run } = agent;
  run.kill('SIGKILL');
  await run.ended;
  expect(await agent.meow('prime')).toEqual({ stdout: '', stderr: '', code: 0 });
  const report = agent.meow('done', '--output', 'summary=late', '--output', 'count=1');
  await until(() => rig.files('.meow/workflows/r/inbox').some((name) => name.endsWith('.ask')), 'the report');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  expect(await report).toMatchObject({ stdout: 'Complete\n', code: 0 });
  expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', outputs: { summary: 'late' } });
});

test('a report is heard even if the command that brought it was ended', async () => {
  await using agent = await Agent.setup();
  const { rig, run } = agent;
  run.kill('SIGKILL');
  await run.ended;
  const names = (): readonly string[] => rig.files('.meow/workflows/r/inbox');
  const script = 'timeout 1 meow done --output summary=late --output count=1';
  const variables = Object.entries(agent.environment).map(([name, value]) => `${name}='${value}'`);
  await rig.shell(`export ${variables.join(' ')}; ${script}`);
  await until(() => names().some((name) => name.endsWith('.ask')), 'the report');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', outputs: { summary: 'late' } });
});
