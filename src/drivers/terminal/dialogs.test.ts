// Q1–Q3.

import { beforeEach, describe, expect, test } from 'vitest';
import type { DialogPattern } from '../../ir/adapter.ts';
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
  dialogs = new Dialogs();
});

describe('a question', () => {
  test('that stands still is told, once', () => {
    expect(dialogs.consider(asked('rm x?'), 0)).toEqual({ kind: 'wait', ms: 100 });
    expect(dialogs.consider(asked('rm x?'), 99)).toEqual({ kind: 'wait', ms: 1 });
    expect(dialogs.consider(asked('rm x?'), 100)).toEqual({
      kind: 'tell',
      dialog: { name: 'permission', text: 'rm x?' },
    });
    dialogs.told();
    expect(dialogs.consider(asked('rm x?'), 5_000)).toEqual({ kind: 'nothing' });
  });

  test('is told with what would have kept it from coming', () => {
    dialogs.consider(asked('Trust?', { cure: 'Trust the folder before.' }), 0);
    const told = dialogs.consider(asked('Trust?', { cure: 'Trust the folder before.' }), 100);
    expect(told).toMatchObject({ dialog: { text: 'Trust?\n\nTrust the folder before.' } });
  });

  test('that is gone, or is another, is over', () => {
    dialogs.consider(asked('rm x?'), 0);
    dialogs.consider(asked('rm x?'), 100);
    dialogs.told();
    expect(dialogs.consider(asked('rm y?'), 200)).toEqual({ kind: 'tell', dialog: null });
    expect(dialogs.consider(asked('rm y?'), 300)).toMatchObject({ kind: 'tell', dialog: { text: 'rm y?' } });
    dialogs.told();
    expect(dialogs.consider(null, 400)).toEqual({ kind: 'tell', dialog: null });
    expect(dialogs.consider(null, 500)).toEqual({ kind: 'nothing' });
  });

  test('with a safe answer is answered, once; if it stands on, a person is asked', () => {
    const safe = asked('Continue?', { answer: ['Enter'] });
    dialogs.consider(safe, 0);
    expect(dialogs.consider(safe, 100)).toEqual({ kind: 'press', keys: ['Enter'] });
    dialogs.pressed(100);
    expect(dialogs.consider(safe, 200)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(safe, 3_100)).toMatchObject({ kind: 'tell', dialog: { text: 'Continue?' } });
    dialogs.told();
    expect(dialogs.consider(safe, 9_000)).toEqual({ kind: 'nothing' });
  });

  test('that was told to somebody who has left is told again', () => {
    dialogs.consider(asked('rm x?'), 0);
    dialogs.consider(asked('rm x?'), 100);
    dialogs.told();
    dialogs.forget();
    expect(dialogs.consider(asked('rm x?'), 200)).toMatchObject({ kind: 'tell', dialog: { text: 'rm x?' } });
  });
});

describe('a decision', () => {
  function told(question: SeenDialog): void {
    dialogs.consider(question, 0);
    dialogs.consider(question, 100);
    dialogs.told();
  }

  test('presses the keys for it, once', () => {
    told(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    expect(dialogs.consider(asked('rm x?'), 200)).toEqual({ kind: 'press', keys: ['1'] });
    dialogs.pressed(200);
    expect(dialogs.consider(asked('rm x?'), 300)).toMatchObject({ kind: 'wait' });
    expect(dialogs.consider(null, 400)).toEqual({ kind: 'tell', dialog: null });
    dialogs.decide({ ...yes('rm y?'), approved: false });
    dialogs.consider(asked('rm y?'), 500);
    expect(dialogs.consider(asked('rm y?'), 600)).toEqual({ kind: 'press', keys: ['Escape'] });
  });

  test('about a question that stands on asks anew', () => {
    told(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    dialogs.consider(asked('rm x?'), 200);
    dialogs.pressed(200);
    expect(dialogs.consider(asked('rm x?'), 3_200)).toEqual({ kind: 'tell', dialog: null });
    expect(dialogs.consider(asked('rm x?'), 3_300)).toMatchObject({ kind: 'tell', dialog: { text: 'rm x?' } });
  });

  test('is for the question that it was made about, and for no later one', () => {
    told(asked('rm x?'));
    dialogs.decide(yes('rm x?'));
    dialogs.consider(asked('rm y?'), 200);
    expect(dialogs.consider(asked('rm y?'), 300)).toMatchObject({ kind: 'tell', dialog: { text: 'rm y?' } });
    dialogs.consider(asked('rm x?'), 400);
    expect(dialogs.consider(asked('rm x?'), 500)).toMatchObject({ kind: 'tell' });
  });

  test('of an earlier life is good for the question that is still there', () => {
    dialogs.decide(yes('rm x?'));
    dialogs.consider(asked('rm x?'), 0);
    expect(dialogs.consider(asked('rm x?'), 100)).toEqual({ kind: 'press', keys: ['1'] });
  });

  test('may be a text, or the name of a key', () => {
    told(asked('Which?'));
    for (const [answer, act] of [
      ['the blue one', { kind: 'type', text: 'the blue one' }],
      ['Down', { kind: 'press', keys: ['Down'] }],
      ['2', { kind: 'press', keys: ['2'] }],
    ] as const) {
      dialogs.decide({ ...yes('Which?'), answer });
      expect(dialogs.consider(asked('Which?'), 200)).toEqual(act);
    }
  });

  test('for which no keys are known presses nothing', () => {
    told(asked('Odd?', { approve: null }));
    dialogs.decide(yes('Odd?'));
    expect(dialogs.consider(asked('Odd?', { approve: null }), 200)).toEqual({ kind: 'nothing' });
  });
});
