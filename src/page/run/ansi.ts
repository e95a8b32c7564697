// Output of programs as lines of coloured text. Colours and weights become classes; every other escape sequence is dropped,
// and other control characters are shown as text.

import { visibleControls } from '../../base/sanitize.ts';

export interface Piece {
  readonly text: string;
  /** Classes: `a31 a1`; empty if it is plain. */
  readonly style: string;
}

/** Longer lines are cut. */
const LINE_MAX = 4000;

/** Colours continue in the next line until they are reset. */
export class AnsiLines {
  #style: ReadonlySet<string> = new Set();

  /** Without its line end. */
  line(text: string): readonly Piece[] {
    const shown = afterReturns(text.length > LINE_MAX ? text.slice(0, LINE_MAX) : text);
    const pieces: Piece[] = [];
    let from = 0;
    for (const match of shown.matchAll(SEQUENCES)) {
      this.#add(pieces, shown.slice(from, match.index));
      from = match.index + match[0].length;
      if (match[1] !== undefined) this.#style = styleAfter(this.#style, match[1]);
    }
    this.#add(pieces, shown.slice(from));
    return pieces;
  }

  #add(pieces: Piece[], text: string): void {
    if (text !== '') pieces.push({ text: visibleControls(text), style: [...this.#style].join(' ') });
  }
}

/** What a terminal would show after a program has written over the line, as progress bars do. */
function afterReturns(text: string): string {
  const line = text.endsWith('\r') ? text.slice(0, -1) : text;
  return line.slice(line.lastIndexOf('\r') + 1);
}

/** The first group is that of a colour or weight (SGR). */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  /\x1b\[([\d;]*)m|(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[\x20-\x7e]/g;

/** Class names are those of the numbers: `a1` bold, `a31` red, `a91` bright red. Backgrounds are left out: text must stay legible. */
function styleAfter(before: ReadonlySet<string>, codes: string): ReadonlySet<string> {
  const style = new Set(before);
  const numbers = codes.split(';').map(Number);
  for (let index = 0; index < numbers.length; index++) {
    const code = numbers[index] ?? 0;
    if (code === 0) style.clear();
    else if (code === 1 || code === 2 || code === 3 || code === 4) style.add(`a${code}`);
    else if (code === 22) ['a1', 'a2'].forEach((name) => style.delete(name));
    else if (code === 23 || code === 24) style.delete(`a${code - 20}`);
    else if (isColour(code) || code === 39) {
      for (const name of style) if (isColour(Number(name.slice(1)))) style.delete(name);
      if (code !== 39) style.add(`a${code}`);
    } else if (code === 38 || code === 48) {
      // 256 colours, or one of three numbers: the nearest of ours would be a guess.
      index += numbers[index + 1] === 5 ? 2 : 4;
    }
  }
  return style;
}

function isColour(code: number): boolean {
  return (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
}
