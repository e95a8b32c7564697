// What is on the screen of an agent, in the words of its adapter: whether it asks something, can take a prompt, is at work,
// holds a draft, has reached a limit or run into an error. Pure: a look goes in, and comes out understood.

import type { DialogPattern, LimitPattern, TerminalWays } from '../../../ir/adapter.ts';
import type { Dialog } from '../../../ir/effect.ts';
import type { Look } from '../tmux/terminal-pane.ts';
import { rowAtCursor } from './input-text.ts';

export interface Screen {
  readonly look: Look;
  readonly text: string;
  readonly dialog: SeenDialog | null;
  /** It can take a prompt, for all that is to be seen; it may be busy all the same. */
  readonly isReady: boolean;
  readonly isBusy: boolean;
  /** A prompt waits for the end of the present work. */
  readonly isQueued: boolean;
  /** Text in the input. `perhaps`: the row of the cursor is not as it was when the agent was ready. */
  readonly draft: 'some' | 'perhaps' | 'none';
}

export interface SeenDialog extends Dialog {
  readonly pattern: DialogPattern;
}

/** What the reader of a screen must know of the agent's past. */
export interface Past {
  /** It has been ready: what only a start shows is no dialog any more. */
  readonly wasReady: boolean;
  /** The row of the cursor when it was; null where that is not known. */
  readonly idleRow: string | null;
}

export class ScreenReader {
  readonly #ways: TerminalWays;
  readonly #ready: readonly RegExp[];
  readonly #busy: readonly RegExp[];
  readonly #queued: readonly RegExp[];
  readonly #draft: readonly RegExp[];
  readonly #dialogs: readonly (readonly [RegExp, DialogPattern])[];

  constructor(ways: TerminalWays) {
    const { ready, acknowledge, injection, dialogs } = ways;
    this.#ways = ways;
    this.#ready = (ready?.patterns ?? []).map(compiled);
    this.#busy = acknowledge.busy.map(compiled);
    this.#queued = acknowledge.queued.map(compiled);
    this.#draft = injection.draft.map(compiled);
    this.#dialogs = dialogs.map((dialog) => [compiled(dialog.pattern), dialog]);
  }

  read(look: Look, past: Past): Screen {
    const text = look.lines.map((line) => line.trimEnd()).join('\n');
    const fits = (pattern: RegExp): boolean => pattern.test(text);
    const dialog = this.#dialogOn(text, past);
    const isQueued = this.#queued.some(fits);
    return {
      look,
      text,
      dialog,
      isReady: dialog === null && this.#ready.every(fits),
      // Some say it in the title alone.
      isBusy: dialog === null && this.#busy.some((pattern) => pattern.test(text) || pattern.test(look.title)),
      isQueued,
      draft: isQueued ? 'none' : this.#draftOn(text, look, past),
    };
  }

  #dialogOn(text: string, { wasReady }: Past): SeenDialog | null {
    for (const [regex, pattern] of this.#dialogs) {
      if (pattern.atStart && wasReady) continue;
      const match = regex.exec(text);
      if (match !== null) return { pattern, name: pattern.name, text: questionAround(text, match.index) };
    }
    return null;
  }

  #draftOn(text: string, look: Look, { idleRow }: Past): Screen['draft'] {
    if (this.#draft.length > 0) return this.#draft.some((pattern) => pattern.test(text)) ? 'some' : 'none';
    // Without a way to empty it, there is no use in guessing what is in it.
    if (this.#ways.injection.clearKeys.length === 0 || idleRow === null) return 'none';
    const row = rowAtCursor(look);
    return row === '' || row === idleRow ? 'none' : 'perhaps';
  }
}

function compiled(source: string): RegExp {
  return new RegExp(source, 'mu');
}

/** A question as a person would see it: from the line that is drawn above it, if there is one near, to the last on screen. */
function questionAround(text: string, index: number): string {
  const lines = text.split('\n');
  const at = text.slice(0, index).split('\n').length - 1;
  const above = lines.slice(Math.max(0, at - ABOVE_MAX), at).findLastIndex((line) => RULE.test(line));
  const from = above === -1 ? at - ABOVE_UNRULED : Math.max(0, at - ABOVE_MAX) + above + 1;
  return lines
    .slice(Math.max(0, from))
    .join('\n')
    .replaceAll(/^(?:[^\S\n]*\n)+|\s+$/g, '');
}

const RULE = /^\s*[╭┌╔]?([─━═])\1{19,}/u;
const ABOVE_MAX = 30;
const ABOVE_UNRULED = 15;

/** What in it tells of limits. */
export function limitsOn(text: string, patterns: readonly LimitPattern[]): readonly string[] {
  return patterns.flatMap(({ pattern }) => [...text.matchAll(new RegExp(pattern, 'gmu'))].map(([told]) => told));
}

/** What tells of errors, each in one line, from top to bottom. */
export function failuresOn(text: string, patterns: readonly string[]): readonly Failed[] {
  return patterns
    .flatMap((pattern) => [...text.matchAll(new RegExp(pattern, 'gmu'))])
    .toSorted((one, other) => one.index - other.index)
    .map(({ index, 0: whole, 1: told = whole }) => ({
      message: told.replaceAll(/\s+/g, ' ').trim(),
      line: text.slice(0, index).split('\n').length - 1,
    }));
}

export interface Failed {
  readonly message: string;
  /** Where it begins, from 0. */
  readonly line: number;
}

/** The last error, if it is at the end of the screen, and came after a text: below it, where that is seen; else one more than before. */
export function failureAfter(
  { text }: Screen,
  patterns: readonly string[],
  { said, before }: { readonly said: string; readonly before: readonly string[] },
): string | null {
  const failures = failuresOn(text, patterns);
  const last = failures.at(-1);
  const lines = text.split('\n');
  if (last === undefined || lines.slice(last.line).filter((line) => line !== '').length > END_LINES) return null;
  const words = said.trimEnd().split('\n').at(-1)?.trim() ?? '';
  const at = words === '' ? -1 : lines.findLastIndex((line) => line.trim().endsWith(words));
  const timesBefore = before.filter((message) => message === last.message).length;
  const isFresh =
    at === -1 ? failures.filter(({ message }) => message === last.message).length > timesBefore : at < last.line;
  return isFresh ? last.message : null;
}

/** A long message, and below it an input with what is around it: some draw that at the bottom, and nothing in between. */
const END_LINES = 20;

/** For people: a part of a sentence. */
export function shownBy({ text }: Screen): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.length === 0 ? 'its screen is empty' : `its screen ends with:\n${lines.slice(-SHOWN_LINES).join('\n')}`;
}

const SHOWN_LINES = 12;
