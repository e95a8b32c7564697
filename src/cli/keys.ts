// Turns what a terminal sends into keys. Sequences of keys that have no meaning here are dropped as a whole. Pasted text is
// never a key: it must not decide anything.

export type Key =
  | { readonly kind: 'character'; readonly text: string }
  | { readonly kind: 'key'; readonly name: string }
  | { readonly kind: 'paste'; readonly text: string };

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';

const SEQUENCES: Readonly<Record<string, string>> = {
  '\x1b[A': 'up',
  '\x1bOA': 'up',
  '\x1b[B': 'down',
  '\x1bOB': 'down',
  '\x1b[5~': 'pageup',
  '\x1b[6~': 'pagedown',
  '\x1b[H': 'home',
  '\x1bOH': 'home',
  '\x1b[1~': 'home',
  '\x1b[F': 'end',
  '\x1bOF': 'end',
  '\x1b[4~': 'end',
};

const CONTROLS: Readonly<Record<string, string>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x0c': 'ctrl-l',
  '\x15': 'ctrl-u',
  '\x1a': 'ctrl-z',
};

/** Longer than any paste that means something. */
const PENDING_MAX = 65_536;

export class KeyReader {
  #pending = '';

  /** The keys in this piece of input. The beginning of a sequence is kept for the next piece. */
  read(piece: string): readonly Key[] {
    this.#pending += piece;
    const keys: Key[] = [];
    while (this.#pending !== '') {
      const taken = next(this.#pending);
      if (taken === null) break;
      this.#pending = this.#pending.slice(taken.length);
      if (taken.key !== null) keys.push(taken.key);
    }
    if (this.#pending.length > PENDING_MAX) this.#pending = '';
    return keys;
  }

  /** Call when nothing has followed for a moment: an escape that began no sequence was the key itself. */
  flush(): readonly Key[] {
    const isEscape = this.#pending === '\x1b';
    if (isEscape) this.#pending = '';
    return isEscape ? [{ kind: 'key', name: 'escape' }] : [];
  }

  get isPending(): boolean {
    return this.#pending !== '';
  }
}

interface Taken {
  readonly length: number;
  /** Null for a key without a meaning. */
  readonly key: Key | null;
}

/** Null if more input is needed. */
function next(input: string): Taken | null {
  if (input.startsWith(PASTE_START)) {
    const end = input.indexOf(PASTE_END);
    if (end < 0) return null;
    return { length: end + PASTE_END.length, key: { kind: 'paste', text: input.slice(PASTE_START.length, end) } };
  }
  if (input.startsWith('\x1b')) return escapeSequence(input);
  const character = String.fromCodePoint(input.codePointAt(0) ?? 0);
  const name = CONTROLS[character];
  if (name !== undefined) return { length: character.length, key: { kind: 'key', name } };
  return { length: character.length, key: character >= ' ' ? { kind: 'character', text: character } : null };
}

function escapeSequence(input: string): Taken | null {
  if (input.length === 1) return null;
  // oxlint-disable-next-line no-control-regex -- the sequences of a terminal begin with one
  const whole = /^\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|O[\x40-\x7e])/.exec(input)?.[0];
  if (whole !== undefined) {
    const name = SEQUENCES[whole];
    return { length: whole.length, key: name === undefined ? null : { kind: 'key', name } };
  }
  // oxlint-disable-next-line no-control-regex -- as above
  if (/^\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*|O)$/.test(input)) return null;
  return { length: 1, key: { kind: 'key', name: 'escape' } };
}
