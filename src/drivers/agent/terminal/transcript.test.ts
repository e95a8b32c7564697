import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lastWords, Transcript } from './transcript.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-transcript-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('whether pastes are to be bracketed', () => {
  test('is as the program has said last, whatever else it says', async () => {
    const path = join(folder, 'transcript');
    const transcript = new Transcript(path);
    expect(await transcript.isBracketed()).toBe(false);
    for (const [printed, isBracketed] of [
      ['hello \u001b[?1049h', false],
      ['\u001b[?25l\u001b[?2004h> ', true],
      ['\u001b[?1;2004l', false],
      ['\u001b[?1;2004;25h', true],
      ['\u001b[2004l\u001b[?200', true],
      // One that is cut in two.
      ['4l', false],
      ['\u001b[?2004hx\u001bc', false],
    ] as const) {
      appendFileSync(path, printed);
      expect(await transcript.isBracketed(), JSON.stringify(printed)).toBe(isBracketed);
      expect(await new Transcript(path).isBracketed()).toBe(isBracketed);
    }
  });

  test('is found in a long transcript', async () => {
    const path = join(folder, 'transcript');
    appendFileSync(path, `\u001b[?2004h${'x'.repeat(3_000_000)}`);
    expect(await new Transcript(path).isBracketed()).toBe(true);
  });
});

test('what was printed since a moment is told as lines', () => {
  const path = join(folder, 'transcript');
  appendFileSync(path, 'before\r\n');
  const transcript = new Transcript(path);
  const from = transcript.size();
  appendFileSync(path, '\u001b[H\u001b[2Kworking…\u001b[3;1H  esc to interrupt');
  expect(transcript.textSince(from).split('\n')).toContain('  esc to interrupt');
  expect(transcript.textSince(transcript.size())).toBe('');
  expect(new Transcript(join(folder, 'none')).textSince(0)).toBe('');
});

describe('in parts, of which some are forgotten,', () => {
  const path = (): string => join(folder, 'transcript');

  test('every byte keeps its place', async () => {
    appendFileSync(path(), '\u001b[?2004hfirst');
    const transcript = new Transcript(path());
    expect(transcript.size()).toBe(13);
    appendFileSync(`${path()}.13`, 'second ');
    expect(transcript.size()).toBe(20);
    appendFileSync(`${path()}.20`, 'third');
    expect(transcript.size()).toBe(25);
    expect(transcript.textSince(10)).toBe('rstsecond third');
    expect(transcript.textSince(18)).toBe('d third');
    rmSync(`${path()}.13`);
    appendFileSync(`${path()}.25`, ' fourth\u001b[?2004l');
    for (const each of [transcript, new Transcript(path())]) {
      expect(each.size()).toBe(40);
      expect(each.textSince(14)).toBe('third fourth');
      expect(await each.isBracketed()).toBe(false);
    }
    expect(transcript.tail()).toBe('third fourth');
  });
});

describe('last words', () => {
  test('are what was printed, without what commands a terminal', () => {
    expect(lastWords('\u001b]0;title\u0007\u001b[1mError\u001b[0m: no key\r\n\u001b[2K\u0007bye\r\n')).toBe(
      'Error: no key\nbye',
    );
  });

  test('of a screen that was drawn are its lines', () => {
    expect(lastWords('\u001b[H\u001b[2Jone\u001b[2;1Htwo\u001b[10;5Hthree')).toBe('one\ntwo\nthree');
  });

  test('may be none', () => {
    expect(lastWords('\u001b[?2004h\r\n')).toBeNull();
    expect(new Transcript(join(folder, 'none')).tail()).toBeNull();
  });
});
