// `meow test`: the world of a test, its results, and what it leaves behind. By points of the design.

import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Rig, shellStep, until } from '../rig/rig.ts';

interface Failure {
  readonly expect: string;
  readonly expected: unknown;
  readonly got: unknown;
  readonly message: string;
}

interface TestLine {
  readonly kind: 'test';
  readonly file: string;
  readonly name: string;
  readonly status: string;
  readonly run: string | null;
  readonly virtual_ms: number;
  readonly failures: readonly Failure[];
  readonly deaths?: number;
}

interface LastLine {
  readonly kind: 'tests-ended';
  readonly passed: number;
  readonly failed: number;
  readonly errors: number;
  readonly exit: number;
  readonly deaths?: number;
  readonly coverage: unknown;
}

async function tested(
  files: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<{ readonly tests: readonly TestLine[]; readonly last: LastLine; readonly code: number; readonly rig: Rig }> {
  await using rig = await Rig.setup();
  for (const [file, text] of Object.entries(files)) rig.write(file, text);
  const before = rig.files();
  const { stdout, stderr, code } = await rig.meow('test', '--json', ...args);
  expect(stderr).toBe('');
  expect(rig.files()).toEqual(before);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TestLine | LastLine);
  const last = lines.pop() as LastLine;
  expect(last).toMatchObject({ kind: 'tests-ended', exit: code });
  return { tests: lines as readonly TestLine[], last, code, rig };
}

/** One test of one workflow; its failures by path. */
async function failuresOf(
  workflow: string,
  text: string,
  ...args: readonly string[]
): Promise<Record<string, unknown>> {
  const { tests } = await tested({ 'w.meow.toml': workflow, 'w.test.toml': `[[test]]\nname = "a"\n${text}` }, ...args);
  return Object.fromEntries(
    (tests[0]?.failures ?? []).map(({ expect: path, expected, got }) => [path, [expected, got]]),
  );
}

const DEPLOY = `[main]
${shellStep('build', 'make')}outputs = { tag = { source = "stdout", type = "json" } }
[[main.steps]]
id = "gate"
executor = "branch"
needs = ["build"]
condition = "meow await-approval release --timeout 72h"
on_true = { inline = [{ id = "prod", executor = "shell", command = "deploy prod" }] }
on_false = { inline = [{ id = "log", executor = "shell", command = "echo no" }] }
`;
const BUILD = '[[test.command]]\nstep = "build"\nstdout = \'{"v":"v12"}\'\n';
const gate = (decide: string, after = '0s'): string =>
  `[[test.gate]]\ngate = "release"\ndecide = "${decide}"\nafter = "${after}"\n`;
const command = (step: string, more = ''): string => `[[test.command]]\nstep = "${step}"\n${more}\n`;

