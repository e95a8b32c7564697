// Commands for tmux as one line of text, so that every word arrives as it is.
//
// Within single quotes tmux's parser takes everything for what it is, save the quote itself and the end of the line;
// those are written outside of them. NUL is the one character that cannot be written.
//
// Some commands expand some of their words as formats after that (`#{…}`, `#(…)`): where such a word is data, it is
// written with formatText first.

import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';

/** A command's name and its arguments. */
export type Command = readonly string[];

/** Commands of one line are run together: nothing happens in between, and one that fails ends the line. */
export function commandLine(commands: readonly Command[]): Result<string, string> {
  if (commands.some((words) => words.some((word) => word.includes('\0')))) {
    return err('the text contains a NUL byte, which cannot be said to tmux');
  }
  return ok(commands.map((words) => words.map(quoted).join(' ')).join(' ; '));
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`).replaceAll('\n', String.raw`'\n'`)}'`;
}

/** A text as a format that stands for just this text. */
export function formatText(text: string): string {
  // Before a bracket, where a style begins, they are left as they are.
  return text.replaceAll(/#+(?![#[])/g, '$&$&');
}

/** The same, where the format is one for `strftime` as well. */
export function timeFormatText(text: string): string {
  return formatText(text).replaceAll('%', '%%');
}
