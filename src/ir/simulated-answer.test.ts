import { describe, expect, test } from 'vitest';

import type { AllowedTransition, Machine } from './machine.ts';
import { simulatedAnswer } from './simulated-answer.ts';

const MACHINE: Machine = {
  states: { 'START.md': 'START', 'NEXT.md': 'NEXT', 'DONE.md': 'DONE' },
  spellings: { START: ['START.md'], NEXT: ['NEXT.md'], DONE: ['DONE.md'] },
  workflows: {},
  adapters: {},
  keepsCallers: false,
  asks: { open: 'ask', timed: 'ask:timed', routed: 'ask:routed' },
};

const ANY = { target: null, return: null, next: null, payload: null, input: null, timeout: null, timeoutNext: null };

function answer(
  prompt: string,
  allowed: readonly (Partial<AllowedTransition> & Pick<AllowedTransition, 'tag'>)[] | null = null,
  visit = 1,
) {
  const policy = {
    machine: 'main',
    speaker: 'agent',
    allowed: allowed?.map((each) => ({ ...ANY, ...each })) ?? null,
    forced: false,
  } as const;
  return simulatedAnswer(policy, MACHINE, { cwd: '', adapter: null, depth: 0 }, { prompt, visit });
}

describe('a simulated agent without a script answers with', () => {
  test('the last transition that its prompt writes out', () => {
    expect(answer('If it is wrong, <goto>START.md</goto>, otherwise `<goto input="x">NEXT</goto>`.')).toBe(
      '<goto input="x">NEXT</goto>',
    );
    expect(answer('End with <result>the first\nline</result> and <print>well</print>')).toBe(
      '<result>the first\nline</result>',
    );
  });

  test('an earlier one, if the last one cannot be taken', () => {
    expect(answer('<goto>NEXT.md</goto> or <goto>GONE.md</goto> or <call>DONE.md</call>')).toBe('<goto>NEXT.md</goto>');
    expect(answer('<goto>NEXT.md</goto> or <result>x</result>', [{ tag: 'goto' }])).toBe('<goto>NEXT.md</goto>');
  });

  test('the last one of its policy, if its prompt writes out none that is allowed', () => {
    const policy = [
      { tag: 'goto', target: 'START.md' },
      { tag: 'call', target: 'NEXT.md', return: 'DONE.md' },
    ] as const;
    expect(answer('Go to NEXT, or back.', policy)).toBe('<call return="DONE.md">NEXT.md</call>');
    expect(answer('<goto>DONE.md</goto>', policy)).toBe('<call return="DONE.md">NEXT.md</call>');
    expect(answer('Say yes.', [{ tag: 'goto', target: 'START.md' }, { tag: 'result' }])).toBe('<result>…</result>');
    expect(answer('Say yes.', [{ tag: 'result', payload: 'YES' }, { tag: 'goto' }])).toBe('<result>YES</result>');
  });

  test('a state of its choice, if its policy names none', () => {
    expect(answer('Go on.', [{ tag: 'goto' }])).toBe('<goto>START.md</goto>');
  });

  test('its other transitions, after ten visits each', () => {
    const judged = [1, 10, 11, 20, 21].map((visit) =>
      answer('<result>YES</result> or <result>NO</result>', null, visit),
    );
    expect(judged.map((each) => each.replaceAll(/<.*?>/g, ''))).toEqual(['NO', 'NO', 'YES', 'YES', 'NO']);
    expect(answer('<goto>START.md</goto>', null, 99)).toBe('<goto>START.md</goto>');
    expect(answer('<goto>START.md</goto>', [{ tag: 'goto' }, { tag: 'result' }], 11)).toBe('<result>…</result>');
  });

  test('a result otherwise', () => {
    expect(answer('Go on.')).toBe('<result>done</result>');
  });
});