describe('MEOW', () => {
  test('days of waiting pass at once, in virtual time', async () => {
    const { tests, last, code } = await tested({
      'deploy.meow.toml': DEPLOY,
      'deploy.test.toml': `
[[test]]
name = "approved"
${BUILD}${gate('approve', '36h')}${command('gate.prod', 'takes = "20m"')}
[test.expect]
steps = { "gate.*" = "done" }
outputs = { "build.tag.v" = "v12" }
took = "36h20m"
order = ["build < gate*"]
[[test]]
name = "rejected"
${BUILD}${gate('reject')}${command('gate.log')}
[test.expect]
never = ["*.prod"]
[[test]]
name = "expired"
${BUILD}${command('gate.log')}
[test.expect]
took = "= 3d"
`,
    });
    expect(tests.map(({ name, status, run }) => [name, status, run])).toEqual([
      ['approved', 'passed', 'done'],
      ['rejected', 'passed', 'done'],
      ['expired', 'passed', 'done'],
    ]);
    expect(tests[0]).toMatchObject({ file: 'deploy.test.toml', virtual_ms: 130_800_000 });
    expect(last).toMatchObject({ passed: 3, failed: 0, errors: 0, exit: 0, coverage: null });
    expect(code).toBe(0);
  });

  test('each broken expectation is a failure of its own', async () => {
    const failures = await failuresOf(
      DEPLOY,
      `${BUILD}${gate('approve')}${command('gate.prod')}
[test.expect]
run = "failed"
steps = { build = "failed", nobody = "done" }
outputs = { "build.tag.v" = "v13", "build.none" = 1 }
error = { step = "build", type = "timeout" }
order = ["gate < build", "build < gate"]
never = ["nobody", "bui*", "*.log"]
visits = { "*" = "> 100" }
prompts = [{ step = "build", contains = "x" }]
cost = { usd = "> 1", turns = 2, tokens = 1 }
took = "> 1s"
files = { "report.md" = { contains = "x" }, "none.md" = { absent = true } }
`,
    );
    expect(failures).toEqual({
      run: ['failed', 'done'],
      'steps.build': ['failed', 'done'],
      'steps.nobody': ['done', null],
      'outputs.build.tag.v': ['v13', 'v12'],
      'outputs.build.none': [1, null],
      'error.step': ['build', null],
      'error.type': ['timeout', null],
      'order.0': ['gate < build', null],
      'never.0': ['nobody', null],
      'never.1': ['bui*', 'build'],
      'visits.*': ['> 100', 3],
      'prompts.0.contains': ['x', null],
      'cost.usd': ['> 1', 0],
      'cost.turns': [2, 0],
      'cost.tokens': [1, 0],
      took: ['> 1s', '0s'],
      'files.report.md': [{ contains: 'x' }, null],
    });
  });

  test('a command without a rule is refused, and the message has the table to paste', async () => {
    const { tests, code } = await tested({
      'w.meow.toml': `[main]\n${shellStep('build', 'touch made')}`,
      'w.test.toml': '[[test]]\nname = "a"\n',
    });
    const refused = tests[0]?.failures.find(({ expect: path }) => path === 'command');
    expect(refused?.message).toContain('[[test.command]]\nstep = "build"\n');
    expect(code).toBe(1);
  });

  test('a rule that is never used fails the test, unless it is optional or a default', async () => {
    const unused = `
[[test.on]]
do = [{ done = true }]
${command('nobody')}${gate('approve')}
[[test.event]]
type = "t"
after = "900h"
[[test.engine]]
dies_at = 900
[[test.stop]]
after = "900h"
`;
    const workflow = `[main]\n${shellStep('a', 'true')}`;
    const failures = await failuresOf(workflow, `${command('a')}${unused}`);
    expect(Object.keys(failures)).toEqual(['on.0', 'command.1', 'gate.0', 'event.0', 'engine.0', 'stop.0']);
    const optional = unused.replaceAll(/(\[\[test\.\w+\]\]\n)/g, '$1optional = true\n');
    expect(await failuresOf(workflow, `${command('a')}${optional}`)).toEqual({});
    const defaults = `[[test]]\nname = "a"\n${unused.replaceAll('test.', 'defaults.')}${command('a')}`;
    const { code } = await tested({ 'w.meow.toml': workflow, 'w.test.toml': defaults });
    expect(code).toBe(0);
  });

  test('simulated agents follow the rules of the test, then those of the script', async () => {
    const { tests } = await tested({
      'w.meow.toml': `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
[[main.steps]]
id = "check"
executor = "agent"
agent = "worker"
needs = ["start"]
prompt = "Check line 12."
timeout = "30m"
outputs = { found = { type = "boolean", required = true } }
[[main.steps]]
id = "again"
executor = "agent"
agent = "worker"
needs = ["check"]
prompt = "And again."
outputs = { found = { type = "boolean", required = true } }
[[main.steps]]
id = "end"
executor = "kill"
agent = "worker"
needs = ["again"]
`,
      'w.sim.toml': '[[on]]\nstep = "again"\ndo = [{ done = { found = true } }]\n',
      'w.test.toml': `
[[test]]
name = "agents"
[[test.on]]
step = "check"
do = [{ wait = "20m" }, { done = { found = false } }]
[test.expect]
outputs = { "check.found" = false, "again.found" = true }
prompts = [{ step = "check", contains = "line 12", lacks = "{{" }]
cost = { turns = 2 }
took = "20m"
[[test]]
name = "an agent hangs"
[[test.on]]
step = "check"
do = [{ hang = true }]
[test.expect]
run = "failed"
error = { step = "check", type = "timeout" }
never = ["again"]
[[test]]
name = "a usage limit without an end pauses the run"
[[test.on]]
step = "check"
do = [{ limit = "some day" }]
[test.expect]
run = "paused"
[[test]]
name = "an agent crashes"
[[test.on]]
step = "check"
do = [{ crash = 1 }]
[test.expect]
run = "failed"
error = { step = "check", type = "agent_crashed" }
[[claim]]
cleaned = true
[[claim]]
at_most = { turns = 2, agents_at_once = 1 }
`,
    });
    expect(tests.map(({ name, failures }) => [name, failures])).toEqual([
      ['agents', []],
      ['an agent hangs', []],
      ['a usage limit without an end pauses the run', []],
      ['an agent crashes', []],
    ]);
  });

  test('events, deaths of the engine, and stops', async () => {
    const workflow = `[main]\n${shellStep('a', 'make')}${shellStep('wait', 'meow await-event built --timeout 9d', 'needs = ["a"]')}`;
    const { tests } = await tested({
      'w.meow.toml': workflow,
      'w.test.toml': `
[[defaults.command]]
step = "a"
takes = "1h"
[[test]]
name = "the event comes while the engine is away"
[[test.event]]
after = "1d"
type = "built"
[[test.engine]]
dies_after = "a"
away = "2d"
[test.expect]
took = "2d1h"
[[test]]
name = "stopped"
[[test.stop]]
after_step = "a"
[test.expect]
run = "stopped"
took = "1h"
[[test]]
name = "nobody comes"
[test.expect]
run = "failed"
took = "9d1h"
[[test]]
name = "a command ends while the engine is away"
[[test.engine]]
dies_at = 1
away = "5h"
[[test.stop]]
after = "7h"
[test.expect]
run = "stopped"
steps = { a = "done" }
`,
    });
    expect(tests.map(({ name, failures }) => [name, failures])).toEqual([
      ['the event comes while the engine is away', []],
      ['stopped', []],
      ['nobody comes', []],
      ['a command ends while the engine is away', []],
    ]);
  });

  test('a run that only hangs is waiting', async () => {
    const workflow = `[main]\n${shellStep('a', 'make')}`;
    expect(await failuresOf(workflow, `${command('a', 'hangs = true')}[test.expect]\nrun = "waiting"\n`)).toEqual({});
  });

  test('real commands run in a folder of their own, with the files of the test', async () => {
    const workflow = `[main]\n${shellStep('a', 'cat base.txt todo.md > out.txt; echo "$HOME" > home.txt')}`;
    const { tests } = await tested({
      'w.meow.toml': workflow,
      'fixture/base.txt': 'base\n',
      'w.test.toml': `[[test]]
name = "a"
folder = "fixture"
files = { "todo.md" = "one thing\\n" }
run = ["a"]
[test.expect]
files = { "out.txt" = "base\\none thing\\n", "todo.md" = { lacks = "two" } }
`,
    });
    expect(tests[0]?.failures).toEqual([]);
  });

  test('the real meow in a longer script talks to the run, and real time passes meanwhile', async () => {
    const workflow = `[main]\n${shellStep('a', 'meow await-approval g > said && meow event built && cat said')}outputs = { o = { source = "stdout" } }\n`;
    const rule = '[[test.gate]]\ngate = "g"\nafter = "200ms"\ndecide = "approve"\nnotes = "fine"\n';
    const expected = '[test.expect]\noutputs = { "a.o" = "fine" }\ntook = ">= 200ms"\n';
    expect(await failuresOf(workflow, `run = ["a"]\n${rule}${expected}`)).toEqual({});
  });

  test('a rule or run for all steps does not decide a gate', async () => {
    const rest = `${gate('approve', '36h')}[test.expect]\nsteps = { "gate.prod" = "done" }\ntook = "36h"\n`;
    expect(await failuresOf(DEPLOY, `${BUILD}${command('*')}${rest}`)).toEqual({});
    const really = DEPLOY.replace('"deploy prod"', '"true"');
    expect(await failuresOf(really, `run = ["*"]\n${BUILD}${rest}`)).toEqual({});
    const exact = `${BUILD}${command('gate', 'exit = 1')}${command('*.log')}[test.expect]\nnever = ["gate.prod"]\n`;
    expect(await failuresOf(DEPLOY, exact)).toEqual({});
  });

  test('an endless loop ends at max_records', async () => {
    const loop = `[main]
[[main.steps]]
id = "a"
executor = "shell"
command = "make"
retry = { max_attempts = 1000, delay = "1s" }
`;
    const failures = await failuresOf(loop, `max_records = 40\n${command('a', 'exit = 1')}`);
    expect(failures).toEqual({ max_records: [40, expect.any(Number)] });
  });

  test('claims are checked in every test', async () => {
    const failures = await failuresOf(
      DEPLOY,
      `${BUILD}${gate('approve')}${command('gate.prod')}
[[claim]]
never = "*.prod"
unless_gate = "release"
[[claim]]
never = "*.prod"
unless = "nobody"
[[claim]]
always = "*.log"
when = "done"
[[claim]]
always = "*.log"
when = "failed"
[[claim]]
at_most = { commands = 2, visits = { build = 0 } }
[[claim]]
alone = "*"
[[claim]]
ends = true
`,
    );
    expect(failures).toEqual({
      'claim.1': ['*.prod', 'gate.prod'],
      'claim.2': ['*.log', null],
      'claim.4': [
        { commands: 2, visits: { build: 0 } },
        { commands: 3, visits: { build: 1 } },
      ],
      'claim.5': ['*', '*'],
    });
    const waits = `[main]\n${shellStep('a', 'make')}`;
    const hangs = `${command('a', 'hangs = true')}[test.expect]\nrun = "waiting"\n[[claim]]\nends = true\n`;
    expect(await failuresOf(waits, hangs)).toEqual({ 'claim.0': [true, false] });
  });

  test('what a test says about steps and gates that the workflow does not have fails it, once each', async () => {
    const failures = await failuresOf(
      DEPLOY,
      `run = ["lint-*"]
${BUILD}${gate('approve')}${command('gate.prod')}
[test.expect]
visits = { "nobody" = 0, "gate.log" = 0 }
order = ["nobody < build"]
[[claim]]
never = "nobody"
[[claim]]
alone = "each.*.merge"
[[claim]]
at_most = { visits = { nobody = 3 } }
[[claim]]
never = "build"
unless_gate = "relaese"
[[claim]]
always = "*.log"
when = "failed"
`,
    );
    expect(failures).toEqual({
      'run.0': ['lint-*', null],
      'visits.nobody': [0, null],
      'order.0': ['nobody < build', null],
      'claim.0': [null, null],
      'claim.1': [null, null],
      'claim.2': [null, null],
      'claim.3': ['build', 'build'],
    });
  });

  test('patterns match whole ids', async () => {
    const workflow = `[main]
${shellStep('build', 'make')}
[[main.steps]]
id = "each"
executor = "foreach"
items = ["x"]
item_var = "item"
needs = ["build"]
template = "#one"
[one]
${shellStep('build', 'make {{item}}').replaceAll('main', 'one')}`;
    expect(await failuresOf(workflow, `${command('*')}[test.expect]\norder = ["build < each.*.build"]\n`)).toEqual({});
  });
});

