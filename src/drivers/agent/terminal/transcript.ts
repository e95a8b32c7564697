// Everything that a terminal printed, as bytes in files written by tmux (agent/tmux/transcript-segments.ts). Reads the
// bracketed-paste mode and the last output from it.

import { closeSync, constants, readSync, statSync } from 'node:fs';

import { ABSENT, tolerate, tolerateAsync, UNUSABLE } from '../../../sys/errors.ts';
import { openForReading, openRegular, readFileEnd } from '../../../sys/files.ts';
import { hasSegment, type Segment, segmentsOf } from '../tmux/transcript-segments.ts';

export class Transcript {
  readonly #path: string;
  #last: Segment | null = null;
  #scanned = 0;
  /** The unscanned end: an escape sequence may be cut in two. */
  #rest = '';
  #isBracketed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** In bytes, including deleted segments. */
  size(): number {
    const known = this.#last;
    const end = known === null ? null : tolerate(ABSENT, null, () => known.at + statSync(known.path).size);
    // In most calls the last segment is the known one.
    if (end !== null && !hasSegment(this.#path, end)) return end;
    this.#last = segmentsOf(this.#path).at(-1) ?? null;
    return this.#last === null ? 0 : this.#last.at + this.#last.size;
  }

  /** Whether the program enabled bracketed paste. Scans only new output. */
  async isBracketed(): Promise<boolean> {
    await tolerateAsync(UNUSABLE, undefined, this.#scanNewOutput());
    return this.#isBracketed;
  }

  async #scanNewOutput(): Promise<void> {
    for (const { path, at, size } of segmentsOf(this.#path)) {
      if (at + size <= this.#scanned) continue;
      this.#scanned = Math.max(this.#scanned, at);
      await using file = await openRegular(path, constants.O_RDONLY);
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (;;) {
        const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#scanned - at);
        if (bytesRead === 0) break;
        this.#scanned += bytesRead;
        this.#scan(this.#rest + chunk.toString('latin1', 0, bytesRead));
      }
    }
  }

  #scan(text: string): void {
    for (const [, modes, set] of text.matchAll(MODES)) {
      if (modes === undefined) this.#isBracketed = false;
      else if (modes.split(';').includes('2004')) this.#isBracketed = set === 'h';
    }
    const last = text.lastIndexOf('\u001b');
    this.#rest = last === -1 || text.length - last > SEQUENCE_MAX ? '' : text.slice(last);
  }

  /** Output since the offset without control sequences, up to a limit. */
  textSince(offset: number): string {
    return tolerate(UNUSABLE, '', () => {
      const bytes = Buffer.alloc(SINCE_BYTES);
      let length = 0;
      for (const { path, at, size } of segmentsOf(this.#path)) {
        if (at + size > offset && length < bytes.length) {
          length += readAt(path, bytes.subarray(length), Math.max(0, offset - at));
        }
      }
      return plain(bytes.toString('utf8', 0, length));
    });
  }

  /** The last output without control sequences; null if empty. */
  tail(): string | null {
    return tolerate(UNUSABLE, null, () => {
      // The last segment may have started a moment ago.
      const last = segmentsOf(this.#path).slice(-2);
      return lastWords(last.map(({ path }) => readFileEnd(path, TAIL_BYTES)).join(''));
    });
  }
}

function readAt(path: string, bytes: Buffer, from: number): number {
  const file = openForReading(path);
  try {
    return readSync(file, bytes, 0, bytes.length, from);
  } finally {
    closeSync(file);
  }
}

const CHUNK_BYTES = 1 << 20;
const TAIL_BYTES = 32_768;
const SINCE_BYTES = 65_536;
const WORDS_MAX = 4_096;

/* oxlint-disable no-control-regex -- control sequences are what is looked for */
/** Mode changes, and a reset of the whole terminal, which has no modes. */
const MODES = /\u001b\[\?([\d;]+)([hl])|\u001bc/g;
const SEQUENCE_MAX = 64;

export function lastWords(text: string): string | null {
  const lines = plain(text)
    .split('\n')
    .map((line) => line.trimEnd());
  const words = lines.filter((line, at) => line !== '' && line !== lines[at - 1]).join('\n');
  return words === '' ? null : words.slice(-WORDS_MAX);
}

/** Cursor movement ends a line, so that a drawn screen reads as lines. */
function plain(text: string): string {
  return text
    .replaceAll(STRINGS, '')
    .replaceAll(MOVES, '\n')
    .replaceAll(SEQUENCES, '')
    .replaceAll(/[^\P{C}\n\t]/gu, '');
}

/** Titles and other string sequences. */
const STRINGS = /\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const MOVES = /\u001b\[[\d;]*[ABEFHJf]|\r(?!\n)/g;
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])|\u001b/g;
