// Commands for tmux as one line of text, so that every word arrives verbatim.
//
// Inside single quotes tmux's parser takes everything literally except the quote itself and line ends; those are
// written outside. NUL cannot be written.
//
// Some commands expand some of their words as formats (`#{…}`, `#(…)`): if such a word is data, use formatText first.

import { err, ok, type Result } from '../../../base/errors.ts';

/** A command name with arguments. */
export type Command = readonly string[];

/** Commands on one line run without interruption, and the first failure ends the line. */
export function commandLine(commands: readonly Command[]): Result<string, string> {
  if (commands.some((words) => words.some((word) => word.includes('\0')))) {
    return err('the text contains a NUL byte, which cannot be said to tmux');
  }
  return ok(commands.map((words) => words.map(quoted).join(' ')).join(' ; '));
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`).replaceAll('\n', String.raw`'\n'`)}'`;
}

/** A format that expands to exactly this text. */
export function formatText(text: string): string {
  // Before a bracket, where a style begins, `#` stays single.
  return text.replaceAll(/#+(?![#[])/g, '$&$&');
}

/** The same for formats that also pass through `strftime`. */
export function timeFormatText(text: string): string {
  return formatText(text).replaceAll('%', '%%');
}