test('Raymond: visits, scripts, costs, and a death of the engine', async () => {
  const { tests } = await tested({
    'flow/START.md': 'Begin. <goto>REVIEW.md</goto>',
    'flow/REVIEW.md': 'Review it. <goto>FIX.sh</goto> or <result>ok</result>',
    'flow/FIX.sh': "echo '<goto>REVIEW.md</goto>'\n",
    'flow.test.toml': `
[[test]]
name = "two rounds"
[[test.on]]
step = "*.REVIEW"
times = 2
do = [{ wait = "5m" }, { say = "<goto>FIX.sh</goto>" }, { cost = { usd = 0.5 } }]
[[test.on]]
step = "*.REVIEW"
do = [{ say = "<result>ok</result>" }, { cost = { usd = 0.25 } }]
[[test.command]]
step = "*.FIX"
times = 1
stdout = "<goto>REVIEW.md</goto>"
[[test.command]]
step = "*.FIX"
takes = "1m"
stdout = "<goto>REVIEW.md</goto>"
[[test.engine]]
dies_at = 5
away = "2d"
[test.expect]
visits = { "*.REVIEW" = 3, "*.FIX" = 2 }
cost = { usd = 1.25, turns = "<= 4" }
steps = { "main.*" = "done" }
took = "2d11m"
`,
  });
  expect(tests).toMatchObject([{ name: 'two rounds', run: 'done', failures: [] }]);
});

