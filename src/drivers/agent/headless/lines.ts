// Splits a growing file into lines. A normal line is kept until it is complete. Of a very long line only its position
// is kept, and whether it contains an essential part: its length costs time but no memory. It can be read again from
// the file.

export type Line =
  | { readonly kind: 'whole'; readonly text: string }
  /** Offsets in the file, without the line end. `essential`: contains one of the essential parts. */
  | { readonly kind: 'long'; readonly from: number; readonly to: number; readonly essential: boolean };

const LINE_FEED = 0x0a;
const KEPT_BYTES_MAX = 1_000_000;

export class Lines {
  readonly #essential: readonly Buffer[];
  /** An essential part may begin this many bytes before the end of a chunk. */
  readonly #overlap: number;
  /** Offset of the current line, and how far it was scanned. */
  #from = 0;
  #to = 0;
  #kept: Buffer[] = [];
  #long: { essential: boolean; tail: Buffer } | null = null;

  /** `essential`: a long line is read only if it contains one of these. */
  constructor(essential: readonly string[]) {
    this.#essential = essential.map((part) => Buffer.from(part));
    this.#overlap = Math.max(0, ...this.#essential.map(({ length }) => length - 1));
  }

  /** Returns the lines that end in these bytes. The buffer may be reused afterwards. */
  push(bytes: Buffer): readonly Line[] {
    const lines: Line[] = [];
    for (let begin = 0; begin < bytes.length; ) {
      const end = bytes.indexOf(LINE_FEED, begin);
      this.#take(bytes.subarray(begin, end === -1 ? undefined : end));
      if (end === -1) break;
      lines.push(this.#end(1));
      begin = end + 1;
    }
    return lines;
  }

  /** The unterminated end of the file; null if empty. */
  rest(): Line | null {
    return this.#to === this.#from ? null : this.#end(0);
  }

  #take(bytes: Buffer): void {
    this.#to += bytes.length;
    if (this.#long === null && this.#to - this.#from <= KEPT_BYTES_MAX) {
      this.#kept.push(Buffer.from(bytes));
      return;
    }
    this.#long ??= { essential: false, tail: Buffer.alloc(0) };
    for (const part of [...this.#kept.splice(0), bytes]) this.#search(this.#long, part);
  }

  #search(long: { essential: boolean; tail: Buffer }, bytes: Buffer): void {
    if (long.essential) return;
    const across = Buffer.concat([long.tail, bytes.subarray(0, this.#overlap)]);
    long.essential = this.#essential.some((part) => across.includes(part) || bytes.includes(part));
    const seen = bytes.length >= this.#overlap ? bytes : Buffer.concat([long.tail, bytes]);
    long.tail = Buffer.from(seen.subarray(Math.max(0, seen.length - this.#overlap)));
  }

  #end(endBytes: number): Line {
    const line: Line =
      this.#long === null
        ? { kind: 'whole', text: Buffer.concat(this.#kept).toString('utf8') }
        : { kind: 'long', from: this.#from, to: this.#to, essential: this.#long.essential };
    this.#from = this.#to + endBytes;
    this.#to = this.#from;
    this.#kept = [];
    this.#long = null;
    return line;
  }
}
