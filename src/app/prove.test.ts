// Planted mistakes that `meow prove` finds, in all three languages, and the workflows that come with meow.

import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { Adapters } from './adapters.ts';
import type { Project } from './project.ts';
import { type Proof, type ProveFlags, proveWorkflow } from './prove.ts';
import { readSettings } from './sources.ts';
import { readTestFiles, runTests } from './testing.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-prove-')));
afterAll(() => rmSync(base, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;
let count = 0;

/** The proof of a workflow in a project with these files. */
async function prove(reference: string, files: Files, flags: Partial<ProveFlags> = {}): Promise<Proof> {
  const cwd = join(base, String((count += 1)));
  const proof = await proveIn(cwd, reference, files, flags);
  await checkCounterexamples(cwd, proof);
  return proof;
}

/** Each counterexample fails under `meow test` by its claim, or by its own expectation; never by its rules. */
async function checkCounterexamples(cwd: string, { claims }: Proof): Promise<void> {
  const texts = claims.flatMap(({ test: text }) => text ?? []);
  if (texts.length === 0) return;
  const path = join(cwd, 'w.test.toml');
  appendFileSync(path, `\n${texts.join('\n')}`);
  const { tests, diagnostics } = readTestFiles([path], cwd);
  expect(diagnostics, texts.join('\n')).toEqual([]);
  for (const found of tests) {
    for await (const result of runTests(found, { pattern: null, crash: false, faults: null, update: false })) {
      const number = Number(/claim (\d+)/.exec(result.name)?.[1]) - 1;
      const paths = result.failures.map((failure) => failure.expect);
      const shown = `${texts.join('\n')}\n${JSON.stringify(result.failures, null, 1)}`;
      expect(paths, shown).toContain(`claim.${number}`);
      expect(
        paths.filter((each) => !BY_EXPECTATION.test(each) && !(each === 'run' && result.name.endsWith(': ends'))),
        shown,
      ).toEqual([]);
    }
  }
}

/** `run` is missing: the run must end as on the path, except if it should not end at all. */
const BY_EXPECTATION = /^(?:claim|never|visits|cost|max_records)\b/;

async function proveIn(cwd: string, reference: string, files: Files, flags: Partial<ProveFlags>): Promise<Proof> {
  const meow = join(cwd, '.meow');
  const project: Project = { cwd, meow, exists: true, runs: join(meow, 'workflows'), shared: join(cwd, 'home/.meow') };
  const config = '[agents]\ndefault_adapter = "sim"\n[validators.ok]\ncommand = "true"\n';
  for (const [file, text] of Object.entries({ '.meow/config.toml': config, ...files })) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), text);
  }
  const around = [project, readSettings(project), new Adapters(project)] as const;
  const proved = await proveWorkflow(...around, { reference, ...flags }, () => false);
  if (proved.kind === 'refused') throw new Error(proved.diagnostics.map(({ message }) => message).join('; '));
  return proved.proof;
}

const step = (id: string, executor: string, more = ''): string =>
  `[[main.steps]]\nid = "${id}"\nexecutor = "${executor}"\n${more}\n`;
const shell = (id: string, more = '', command = 'true'): string => step(id, 'shell', `command = "${command}"\n${more}`);
const meow = (...steps: readonly string[]): string => `[main]\nname = "w"\n\n${steps.join('\n')}`;
const ends = ({ endings }: Proof): readonly string[] =>
  endings.map((each) => `${each.status} ${each.step ?? ''}`.trim());

