import { describe, expect, test } from 'vitest';
import { commonText, isSameInWords, isSameDialog } from './dialog-text.ts';

const ask = (text: string) => ({ name: 'permission', text });

describe('a question', () => {
  test('is the same whatever wheel turns in it and whichever answer is marked, and another with another text', () => {
    const one = ask('⠋ rm -r x (3s)\n ❯ 1. Yes\n   2. No');
    expect(isSameDialog(one, ask('⠙ rm -r x (14s)\n   1. Yes\n ❯ 2. No'))).toBe(true);
    expect(isSameDialog(one, ask('⠋ rm -r y (3s)\n ❯ 1. Yes\n   2. No'))).toBe(false);
    expect(isSameDialog(one, { ...one, name: 'trust' })).toBe(false);
  });

  test('with more in it is another', () => {
    expect(isSameDialog(ask('rm x\nSure?'), ask('rm x\nrm y\nSure?'))).toBe(false);
  });

  test('of which parts move is the same while all that does not is there, in its order', () => {
    const told = ask('rm x\ncloses in ⋯\n⋯\nSure?');
    expect(isSameDialog(told, ask('rm x\ncloses in 9\n##\nSure?'))).toBe(true);
    expect(isSameDialog(told, ask('rm x\ncloses in 9 minutes\n\nanything\n\nSure?'))).toBe(true);
    expect(isSameDialog(told, ask('rm y\ncloses in 9\n##\nSure?'))).toBe(false);
    expect(isSameDialog(told, ask('rm x\nopens in 9\n##\nSure?'))).toBe(false);
    expect(isSameDialog(told, ask('Sure?\nrm x\ncloses in 9\n##'))).toBe(false);
  });
});

describe('what is common', () => {
  test('to two versions are their lines, and of one that has changed the words at its ends', () => {
    expect(commonText('rm x\nSure? (9)\n ❯ 1. Yes', 'rm x\nSure? (8)\n   1. Yes')).toBe('rm x\nSure? ⋯\n ❯ 1. Yes');
    expect(commonText('closes in 10 minutes', 'closes in 9 minutes')).toBe('closes in ⋯ minutes');
    expect(commonText('rm x\n##\nSure?', 'rm x\n###\nSure?')).toBe('rm x\n⋯\nSure?');
  });

  test('to more of them is what none has changed', () => {
    const versions = [
      'a\nleft 3\ntip: sleep\nb',
      'a\nleft 2\ntip: eat\nb',
      'a\nleft 1\nb',
      'a\nleft 0\nnow!\nor never\nb',
    ];
    const all = versions.reduce(commonText);
    expect(all).toBe('a\nleft ⋯\n⋯\nb');
    for (const version of versions) expect(isSameDialog(ask(all), ask(version))).toBe(true);
  });

  test('is told in the order of the lines, where some come and go', () => {
    expect(commonText('a\nb\nc', 'a\nx\nc\nd')).toBe('a\n⋯\nc\n⋯');
    expect(commonText('a\nb', 'c\nd\ne')).toBe('⋯');
  });

  test('to one and itself is all of it', () => {
    expect(commonText('a\n\nb\n c', 'a\n\nb\n c')).toBe('a\n\nb\n c');
  });

  test('to a text and any version of it is in both, whatever is drawn', () => {
    let state = 7;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % below;
    };
    const lines = ['a b c', 'a 9 c', '', '⠋ wheel 3', 'Sure?', '  indented', 'b'];
    for (let times = 0; times < 500; times += 1) {
      const version = (): string => Array.from({ length: random(6) + 1 }, () => lines[random(lines.length)]).join('\n');
      const seen = Array.from({ length: random(4) + 2 }, version);
      const all = seen.reduce(commonText);
      for (const each of all.includes('⋯') ? seen : []) {
        expect(isSameDialog(ask(all), ask(each)), JSON.stringify([all, each])).toBe(true);
      }
    }
  });
});

test('texts that differ in figures and signs alone are the same in words', () => {
  expect(isSameInWords('Sure? 12:41 |', 'Sure? 12:42 /')).toBe(true);
  expect(isSameInWords('rm x', 'rm y')).toBe(false);
});
