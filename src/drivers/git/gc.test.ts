import { describe, expect, test } from 'vitest';

import { type GcQuestion, judge, type RunRemains } from './gc.ts';

const WORKTREE = { path: '/w', isRegistered: true, isLocked: false, changed: [] };
const REMAINS: RunRemains = { run: 'wf-1', worktree: WORKTREE, branch: 'meow/run-wf-1', ownCommits: 0, refs: [] };

function verdict(remains: Partial<RunRemains>, question: Partial<GcQuestion> = {}) {
  return judge({ ...REMAINS, ...remains }, { standing: () => 'ended', isForced: () => false, ...question });
}

describe('what remains of a run', () => {
  test('goes when the run has ended and nothing would be lost', () => {
    expect(verdict({})).toEqual({ run: 'wf-1', isRemoved: true, reasons: [] });
  });

  test('is kept while the run lives, even if it is forced (gc/1)', () => {
    const live: GcQuestion = { standing: () => 'live', isForced: () => true };
    expect(verdict({}, live)).toMatchObject({ isRemoved: false, reasons: ['the run wf-1 has not ended'] });
  });

  test('is kept if something else is in the place of the worktree, even if it is forced (gc/1)', () => {
    const found = verdict({ worktree: { ...WORKTREE, isRegistered: false } }, { isForced: () => true });
    expect(found).toMatchObject({ isRemoved: false, reasons: [expect.stringContaining('/w is not registered')] });
  });

  test('is kept for all the reasons there are, unless it is forced (gc/2, gc/3)', () => {
    const remains = { worktree: { ...WORKTREE, isLocked: true, changed: ['a', 'b'] }, ownCommits: 2 };
    const reasons = [
      'the run wf-1 is unknown here',
      '/w has uncommitted changes: a and 1 more',
      '/w is locked (git worktree unlock)',
      'meow/run-wf-1 has 2 commits that no other branch or tag has',
    ];
    const standing = () => 'unknown' as const;
    expect(verdict(remains, { standing })).toEqual({ run: 'wf-1', isRemoved: false, reasons });
    expect(verdict(remains, { standing, isForced: () => true })).toEqual({ run: 'wf-1', isRemoved: true, reasons });
  });
});
