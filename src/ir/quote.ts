// Quotes values in shell scripts, so that they arrive as data whatever they contain. The language finds the layers of
// each position; this file applies them, for kernel and drivers alike. A value that cannot be written at its position
// is refused with a sentence, never changed.

import { err, ok, present, type Result } from '../base/errors.ts';

export type QuoteLayer =
  /** A word, or a part that cannot change its meaning: single-quoted unless harmless. */
  | { readonly kind: 'bare' }
  /** Part of a word: always single-quoted. */
  | { readonly kind: 'quoted' }
  /** Inside "…". */
  | { readonly kind: 'double' }
  /** Inside "${name:-…}": a brace would end it. */
  | { readonly kind: 'double-braced' }
  /** Inside '…'. */
  | { readonly kind: 'single' }
  /** Inside $(( … )): integers only. */
  | { readonly kind: 'integer' }
  /** Inside a comment: no line break may end it. */
  | { readonly kind: 'comment' }
  /** Inside an unquoted here-document. */
  | ({ readonly kind: 'heredoc' } & HeredocPlace)
  /** Inside a quoted here-document, which has no escapes; also around a $(…) inside an unquoted one. */
  | ({ readonly kind: 'heredoc-raw' } & HeredocPlace)
  /** Around any other layer inside backticks, which the shell unescapes once more. */
  | { readonly kind: 'backtick' };

export interface HeredocPlace {
  readonly delimiter: string;
  /** `<<-` removes leading tabs. */
  readonly tabs: 'kept' | 'stripped';
  /** Text before the value on its line; null if the line cannot begin with the delimiter. */
  readonly lead: string | null;
  /** Relevant text after the value on its line. */
  readonly tail: string;
}

/** Layers apply from first to last, innermost context first. */
export function quote(value: string, layers: readonly QuoteLayer[]): Result<string, string> {
  if (layers.length > 0 && value.includes('\0'))
    return err('the value contains a NUL byte, which no command can receive');
  let text = value;
  for (const layer of layers) {
    const quoted = quoteOnce(text, layer);
    if (!quoted.ok) return quoted;
    text = quoted.value;
  }
  return ok(text);
}

const HARMLESS = /^[A-Za-z0-9_./:@%+=,-]+$/;
/** Harmless characters that are syntax in some positions: `2` before `>`, `a=b` or `if` at the start of a command. */
const SYNTAX = /^\d+$|=|^(?:case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$/;

function quoteOnce(value: string, layer: QuoteLayer): Result<string, string> {
  switch (layer.kind) {
    case 'bare':
      return ok(HARMLESS.test(value) && !SYNTAX.test(value) ? value : singleQuoted(value));
    case 'quoted':
      return ok(singleQuoted(value));
    case 'double':
      return ok(value.replaceAll(/[\\"$`]/g, String.raw`\$&`));
    case 'double-braced':
      // bash reads these as syntax here, even inside double quotes; they cannot be escaped.
      if (/['<>]/.test(value))
        return err(
          'the value has one of \' < >, which bash does not take as text within "${…}"; have it from the environment there, ' +
            'as $MEOW_VAR_ and the name of the variable, or by `env`',
        );
      return ok(value.replaceAll(/[\\"$`}]/g, String.raw`\$&`));
    case 'single':
      return ok(value.replaceAll("'", String.raw`'\''`));
    case 'integer':
      return integer(value);
    case 'comment':
      return /[\n\r]/.test(value) ? err('the value contains a line break, but is inside a comment') : ok(value);
    case 'heredoc':
      return heredocText(value.replaceAll(/[\\$`]/g, String.raw`\$&`), layer);
    case 'heredoc-raw':
      return heredocText(value, layer);
    case 'backtick':
      return ok(value.replaceAll(/[\\$`]/g, String.raw`\$&`));
  }
}

function singleQuoted(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`)}'`;
}

/** In decimal, without leading zeros; in parentheses if a sign could join the preceding operator. */
function integer(value: string): Result<string, string> {
  const trimmed = value.trim();
  if (!/^[+-]?\d{1,40}$/.test(trimmed)) {
    const shown = value.length > 40 ? `${value.slice(0, 40)}…` : value;
    return err(`${JSON.stringify(shown)} is not an integer, but is inside shell arithmetic`);
  }
  const number = BigInt(trimmed.replace('+', ''));
  return ok(number < 0n ? `(${String(number)})` : String(number));
}

/** No resulting line may be read as the delimiter. */
function heredocText(text: string, { delimiter, tabs, lead, tail }: HeredocPlace): Result<string, string> {
  const lines = text.split('\n');
  if (tabs === 'stripped' && lines.some((line, at) => line.startsWith('\t') && (at > 0 || lead === ''))) {
    return err('a line of the value begins with a tab, which the here-document (<<-) would remove');
  }
  if (text.includes('\u0001') || text.includes('\u007f')) {
    return err('the value contains a control character that bash drops in here-documents');
  }
  const whole = lines.map((line, at) => (at === 0 ? (lead ?? '') : '') + line + (at === lines.length - 1 ? tail : ''));
  for (const line of lead === null ? whole.slice(1) : whole) {
    if (line === delimiter) {
      return err(`the value makes the line ${JSON.stringify(delimiter)}, which would end the here-document`);
    }
    if (endsEarly(line, delimiter)) {
      return err(
        `a line begins with the delimiter ${delimiter} and contains ")", where bash may end the here-document; ` +
          'choose another delimiter',
      );
    }
    // dash 0.5.12 compares as far as the line matches the delimiter, and then drops the first byte of a non-ASCII
    // character.
    let same = 0;
    while (same < line.length && line[same] === delimiter[same]) same += 1;
    if (same > 0 && (line[same] ?? '') > '\u007f') {
      return err(
        `a line begins like the delimiter ${delimiter}, where some shells lose a character; choose another delimiter`,
      );
    }
  }
  return ok(text);
}

/** Inside $(…), bash ends a here-document at a line that begins with the delimiter and contains a closing bracket. */
export function endsEarly(line: string, delimiter: string): boolean {
  return line.startsWith(delimiter) && line.includes(')', delimiter.length);
}

/** A text as one shell word. Our texts never contain NUL, the only character that cannot be quoted. */
export function shellWord(text: string): string {
  const quoted = quote(text, [{ kind: 'bare' }]);
  return present(quoted.ok ? quoted.value : null, `not quotable: ${text}`);
}
