import { expect, test } from 'vitest';
import { type Live, Rig, until } from '../rig/rig.ts';

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

/** The agent takes its prompt and does nothing; the test reports in its place. */
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
    // Before that, there is nothing to stop.
    const journal = '.meow/workflows/r/journal.jsonl';
    await until(() => rig.read(journal).includes('"delivery":"accepted"'), 'the agent to have its prompt');
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

test('a report with the declared outputs is accepted and typed', async () => {
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
  const folder = await agent.meow('done', '--output-json', '{"summary":"fine","count":3,"file":"."}');
  expect(folder.stderr).toBe(
    'Error: Invalid outputs\n\nInvalid:\n  ✗ file (file_path): is a folder: .\n\nUsage:\n' +
      '  meow done --output summary=<value> --output count=<value> --output file=<value>\n',
  );
  expect(await agent.meow('done', '--output-json', '[1]')).toMatchObject({
    stderr: `meow: --output-json must be an object\n  write --output-json '{"NAME": VALUE}'\n`,
    code: 2,
  });
  const all = await agent.meow('done', '--output', 'count=many', '--output', 'file=nowhere.txt');
  expect(all.stderr).toMatch(
    /^Error: Missing required outputs\n\nRequired:\n {2}✗ summary .*\n\nInvalid:\n {2}✗ count .*\n {2}✗ file \(file_path\): no such file: nowhere\.txt\n\nUsage:\n {2}meow done --output summary=<value> --output count=<value>\n$/,
  );
  const args = ['done', '--output', 'summary=fine', '--output', 'count=3', '--notes', 'slow'];
  expect(await agent.meow(...args)).toEqual({ stdout: 'Complete\n', stderr: '', code: 0 });
  expect((await agent.run.ended).code).toBe(0);
  expect((await agent.rig.status('r')).steps['work']?.outputs).toEqual({ summary: 'fine', count: 3 });
  expect((await agent.meow(...args)).code).toBe(2);
});

test('an agent that stops gets its task again, with the outputs to report', async () => {
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
    stderr: 'meow: agent nobody is unknown\n',
    code: 1,
  });
});

const TWO = `
[main]
[[main.steps]]
id = "spawn"
executor = "spawn"
agent = "worker"
adapter = "sim"
[[main.steps]]
id = "first"
executor = "agent"
agent = "worker"
prompt = "Do the first."
needs = ["spawn"]
[[main.steps]]
id = "second"
executor = "agent"
agent = "worker"
prompt = "Do the second."
needs = ["first"]
`;

function transcript(rig: Rig): string {
  return rig.read('.meow/workflows/r/agents/worker/spawn#1/stdout');
}

test('an agent that stops after its report is not given the task that is on its way', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', TWO);
  rig.write(
    'w.sim.toml',
    `
[[on]]
step = "first"
do = [
  { done = true },
  { run = "until meow step-status second --is running; do sleep 0.05; done" },
  { stop = true },
]
[[on]]
step = "first"
do = [{ say = "told again" }]
[[on]]
step = "second"
times = 1
do = [{ stop = true }]
`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  const said = transcript(rig);
  expect(said).toContain('$ meow prime --format prompt\n> Do the second.\n');
  expect(said).not.toContain('told again');
  // Its prompt, and once more because it stopped early.
  expect(said.match(/^(> )?Do the second\.$/gm)).toEqual(['> Do the second.', 'Do the second.']);
});

test.each([
  ['"200ms"', { status: 'done', error: null }, 2],
  // The end of the limit cannot be read: a resume tries again.
  ['"resets at 5pm"', { status: 'paused', error: null }, 1],
])('an agent that has reached a limit: %s', async (limit, end, attempt) => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', TWO);
  rig.write('w.sim.toml', `[[on]]\ntimes = 1\ndo = [{ limit = ${limit} }]\n`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  const run = await rig.status('r');
  expect(run).toMatchObject(end);
  expect(run.steps['first']?.attempt).toBe(attempt);
});

test('a report that is sent while the engine is down is processed at resume', async () => {
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

test('a report is processed even if the command that sent it was killed', async () => {
  await using agent = await Agent.setup();
  const { rig, run } = agent;
  run.kill('SIGKILL');
  await run.ended;
  const report = rig.startWith(agent.environment, 'done', '--output', 'summary=late', '--output', 'count=1');
  // A name that begins with a dot is a file that is still being written.
  await until(() => rig.files('.meow/workflows/r/inbox').some((name) => /\/\w[^/]*\.ask$/.test(name)), 'the report');
  report.kill('SIGKILL');
  await report.ended;
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', outputs: { summary: 'late' } });
});
