// Where a text stops being JSON. The system's own parser says that it does, but not always where.

/** The offset of the first piece that does not belong there; the length of the text where it breaks off; null for JSON. */
export function jsonErrorPosition(text: string): number | null {
  const open: ('[' | '{')[] = [];
  let expected: Expected = 'value';
  let at = 0;
  for (;;) {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return expected === 'end' && open.length === 0 ? null : text.length;
    PIECE.lastIndex = at;
    const piece = PIECE.exec(text)?.[0];
    const next: Expected | null = piece === undefined ? null : after(piece, expected, open);
    if (piece === undefined || next === null) return at;
    expected = next;
    at += piece.length;
  }
}

/** `end`: what follows a value; a comma, a closing bracket, or nothing more. */
type Expected = 'value' | 'item' | 'key' | 'member' | 'colon' | 'end';

const SPACE = /[ \t\r\n]*/y;
/** What a string may hold as it is: no quote, no backslash, nothing below a space. */
const PLAIN = String.raw`[ !#-\x5B\x5D-\uFFFF]*`;
const STRING = String.raw`"${PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})${PLAIN})*"`;
const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const PIECE = new RegExp(String.raw`${STRING}|${NUMBER}|true|false|null|[[\]{},:]`, 'y');

/** What is expected after a piece; null if the piece is not. `open` follows. */
function after(piece: string, expected: Expected, open: ('[' | '{')[]): Expected | null {
  switch (piece) {
    case '[':
    case '{':
      if (expected !== 'value' && expected !== 'item') return null;
      open.push(piece);
      return piece === '[' ? 'item' : 'member';
    case ']':
      return (expected === 'end' || expected === 'item') && open.pop() === '[' ? 'end' : null;
    case '}':
      return (expected === 'end' || expected === 'member') && open.pop() === '{' ? 'end' : null;
    case ',':
      if (expected !== 'end' || open.length === 0) return null;
      return open.at(-1) === '[' ? 'value' : 'key';
    case ':':
      return expected === 'colon' ? 'value' : null;
    default:
      if (expected === 'value' || expected === 'item') return 'end';
      return (expected === 'key' || expected === 'member') && piece.startsWith('"') ? 'colon' : null;
  }
}
