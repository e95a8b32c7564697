// Patterns of paths.
//
//   *        any run of characters within a name          ?      one character of a name
//   **       as a whole name: any number of folders; at the end of a pattern: everything below
//   [a-z]    one of these; [!a-z] or [^a-z] none of these  {a,b}  one of these, which may be patterns themselves
//   \        takes the next character as it is
//
// A name that begins with a dot is a name like any other. What is never closed, `[` or `{`, stands for itself. No regular
// expression is made of a pattern: the time of a comparison grows with the length of pattern and path, whatever they are.

export interface Glob {
  matches(path: string): boolean;
  /** Whether something in this folder, or further down, may match. */
  reaches(folder: string): boolean;
}

export function glob(pattern: string): Glob {
  const pieces = parse(pattern);
  const machine = new Machine(pieces);
  const prefix = textOf(
    pieces.slice(
      0,
      pieces.findIndex(({ kind }) => kind !== 'char'),
    ),
  );
  return {
    matches: (path) => path.startsWith(prefix) && machine.read(path) === 'whole',
    reaches: (folder) => folder === '' || machine.read(`${folder}/`) !== 'not',
  };
}

/** Whether any of them matches. */
export function globs(patterns: readonly string[]): (path: string) => boolean {
  const all = patterns.map(glob);
  return (path) => all.some((one) => one.matches(path));
}

/** The one path that a pattern stands for; null where it may stand for several. */
export function literalOf(pattern: string): string | null {
  const pieces = parse(pattern);
  return pieces.every(({ kind }) => kind === 'char') ? textOf(pieces) : null;
}

/** A pattern that stands for this text alone. */
export function asGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]{},]/g, '\\$&');
}

type Piece =
  | { readonly kind: 'char'; readonly char: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'run' }
  /** Any number of folders, each with its slash. */
  | { readonly kind: 'folders' }
  /** One character or more, slashes too. */
  | { readonly kind: 'below' }
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [string, string])[] }
  | { readonly kind: 'choice'; readonly options: readonly (readonly Piece[])[] };

function parse(pattern: string): readonly Piece[] {
  const chars = Array.from(pattern);
  return sequence(chars, 0, closings(chars)).pieces;
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.map((piece) => (piece.kind === 'char' ? piece.char : '')).join('');
}

/** Where each brace that is opened is closed. Found beforehand, so that nothing is looked for twice. */
function closings(chars: readonly string[]): ReadonlyMap<number, number> {
  const open: number[] = [];
  const closed = new Map<number, number>();
  for (let at = 0; at < chars.length; at += 1) {
    if (chars[at] === '\\') at += 1;
    else if (chars[at] === '{') open.push(at);
    else if (chars[at] === '}') {
      const from = open.pop();
      if (from !== undefined) closed.set(from, at);
    }
  }
  return closed;
}

/** To the end, or, in an option of a choice, to its comma or brace. */
function sequence(
  chars: readonly string[],
  from: number,
  closed: ReadonlyMap<number, number>,
  end = chars.length,
): { readonly pieces: readonly Piece[]; readonly at: number } {
  const pieces: Piece[] = [];
  let at = from;
  while (at < end) {
    const char = chars[at] ?? '';
    if (char === ',' && end < chars.length) break;
    const close = char === '{' ? closed.get(at) : undefined;
    if (close !== undefined) {
      const options: (readonly Piece[])[] = [];
      do {
        const option = sequence(chars, at + 1, closed, close);
        options.push(option.pieces);
        at = option.at;
      } while (at < close);
      pieces.push({ kind: 'choice', options });
      at += 1;
    } else if (char === '*') {
      const stars = chars.slice(at, at + 3);
      const whole = stars[1] === '*' && stars[2] !== '*' && (at === 0 || '/{,'.includes(chars[at - 1] ?? ''));
      const next = stars[2];
      if (whole && next === '/') pieces.push({ kind: 'folders' });
      else if (whole && (next === undefined || next === '}' || next === ',')) pieces.push({ kind: 'below' });
      else pieces.push({ kind: 'run' });
      at += !whole ? 1 : next === '/' ? 3 : 2;
    } else if (char === '?') {
      pieces.push({ kind: 'one' });
      at += 1;
    } else if (char === '[') {
      const found = characterClass(chars, at);
      pieces.push(found?.piece ?? { kind: 'char', char });
      at = found?.at ?? at + 1;
    } else {
      const escaped = char === '\\' && at + 1 < chars.length;
      pieces.push({ kind: 'char', char: escaped ? (chars[at + 1] ?? '') : char });
      at += escaped ? 2 : 1;
    }
  }
  return { pieces, at };
}