describe('endings', () => {
  test('every step may fail, and each has its shortest path', async () => {
    const proof = await prove('w.meow.toml', { 'w.meow.toml': meow(shell('a'), shell('b', 'needs = ["a"]')) });
    expect(proof.endings).toEqual([
      {
        status: 'done',
        step: null,
        reason: null,
        ways: 1,
        shortest: [
          { step: 'a', outcome: 'done' },
          { step: 'b', outcome: 'done' },
        ],
      },
      {
        status: 'failed',
        step: 'a',
        reason: 'command_failed',
        ways: 1,
        shortest: [{ step: 'a', outcome: 'command_failed' }],
      },
      {
        status: 'failed',
        step: 'b',
        reason: 'command_failed',
        ways: 1,
        shortest: [
          { step: 'a', outcome: 'done' },
          { step: 'b', outcome: 'command_failed' },
        ],
      },
    ]);
    expect(proof).toMatchObject({ exit: 0, hangs: [], never: [], loops: [], explored: { complete: true, visits: 3 } });
    expect(proof.worst).toEqual({ turns: 0, commands: 2, agents_at_once: 0, usd: 0 });
  });

  test('a headless agent without outputs answers with a result', async () => {
    const start = step('start', 'spawn', 'agent = "w"\nadapter = "sim"\nchannel = "headless"');
    const ask = step('ask', 'agent', 'agent = "w"\nprompt = "x"\nneeds = ["start"]');
    const report = shell('report', 'needs = ["ask"]', 'echo {{ask.outputs.result}}');
    const files = { 'w.meow.toml': meow(start, ask, report), 'w.test.toml': '[[claim]]\nnever = "report"\n' };
    const proof = await prove('w.meow.toml', files);
    expect(proof).toMatchObject({ never: [], claims: [{ holds: false }] });
    expect(ends(proof)).toContain('done');
  });

  test('a usage limit without a known end pauses a state machine, which breaks no claim', async () => {
    const files = {
      'w/START.md': '---\nallowed_transitions:\n  - { tag: goto, target: END.md }\n---\nWork.\n',
      'w/END.md': '---\nallowed_transitions:\n  - { tag: result, payload: ok }\n---\nWork.\n',
      'w.test.toml': '[[claim]]\nalways = "START"\n',
    };
    const proof = await prove('w', files);
    expect(proof.endings).toContainEqual(
      expect.objectContaining({ status: 'paused', step: null, reason: 'limit_reached', shortest: [] }),
    );
    expect(proof).toMatchObject({ exit: 0, claims: [{ holds: true }] });
  });

  test('a bound ends the exploration, and nothing is claimed', async () => {
    const files = {
      'w.meow.toml': meow(shell('a'), shell('b', 'needs = ["a"]')),
      'w.test.toml': '[[claim]]\nalone = "*"\n',
    };
    const proof = await prove('w.meow.toml', files, { states: 2 });
    expect(proof).toMatchObject({ exit: 3, explored: { states: 2, complete: false }, never: [] });
    expect(proof.claims).toMatchObject([{ holds: null, counterexample: null, test: null }]);
  });

  test('ten independent pairs in 40 steps are explored to the end', async () => {
    const pairs = Array.from({ length: 10 }, (_, n) => [
      step(`s${n}`, 'spawn', `agent = "w${n}"\nadapter = "sim"`),
      step(`p${n}`, 'agent', `agent = "w${n}"\nprompt = "x"\nneeds = ["s${n}"]`),
      shell(`a${n}`),
      shell(`b${n}`, `needs = ["a${n}"]`),
    ]);
    const proof = await prove('w.meow.toml', { 'w.meow.toml': meow(...pairs.flat()) });
    expect(proof).toMatchObject({
      exit: 0,
      explored: { complete: true },
      worst: { turns: 10, commands: 20, agents_at_once: 10 },
    });
    expect(proof.endings).toHaveLength(41);
  });
});

