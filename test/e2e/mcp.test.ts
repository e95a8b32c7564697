import { type ChildProcess, spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { type Live, MEOW, Rig, until } from '../rig/rig.ts';

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
`;

/** The agent takes its prompt and does nothing; the test reports in its place. */
const IDLE = '[[on]]\ndo = [{ hang = true }]\n';
const OUTPUTS = { summary: 'fine', count: 3 };

interface Said {
  readonly text: string;
  readonly isError: boolean;
}

/** An agent program's use of an MCP server: starts it, talks to it, and closes its stdin at the end. */
class Client {
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
  readonly #process: ChildProcess;
  readonly #answers = new Map<number, unknown>();
  #rest = '';
  #last = 0;

  constructor(rig: Rig, environment: Readonly<Record<string, string>>, ...flags: readonly string[]) {
    this.#process = spawn(MEOW, ['mcp', ...flags], { cwd: rig.folder, env: { ...rig.environment, ...environment } });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) {
        const { id, result } = JSON.parse(line) as { id: number; result: unknown };
        this.#answers.set(id, result);
      }
    });
    let stderr = '';
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    this.ended = new Promise((resolve) => this.#process.once('close', (code) => resolve({ code, stderr })));
  }

  /** Returns the id of the request. */
  ask(method: string, params: object): number {
    const id = ++this.#last;
    this.#process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return id;
  }

  begin(tool: string, input: object): number {
    return this.ask('tools/call', { name: tool, arguments: input });
  }

  async answer(id: number): Promise<unknown> {
    await until(() => this.#answers.has(id), `the answer to request ${id}`);
    return this.#answers.get(id);
  }

  async said(id: number): Promise<Said> {
    const { content, isError } = (await this.answer(id)) as { content: { text: string }[]; isError: boolean };
    return { text: content.map(({ text }) => text).join(''), isError };
  }

  call(tool: string, input: object = {}): Promise<Said> {
    return this.said(this.begin(tool, input));
  }

  isAnswered(id: number): boolean {
    return this.#answers.has(id);
  }

  cancel(id: number): void {
    const params = { requestId: id, reason: 'no more' };
    this.#process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })}\n`);
  }

  close(): void {
    this.#process.stdin?.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }
}

class Agent {
  readonly rig: Rig;
  readonly run: Live;