test('Conductor: outcomes, a gate, files of the worktree, coverage', async () => {
  const { tests, last } = await tested(
    {
      'package.json': '{"scripts":{"test":"true"}}',
      'w.yaml': `workflow_id: w
version: 1
description: try it
entry_step: work
steps:
  - id: work
    opcode: RUN_AGENT
    agent: claude-code
    prompt: task.implement.v1
    routes: { completed: check, error: failed, killed_timeout: failed, killed_idle: failed, killed_policy: failed }
  - id: check
    opcode: RUN_VALIDATION
    run: [tests]
    routes: { completed: STOP, error: ask, killed_timeout: failed, killed_idle: failed, killed_policy: failed }
  - id: ask
    opcode: GATE
    gate: requires_approval
    reason: Try again?
    routes: { gate_approved: work, gate_rejected: failed }
  - id: failed
    opcode: STOP
    verdict: failure
    reason: not done
`,
      'w.test.toml': `
[defaults]
files = { "package.json" = '{"scripts":{"test":"true"}}', "TASK.md" = "do it" }
[[defaults.on]]
step = "work#*"
do = [{ write = "a.txt", text = "round {{n}}" }, { say = "done" }]
[[test]]
name = "approved after a failure"
[[test.command]]
step = "check#*"
times = 1
exit = 1
[[test.command]]
step = "check#*"
[[test.gate]]
gate = "ask*"
after = "1d"
decide = "approve"
[test.expect]
outcomes = { "check#1" = "error", "check#2" = "completed", "ask#1" = "gate_approved" }
visits = { "work#*" = 2 }
files = { "a.txt" = { contains = "round" } }
took = "1d"
[[test]]
name = "rejected"
[[test.command]]
step = "check#*"
exit = 1
[[test.gate]]
gate = "*"
decide = "reject"
[test.expect]
run = "failed"
outcomes = { "check#1" = "completed" }
[[claim]]
at_most = { visits = { work = 2 } }
`,
    },
    '--coverage',
  );
  expect(last.coverage).toEqual({ steps: [4, 4], routes: [5, 12] });
  expect(tests[0]).toMatchObject({ run: 'done', failures: [] });
  expect(tests[1]).toMatchObject({
    run: 'failed',
    failures: [{ expect: 'outcomes.check#1', expected: 'completed', got: 'error' }],
  });
});

