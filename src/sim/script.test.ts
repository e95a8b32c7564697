import { describe, expect, test } from 'vitest';
import { filled, readSimScript } from './script.ts';

/** Each problem as `line:column code message`. */
function problems(text: string): readonly string[] {
  const { script, diagnostics } = readSimScript(text, 'a.sim.toml');
  expect(script === null).toBe(diagnostics.length > 0);
  return diagnostics.map(({ span, code, message }) => `${span.line}:${span.column} ${code} ${message}`);
}

describe('a script', () => {
  test('may be empty', () => {
    expect(readSimScript('\n', 'a.sim.toml')).toEqual({ script: { rules: [] }, diagnostics: [] });
  });

  test('holds rules with their actions in order', () => {
    const text = `
[[on]]
agent = "w-*"
times = 2
do = [{ say = "hi" }, { wait = "2s" }, { done = { a = 1 }, notes = "n" }]
[[on]]
prompt = "/a.c/"
do = [{ done_twice = true }, { crash = "SIGKILL" }, { hang = "hard" }, { ask = "q", gate = "g" }]`;
    expect(readSimScript(text, 'a.sim.toml').script?.rules).toEqual([
      {
        agent: 'w-*',
        step: null,
        prompt: null,
        times: 2,
        actions: [
          { kind: 'say', text: 'hi' },
          { kind: 'wait', ms: 2_000 },
          { kind: 'done', outputs: { a: 1 }, notes: 'n', twice: false },
        ],
      },
      {
        agent: null,
        step: null,
        prompt: { kind: 'expression', expression: /a.c/s },
        times: null,
        actions: [
          { kind: 'done', outputs: null, notes: null, twice: true },
          { kind: 'crash', how: 'SIGKILL' },
          { kind: 'hang', hard: true },
          { kind: 'ask', question: 'q', gate: 'g' },
        ],
      },
    ]);
  });

  test.each([
    ['[[on]]\nstep = "a"', '1:1 missing-key the rule has no "do"'],
    ['[[no]]\ndo = []', '1:3 unknown-key the script has no key "no"'],
    ['on = 3', '1:6 wrong-type "on" must be a list, got 3'],
    ['[[on]]\ntime = 3\ndo = []', '2:1 unknown-key a rule has no key "time"'],
    ['[[on]]\nprompt = "/(/"\ndo = []', '2:12 invalid-pattern Invalid regular expression: /(/s: Unterminated group'],
    ['[[on]]\ndo = ["say"]', '2:7 wrong-type an action must be a table, got a string'],
    ['[[on]]\ndo = [{ sya = "x" }]', '2:7 unknown-action the action has no verb that is known'],
    ['[[on]]\ndo = [{ say = "x", wait = 1 }]', '2:20 two-actions the action has two verbs, "say" and "wait"'],
    ['[[on]]\ndo = [{ say = "x", text = "y" }]', '2:20 unknown-key the action "say" has no key "text"'],
    ['[[on]]\ndo = [{ wait = "long" }]', '2:16 invalid-duration "wait" must be a duration, got "long"'],
    ['[[on]]\ndo = [{ crash = 256 }]', '2:17 wrong-type "crash" must be an exit status or a signal, got 256'],
    ['[[on]]\ndo = [{ crash = "TERM" }]', '2:17 wrong-type "crash" must be an exit status or a signal, got "TERM"'],
    ['[[on]]\ndo = [{ stop = false }]', '2:16 wrong-type "stop" must be true, got false'],
    ['[[on]]\ndo = [{ done = 1 }]', '2:16 wrong-type "done" must be true or a table of outputs, got 1'],
    ['[[on]]\ndo = [{ hang = "soft" }]', '2:16 wrong-type "hang" must be true or "hard", got "soft"'],
  ])('%j is refused, with the place', (text, problem) => {
    expect(problems(text)).toEqual([problem]);
  });

  test('is read to its end, whatever is wrong on the way', () => {
    expect(problems('[[on]]\ntimes = 0\ndo = [{ sya = "x" }, { wait = true }]')).toHaveLength(3);
  });
});

test('placeholders are filled in wherever a text stands, and others are left alone', () => {
  const value = { a: ['{{agent}}-{{ n }}', 1], b: { c: '{{step}} {{other}}' } };
  expect(filled(value, { agent: 'w', n: '2', step: 's' })).toEqual({ a: ['w-2', 1], b: { c: 's {{other}}' } });
});
