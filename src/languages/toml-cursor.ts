// The place in a TOML text at which somebody is writing: the table, and the key whose value it is. It reads only the text
// before the cursor, so what is missing behind it does not matter.

import type { Path } from './keys.ts';

export interface Cursor {
  /** The table, or the item of a list, that is being written. */
  readonly path: Path;
  /** The key whose value is being written; null for a key, or an item of a list. */
  readonly key: string | null;
  /** An item of a list in brackets, which cannot be a key. */
  readonly isItem: boolean;
}

/** Null in headers, comments, and values that are nested too deeply. */
export function tomlCursorAt(text: string, offset: number): Cursor | null {
  return new Scanner(text.slice(0, offset)).scan();
}

const DEPTH_MAX = 50;

class Scanner {
  readonly #text: string;
  #at = 0;
  #header: Path = [];
  /** Number of tables of each list of tables. */
  readonly #counts = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  scan(): Cursor | null {
    for (;;) {
      this.#skip(/\s*/y);
      if (this.#peek() === '#') {
        this.#skip(/[^\n]*/y);
        if (this.#isEnd()) return null;
      } else if (this.#peek() === '[') {
        const [header, doubled = '', name = '', closed = ''] = this.#match(/\[(\[?)([^\]\n]*)(\]{0,2})[^\n]*/y);
        if (header === undefined || this.#isEnd() || closed.length <= doubled.length) return null;
        this.#enter(name, doubled !== '');
      } else {
        const found = this.#entry(this.#header, 0);
        if (found !== 'over') return found;
      }
    }
  }

  #enter(name: string, isList: boolean): void {
    const path: (string | number)[] = [];
    const names = splitKey(name);
    for (const [index, each] of names.entries()) {
      path.push(each);
      const list = JSON.stringify(path);
      const count = this.#counts.get(list);
      const isLast = index === names.length - 1;
      if (isLast && isList) {
        this.#counts.set(list, (count ?? 0) + 1);
        path.push(count ?? 0);
      } else if (count !== undefined) path.push(count - 1);
    }
    this.#header = path;
  }

  /** `key = value`. `over`: more text follows. */
  #entry(table: Path, depth: number): Cursor | null | 'over' {
    const [written = ''] = this.#match(/[^=\n#,{}[\]]*/y);
    const names = splitKey(written);
    const path = [...table, ...names.slice(0, -1)];
    if (this.#isEnd()) return { path, key: null, isItem: false };
    if (this.#peek() !== '=') {
      // Not an entry. One character at least is passed over, so that the scan ends.
      if (written === '' && depth === 0) this.#at += 1;
      return 'over';
    }
    this.#at += 1;
    const key = names.at(-1) ?? '';
    return this.#value([...path, key], depth) ?? { path, key, isItem: false };
  }

  /** Null: the text ends in the value itself. */
  #value(path: Path, depth: number): Cursor | null | 'over' {
    if (depth > DEPTH_MAX) return null;
    this.#skip(/[ \t]*/y);
    const [quotes] = this.#match(/"""|'''|"|'/y);
    if (quotes !== undefined) return this.#string(quotes) ? 'over' : null;
    if (this.#peek() === '{') return this.#inside(path, depth, '}');
    if (this.#peek() === '[') return this.#inside(path, depth, ']');
    this.#skip(/[^\n#,\]}]*/y);
    return this.#isEnd() ? null : 'over';
  }

  /** Whether it is closed before the text ends. A string of one line ends with the line. */
  #string(quotes: string): boolean {
    const isLiteral = quotes.startsWith("'");
    while (!this.#isEnd()) {
      if (this.#text.startsWith(quotes, this.#at)) {
        this.#at += quotes.length;
        return true;
      }
      if (quotes.length === 1 && this.#peek() === '\n') return true;
      this.#at += !isLiteral && this.#peek() === '\\' ? 2 : 1;
    }
    return false;
  }

  /** An inline table or a list. */
  #inside(path: Path, depth: number, close: '}' | ']'): Cursor | null | 'over' {
    this.#at += 1;
    for (let index = 0; ; index += 1) {
      const at = [...path, index];
      this.#skip(/(?:\s|#[^\n]*\n)*/y);
      if (this.#isEnd()) return { path: close === ']' ? at : path, key: null, isItem: close === ']' };
      if (this.#peek() !== close) {
        const found = close === '}' ? this.#entry(path, depth + 1) : (this.#value(at, depth + 1) ?? 'item');
        if (found === 'item') return depth > DEPTH_MAX ? null : { path: at, key: null, isItem: true };
        if (found !== 'over') return found;
      }
      this.#skip(/(?:\s|#[^\n]*\n)*/y);
      if (this.#peek() === close) {
        this.#at += 1;
        return 'over';
      }
      if (this.#isEnd()) return { path: close === ']' ? at : path, key: null, isItem: close === ']' };
      // Anything else than a comma is a mistake; more text follows it.
      if (this.#peek() !== ',') return 'over';
      this.#at += 1;
    }
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #isEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  #skip(sticky: RegExp): void {
    this.#match(sticky);
  }

  #match(sticky: RegExp): readonly (string | undefined)[] {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text);
    if (found === null) return [];
    this.#at = sticky.lastIndex;
    return found;
  }
}

/** `a."b.c"` */
function splitKey(written: string): readonly string[] {
  const parts = written.trim().match(/"[^"]*"?|'[^']*'?|[^.\s"']+/g) ?? [];
  return parts.map((part) => part.replace(/^(["'])(.*?)\1?$/s, '$2'));
}