describe('the command', () => {
  const GOOD = {
    'w.meow.toml': `[main]\n${shellStep('a', 'make')}`,
    'w.test.toml': `[[test]]\nname = "a"\n${command('a')}`,
  };

  test('--crash kills the engine before and after each record', async () => {
    const { tests, last } = await tested(
      {
        'deploy.meow.toml': DEPLOY,
        'deploy.test.toml': `[[test]]
name = "approved"
${BUILD}${gate('approve', '36h')}${command('gate.prod', 'takes = "20m"')}[[test.engine]]\ndies_at = 3\naway = "1d"\n`,
      },
      '--crash',
    );
    expect(tests[0]).toMatchObject({ status: 'passed', failures: [] });
    expect(tests[0]?.deaths).toBeGreaterThanOrEqual(10);
    expect(last.deaths).toBe(tests[0]?.deaths);
  });

  test('-t takes part of a name with wildcards, and files below folders are found', async () => {
    const two = `[[test]]\nname = "the first one"\n${command('a')}[[test]]\nname = "the second"\n${command('a')}`;
    const files = { 'deep/w.meow.toml': GOOD['w.meow.toml'], 'deep/w.test.toml': two };
    const first = await tested(files, '-t', 'first*o');
    expect(first.tests.map(({ file, name }) => [file, name])).toEqual([['deep/w.test.toml', 'the first one']]);
    const none = await tested(files, '-t', 'third');
    expect([none.tests, none.code]).toEqual([[], 1]);
  });

  test('a workflow that does not compile, a missing workflow and a missing folder are errors of the test', async () => {
    const { tests, last, code } = await tested({
      'bad.meow.toml': '[main]\n[[main.steps]]\nid = "a"\nexecutor = "shel"\n',
      'bad.test.toml': '[[test]]\nname = "bad"\n',
      'none.test.toml': '[[test]]\nname = "none"\n',
      'w.meow.toml': GOOD['w.meow.toml'],
      'w.test.toml': '[[test]]\nname = "folder"\nfolder = "nowhere"\n',
    });
    expect(tests.map(({ status, run }) => [status, run])).toEqual([
      ['error', null],
      ['error', null],
      ['error', null],
    ]);
    expect(tests[0]?.failures[0]?.message).toContain('bad.meow.toml:4:');
    expect(tests[2]?.failures[0]?.message).toContain('nowhere');
    expect([last.errors, code]).toEqual([3, 1]);
  });

  test('mistakes of all files are printed, and no test runs', async () => {
    await using rig = await Rig.setup();
    rig.write('a.test.toml', '[[test]]\nnam = "a"\n');
    rig.write('b.test.toml', '[[test]]\nname = "b"\n[test.expect]\nrun = "dne"\n');
    for (const [file, text] of Object.entries(GOOD)) rig.write(file, text);
    const { stdout, stderr, code } = await rig.meow('test');
    expect([stdout, code]).toEqual(['', 2]);
    expect(stderr).toContain('a.test.toml:2:1: error unknown-key: a test has no key "nam"');
    expect(stderr).toContain('b.test.toml:4:7: error invalid-value: "run" cannot be "dne"');
    expect(stderr).toContain('hint: Did you mean "done"?');
    expect((await rig.meow('test', 'nowhere')).code).toBe(2);
    expect((await rig.meow('test', 'w.meow.toml')).code).toBe(2);
    expect((await rig.meow('test', '--nonsense')).code).toBe(2);
  });

  test('writes nothing in the project or the home folder, and removes its own folder', async () => {
    await using rig = await Rig.setup();
    for (const [file, text] of Object.entries(GOOD)) rig.write(file, text);
    rig.write('bad.test.toml', `workflow = "w.meow.toml"\n[[test]]\nname = "bad"\nrun = ["a"]\n`);
    const temporary = join(rig.home, '../tmp');
    mkdirSync(temporary);
    const before = rig.files();
    const { stdout, code } = await rig.meowWith({ TMPDIR: temporary }, 'test');
    expect(code).toBe(1);
    expect(stdout).toContain('1 passed, 1 failed');
    expect(rig.files()).toEqual(before);
    expect(readdirSync(rig.home)).toEqual([]);
    expect(readdirSync(temporary).filter((name) => name.startsWith('meow-test-'))).toEqual([]);
    expect(existsSync(rig.path('.meow'))).toBe(false);
  });

  test('without tests: exit code 1', async () => {
    await using rig = await Rig.setup();
    expect(await rig.meow('test')).toMatchObject({ code: 1, stdout: '' });
  });
});

