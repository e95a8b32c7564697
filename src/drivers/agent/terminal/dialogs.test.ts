// Rules dialog/1 to dialog/4.

import { beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_TIMING, type DialogPattern } from '../../../ir/adapter.ts';
import { Dialogs } from './dialogs.ts';
import type { SeenDialog } from './screen.ts';

const PATTERN: DialogPattern = {
  name: 'permission',
  pattern: '',
  answer: null,
  approve: ['1'],
  reject: ['Escape'],
  cure: null,
  atStart: false,
};

function asked(text: string, more: Partial<DialogPattern> = {}): SeenDialog {
  return { name: 'permission', text, pattern: { ...PATTERN, ...more } };
}

const yes = (text: string) => ({ dialog: { name: 'permission', text }, approved: true, answer: null });

let dialogs: Dialogs;
beforeEach(() => {
  dialogs = new Dialogs(DEFAULT_TIMING);
});

/** Shows it from a moment on, for as long as it takes to be told, and tells it. */
function tell(question: SeenDialog, at = 0) {
  dialogs.consider(question, at);
  const act = dialogs.consider(question, at + 1_500);
  if (act.kind === 'tell' && act.dialog !== null) dialogs.reported();
  return act;
}

describe('a question', () => {
  test('that stands still is told, once', () => {
    expect(dialogs.consider(asked('rm x?'), 0)).toEqual({ kind: 'wait', ms: 100 });
    expect(dialogs.consider(asked('rm x?'), 99)).toEqual({ kind: 'wait', ms: 1 });
    expect(dialogs.consider(asked('rm x?'), 100)).toEqual({ kind: 'wait', ms: 1_400 });
    expect(dialogs.consider(asked('rm x?'), 1_500)).toEqual({
      kind: 'tell',
      dialog: { name: 'permission', text: 'rm x?' },
    });
    dialogs.reported();
    expect(dialogs.consider(asked('rm x?'), 5_000)).toEqual({ kind: 'nothing' });
  });

  test('is told with what would have kept it from coming', () => {
    expect(tell(asked('Trust?', { cure: 'Trust the folder before.' }))).toMatchObject({
      dialog: { text: 'Trust?\n\nTrust the folder before.' },
    });
  });

  test('that is gone, or is another, is over', () => {
    tell(asked('rm x?'));
    expect(dialogs.consider(asked('rm y?'), 2_000)).toEqual({ kind: 'tell', dialog: null });
    expect(tell(asked('rm y?'), 2_100)).toMatchObject({ kind: 'tell', dialog: { text: 'rm y?' } });
    expect(dialogs.consider(null, 4_000)).toEqual({ kind: 'tell', dialog: null });
    expect(dialogs.consider(null, 4_100)).toEqual({ kind: 'nothing' });
  });

  test('with a safe answer is answered, once; if it stands on, a person is asked', () => {
    const safe = asked('Continue?', { answer: ['Enter'] });
    dialogs.consider(safe, 0);
    expect(dialogs.consider(safe, 100)).toMatchObject({ kind: 'press', keys: ['Enter'] });
    dialogs.pressed(100);
    expect(dialogs.consider(safe, 200)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(safe, 3_100)).toMatchObject({ kind: 'tell', dialog: { text: 'Continue?' } });
    dialogs.reported();
    expect(dialogs.consider(safe, 9_000)).toEqual({ kind: 'nothing' });
  });

  test('that was told to somebody who has left is told again', () => {
    tell(asked('rm x?'));
    dialogs.forget();
    expect(dialogs.consider(asked('rm x?'), 2_000)).toMatchObject({ kind: 'tell', dialog: { text: 'rm x?' } });
  });
});

