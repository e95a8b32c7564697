// Rules post-dialog/1 and post-dialog/2.

import { beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_TIMING, type TerminalProfile } from '../../../ir/adapter.ts';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { decisionFrom, type DialogDecision, type PostDialog, postDialog, postDialogMessage } from './post-dialog.ts';
import type { Screen } from './screen.ts';

const READY = { patterns: ['x'], deadlineMs: 1 };
const WAYS = { ready: READY, acknowledge: { busy: ['y'] }, timing: DEFAULT_TIMING } as unknown as TerminalProfile;
const RESTS = { dialog: null, isReady: true, isBusy: false, isQueued: false, draft: 'none' } as Screen;
const DIALOG = { name: 'permission', text: 'rm x?' };
const REJECTED: DialogDecision = { number: 1, name: 'permission', isRejected: true, reason: null, isOver: false };

describe('an agent after a decision', () => {
  let hooks: { reportsIdle: boolean; lastActivity: number };
  let after: PostDialog;
  beforeEach(() => {
    hooks = { reportsIdle: true, lastActivity: 3 };
    after = postDialog(WAYS, hooks);
    after.begin(REJECTED, 0);
  });

  test('is told to go on when it has rested for a while, once', () => {
    expect(after.observe(RESTS, 100)).toBeNull();
    expect(after.observe(RESTS, 3_099)).toBeNull();
    expect(after.observe(RESTS, 3_100)).toEqual(REJECTED);
    expect(after.observe(RESTS, 9_000)).toBeNull();
  });

  test.each([
    ['works', { isBusy: true }],
    ['asks something', { dialog: { ...DIALOG, pattern: {} } }],
    ['has a prompt waiting', { isQueued: true }],
    ['has a draft in its input', { draft: 'some' }],
    ['shows no input', { isReady: false }],
  ])('does not rest while it %s', (_, more) => {
    after.observe(RESTS, 100);
    expect(after.observe({ ...RESTS, ...more } as Screen, 3_100)).toBeNull();
    expect(after.observe(RESTS, 3_200)).toBeNull();
    expect(after.observe(RESTS, 6_200)).toEqual(REJECTED);
  });

  test('needs nothing once its hooks tell that it has gone on', () => {
    hooks.lastActivity = 4;
    after.observe(RESTS, 100);
    expect(after.observe(RESTS, 9_000)).toBeNull();
  });

  test('without hooks needs nothing once it is seen at work, later than the answer would show', () => {
    after = postDialog(WAYS, null);
    after.begin(REJECTED, 0);
    after.observe({ ...RESTS, isBusy: true }, 500);
    after.observe(RESTS, 600);
    expect(after.observe(RESTS, 3_600)).toEqual(REJECTED);
    after.begin(REJECTED, 10_000);
    after.observe({ ...RESTS, isBusy: true }, 11_500);
    after.observe(RESTS, 12_000);
    expect(after.observe(RESTS, 30_000)).toBeNull();
  });

  test('is not told if idleness cannot be detected, or if it was told before', () => {
    after.begin({ ...REJECTED, isOver: true }, 0);
    after.observe(RESTS, 0);
    expect(after.observe(RESTS, 9_000)).toBeNull();
    after = postDialog({ ...WAYS, ready: null }, hooks);
    after.begin(REJECTED, 0);
    after.observe(RESTS, 0);
    expect(after.observe(RESTS, 9_000)).toBeNull();
  });
});

test('decisions are counted, and told with what the person said', () => {
  const first = decisionFrom({ dialog: DIALOG, approved: false, answer: null }, null);
  expect(first).toEqual(REJECTED);
  expect(decisionFrom({ dialog: DIALOG, approved: true, answer: null, notes: ' no \n' }, first)).toEqual({
    number: 2,
    name: 'permission',
    isRejected: false,
    reason: 'no',
    isOver: false,
  });
  expect(decisionFrom({ dialog: DIALOG, approved: true, answer: '2' }, null)).toMatchObject({ isRejected: false });
});

test('what it is told has the task in it, and an id for each decision', () => {
  const message = { kind: 'prompt', id: 'make#1', text: 'Make it.' } as PromptMessage;
  const { id, text } = postDialogMessage(message, { ...REJECTED, reason: 'not here' });
  expect(id).toBe('make#1 decided 1');
  expect(text).toMatch(
    /^A person has rejected what you asked for \(permission\)\. They say: not here\n[^]*\n\nMake it\.$/,
  );
  expect(postDialogMessage(message, { ...REJECTED, isRejected: false, number: 2 })).toMatchObject({
    id: 'make#1 decided 2',
    text: expect.stringMatching(/^You stopped before this step was reported[^]*Make it\.$/),
  });
});
