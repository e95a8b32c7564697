import { expect, test } from 'vitest';
import { NOTHING_REMEMBERED, type Rule, ruleFor } from './script.ts';

const ANY: Rule = { agent: null, step: null, prompt: null, times: null, actions: [] };

test.each([
  ['build#1', 'build#1.turn', true],
  ['judge#1', 'judge#1.2.ask', true],
  ['work.build#*', 'work.build#3.turn', true],
  ['build#1.turn', 'build#1.turn', true],
  ['build#2', 'build#1.turn', false],
  ['build', 'build#1.turn', false],
  ['each.*.work', 'each.0.work', true],
  ['each.0', 'each.0.work', false],
])('a rule for step %s and the step %s', (pattern, step, matches) => {
  const found = ruleFor([{ ...ANY, step: pattern }], { agent: 'main', step, prompt: '' }, NOTHING_REMEMBERED, 0);
  expect(found !== null).toBe(matches);
});
