// Traces for OpenTelemetry: what a receiver gets of runs in each language, and that no run waits for it.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commitAll } from '../fixtures/conductor/rig.ts';
import { OtlpReceiver, type ReceivedSpan } from '../rig/otlp-receiver.ts';
import { Rig, shellStep, until } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

function configure(rig: Rig, receiver: OtlpReceiver): void {
  rig.write('.meow/config.toml', `[telemetry]\notlp = "${receiver.url}"\n`);
}

/** Each step span with the one above it: `step a < run`, `step a.b < step a`. */
function edges(spans: readonly ReceivedSpan[]): readonly string[] {
  const names = new Map(spans.map(({ spanId, name }) => [spanId, name.startsWith('run ') ? 'run' : name]));
  const steps = spans.filter(({ name }) => name.startsWith('step '));
  return steps.map(({ name, parentSpanId }) => `${name} < ${names.get(parentSpanId) ?? 'nothing'}`).toSorted();
}

/** The same from the journal of a run: each step below the step that has added it. */
function edgesOfRun(rig: Rig, id: string): readonly string[] {
  const lines = rig.read(`.meow/workflows/${id}/journal.jsonl`).trim().split('\n');
  const decisions = lines.flatMap(
    (line) =>
      (JSON.parse(line) as { decisions: { kind: string; frame: unknown; steps?: string[]; step?: string }[] })
        .decisions,
  );
  const owners = new Map<string, string | null>();
  const edgesFound = new Map<string, string>();
  const started = new Set<string>();
  for (const { kind, frame, steps = [], step = '' } of decisions) {
    if (kind === 'frame-opened') {
      const { id: name, owner } = frame as { id: string; owner: string | null };
      owners.set(name, owner);
    }
    if (kind === 'steps-added') for (const each of steps) edgesFound.set(each, owners.get(String(frame)) ?? '');
    if (kind === 'step-started') started.add(step);
    if (kind === 'steps-skipped') for (const each of steps) started.add(each);
  }
  return [...started]
    .map((each) => `step ${each} < ${edgesFound.get(each) === '' ? 'run' : `step ${edgesFound.get(each)}`}`)
    .toSorted();
}

/** Every span is in one trace, below a span of it, and within its run. */
function isOneTree(spans: readonly ReceivedSpan[]): boolean {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const roots = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId));
  const traces = new Set(spans.map(({ traceId }) => traceId));
  return (
    ids.size === spans.length &&
    roots.length === 1 &&
    traces.size === 1 &&
    spans.every((each) => each.startNs <= each.endNs)
  );
}

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no span ${name} among ${spans.map((each) => each.name).join(', ')}`);
  return found;
}

const WORKFLOW = `[main]
default_adapter = "sim"

[[main.steps]]
id = "each"
executor = "foreach"
items = '["a", "b"]'
template = ".part"