describe('planted mistakes', () => {
  const broken = async (reference: string, files: Files): Promise<Proof['claims'][number]> => {
    const proof = await prove(reference, files);
    expect(proof.exit).toBe(1);
    const [claim] = proof.claims.filter(({ holds }) => holds === false);
    expect(claim?.test).toContain('[[test]]');
    return claim ?? expect.fail('no claim is broken');
  };

  test('a gate that a recovery goes around', async () => {
    const gate = step(
      'gate',
      'branch',
      'condition = "meow await-approval release"\non_error = ".again"\n[main.steps.on_true]\ninline = []',
    );
    const again =
      '[again]\nname = "again"\ninternal = true\n[[again.steps]]\nid = "log"\nexecutor = "shell"\ncommand = "true"\n';
    const files = {
      'w.meow.toml': `${meow(gate, shell('ship', 'needs = ["gate"]'))}\n${again}`,
      'w.test.toml': '[[claim]]\nnever = "ship"\nunless_gate = "release"\n',
    };
    const { counterexample, test: text } = await broken('w.meow.toml', files);
    expect(counterexample?.at(-1)).toEqual({ step: 'ship', outcome: 'started' });
    expect(counterexample?.map(({ outcome }) => outcome)).toContain('gate_rejected');
    expect(text).toContain('decide = "reject"');
    expect(text).toContain('never = ["ship"]');
  });

  test('an agent that is not ended on one path', async () => {
    const files = {
      'w.meow.toml': meow(
        step('start', 'spawn', 'agent = "w"\nadapter = "sim"'),
        step('work', 'agent', 'agent = "w"\nprompt = "x"\nneeds = ["start"]\non_error = "continue"'),
        step(
          'check',
          'branch',
          'condition = "test -f x"\nneeds = ["work"]\n[main.steps.on_true]\ninline = [{ id = "stop", executor = "kill", agent = "w" }]',
        ),
      ),
      'w.test.toml': '[[claim]]\ncleaned = true\n',
    };
    const { counterexample } = await broken('w.meow.toml', files);
    expect(counterexample?.at(-1)).toEqual({ step: 'check', outcome: 'false' });
  });

  test('a loop without a bound', async () => {
    const state = (...targets: readonly string[]): string =>
      `---\nallowed_transitions:\n${targets.map((to) => `  - ${to}\n`).join('')}---\nWork.\n`;
    const files = {
      'w/START.md': state('{ tag: goto, target: FIX.md }', '{ tag: result, payload: ok }'),
      'w/FIX.md': state('{ tag: goto, target: START.md }'),
      'w.test.toml': '[[claim]]\nends = true\n',
    };
    const proof = await prove('w', files);
    expect(proof.loops).toEqual([{ through: expect.arrayContaining(['START', 'FIX']), bounded: false }]);
    expect(proof.worst).toMatchObject({ turns: null, usd: null });
    expect(proof).toMatchObject({ exit: 1, explored: { complete: true } });
    expect((await prove('w', { ...files, 'w.test.toml': '' })).exit).toBe(0);
  });

  test.each([
    ['a template enters itself through a branch', '[again.steps.on_true]\ntemplate = ".again"'],
    [
      'two templates enter each other',
      '[again.steps.on_true]\ntemplate = ".other"\n\n[other]\ninternal = true\n\n[[other.steps]]\nid = "back"\nexecutor = "expand"\ntemplate = ".again"',
    ],
  ])('a recursion without a bound: %s', async (_, template) => {
    const work = shell('work').replace('main', 'again');
    const more = step('more', 'branch', `needs = ["work"]\ncondition = "test -f more"\n${template}`);
    const first = meow(step('first', 'expand', 'template = ".again"'));
    const files = {
      'w.meow.toml': `${first}\n[again]\ninternal = true\n\n${work}\n${more.replace('main', 'again')}`,
      'w.test.toml': '[[claim]]\nends = true\n[[claim]]\nat_most = { commands = 20 }\n',
    };
    const proof = await prove('w.meow.toml', files);
    expect(proof).toMatchObject({ exit: 1, explored: { complete: true }, worst: { commands: null } });
    expect(proof.loops).toEqual([{ through: expect.arrayContaining(['first.*.work']), bounded: false }]);
    expect(proof.claims.every(({ holds, test: text }) => holds === false && text !== null)).toBe(true);
    expect(ends(proof)).toContain('failed first.*.work');
  });

  test('a recursion that passes other values is not taken for a loop', async () => {
    const call = 'on_true = { template = ".again", variables = { word = "{{word}}x" } }';
    const more = step('more', 'branch', `condition = "test -f {{word}}"\n${call}`);
    const again = `[again]\ninternal = true\n[again.variables]\nword = {}\n\n${more.replace('main', 'again')}`;
    const first = step('first', 'expand', 'template = ".again"\nvariables = { word = "x" }');
    const proof = await prove('w.meow.toml', { 'w.meow.toml': `${meow(first)}\n${again}` });
    expect(proof).toMatchObject({ exit: 3, loops: [], explored: { complete: false } });
  });

  test('a wait for an event that nobody emits', async () => {
    const waits = shell('wait', '', 'meow await-event ready');
    const files = {
      'w.meow.toml': meow(waits, shell('go', 'needs = ["wait"]')),
      'w.test.toml': '[[claim]]\nends = true\n[[claim]]\nalways = "wait"\n',
    };
    const proof = await prove('w.meow.toml', files);
    expect(proof).toMatchObject({ exit: 1, hangs: [{ step: 'wait' }], never: ['go'] });
    expect(proof.claims).toMatchObject([{ holds: false }, { holds: true }]);
    const emits = shell('tell', '', 'meow event ready');
    const told = await prove('w.meow.toml', { 'w.meow.toml': meow(waits, emits, shell('go', 'needs = ["wait"]')) });
    expect(told).toMatchObject({ exit: 0, hangs: [], never: [] });
    const late = await prove('w.meow.toml', {
      'w.meow.toml': meow(shell('wait', 'needs = ["tell"]', 'meow await-event ready'), emits),
    });
    expect(late.hangs).toMatchObject([{ step: 'wait' }]);
  });

  test('a route that no outcome takes', async () => {
    const branch = step(
      'b',
      'branch',
      'condition = "true"\n[main.steps.on_true]\ninline = []\n[main.steps.on_timeout]\ninline = [{ id = "late", executor = "shell", command = "x" }]',
    );
    const claim = '[[claim]]\nalways = "b.late"\nwhen = "done"\n';
    const proof = await prove('w.meow.toml', { 'w.meow.toml': meow(branch), 'w.test.toml': claim });
    expect(proof.never).toEqual(['b.late', 'b: on_timeout']);
    expect(proof.claims).toMatchObject([{ holds: false }]);
  });

  test('a Raymond policy that lets a call return nowhere', async () => {
    const files = {
      'w/START.md': '---\nallowed_transitions:\n  - { tag: call, target: SUB.md, return: END.md }\n---\nWork.\n',
      'w/SUB.md': '---\nallowed_transitions:\n  - { tag: goto, target: SUB.md }\n---\nWork.\n',
      'w/END.md': '---\nallowed_transitions:\n  - { tag: result, payload: ok }\n---\nWork.\n',
      'w.test.toml': '[[claim]]\nalways = "END"\n[[claim]]\nends = true\n',
    };
    const proof = await prove('w', files);
    expect(proof.never).toEqual(['END']);
    expect(ends(proof)).not.toContain('done');
    expect(proof.claims).toMatchObject([{ holds: false }, { holds: false }]);
  });

  test('a Conductor path from unsafe to success without a gate', async () => {
    const yaml = (unsafe: string): string => `workflow_id: w
version: 1
description: Evaluates.
entry_step: check
steps:
  - id: check
    opcode: RUN_VALIDATION
    run: [ok]
    routes: { completed: judge, error: judge, killed_timeout: STOP, killed_idle: STOP, killed_policy: STOP }
  - id: judge
    opcode: EVALUATE
    agent: sim
    prompt: planner.evaluate_results.v1
    allowed_next_steps: [check, ask, ship]
    routes: { success: ask, partial: check, blocked: STOP, unsafe: ${unsafe}, needs_human: ask }
  - id: ask
    opcode: GATE
    gate: requires_approval
    routes: { gate_approved: ship, gate_rejected: STOP }
  - id: ship
    opcode: STOP
    verdict: success
`;
    const claim = '[[claim]]\nnever = "ship"\nunless_gate = "ask"\n';
    const { counterexample } = await broken('w.yaml', { 'w.yaml': yaml('ship'), 'w.test.toml': claim });
    expect(counterexample?.slice(-2)).toMatchObject([{ step: 'judge', outcome: 'unsafe' }, { step: 'ship' }]);
    const proof = await prove('w.yaml', { 'w.yaml': yaml('STOP'), 'w.test.toml': claim });
    expect(proof).toMatchObject({ exit: 0, explored: { complete: true } });
    expect(ends(proof)).toEqual(expect.arrayContaining(['done ship', 'failed judge', 'failed ask']));
  });

  test('two steps that write the same worktree at once', async () => {
    const files = {
      'w.meow.toml': meow(shell('a'), shell('write-1', 'needs = ["a"]'), shell('write-2', 'needs = ["a"]')),
      'w.test.toml': '[[claim]]\nalone = "write-*"\n',
    };
    const { counterexample } = await broken('w.meow.toml', files);
    expect(counterexample?.at(-1)).toMatchObject({ outcome: 'started' });
  });
});