describe('traces', () => {
  const FILES = {
    'w.meow.toml': DEPLOY,
    'w.test.toml': `[[test]]
name = "a"
${BUILD}${gate('approve', '36h')}${command('gate.prod', 'takes = "20m"')}[test.expect]
trace = "traces/w.trace"
`,
  };
  const TRACE = `+0s run started
+0s build started
+0s build done 0ms
+0s gate started
+0s gate waits for a decision on gate release
+1d12h gate release approved by tester
+1d12h gate outcome true
+1d12h gate expanded into 1 step
+1d12h gate.prod started
+1d12h20m gate.prod done 20m00s
+1d12h20m gate done 1d12h
+1d12h20m run done after 1d12h
`;

  test('--update writes the trace, which is then compared', async () => {
    await using rig = await Rig.setup();
    for (const [file, text] of Object.entries(FILES)) rig.write(file, text);
    const missing = await rig.meow('test');
    expect(missing).toMatchObject({ code: 1 });
    expect(missing.stdout).toContain('meow test --update');
    expect(await rig.meow('test', '--update')).toMatchObject({ code: 0 });
    const trace = rig.read('traces/w.trace');
    expect(trace).toBe(TRACE);
    expect(await rig.meow('test')).toMatchObject({ code: 0 });
    expect(await rig.meow('test', '--crash')).toMatchObject({ code: 0 });
    rig.write('traces/w.trace', trace.replace('gate.prod started', 'nobody started'));
    const { stdout, code } = await rig.meow('test');
    expect(code).toBe(1);
    expect(stdout).toContain('- +1d12h nobody started');
    expect(stdout).toContain('+ +1d12h gate.prod started');
  });

  test('a failed expectation shows the part of the trace that explains it', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', DEPLOY);
    const test = `[[test]]\nname = "a"\n${BUILD}${gate('approve', '36h')}${command('gate.prod')}`;
    rig.write('w.test.toml', `${test}[test.expect]\nnever = ["*.prod"]\n`);
    const { stdout } = await rig.meow('test');
    expect(stdout).toContain('gate.prod started, expected never\n      +0s');
    expect(stdout).toContain('      +1d12h gate.prod started\n');
  });
});

