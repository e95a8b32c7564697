import { describe, expect, test } from 'vitest';
import { readTestFile, type WorkflowTest } from './test-file.ts';

const TEST = '[[test]]\nname = "a"\n';

/** Each problem as `line:column code message`. */
function problems(text: string): readonly string[] {
  const { file, diagnostics } = readTestFile(text, 'a.test.toml');
  expect(file === null).toBe(diagnostics.length > 0);
  for (const { hint } of diagnostics) expect(hint).toMatch(/\S/);
  return diagnostics.map(({ span, code, message }) => `${span.line}:${span.column} ${code} ${message}`);
}

function firstTest(text: string): WorkflowTest {
  const { file, diagnostics } = readTestFile(text, 'a.test.toml');
  expect(diagnostics).toEqual([]);
  const [first] = file?.tests ?? [];
  if (first === undefined) throw new Error('no test');
  return first;
}

describe('a test file', () => {
  test('may be empty, and may only claim something', () => {
    expect(readTestFile('', 'a').file).toEqual({ workflow: null, tests: [], claims: [] });
    expect(readTestFile('[[claim]]\nends = true', 'a').file).toMatchObject({ claims: [{ kind: 'ends' }] });
  });

  test('without rules and expectations has defaults', () => {
    expect(firstTest(TEST)).toMatchObject({
      name: 'a',
      folder: null,
      run: [],
      now: Date.UTC(2026, 0, 1),
      flags: {},
      recordsMax: 10_000,
      expect: { run: 'done', took: null, trace: null },
    });
  });

  test('puts the defaults under each test', () => {
    const found = firstTest(`
[defaults]
variables = { a = "default", b = "default" }
run = ["lint"]
max_records = 50
[defaults.expect]
run = "failed"
never = ["prod"]
[[defaults.command]]
step = "build"
[[test]]
name = "a"
variables = { a = "own" }
run = ["build"]
[[test.command]]
step = "test"
[test.expect]
never = ["staging"]
`);
    expect(found).toMatchObject({ variables: { a: 'own', b: 'default' }, run: ['build', 'lint'], recordsMax: 50 });
    expect(found.expect).toMatchObject({ run: 'failed', never: ['staging', 'prod'] });
    expect(found.command.map(({ step, number, optional }) => ({ step, number, optional }))).toEqual([
      { step: 'test', number: 0, optional: false },
      { step: 'build', number: null, optional: true },
    ]);
  });

  test('reads every kind of rule', () => {
    const found = firstTest(`${TEST}
now = "2026-03-01T08:00:00Z"
flags = { budget_usd = 1.5, max_agents = 2 }
[[test.on]]
step = "s"
optional = true
do = [{ done = true }]
[[test.command]]
script = "/a.c/"
hangs = true
[[test.command]]
script = "a.c"
takes = "20m"
exit = 3
[[test.gate]]
gate = "g"
after = "36h"
decide = "answer"
answer = "blue"
[[test.event]]
after_step = "build"
type = "t"
data = { tool = "Write" }
[[test.engine]]
dies_after = "build"
away = "2d"
[[test.stop]]
after = "3h"
force = true
`);
    expect(found).toMatchObject({
      now: Date.UTC(2026, 2, 1, 8),
      flags: { budgetUsd: 1.5, agentsMax: 2 },
      on: [{ step: 's', optional: true, number: 0 }],
      command: [
        { script: /a.c/s, takesMs: null },
        { script: /a\.c/s, takesMs: 1_200_000, exit: 3 },
      ],
      gate: [{ gate: 'g', afterMs: 129_600_000, decide: 'answer', answer: 'blue', by: 'tester' }],
      event: [{ when: { kind: 'step', step: 'build' }, type: 't', data: { tool: 'Write' } }],
      engine: [{ dies: { kind: 'step', step: 'build' }, awayMs: 172_800_000 }],
      stop: [{ when: { kind: 'time', ms: 10_800_000 }, force: true }],
    });
  });
});

