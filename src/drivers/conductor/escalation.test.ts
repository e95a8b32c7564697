import { describe, expect, test } from 'vitest';

import type { Visit } from './context.ts';
import { escalate, openViolations, partialsInARow, pendingGoldens } from './evidence.ts';

const NOTHING = { violations: [], goldens: [], partials: 0, partialMax: 3 };

function visits(...some: readonly Partial<Visit>[]): readonly Visit[] {
  return some.map((visit, index) => {
    const step = visit.step ?? visit.kind ?? 'work';
    const plain = { kind: 'work', outcome: 'completed', failure: null, outputs: {}, startedAt: 0, endedAt: 1 } as const;
    return { id: `${step}#${index + 1}`, step, visit: index + 1, ...plain, ...visit };
  });
}

const work: Partial<Visit> = { kind: 'work' };
const violated: Partial<Visit> = { kind: 'work', outcome: 'killed_policy', failure: { kind: 'policy', message: 'no' } };
const tampered = (path: string): Partial<Visit> => ({
  ...violated,
  outputs: { violations: [{ rule: 'git_tampering', path }] },
});
const rollback = (target: string, outcome = 'completed'): Partial<Visit> => ({
  kind: 'rollback',
  outcome,
  outputs: { target },
});
const proposed: Partial<Visit> = { kind: 'validate', outputs: { proposed_goldens: ['a', 'b'] } };
const gate = (outcome: string): Partial<Visit> => ({ kind: 'gate', outcome });
const evaluated = (status: string, step = 'evaluate'): Partial<Visit> => ({
  kind: 'evaluate',
  step,
  outputs: { status },
});

describe('what is made of a status', () => {
  test('is what the planner said, where nothing speaks against it', () => {
    expect(escalate('partial', NOTHING)).toEqual({ status: 'partial', escalations: [] });
  });

  test('is unsafe after a violation, whatever else there is', () => {
    for (const status of ['success', 'partial', 'blocked', 'needs_human', 'unsafe'] as const) {
      const { status: final, escalations } = escalate(status, { ...NOTHING, violations: ['fix#1'], goldens: ['g'] });
      expect(final).toBe('unsafe');
      expect(escalations).toHaveLength(2);
    }
  });

  test('is needs_human with goldens that nobody approved, unless it is unsafe', () => {
    const facts = { ...NOTHING, goldens: ['1', '2', '3', '4', '5', '6', '7'] };
    expect(escalate('success', facts).status).toBe('needs_human');
    expect(escalate('success', facts).escalations[0]).toContain('1, 2, 3, 4, 5, 2 more');
    expect(escalate('unsafe', facts).status).toBe('unsafe');
  });

  test.each([
    [1, 3, 'partial'],
    [2, 3, 'needs_human'],
    [5, 3, 'needs_human'],
    [0, 1, 'needs_human'],
  ])('with %i partial before it, of %i at most, is %s', (partials, partialMax, status) => {
    expect(escalate('partial', { ...NOTHING, partials, partialMax }).status).toBe(status);
    expect(escalate('blocked', { ...NOTHING, partials, partialMax }).status).toBe('blocked');
  });
});

describe('a violation', () => {
  test.each<[string, readonly Partial<Visit>[], number]>([
    ['counts', [work, violated], 1],
    ['counts though work went on', [violated, work, gate('gate_approved')], 1],
    ['is put back by pre_run', [violated, work, rollback('pre_run')], 0],
    ['is put back by pre_step, if it was in the latest turn', [violated, rollback('pre_step')], 0],
    ['is not put back by pre_step, if another turn came after it', [violated, work, rollback('pre_step')], 1],
    ['is not put back by a rollback that failed', [violated, rollback('pre_run', 'error')], 1],
    ['counts again after a rollback', [violated, rollback('pre_run'), violated], 1],
    ['is back where a rollback goes back to it', [violated, work, rollback('pre_run'), rollback('pre_step')], 1],
    ['that is about git itself is put back by no rollback', [tampered('.git/info/exclude'), rollback('pre_run')], 1],
    ['of the way to the repository was put back at once', [tampered('.git'), rollback('pre_step')], 0],
    ['of an evaluator counts', [work, { kind: 'evaluate', outputs: { violations: [{}] } }], 1],
    [
      'of an evaluator is put back with the turn before it',
      [work, { kind: 'evaluate', outputs: { violations: [{}] } }, rollback('pre_step')],
      0,
    ],
  ])('%s', (_how, history, count) => {
    expect(openViolations(visits(...history))).toHaveLength(count);
  });
});

describe('goldens that were proposed', () => {
  test.each<[string, readonly Partial<Visit>[], readonly string[]]>([
    ['are pending', [proposed, proposed], ['a', 'b']],
    ['are discharged by a gate that is approved after them', [proposed, gate('gate_approved')], []],
    ['are not by one that was approved before', [gate('gate_approved'), proposed], ['a', 'b']],
    ['are not by one that is rejected', [proposed, gate('gate_rejected')], ['a', 'b']],
    ['are not by one that nobody waited for', [proposed, gate('completed')], ['a', 'b']],
    ['are not by a later validation without any', [proposed, { kind: 'validate' }], ['a', 'b']],
    ['are not by a rollback', [proposed, rollback('pre_run')], ['a', 'b']],
    [
      'count, whatever they look like',
      [{ kind: 'validate', outputs: { proposed_goldens: [{ path: 'a' }] } }],
      ['{"path":"a"}'],
    ],
  ])('%s', (_how, history, goldens) => {
    expect(pendingGoldens(visits(...history))).toEqual(goldens);
  });
});

test('partial is counted from the latest backwards, of one step, and not through failures', () => {
  const failed: Partial<Visit> = { kind: 'evaluate', step: 'evaluate', failure: { kind: 'protocol', message: '' } };
  const [partial, success, other] = [evaluated('partial'), evaluated('success'), evaluated('success', 'other')];
  const count = (...history: readonly Partial<Visit>[]): number => partialsInARow(visits(...history), 'evaluate');
  expect(count()).toBe(0);
  expect(count(partial)).toBe(1);
  expect(count(partial, success, partial, failed, work, other, partial)).toBe(2);
  expect(count(partial, partial, success)).toBe(0);
});