describe('validators', () => {
  const yaml = `workflow_id: w
version: 1
description: Validates.
entry_step: check
steps:
  - id: check
    opcode: RUN_VALIDATION
    run: [ok, { id: deep, kind: script, entrypoint: ./deep.sh, timeout: 5m }]
    limits: { idle_timeout: 1m }
    routes: { completed: STOP, error: STOP, killed_timeout: late, killed_idle: idle, killed_policy: refused }
  - { id: late, opcode: STOP, verdict: failure }
  - { id: idle, opcode: STOP, verdict: failure }
  - { id: refused, opcode: STOP, verdict: failure }
`;

  test('a script may not be allowed, and a timeout is worse than that', async () => {
    const proof = await prove('w.yaml', { 'w.yaml': yaml });
    expect(proof.never).toEqual([]);
    expect(ends(proof)).toEqual(expect.arrayContaining(['failed late', 'failed idle', 'failed refused']));
  });
});

test('a claim about dollars is not proven without a price', async () => {
  const files = { 'w/START.md': 'Say <result>ok</result>', 'w.test.toml': '[[claim]]\nat_most = { usd = 9 }\n' };
  expect(await prove('w', files)).toMatchObject({ exit: 3, claims: [{ holds: null }] });
  expect(await prove('w', files, { price: ['sim=1'] })).toMatchObject({ exit: 0, claims: [{ holds: true }] });
});

