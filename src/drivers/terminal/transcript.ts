// Everything that a terminal has printed, as bytes in a file that tmux appends to: what mode the program has asked for, and
// its last words.

import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../base/errno.ts';
import { endOfFile } from '../end-of-file.ts';

export class Transcript {
  readonly path: string;
  #scanned = 0;
  /** The end of what was scanned: a sequence may be cut in two. */
  #rest = '';
  #isBracketed = false;

  constructor(path: string) {
    this.path = path;
  }

  /** In bytes. */
  size(): number {
    try {
      return statSync(this.path).size;
    } catch (error) {
      if (isErrno(error, ...ABSENT)) return 0;
      throw error;
    }
  }

  /** Whether the program has asked for pastes to be told from keys. Reads what has come since it was last asked. */
  async isBracketed(): Promise<boolean> {
    try {
      await using file = await open(this.path, 'r');
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (;;) {
        const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#scanned);
        if (bytesRead === 0) return this.#isBracketed;
        this.#scanned += bytesRead;
        this.#scan(this.#rest + chunk.toString('latin1', 0, bytesRead));
      }
    } catch (error) {
      if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return this.#isBracketed;
      throw error;
    }
  }

  #scan(text: string): void {
    for (const [whole, modes, set] of text.matchAll(MODES)) {
      if (whole === RESET) this.#isBracketed = false;
      else if (modes?.split(';').includes('2004') === true) this.#isBracketed = set === 'h';
    }
    const last = text.lastIndexOf('\u001b');
    this.#rest = last === -1 || text.length - last > SEQUENCE_MAX ? '' : text.slice(last);
  }

  /** What was printed from there on, without what commands a terminal; not all of it, if it is much. */
  textSince(offset: number): string {
    try {
      const file = openSync(this.path, 'r');
      try {
        const bytes = Buffer.alloc(SINCE_BYTES);
        return plain(bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, offset)));
      } finally {
        closeSync(file);
      }
    } catch (error) {
      if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return '';
      throw error;
    }
  }

  /** The end of what was printed, without what commands a terminal; null where that is nothing. */
  tail(): string | null {
    try {
      return lastWords(endOfFile(this.path, TAIL_BYTES));
    } catch (error) {
      if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return null;
      throw error;
    }
  }
}

const CHUNK_BYTES = 1 << 20;
const TAIL_BYTES = 32_768;
const SINCE_BYTES = 65_536;
const WORDS_MAX = 4_096;

/* oxlint-disable no-control-regex -- control sequences are what is looked for */
/** Modes that are set or reset, and a reset of the whole terminal. */
const MODES = /\u001b\[\?([\d;]+)([hl])|\u001bc/g;
const RESET = '\u001bc';
/** No sequence of modes is longer. */
const SEQUENCE_MAX = 64;

export function lastWords(text: string): string | null {
  const lines = plain(text)
    .split('\n')
    .map((line) => line.trimEnd());
  const words = lines.filter((line, at) => line !== '' && line !== lines[at - 1]).join('\n');
  return words === '' ? null : words.slice(-WORDS_MAX);
}

/** What moves the cursor ends a line: a screen that was drawn is read as lines. */
function plain(text: string): string {
  return text
    .replaceAll(STRINGS, '')
    .replaceAll(MOVES, '\n')
    .replaceAll(SEQUENCES, '')
    .replaceAll(/[^\P{C}\n\t]/gu, '');
}

/** Titles and the like. */
const STRINGS = /\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const MOVES = /\u001b\[[\d;]*[ABEFHJf]|\r(?!\n)/g;
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])|\u001b/g;