describe('mistakes are reported with place and hint', () => {
  test.each([
    ['[[test]]\nrun = []', ['1:1 missing-key the test has no "name"']],
    [`${TEST}${TEST}`, ['4:8 duplicate-name two tests are named "a"']],
    [`${TEST}expects = 3`, ['3:1 unknown-key a test has no key "expects"']],
    ['tests = 3', ['1:1 unknown-key the test file has no key "tests"']],
    ['test = 3', ['1:8 wrong-type "test" must be a list, got 3']],
    ['test = [3]', ['1:9 wrong-type "test" must be a list of tables, got 3']],
    ['[defaults]\nname = "x"', ['2:1 unknown-key defaults has no key "name"']],
    ['[[test]\nname="a"', ['1:7 syntax expected ]] at the end of this header']],
    [`${TEST}now = "yesterday"`, ['3:7 invalid-value "now" must be a moment, got a string']],
    [`${TEST}max_records = 0`, ['3:15 wrong-type "max_records" must be an integer of at least 1, got 0']],
    [`${TEST}files = { "../x" = "z" }`, ['3:11 invalid-path "../x" is not a path in the folder of the run']],
    [
      `${TEST}flags = { budget = 3, max_agents = "x" }`,
      ['3:11 unknown-key flags has no key "budget"', '3:36 wrong-type "max_agents" must be a number, got a string'],
    ],
  ])('%j', (text, expected) => {
    expect(problems(text)).toEqual(expected);
  });

  test('once for the defaults of several tests', () => {
    const text = `[[defaults.command]]\nstpe = "x"\n${TEST}[[test]]\nname = "b"`;
    expect(problems(text)).toEqual(['2:1 unknown-key a rule of [[test.command]] has no key "stpe"']);
  });

  test.each([
    ['[[test.command]]\nscript = "/(/"', ['4:10 invalid-pattern Invalid regular expression: /(/s: Unterminated group']],
    ['[[test.command]]\nexit = 300', ['3:1 invalid-value exit cannot be 300']],
    ['[[test.command]]\nhangs = true\ntakes = "1s"', ['3:1 invalid-value a command that hangs takes no time']],
    ['[[test.command]]\ntakes = "soon"', ['4:9 invalid-duration "takes" must be a duration, got "soon"']],
    [
      '[[test.gate]]\nafter = "1h"',
      ['3:1 missing-key the rule has no "gate"', '3:1 missing-key the rule has no "decide"'],
    ],
    ['[[test.gate]]\ngate = "g"\ndecide = "aprove"', ['5:10 invalid-value "decide" cannot be "aprove"']],
    ['[[test.gate]]\ngate = "g"\ndecide = "answer"', ['3:1 missing-key the rule has no "answer"']],
    ['[[test.event]]\ntype = "t"\nafter = "1h"\nafter_step = "b"', ['3:1 invalid-value the rule has two moments']],
    ['[[test.event]]\nafter = "1h"', ['3:1 missing-key the rule has no "type"']],
    ['[[test.engine]]\naway = "1h"', ['3:1 invalid-value the rule must say when the engine dies, once']],
    ['[[test.engine]]\ndies_at = 0', ['4:11 wrong-type "dies_at" must be an integer of at least 1, got 0']],
    ['[[test.stop]]\nforce = 1', ['4:9 wrong-type "force" must be true or false, got 1']],
    ['[[test.on]]\nstep = "a"', ['3:1 missing-key the rule has no "do"']],
    ['[[test.on]]\ndo = []\noptional = 1', ['5:12 wrong-type "optional" must be true or false, got 1']],
    [
      '[[claim]]\nnevr = "x"',
      ['3:1 missing-key the claim has no "never"', '4:1 unknown-key a claim has no key "nevr"'],
    ],
  ])('rule %j', (rule, expected) => {
    expect(problems(`${TEST}${rule}`)).toEqual(expected);
  });

  test.each([
    ['run = "dne"', ['4:7 invalid-value "run" cannot be "dne"']],
    [
      'steps = { a = "don", b = 3 }',
      ['4:15 invalid-value a step cannot be "don"', '4:26 invalid-value a step cannot be 3'],
    ],
    ['outcomes = { a = 3 }', ['4:18 wrong-type an outcome must be a string, got 3']],
    ['error = "build"', ['4:9 wrong-type "error" must be a table, got a string']],
    ['order = ["a b"]', ['4:10 invalid-value an order must be two patterns of steps with < between them']],
    ['never = "x"', ['4:9 wrong-type "never" must be a list, got a string']],
    ['never = [3]', ['4:10 wrong-type "never" must be a list of strings, got 3']],
    ['visits = { a = "== 3" }', ['4:16 invalid-value a number, or a comparison with one, is expected here']],
    ['prompts = [{ step = "x" }]', ['4:12 missing-key an expected prompt needs "step", and "contains" or "lacks"']],
    ['cost = { eur = 3 }', ['4:10 unknown-key cost has no key "eur"']],
    ['took = "soon"', ['4:8 invalid-value a duration, or a comparison with one, is expected here']],
    [
      'files = { x = 3, y = { contain = "z" } }',
      ['4:15 wrong-type a file must be a table or a string, got 3', '4:24 unknown-key a file has no key "contain"'],
    ],
    ['trace = ""', ['4:9 invalid-value "trace" is empty']],
    ['expected = 1', ['4:1 unknown-key [test.expect] has no key "expected"']],
  ])('expectation %j', (line, expected) => {
    expect(problems(`${TEST}[test.expect]\n${line}`)).toEqual(expected);
  });
});
