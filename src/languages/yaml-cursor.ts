// The place in a YAML text at which somebody is writing, and the plain values around it. It reads lines instead of a
// tree: a line that is half written can damage all that follows it.

import type { Path } from './keys.ts';
import type { Cursor } from './toml-cursor.ts';

/** Null in comments and texts of several lines. */
export function yamlCursorAt(text: string, offset: number): Cursor | null {
  return new Scanner(text.slice(0, offset)).cursor();
}

/** Every key, by its `pathKey`, with its text if that is on the same line. */
export function yamlTexts(text: string): ReadonlyMap<string, string> {
  return new Scanner(text).texts;
}

export function pathKey(path: Path): string {
  return path.reduce<string>(below, '');
}

function below(path: string, name: string | number): string {
  return `${path}/${typeof name === 'number' ? name : JSON.stringify(name)}`;
}

/** A key or an item of a list in block style. */
interface Block {
  readonly indent: number;
  readonly name: string | number;
  /** Key of its whole path. */
  readonly path: string;
}

/** An open bracket. */
interface Flow {
  readonly kind: '{' | '[';
  key: string | null;
  index: number;
  /** What is written since the last comma or colon. */
  token: string;
}

class Scanner {
  readonly texts = new Map<string, string>();
  readonly #blocks: Block[] = [];
  readonly #flow: Flow[] = [];
  /** Column of the key whose text of several lines is being read; null outside of one. */
  #literal: number | null = null;
  /** Of the last line. */
  #key: string | null = null;
  #isComment = false;

  constructor(text: string) {
    for (const line of text.split(/\r?\n/)) this.#line(line);
  }

  cursor(): Cursor | null {
    if (this.#literal !== null || this.#isComment) return null;
    const path: (string | number)[] = this.#blocks.map(({ name }) => name);
    const last = this.#flow.at(-1);
    if (last === undefined) {
      const { length } = path;
      return { path: path.slice(0, this.#key === null ? length : -1), key: this.#key, isItem: false };
    }
    for (const { kind, key, index } of this.#flow.slice(0, -1)) path.push(kind === '{' ? (key ?? '') : index);
    if (last.kind === '[') return { path: [...path, last.index], key: null, isItem: true };
    return { path, key: last.key, isItem: false };
  }

  #line(line: string): void {
    this.#key = null;
    this.#isComment = false;
    if (this.#flow.length > 0) return this.#inFlow(line);
    const indent = /^ */.exec(line)?.[0].length ?? 0;
    if (this.#literal !== null) {
      if (line.trim() === '' || indent > this.#literal) return;
      this.#literal = null;
    }
    this.#isComment = /^\s*#/.test(line);
    if (!this.#isComment) this.#content(line.slice(indent), indent);
  }

  #content(written: string, indent: number): void {
    const [dash] = /^-(?:\s+|$)/.exec(written) ?? [];
    if (dash !== undefined) {
      let index = 0;
      // The key of a list may be in the same column.
      for (let last = this.#blocks.at(-1); last !== undefined; last = this.#blocks.at(-1)) {
        if (last.indent < indent || (last.indent === indent && typeof last.name === 'string')) break;
        if (last.indent === indent && typeof last.name === 'number') index = last.name + 1;
        this.#blocks.pop();
      }
      this.#push(indent, index);
      this.#content(written.slice(dash.length), indent + dash.length);
      return;
    }
    while ((this.#blocks.at(-1)?.indent ?? -1) >= indent) this.#blocks.pop();
    const [key, quoted, plain, rest = ''] =
      /^(?:["']([^"']*)["']|([^\s#:,[\]{}"'][^:#]*?))\s*:(?:\s+(.*)|)$/.exec(written) ?? [];
    const name = quoted ?? plain;
    if (key === undefined || name === undefined) {
      if (/^[[{]/.test(written)) this.#inFlow(written);
      return;
    }
    this.#push(indent, name);
    this.#key = name;
    this.#note([], '');
    if (/^[|>][\d+-]*\s*(?:#.*)?$/.test(rest)) this.#literal = indent;
    else if (/^[[{]/.test(rest)) this.#inFlow(rest);
    else if (rest !== '' && !rest.startsWith('#')) this.#note([], rest.replace(/\s+#.*$/, ''));
  }

  #inFlow(text: string): void {
    let quote = '';
    for (let index = 0; index < text.length; index += 1) {
      const char = text.charAt(index);
      const open = this.#flow.at(-1);
      if (quote !== '') {
        if (char === quote) quote = '';
        if (open !== undefined) open.token += char;
      } else if (char === '{' || char === '[') {
        if (this.#flow.length >= DEPTH_MAX) return;
        this.#flow.push({ kind: char, key: null, index: 0, token: '' });
      } else if (open === undefined) return;
      else if (char === '}' || char === ']' || char === ',') {
        this.#endItem(open);
        if (char !== ',') this.#flow.pop();
        else {
          open.index += 1;
          open.key = null;
        }
      } else if (char === ':' && open.kind === '{' && open.key === null) {
        open.key = unquoted(open.token);
        this.#note(
          this.#flow.map(({ kind, key, index: at }) => (kind === '{' ? (key ?? '') : at)),
          '',
        );
        open.token = '';
      } else {
        if ((char === '"' || char === "'") && open.token.trim() === '') quote = char;
        if (char === '#' && /\s/.test(text.charAt(index - 1))) return;
        open.token += char;
      }
    }
  }

  #endItem(open: Flow): void {
    if (open.kind === '{' && open.key !== null && open.token.trim() !== '') {
      const outer = this.#flow.slice(0, -1).map(({ kind, key, index }) => (kind === '{' ? (key ?? '') : index));
      this.#note([...outer, open.key], open.token);
    }
    open.token = '';
  }

  #push(indent: number, name: string | number): void {
    this.#blocks.push({ indent, name, path: below(this.#blocks.at(-1)?.path ?? '', name) });
  }

  #note(inner: Path, written: string): void {
    this.texts.set(inner.reduce<string>(below, this.#blocks.at(-1)?.path ?? ''), unquoted(written));
  }
}

const DEPTH_MAX = 50;

function unquoted(written: string): string {
  return written.trim().replace(/^(["'])(.*)\1$/s, '$2');
}