[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"

[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Build it"
needs = ["start"]

[[main.steps]]
id = "review"
executor = "branch"
condition = "meow await-approval review"
needs = ["work", "each"]
on_true = { inline = [{ id = "ship", executor = "shell", command = "echo $TRACEPARENT" }] }

[[main.steps]]
id = "stop"
executor = "kill"
agent = "worker"
needs = ["work"]

[part]
[[part.steps]]
id = "say"
executor = "shell"
command = "test -e again || { touch again; exit 1; }"
retry = { max_attempts = 3, delay = "1ms" }
`;

test('a MEOW run arrives as a tree of spans, as protobuf, at most five seconds after its end', async () => {
  await using receiver = await OtlpReceiver.start();
  await using rig = await Rig.setup();
  configure(rig, receiver);
  rig.write('a.meow.toml', WORKFLOW);
  rig.write('a.sim.toml', '[[on]]\nstep = "work"\ndo = [{ done = true }]\n');
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const caller = { TRACEPARENT: `00-${trace}-b7ad6b7169203331-01` };
  const running = rig.startWith(caller, 'run', 'a.meow.toml', '--id', 'a');
  await rig.decided('a', 'gate-asked review');
  await rig.meow('approve', 'a', 'review');
  expect((await running.ended).code).toBe(0);

  await until(() => receiver.requests.length > 0, 'the trace');
  const [request] = receiver.requests;
  expect(request).toMatchObject({ path: '/v1/traces', contentType: 'application/x-protobuf' });
  const { spans } = receiver;
  expect(isOneTree(spans)).toBe(true);
  expect(edges(spans)).toEqual(edgesOfRun(rig, 'a'));
  const run = spans[0];
  expect(run).toMatchObject({
    traceId: trace,
    parentSpanId: 'b7ad6b7169203331',
    status: 0,
    attributes: { 'meow.run.id': 'a', 'meow.language': 'meow', 'meow.status': 'done' },
    resource: { 'service.name': 'meow' },
  });
  const endedAt = Number((run?.endNs ?? 0n) / 1_000_000n);
  expect(request?.at ?? Infinity).toBeGreaterThanOrEqual(endedAt);

  // One of the two was tried twice.
  const failed = spans.filter(({ name, status }) => name === 'attempt 1' && status === 2);
  expect(failed).toHaveLength(1);
  expect(spans.filter(({ name }) => name === 'attempt 2')).toMatchObject([{ parentSpanId: failed[0]?.parentSpanId }]);
  expect(named(spans, 'invoke_agent worker').attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'sim',
    'gen_ai.agent.name': 'worker',
  });
  expect(named(spans, 'step review').events).toEqual([
    { name: 'gate.opened', attributes: { 'meow.gate.id': 'review' } },
    { name: 'gate.decided', attributes: { 'meow.gate.id': 'review', 'meow.gate.decision': 'approved' } },
  ]);
  // What the command starts would be below its attempt.
  const ship = named(spans, 'step review.ship');
  const attempt = spans.find(({ name, parentSpanId }) => name === 'attempt 1' && parentSpanId === ship.spanId);
  expect((await rig.meow('logs', 'a', 'review.ship')).stdout).toBe(`00-${trace}-${attempt?.spanId}-01\n`);
});

test('a failed Raymond run arrives as JSON, with its errors and the cost of its turns', async () => {
  await using receiver = await OtlpReceiver.start();
  await using rig = await Rig.setup();
  rig.write('flow/START.md', 'Begin. <goto>NEXT.md</goto>\n');
  rig.write('flow/NEXT.md', 'End with <result>the end</result>\n');
  rig.write(
    'flow.sim.toml',
    `[[on]]
step = "*START*"
do = [{ say = "<goto>NEXT.md</goto>" }, { cost = { usd = 0.25, input = 900, cached = 100, output = 200 } }]
[[on]]
step = "*NEXT*"
do = [{ crash = 1 }]
`,
  );
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
  const secret = { ...environment, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x' };
  const { code } = await rig.meowWith(secret, 'run', 'flow', '--adapter', 'sim', '--id', 'r');
  expect(code).toBe(1);
  await until(() => receiver.requests.length > 0, 'the trace');
  expect(receiver.requests[0]).toMatchObject({
    contentType: 'application/json',
    headers: { authorization: 'Bearer x' },
  });
  const { spans } = receiver;
  expect(isOneTree(spans)).toBe(true);
  expect(edges(spans)).toEqual(edgesOfRun(rig, 'r'));
  expect(spans[0]).toMatchObject({ status: 2, attributes: { 'meow.language': 'raymond', 'meow.status': 'failed' } });
  const agents = spans.filter(({ name }) => name.startsWith('invoke_agent'));
  expect(agents).toMatchObject([
    {
      status: 0,
      attributes: {
        'gen_ai.provider.name': 'sim',
        'gen_ai.usage.input_tokens': 1000,
        'gen_ai.usage.output_tokens': 200,
        'meow.cost.usd': 0.25,
        'meow.tokens': 1200,
      },
    },
    { status: 2 },
  ]);
});

test('a Conductor run arrives with the parts of its visits, and again with `meow export --otlp`', async () => {
  await using receiver = await OtlpReceiver.start();
  await using rig = await Rig.setup();
  cpSync(join(EXAMPLES, 'conductor/fix-loop'), rig.folder, { recursive: true });
  await commitAll(rig);
  configure(rig, receiver);
  expect((await rig.meow('run', 'fix-loop.yaml', '--adapter', 'sim', '--id', 'c')).code).toBe(0);
  await until(() => receiver.requests.length > 0, 'the trace');
  const spans = [...receiver.spans];
  expect(isOneTree(spans)).toBe(true);
  expect(edges(spans)).toEqual(edgesOfRun(rig, 'c'));
  expect(spans[0]?.attributes).toMatchObject({ 'meow.language': 'conductor', 'meow.status': 'done' });
  expect(spans.filter(({ name }) => name.startsWith('invoke_agent')).length).toBeGreaterThanOrEqual(4);

  receiver.requests.length = 0;
  const exported = await rig.meow('export', '--otlp', 'c', '--json');
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(exported.stdout)).toEqual({
    run: 'c',
    trace_id: spans[0]?.traceId,
    spans: spans.length,
    url: `${receiver.url}/v1/traces`,
  });
  expect(receiver.spans.map(({ spanId }) => spanId)).toEqual(spans.map(({ spanId }) => spanId));
});

test('a fork is linked to the run that it comes from', async () => {
  await using receiver = await OtlpReceiver.start();
  await using rig = await Rig.setup();
  configure(rig, receiver);
  rig.write('a.meow.toml', `[main]\n${shellStep('one', 'true')}${shellStep('two', 'true', 'needs = ["one"]')}`);
  await rig.meow('run', 'a.meow.toml', '--id', 'a');
  await rig.meow('fork', 'a', '--from', 'two', '--id', 'b');
  await until(() => receiver.requests.length > 1, 'both traces');
  const [origin, fork] = ['a', 'b'].map((id) =>
    receiver.spans.find(({ attributes }) => attributes['meow.run.id'] === id),
  );
  expect(fork?.links).toEqual([{ traceId: origin?.traceId, spanId: origin?.spanId }]);
  expect(fork?.traceId).not.toBe(origin?.traceId);
});

test('a receiver that fails gets the trace later, and only once', async () => {
  await using receiver = await OtlpReceiver.start();
  await using rig = await Rig.setup();
  configure(rig, receiver);
  receiver.answers.push(400, 400);
  rig.write('a.meow.toml', `[main]\n${shellStep('one', 'true')}`);
  expect((await rig.meow('run', 'a.meow.toml', '--id', 'a')).code).toBe(0);
  const file = '.meow/workflows/a/exported.jsonl';
  await until(() => rig.exists(file) && rig.read(file).includes('"sent"'), 'the trace to be sent');
  const lines = rig
    .read(file)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { status: string; error: unknown });
  expect(lines.map(({ status }) => status)).toEqual(['failed', 'failed', 'sent']);
  expect(lines[0]?.error).toContain('400');
  expect(receiver.requests).toHaveLength(1);
});

test('what is wrong with the receiver is said', async () => {
  await using rig = await Rig.setup();
  rig.write('a.meow.toml', `[main]\n${shellStep('one', 'true')}`);
  await rig.meow('run', 'a.meow.toml', '--id', 'a');
  const none = await rig.meow('export', '--otlp', 'a');
  expect(none).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('no receiver of traces is configured'),
  });
  const dead = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '500' };
  const refused = await rig.meowWith(dead, 'export', '--otlp', 'a');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('the trace was not accepted') });
  const wrong: Readonly<Record<string, string>>[] = [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://169.254.169.254' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  ];
  for (const environment of wrong) expect((await rig.meowWith(environment, 'export', '--otlp', 'a')).code).toBe(2);
  expect((await rig.meow('export', 'a', '--json')).code).toBe(2);
  rig.write('.meow/config.toml', '[telemetry]\notlp = "no address"\n');
  const { code, stderr, stdout } = await rig.meow('run', 'a.meow.toml');
  expect(code).toBe(1);
  expect(`${stdout}${stderr}`).toContain('.meow/config.toml:2:8: error invalid-url: "otlp" is not a URL');
});