test('--junit writes a suite for each file, in a new folder', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'make')}`);
  rig.write('w.test.toml', `[[test]]\nname = "good <1>"\n${command('a')}[[test]]\nname = "bad"\n`);
  rig.write('none.test.toml', '[[test]]\nname = "none"\n');
  expect(await rig.meow('test', '--junit', 'out/deep/report.xml')).toMatchObject({ code: 1 });
  const xml = rig.read('out/deep/report.xml');
  expect(xml).toMatch(/<testsuite name="none.test.toml" tests="1" failures="0" errors="1"/);
  expect(xml).toMatch(/<testsuite name="w.test.toml" tests="2" failures="1" errors="0"/);
  expect(xml).toContain('<testcase name="good &lt;1&gt;"');
  rig.write('file', '');
  expect((await rig.meow('test', '--junit', 'file/report.xml')).code).toBe(2);
});

test('--watch repeats the tests of what changed, and Ctrl-C ends it', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'make')}`);
  rig.write('w.test.toml', `[[test]]\nname = "a"\n${command('a')}`);
  rig.write('v.meow.toml', `[main]\n${shellStep('a', 'make')}`);
  rig.write('v.test.toml', `[[test]]\nname = "v"\n${command('a')}`);
  const watching = rig.start('test', '--watch');
  let output = '';
  watching.process.stdout?.on('data', (text: string) => {
    output += text;
  });
  const runs = (name: string): number => output.split(`› ${name} `).length - 1;
  await until(() => runs('a') === 1 && output.includes('2 passed'), 'the first run');
  rig.write('w.meow.toml', `[main]\n${shellStep('b', 'make')}`);
  await until(() => runs('a') === 2, 'the second run');
  expect(output).toContain('✗ w.test.toml › a');
  expect(runs('v')).toBe(1);
  watching.process.kill('SIGINT');
  expect((await watching.ended).code).toBe(130);
});

