import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StepFolder } from '../../step-folder.ts';
import { keepExchange, readTranscript, replayed } from './transcript.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'meow-transcript-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function turn(name: string, prompt: string, stdout = ''): StepFolder {
  const prefix = join(root, `${name}.`);
  writeFileSync(`${prefix}prompt`, prompt);
  writeFileSync(`${prefix}stdout`, stdout);
  return { prefix, inRun: name };
}

describe('a transcript', () => {
  test('has each turn once, in their order, however often it was found again', () => {
    const path = join(root, 's.jsonl');
    keepExchange(path, turn('one', 'first'), 'yes');
    keepExchange(path, turn('two', 'second\n', 'all of it\n'), null);
    keepExchange(path, turn('one', 'first'), 'yes');
    expect(readTranscript(path)).toEqual([
      { turn: 'one', told: 'first', answered: 'yes' },
      { turn: 'two', told: 'second\n', answered: 'all of it\n' },
    ]);
  });

  test('loses a line that was torn, and none after it', () => {
    const path = join(root, 's.jsonl');
    keepExchange(path, turn('one', 'first'), 'yes');
    appendFileSync(path, '\n{"turn":"two","told":"sec');
    keepExchange(path, turn('three', 'third'), 'no');
    expect(readTranscript(path).map((exchange) => exchange.turn)).toEqual(['one', 'three']);
  });

  test('of a session that nobody has answered in is empty, and nothing is told', () => {
    const exchanges = readTranscript(join(root, 'none.jsonl'));
    expect(exchanges).toEqual([]);
    expect(replayed(exchanges, 'Go.')).toBe('Go.');
  });

  test('is not kept of a turn whose files are gone', () => {
    const path = join(root, 's.jsonl');
    keepExchange(path, { prefix: join(root, 'gone.'), inRun: 'gone' }, 'yes');
    expect(readTranscript(path)).toEqual([]);
  });
});

test('what is to be done now stands behind what was said', () => {
  const text = replayed(
    [{ turn: 'one', told: 'The word is miau.\n', answered: 'I see. <goto>B.md</goto>' }],
    'Go on.\n',
  );
  const line = '='.repeat(72);
  expect(text.split(`${line}\n`).slice(1)).toEqual([
    '[You were told]\nThe word is miau.\n\n[You answered]\nI see. <goto>B.md</goto>\n',
    '\nGo on.\n',
  ]);
});