describe('a question that moves', () => {
  const counting = (left: number, command = 'rm x', more: Partial<DialogPattern> = {}): SeenDialog =>
    asked(`${command}\nSure? closes in ${left}\n1. Yes`, more);
  const COMMON = { name: 'permission', text: 'rm x\nSure? closes in ⋯\n1. Yes' };

  /** Shows versions of it, one each so many milliseconds; returns what was told. */
  function shown(everyMs: number, untilMs: number, question = counting) {
    const acts = [];
    for (let now = 0; now <= untilMs; now += 20) {
      const act = dialogs.consider(question(1_000 - Math.floor(now / everyMs)), now);
      if (act.kind === 'tell') acts.push(act.dialog);
      if (act.kind === 'tell' && act.dialog !== null) dialogs.reported();
    }
    return acts;
  }

  test.each([40, 300, 700, 1_000, 1_400])('every %d ms is told once, by what stays', (everyMs) => {
    expect(shown(everyMs, 30_000)).toEqual([COMMON]);
  });

  test.each([1_600, 5_000])('every %d ms is told by what stays as soon as that is known', (everyMs) => {
    const full = (left: number) => ({ name: 'permission', text: counting(left).text });
    expect(shown(everyMs, 60_000)).toEqual([full(1_000), null, full(999), null, COMMON]);
  });

  test('and is drawn piece by piece is told whole', () => {
    dialogs.consider(asked('rm x'), 0);
    dialogs.consider(asked('rm x\nSure?'), 100);
    dialogs.consider(asked('rm x\nSure?\n1. Yes'), 200);
    expect(dialogs.consider(asked('rm x\nSure?\n1. Yes'), 1_700)).toMatchObject({
      kind: 'tell',
      dialog: { text: 'rm x\nSure?\n1. Yes' },
    });
  });

  test('is over when something is gone that stayed, or has changed', () => {
    shown(40, 3_000);
    expect(dialogs.consider(counting(1, 'rm y'), 3_020)).toEqual({ kind: 'tell', dialog: null });
    expect(tell(counting(1, 'rm y'), 3_040)).toMatchObject({ dialog: { text: counting(1, 'rm y').text } });
  });

  test('is decided while all that stays is there, whatever moves', () => {
    shown(40, 3_000);
    dialogs.decide({ dialog: COMMON, approved: false, answer: null });
    expect(dialogs.consider(counting(3), 3_020)).toMatchObject({ kind: 'press', keys: ['Escape'] });
    expect(dialogs.shows(counting(2))).toBe(true);
    expect(dialogs.shows(counting(2, 'rm y'))).toBe(false);
    dialogs.pressed(3_020);
    expect(dialogs.consider(counting(1), 3_040)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(null, 3_060)).toEqual({ kind: 'tell', dialog: null });
  });

  test('is not decided by what was said of another', () => {
    shown(40, 3_000);
    dialogs.decide({ dialog: COMMON, approved: true, answer: null });
    expect(dialogs.consider(counting(3, 'rm y'), 3_020)).toEqual({ kind: 'tell', dialog: null });
    expect(tell(counting(3, 'rm y'), 3_040)).toMatchObject({ kind: 'tell' });
  });

  test('is decided at its first observation by what was said of it in an earlier life', () => {
    dialogs.decide({ dialog: COMMON, approved: true, answer: null });
    expect(dialogs.consider(counting(7), 0)).toMatchObject({ kind: 'press', keys: ['1'] });
  });

  test('and has a safe answer is answered, once', () => {
    const safe = (left: number) => counting(left, 'rm x', { answer: ['Enter'] });
    expect(dialogs.consider(safe(9), 0)).toMatchObject({ kind: 'wait' });
    for (let now = 20; now < 1_500; now += 20) expect(dialogs.consider(safe(now), now).kind).toBe('wait');
    expect(dialogs.consider(safe(8), 1_500)).toMatchObject({ kind: 'press', keys: ['Enter'] });
    dialogs.pressed(1_500);
    expect(dialogs.consider(safe(7), 1_520)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(safe(6), 4_500)).toEqual({ kind: 'tell', dialog: COMMON });
  });
});

describe('a decision', () => {
  test('presses the keys for it, once', () => {
    tell(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    expect(dialogs.consider(asked('rm x?'), 1_700)).toMatchObject({ kind: 'press', keys: ['1'] });
    dialogs.pressed(1_700);
    expect(dialogs.consider(asked('rm x?'), 1_800)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(null, 1_900)).toEqual({ kind: 'tell', dialog: null });
    dialogs.decide({ ...yes('rm y?'), approved: false });
    dialogs.consider(asked('rm y?'), 2_000);
    expect(dialogs.consider(asked('rm y?'), 2_100)).toMatchObject({ kind: 'press', keys: ['Escape'] });
  });

  test('about a question that stands on asks anew', () => {
    tell(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    dialogs.consider(asked('rm x?'), 1_700);
    dialogs.pressed(1_700);
    expect(dialogs.consider(asked('rm x?'), 4_700)).toEqual({ kind: 'tell', dialog: null });
    expect(dialogs.consider(asked('rm x?'), 4_800)).toMatchObject({ kind: 'tell', dialog: { text: 'rm x?' } });
  });

  test('is for the question that it was made about, and for no later one', () => {
    tell(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    expect(dialogs.consider(asked('rm y?'), 1_700)).toEqual({ kind: 'tell', dialog: null });
    expect(tell(asked('rm y?'), 1_800)).toMatchObject({ kind: 'tell', dialog: { text: 'rm y?' } });
    expect(dialogs.consider(asked('rm x?'), 4_000)).toEqual({ kind: 'tell', dialog: null });
    expect(tell(asked('rm x?'), 4_100)).toMatchObject({ kind: 'tell' });
  });

  test('of an earlier life is good for the question that is still there', () => {
    dialogs.decide(yes('rm x?'));
    dialogs.consider(asked('rm x?'), 0);
    expect(dialogs.consider(asked('rm x?'), 100)).toMatchObject({ kind: 'press', keys: ['1'] });
  });

  test('may be a text, or the name of a key', () => {
    tell(asked('Which?'));
    for (const [answer, act] of [
      ['the blue one', { kind: 'type', text: 'the blue one' }],
      ['Down', { kind: 'press', keys: ['Down'] }],
      ['2', { kind: 'press', keys: ['2'] }],
    ] as const) {
      dialogs.decide({ ...yes('Which?'), answer });
      expect(dialogs.consider(asked('Which?'), 1_700)).toMatchObject(act);
    }
  });

  test('for which no keys are known presses nothing', () => {
    tell(asked('Odd?', { approve: null }));
    dialogs.decide(yes('Odd?'));
    expect(dialogs.consider(asked('Odd?', { approve: null }), 1_700)).toEqual({ kind: 'nothing' });
  });
});