/** Each of them is reproduced by its test: see checkCounterexamples. */
describe('counterexamples of every kind', () => {
  const each = step(
    'each',
    'foreach',
    'items_file = "list.json"\nitem_var = "item"\nneeds = ["a"]\ntemplate = ".body"\n[body]\nname = "body"\n[[body.steps]]\nid = "b"\nexecutor = "shell"\ncommand = "x {{item}}"',
  );
  const spawned = step('start', 'spawn', 'agent = "w"\nadapter = "sim"');
  const work = (more = ''): string => step('work', 'agent', `agent = "w"\nneeds = ["start"]\n${more}`);
  const state = (...targets: readonly string[]): string =>
    `---\nallowed_transitions:\n${targets.map((to) => `  - ${to}\n`).join('')}---\nWork.\n`;

  test.each<[string, string, Files, string]>([
    [
      'a list in a file',
      'w.meow.toml',
      { 'w.meow.toml': meow(shell('a'), each) },
      'at_most = { visits = { "each.*.b" = 1 } }',
    ],
    [
      'a gate for one person',
      'w.meow.toml',
      { 'w.meow.toml': meow(shell('ask', '', 'meow await-approval g --approver ann'), shell('b', 'needs = ["ask"]')) },
      'never = "b"',
    ],
    [
      'an event from a prompt',
      'w.meow.toml',
      {
        'w.meow.toml': meow(
          spawned,
          work('prompt = "Run: meow event ready"'),
          shell('wait', '', 'meow await-event ready'),
          shell('b', 'needs = ["wait"]'),
        ),
      },
      'never = "b"',
    ],
    [
      'a report with a flag',
      'w.meow.toml',
      {
        'w.meow.toml': meow(
          spawned,
          work('prompt = "x"\n[main.steps.outputs]\nok = { type = "boolean", required = true }'),
          step(
            'if',
            'branch',
            'condition = "test {{work.outputs.ok}} = true"\nneeds = ["work"]\n[main.steps.on_false]\ninline = [{ id = "b", executor = "shell", command = "x" }]',
          ),
        ),
      },
      'never = "if.b"',
    ],
    [
      'a timeout',
      'w.meow.toml',
      { 'w.meow.toml': meow(shell('a', 'timeout = "5m"\non_error = "continue"'), shell('b', 'needs = ["a"]')) },
      'at_most = { commands = 1 }',
    ],
    [
      'an agent that dies',
      'w.meow.toml',
      { 'w.meow.toml': meow(spawned, work('prompt = "x"'), shell('b', 'needs = ["work"]')) },
      'always = "b"',
    ],
    [
      'an invalid answer, and a second one',
      'w',
      {
        'w/START.md': state('{ tag: goto, target: END.md }', '{ tag: result, payload: no }'),
        'w/END.md': state('{ tag: result, payload: ok }'),
      },
      'at_most = { turns = 2 }',
    ],
    [
      'the answer of a script',
      'w',
      { 'w/START.sh': 'echo "<goto input=\\"1\\">END.md</goto>"\n', 'w/END.md': state('{ tag: result, payload: ok }') },
      'never = "END"',
    ],
    [
      'a violated policy',
      'w.yaml',
      {
        'w.yaml': `workflow_id: w
version: 1
description: Works.
entry_step: work
steps:
  - id: work
    opcode: RUN_AGENT
    agent: sim
    prompt: task.implement.v1
    routes: { completed: STOP, error: STOP, killed_timeout: STOP, killed_idle: STOP, killed_policy: undo }
  - id: undo
    opcode: ROLLBACK
    target: pre_run
    routes: { completed: STOP, error: STOP }
`,
      },
      'never = "undo"',
    ],
  ])('%s', async (_, reference, files, claim) => {
    const proof = await prove(reference, { ...files, 'w.test.toml': `[[claim]]\n${claim}\n` });
    expect(proof.claims).toMatchObject([{ holds: false, test: expect.any(String) }]);
  });

  test.each<[string, Files, string]>([
    [
      'a gate that is rejected, and approved in the next round',
      {
        'w.meow.toml': meow(
          step(
            'edit',
            'loop',
            'until = "meow await-approval text"\nmax_rounds = 2\ninline = [{ id = "write", executor = "shell", command = "x" }]',
          ),
          shell('print', 'needs = ["edit"]'),
        ),
      },
      'at_most = { visits = { "edit.*.write" = 1 } }',
    ],
    [
      'a wait for an event that ends at its own limit',
      {
        'w.meow.toml': meow(
          shell('wait', 'on_error = "continue"', 'meow await-event never --timeout 1h'),
          shell('a', 'needs = ["wait"]'),
        ),
      },
      'at_most = { commands = 1 }',
    ],
    [
      'an event after an agent that starts at once',
      {
        'w.meow.toml': meow(
          spawned,
          work('prompt = "Run: meow event gold"'),
          shell('watch', 'needs = ["start"]', 'meow await-event gold --timeout 1h'),
          shell('b', 'needs = ["watch"]'),
        ),
      },
      'never = "b"\nunless = "work"',
    ],
    [
      'a visit that is later than on the shortest way to its state',
      {
        'w.meow.toml': meow(
          spawned,
          step(
            'each',
            'foreach',
            'items_file = "list.json"\nneeds = ["start"]\ntemplate = ".body"\n[body]\nname = "body"\n[[body.steps]]\nid = "b"\nexecutor = "shell"\ncommand = "x"\ntimeout = "5m"\non_error = "continue"',
          ),
        ),
      },
      'at_most = { visits = { "*.b" = 1 } }',
    ],
  ])('%s', async (_, files, claim) => {
    const proof = await prove('w.meow.toml', { ...files, 'w.test.toml': `[[claim]]\n${claim}\n` });
    expect(proof.claims).toMatchObject([{ holds: false, test: expect.any(String) }]);
  });

  test('of several loops, one that a test can take is shown', async () => {
    const yaml = `workflow_id: w
version: 1
description: Judges.
entry_step: ask
steps:
  - id: ask
    opcode: GATE
    gate: requires_approval
    timeout: 2h
    routes: { gate_approved: STOP, gate_rejected: ask, gate_timed_out: back }
  - id: back
    opcode: ROLLBACK
    target: pre_run
    routes: { completed: STOP, error: ask }
`;
    const proof = await prove('w.yaml', { 'w.yaml': yaml, 'w.test.toml': '[[claim]]\nends = true\n' });
    expect(proof.loops).toHaveLength(2);
    expect(proof.claims).toMatchObject([{ holds: false, test: expect.any(String) }]);
  });

  test('each of two steps that run at once is in the story', async () => {
    const each = step(
      'each',
      'foreach',
      'items = ["a", "b"]\ntemplate = ".body"\n[body]\nname = "body"\n[[body.steps]]\nid = "b"\nexecutor = "shell"\ncommand = "x"',
    );
    const files = { 'w.meow.toml': meow(each), 'w.test.toml': '[[claim]]\nalone = "each.*.b"\n' };
    const started = { step: 'each.*.b', outcome: 'started' };
    const { claims } = await prove('w.meow.toml', files);
    expect(claims).toMatchObject([{ counterexample: [started, started], why: 'two steps each.*.b run at once' }]);
  });

  test('an agent that does not start cannot be tested', async () => {
    const files = { 'w.meow.toml': meow(spawned, work('prompt = "x"')), 'w.test.toml': '[[claim]]\nalways = "work"\n' };
    const proof = await prove('w.meow.toml', files);
    expect(proof.claims).toMatchObject([{ holds: false, counterexample: [{ step: 'start' }], test: null }]);
  });
});