  static async setup(): Promise<Agent> {
    const rig = await Rig.setup();
    rig.write('w.meow.toml', WORKFLOW);
    rig.write('w.sim.toml', IDLE);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.decided('r', 'step-started work');
    const journal = '.meow/workflows/r/journal.jsonl';
    await until(() => rig.read(journal).includes('"delivery":"accepted"'), 'the prompt to be accepted');
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

  client(environment: Readonly<Record<string, string>> = {}): Client {
    return new Client(this.rig, { ...this.environment, ...environment });
  }

  /** Questions in the inbox. */
  questions(): readonly string[] {
    return this.rig.files('.meow/workflows/r/inbox').filter((name) => name.endsWith('.ask'));
  }

  async gates(): Promise<readonly { readonly id: string; readonly prompt: string }[]> {
    return JSON.parse((await this.rig.meow('gates', '--json')).stdout) as { id: string; prompt: string }[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}

const WAYS = [
  ['the socket', {}],
  ['the inbox', { MEOW_ORCH_SOCK: '/nowhere/sock' }],
] as const;

test.each(WAYS)('a report by %s is checked, corrected and accepted', async (_way, environment) => {
  await using agent = await Agent.setup();
  const client = agent.client(environment);
  expect(await client.call('done', { outputs: { summary: 'fine' } })).toEqual({
    text:
      'Error: Missing required outputs\n\nRequired:\n  ✗ count (number): Not provided\n\nUsage:\n' +
      '  the tool done with {"outputs": {"summary": <value>, "count": <value>}}',
    isError: true,
  });
  const accepted = await client.call('done', { outputs: { ...OUTPUTS, colour: 'blue' }, notes: 'slow' });
  expect(accepted.isError).toBe(false);
  expect(accepted.text).toMatch(
    /^Complete\..*\nthe step does not declare the output colour; it is stored all the same$/,
  );
  expect((await agent.run.ended).code).toBe(0);
  expect((await agent.rig.status('r')).steps['work']?.outputs).toEqual({ ...OUTPUTS, colour: 'blue' });
  expect(await client.call('done', { outputs: OUTPUTS })).toEqual({
    text: 'meow: the run r cannot be reached: it has ended, or its folder is gone',
    isError: true,
  });
  client.close();
  expect(await client.ended).toEqual({ code: 0, stderr: '' });
});

test('an agent sees its task and the status of steps', async () => {
  await using agent = await Agent.setup();
  const client = agent.client();
  const task = await client.call('status');
  expect(task.isError).toBe(false);
  expect(task.text).toMatch(/^Write the thing\.\n/);
  expect(task.text).toMatch(/\n {2}the tool done with {"outputs": {"summary": <string>, "count": <number>}}$/);
  expect(await client.call('status', { step: 'spawn' })).toEqual({ text: 'The step spawn is done.', isError: false });
  expect(await client.call('status', { step: 'nix' })).toEqual({ text: 'meow: run r has no step nix', isError: true });
  agent.run.kill('SIGKILL');
  await agent.run.ended;
  expect(await client.call('status', { step: 'work' })).toEqual({ text: 'The step work is running.', isError: false });
  expect(await client.call('status')).toMatchObject({ isError: true });
});

test('an event reaches the run, with data of any type', async () => {
  await using agent = await Agent.setup();
  const client = agent.client();
  const data = { tests: 3, names: ['a', 'b'] };
  expect(await client.call('event', { type: 'tested', data })).toEqual({
    text: 'The event tested was sent.',
    isError: false,
  });
  await agent.rig.decided('r', 'event-emitted');
  expect(agent.rig.read('.meow/workflows/r/journal.jsonl')).toContain(JSON.stringify(data));
  expect(await client.call('event', { type: 'x'.repeat(300) })).toMatchObject({ isError: true });
});

test.each(WAYS)('a question waits by %s for a person, and blocks nothing else', async (_way, environment) => {
  await using agent = await Agent.setup();
  const { rig } = agent;
  const client = agent.client(environment);
  const question = client.begin('ask', { question: 'Which colour?' });
  await rig.decided('r', 'gate-asked work');
  expect(await agent.gates()).toMatchObject([
    { id: expect.stringMatching(/^ask-[0-9a-f]{8}$/), prompt: 'Which colour?' },
  ]);
  expect(await client.call('status', { step: 'work' })).toEqual({ text: 'The step work is running.', isError: false });
  expect(client.isAnswered(question)).toBe(false);
  expect((await rig.meow('answer', 'r', 'the blue one', '--as', 'ann')).code).toBe(0);
  const answered = { text: 'ann answered: the blue one', isError: false };
  expect(await client.said(question)).toEqual(answered);
  // As after an interrupted call.
  expect(await client.call('ask', { question: 'Which colour?' })).toEqual(answered);
});

test('a person approves, rejects, or does not decide in time', async () => {
  await using agent = await Agent.setup();
  const { rig } = agent;
  const client = agent.client();
  const push = client.begin('ask', { question: 'Push it?', gate: 'push' });
  const drop = client.begin('ask', { question: 'Drop the table?', gate: 'drop', timeout: '1h' });
  await until(() => rig.decisions('r').filter((made) => made === 'gate-asked work').length === 2, 'both gates');
  await rig.meow('approve', 'r', 'push', '--notes', 'at last', '--as', 'ann');
  await rig.meow('reject', 'r', 'drop', '--reason', 'it is ours', '--as', 'bob');
  expect((await client.said(push)).text).toBe('Approved by ann. Notes: at last');
  expect(await client.said(drop)).toEqual({
    text: 'Rejected by bob: do not do it. Reason: it is ours',
    isError: false,
  });
  const late = await client.call('ask', { question: 'Anybody?', gate: 'late', timeout: '50ms' });
  expect(late.text).toMatch(/^No answer: nobody decided gate late within 50ms\./);
  expect(await client.call('ask', { question: 'Anybody?', timeout: 'soon' })).toMatchObject({
    text: expect.stringContaining('"soon" is not a duration') as string,
    isError: true,
  });
});

test.each(WAYS)('a cancelled question by %s is no longer awaited', async (_way, environment) => {
  await using agent = await Agent.setup();
  const client = agent.client(environment);
  const question = client.begin('ask', { question: 'Still there?' });
  await agent.rig.decided('r', 'gate-asked work');
  client.cancel(question);
  await until(() => agent.questions().length === 0, 'the question to be taken back');
  await agent.rig.meow('answer', 'r', 'here I am', '--as', 'ann');
  expect((await client.call('ask', { question: 'Still there?' })).text).toBe('ann answered: here I am');
  expect(client.isAnswered(question)).toBe(false);
});

test.each(
  WAYS.flatMap(([way, environment]) => [null, 'SIGINT', 'SIGTERM'].map((end) => [way, end, environment] as const)),
)('a server that waits by %s exits with its agent: %s', async (_way, end, environment) => {
  await using agent = await Agent.setup();
  const client = agent.client(environment);
  client.begin('ask', { question: 'One?' });
  client.begin('ask', { question: 'Two?' });
  await until(() => agent.rig.decisions('r').filter((made) => made === 'gate-asked work').length === 2, 'both gates');
  if (end === null) client.close();
  else client.kill(end as NodeJS.Signals);
  expect(await client.ended).toEqual({ code: 0, stderr: '' });
  expect(agent.questions()).toEqual([]);
});

test('a report without an engine is processed at resume, although the server has exited', async () => {
  await using agent = await Agent.setup();
  const { rig, run } = agent;
  run.kill('SIGKILL');
  await run.ended;
  const client = agent.client();
  client.begin('done', { outputs: OUTPUTS });
  await until(() => agent.questions().length === 1, 'the report');
  client.close();
  expect(await client.ended).toEqual({ code: 0, stderr: '' });
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', outputs: OUTPUTS });
});

test('flags replace environment variables that are not passed on', async () => {
  await using agent = await Agent.setup();
  const { MEOW_ORCH_SOCK: socket = '', MEOW_INBOX: inbox = '' } = agent.environment;
  const flags = ['--agent', 'worker', '--workflow', 'r', '--socket', socket, '--inbox', inbox];
  const wrong = { MEOW_AGENT: 'nobody', MEOW_WORKFLOW: 'other', MEOW_ORCH_SOCK: '/nowhere', MEOW_INBOX: '/nowhere' };
  for (const environment of [{}, wrong]) {
    const client = new Client(agent.rig, environment, ...flags);
    expect((await client.call('status')).text).toContain('Write the thing.');
    client.close();
    expect(await client.ended).toEqual({ code: 0, stderr: '' });
  }
});

test('outside a run, every tool says so, and the server exits', async () => {
  await using rig = await Rig.setup();
  expect(await rig.meow('mcp')).toEqual({
    stdout: '',
    stderr: 'meow: meow mcp works only inside a run\n',
    code: 2,
  });
});
