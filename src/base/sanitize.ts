// Makes text from steps, agents and authors safe to show: it must not be able to control a terminal or to end a line.

/** One line without control characters: escape sequences are dropped, line ends and tabs become blanks. */
export function sanitize(text: string): string {
  if (!UNSAFE.test(text)) return text;
  return text.replaceAll(ESCAPE_SEQUENCES, '').replaceAll(BLANKS, ' ').replaceAll(CONTROLS, '').trimEnd();
}

/** The same text with control characters as text, except line ends and tabs: a terminal shows it and does not obey it. */
export function visibleControls(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(OBEYED, (control) => {
    const code = (control.codePointAt(0) ?? 0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}

/** An id for a line of text. Long ids are shortened in the middle: recursion can make them very long. */
export function shorten(id: string): string {
  const text = sanitize(id);
  return text.length <= SHORT_MAX ? text : `${text.slice(0, SHORT_HEAD)}…${text.slice(SHORT_HEAD + 1 - SHORT_MAX)}`;
}

const SHORT_MAX = 100;
const SHORT_HEAD = 40;

const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\ufeff]/u;
const ESCAPE_SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  /(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[\x20-\x7e]/g;
const BLANKS = /\r\n|[\n\r\t\v\f\x85\u2028\u2029]/g;
const OBEYED = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;
const CONTROLS = /[\p{Cc}\u202a-\u202e\u2066-\u2069\ufeff]/gu;

export function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