describe('claims', () => {
  const workflow = meow(shell('a', 'retry = { max_attempts = 2 }'), shell('notify', 'needs = ["a"]'));
  const holds = async (claim: string): Promise<boolean | null | undefined> =>
    (await prove('w.meow.toml', { 'w.meow.toml': workflow, 'w.test.toml': `[[claim]]\n${claim}\n` })).claims[0]?.holds;

  test.each([
    ['never = "notify"\nunless = "a"', true],
    ['never = "notify"', false],
    ['always = "notify"\nwhen = "done"', true],
    ['always = "notify"', false],
    ['at_most = { commands = 3 }', true],
    ['at_most = { commands = 2 }', false],
    ['at_most = { turns = 0, visits = { a = 1 } }', true],
    ['at_most = { visits = { "*" = 1 } }', false],
    ['ends = true', true],
    ['cleaned = true', true],
  ])('%s', async (claim, expected) => {
    expect(await holds(claim)).toBe(expected);
  });

  test.each([
    ['[[claim]]\nnevr = "a"', /no key "nevr"/],
    ['[[claim]]\nnever = "notfy"', /no step "notfy"/],
    ['[[claim]]\nnever = "a"\nunless_gate = "release"', /no gate "release"/],
    ['[[claim]]\nnever = "a"\nends = true', /one subject/],
    ['[[claim]]\nends = false', /claims nothing/],
    ['[[claims]]\nends = true', /no key "claims"/],
  ])('a mistake in a test file: %s', async (text, expected) => {
    await expect(prove('w.meow.toml', { 'w.meow.toml': workflow, 'w.test.toml': text })).rejects.toThrow(expected);
  });
});
