// How a value is written into a shell script so that it arrives as data, whatever it contains. Which layers a place
// needs is found by the language; what each layer does is here, so that the kernel and the drivers quote alike.
// A value that cannot be written at its place is refused with a sentence, never bent.

import { present } from '../base/assert.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';

export type QuoteLayer =
  /** A word, or the part of one that cannot change what the word is: single-quoted unless harmless. */
  | { readonly kind: 'bare' }
  /** Part of a word: always single-quoted. */
  | { readonly kind: 'quoted' }
  /** Within "…". */
  | { readonly kind: 'double' }
  /** Within "${name:-…}": a brace would end it. */
  | { readonly kind: 'double-braced' }
  /** Within '…'. */
  | { readonly kind: 'single' }
  /** Within $(( … )): integers only. */
  | { readonly kind: 'integer' }
  /** Within a comment: no line break may end it. */
  | { readonly kind: 'comment' }
  /** Within an unquoted here-document. */
  | ({ readonly kind: 'heredoc' } & HeredocPlace)
  /** Within a quoted here-document, where nothing can be escaped; and around what stands in a $(…) of an unquoted one. */
  | ({ readonly kind: 'heredoc-raw' } & HeredocPlace)
  /** Around any of the others where they stand within backticks, which the shell unescapes once more. */
  | { readonly kind: 'backtick' };

export interface HeredocPlace {
  readonly delimiter: string;
  /** `<<-` removes the tabs that a line begins with. */
  readonly tabs: 'kept' | 'stripped';
  /** What stands before the value on its line; null where that alone makes sure that the line is not the delimiter's. */
  readonly lead: string | null;
  /** What follows the value on its line, as far as it matters. */
  readonly tail: string;
}

/** Layers are applied from first to last: innermost context first. */
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
/** Harmless characters, and yet syntax in some place: `2` before `>`, `a=b` or `if` where a command is expected. */
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
      // bash reads these as syntax here, although they stand in double quotes; nothing escapes them.
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
      return /[\n\r]/.test(value) ? err('the value has a line break, and stands within a comment') : ok(value);
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

/** In decimal, whatever zeros stand before it; in brackets where a sign could join the operator before it. */
function integer(value: string): Result<string, string> {
  const trimmed = value.trim();
  if (!/^[+-]?\d{1,40}$/.test(trimmed)) {
    return err(`${JSON.stringify(shortened(value))} is no integer, and stands where the shell calculates`);
  }
  const number = BigInt(trimmed.replace('+', ''));
  return ok(number < 0n ? `(${String(number)})` : String(number));
}

/** No line that the text forms, with what stands around it, may be taken for something else than a line of text. */
function heredocText(text: string, { delimiter, tabs, lead, tail }: HeredocPlace): Result<string, string> {
  const lines = text.split('\n');
  const [, ...further] = lines;
  if (
    tabs === 'stripped' &&
    (further.some((line) => line.startsWith('\t')) || (lead === '' && text.startsWith('\t')))
  ) {
    return err('a line of the value begins with a tab, which the here-document (<<-) it stands in would remove');
  }
  if (text.includes('\u0001') || text.includes('\u007f')) {
    return err('the value has a control character that bash loses in here-documents');
  }
  const whole = lines.map((line, at) => (at === 0 ? (lead ?? '') : '') + line + (at === lines.length - 1 ? tail : ''));
  for (const line of lead === null ? whole.slice(1) : whole) {
    if (line === delimiter) {
      return err(
        `the value makes the line ${JSON.stringify(delimiter)}, which would end the here-document it stands in`,
      );
    }
    // dash 0.5.12 compares as far as the line fits the delimiter, and then drops the first byte of what is not ASCII.
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

function shortened(value: string): string {
  return value.length > 40 ? `${value.slice(0, 40)}…` : value;
}

/** A text as one word of a shell. No text of ours has a NUL byte, which is all that cannot be one. */
export function shellWord(text: string): string {
  const quoted = quote(text, [{ kind: 'bare' }]);
  return present(quoted.ok ? quoted.value : null, `not quotable: ${text}`);
}