describe('--coverage', () => {
  const FILES = {
    'sub/w.meow.toml': DEPLOY,
    'sub/w.test.toml': `[[test]]\nname = "a"\n${BUILD}${gate('approve')}${command('gate.prod')}`,
  };

  test('counts steps and routes, and names what no test reached', async () => {
    await using rig = await Rig.setup();
    for (const [file, text] of Object.entries(FILES)) rig.write(file, text);
    const { stdout, code } = await rig.meow('test', '--coverage');
    expect(code).toBe(0);
    expect(stdout).toContain('coverage: 3 of 4 steps, 1 of 2 routes (66%)');
    const line = DEPLOY.split('\n').findIndex((each) => each.startsWith('on_false')) + 1;
    expect(stdout).toContain(`  not reached: sub/w.meow.toml:${line}: route on_false of gate\n`);
    expect(stdout).toContain(`  not reached: sub/w.meow.toml:${line}: step log\n`);
    expect((await rig.meow('test', '--coverage=60')).code).toBe(0);
    expect((await rig.meow('test', '--coverage=101')).code).toBe(2);
    expect((await rig.meow('test', '--coverage=67')).code).toBe(1);
    const graph = await rig.meow('graph', 'sub/w.meow.toml', '--coverage', 'sub/w.test.toml');
    expect(graph.stdout).toMatch(/prod +shell +covered/);
    expect(graph.stdout).toMatch(/log +shell +missed/);
  });

  test('of a loop, a recovery, a list and a template of another file', async () => {
    const step = (text: string): string => `[[main.steps]]\n${text}\n`;
    const { last } = await tested(
      {
        'w.meow.toml': `[main]
${step('id = "each"\nexecutor = "foreach"\nitems = ["x", "y"]\ntemplate = "other"')}
${step('id = "risky"\nexecutor = "shell"\ncommand = "make"\nneeds = ["each"]\non_error = "rescue"')}
[rescue]
${step('id = "log"\nexecutor = "shell"\ncommand = "echo"').replaceAll('main', 'rescue')}`,
        'other.meow.toml': `[main]\n${shellStep('one', 'make')}`,
        'w.test.toml': `[[test]]\nname = "a"\n${command('risky', 'exit = 1')}${command('*')}`,
      },
      '--coverage',
    );
    expect(last.coverage).toEqual({ steps: [4, 4], routes: [1, 1] });
  });

  test('of Raymond', async () => {
    const { last } = await tested(
      {
        'flow/START.md': 'Begin. <goto>NEXT.md</goto> or <call return="NEXT.md">SUB.md</call>',
        'flow/NEXT.md': 'End. <result>ok</result> <reset>START.md</reset>',
        'flow/SUB.md': '<result>sub</result>',
        'flow.test.toml': `[[test]]
name = "a"
[[test.on]]
step = "*.START"
do = [{ say = '<call return="NEXT.md">SUB.md</call>' }]
[[test.on]]
step = "*.SUB"
do = [{ say = "<result>x</result>" }]
[[test.on]]
step = "*.NEXT"
do = [{ say = "<result>x</result>" }]
`,
      },
      '--coverage',
    );
    expect(last.coverage).toEqual({ steps: [3, 3], routes: [3, 5] });
  });
});

test('docs/testing.md can be followed literally, and shows what the program prints', async () => {
  await using rig = await Rig.setup();
  const text = readFileSync(join(import.meta.dirname, '../../docs/testing.md'), 'utf8');
  const fences = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, info, inside = '']) => ({ info, inside }));
  let printed = '';
  let shown = 0;
  for (const { info, inside } of fences) {
    const [, file] = /^# (\S+\.toml)\n/.exec(inside) ?? [];
    if (info === 'sh') printed = (await rig.shell(inside)).stdout;
    else if (info === 'text') {
      expect(printed).toContain(inside);
      shown += 1;
    } else if (file !== undefined) rig.write(file, inside);
  }
  expect(shown).toBe(8);
});
