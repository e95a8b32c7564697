// Bytes of a growing file, cut into lines. A line of usual length is kept until it is whole. Of a very long one nothing
// is kept but where it begins, and whether there is something in it that makes it worth reading: so that its length
// costs time, and no memory. It can be read again from the file.

export type Line =
  | { readonly kind: 'whole'; readonly text: string }
  /** Its place in the file, without its end. `essential`: it has one of the parts that were asked for. */
  | { readonly kind: 'long'; readonly from: number; readonly to: number; readonly essential: boolean };

const LINE_FEED = 0x0a;
const KEPT_BYTES_MAX = 1_000_000;

export class Lines {
  readonly #essential: readonly Buffer[];
  /** The longest of the parts may begin so many bytes before the end of a chunk without being whole in it. */
  readonly #overlap: number;
  /** Where the present line begins in the file, and how far it has been read. */
  #from = 0;
  #to = 0;
  #kept: Buffer[] = [];
  #long: { essential: boolean; tail: Buffer } | null = null;

  /** `essential`: parts, one of which a long line must have in it to be read. */
  constructor(essential: readonly string[]) {
    this.#essential = essential.map((part) => Buffer.from(part));
    this.#overlap = Math.max(0, ...this.#essential.map(({ length }) => length - 1));
  }

  /** The lines that end in these bytes, which follow those before. The bytes may be used for others afterwards. */
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

  /** What the file ends with, without a line end; null where there is nothing. */
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