/** Null where it is never closed. */
function characterClass(chars: readonly string[], from: number): { readonly piece: Piece; readonly at: number } | null {
  const negated = chars[from + 1] === '!' || chars[from + 1] === '^';
  const ranges: (readonly [string, string])[] = [];
  const first = from + (negated ? 2 : 1);
  for (let at = first; at < chars.length; ) {
    // A bracket that comes first is one of them.
    if (chars[at] === ']' && at > first) return { piece: { kind: 'class', negated, ranges }, at: at + 1 };
    if (chars[at] === '/') return null;
    if (chars[at] === '\\') at += 1;
    const low = chars[at] ?? '';
    const high = chars[at + 2] ?? '';
    if (chars[at + 1] === '-' && high !== ']' && high !== '') {
      ranges.push([low, high]);
      at += 3;
    } else {
      ranges.push([low, low]);
      at += 1;
    }
  }
  return null;
}

/** What a place in the pattern lets pass, and where that leads. */
interface Place {
  readonly passes: (char: string) => boolean;
  readonly next: number;
  /** Places that are reached with nothing. */
  readonly also: readonly number[];
}

/** All places in the pattern that a path may have come to, at once. */
class Machine {
  readonly #places: Place[] = [];
  readonly #start: number;
  readonly #end: number;

  constructor(pieces: readonly Piece[]) {
    this.#end = this.#add(nothing, -1);
    this.#start = this.#compile(pieces, this.#end);
  }

  /** Whether the text is all that the pattern asks for; or the beginning of that; or neither. */
  read(text: string): 'whole' | 'part' | 'not' {
    const seen = new Int32Array(this.#places.length);
    let here: number[] = [];
    let turn = 1;
    this.#enter(this.#start, here, seen, turn);
    for (const char of text) {
      const next: number[] = [];
      turn += 1;
      for (const at of here) {
        const place = this.#places[at];
        if (place?.passes(char) === true) this.#enter(place.next, next, seen, turn);
      }
      here = next;
      if (here.length === 0) return 'not';
    }
    return seen[this.#end] === turn ? 'whole' : 'part';
  }

  /** With all places that are reached from there with nothing. `seen`: in which turn each was entered last. */
  #enter(from: number, here: number[], seen: Int32Array, turn: number): void {
    const open = [from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (seen[at] === turn) continue;
      seen[at] = turn;
      here.push(at);
      open.push(...(this.#places[at]?.also ?? []));
    }
  }

  #add(passes: Place['passes'], next: number, also: readonly number[] = []): number {
    return this.#places.push({ passes, next, also }) - 1;
  }

  /** From the back: what comes after is known. */
  #compile(pieces: readonly Piece[], end: number): number {
    return pieces.reduceRight((after, piece) => this.#piece(piece, after), end);
  }

  #piece(piece: Piece, after: number): number {
    switch (piece.kind) {
      case 'char':
        return this.#add((char) => char === piece.char, after);
      case 'one':
        return this.#add(isOfName, after);
      case 'run': {
        const self = this.#places.length;
        return this.#add(isOfName, self, [after]);
      }
      case 'folders': {
        // Either past it, or into a name, and through its slash back to the same choice.
        const [within, start] = [this.#places.length, this.#places.length + 2];
        this.#add(isOfName, within, [within + 1]);
        this.#add((char) => char === '/', start);
        this.#add(isOfName, within, [after]);
        return start;
      }
      case 'below': {
        const rest = this.#places.length;
        this.#add(anything, rest, [after]);
        return this.#add(anything, rest);
      }
      case 'class':
        return this.#add(
          (char) => isOfName(char) && piece.ranges.some(([low, high]) => low <= char && char <= high) !== piece.negated,
          after,
        );
      case 'choice':
        return this.#add(
          nothing,
          -1,
          piece.options.map((option) => this.#compile(option, after)),
        );
    }
  }
}

function nothing(): boolean {
  return false;
}

function anything(): boolean {
  return true;
}

function isOfName(char: string): boolean {
  return char !== '/';
}
