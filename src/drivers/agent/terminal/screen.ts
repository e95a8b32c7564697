// Reads an agent's screen with the patterns of its adapter: dialogs, readiness, work, drafts, limits and errors. Pure.

import type { DialogPattern, LimitPattern, TerminalProfile } from '../../../ir/adapter.ts';
import type { Dialog } from '../../../ir/effect.ts';
import type { PaneCapture } from '../tmux/terminal-pane.ts';
import { rowAtCursor } from './input-text.ts';

export interface Screen {
  readonly capture: PaneCapture;
  readonly text: string;
  readonly dialog: SeenDialog | null;
  /** The agent can take a prompt, as far as the screen shows; it may be busy as well. */
  readonly isReady: boolean;
  readonly isBusy: boolean;
  /** A prompt is queued behind the current work. */
  readonly isQueued: boolean;
  /** Text in the input. `perhaps`: the cursor row differs from the one when the agent was ready. */
  readonly draft: 'some' | 'perhaps' | 'none';
}

export interface SeenDialog extends Dialog {
  readonly pattern: DialogPattern;
}

/** History of the agent that affects reading the screen. */
export interface AgentHistory {
  /** The agent was ready before: dialogs of the start no longer count. */
  readonly wasReady: boolean;
  /** The cursor row at that time; null if unknown. */
  readonly idleRow: string | null;
}

export class ScreenReader {
  readonly #ways: TerminalProfile;
  readonly #ready: readonly RegExp[];
  readonly #busy: readonly RegExp[];
  readonly #queued: readonly RegExp[];
  readonly #draft: readonly RegExp[];
  readonly #dialogs: readonly (readonly [RegExp, DialogPattern])[];

  constructor(ways: TerminalProfile) {
    const { ready, acknowledge, injection, dialogs } = ways;
    this.#ways = ways;
    this.#ready = (ready?.patterns ?? []).map(compiled);
    this.#busy = acknowledge.busy.map(compiled);
    this.#queued = acknowledge.queued.map(compiled);
    this.#draft = injection.draft.map(compiled);
    this.#dialogs = dialogs.map((dialog) => [compiled(dialog.pattern), dialog]);
  }

  read(capture: PaneCapture, history: AgentHistory): Screen {
    const text = capture.lines.map((line) => line.trimEnd()).join('\n');
    const fits = (pattern: RegExp): boolean => pattern.test(text);
    const dialog = this.#dialogOn(text, history);
    const isQueued = this.#queued.some(fits);
    return {
      capture,
      text,
      dialog,
      isReady: dialog === null && this.#ready.every(fits),
      // Some agents show it only in the title.
      isBusy: dialog === null && this.#busy.some((pattern) => pattern.test(text) || pattern.test(capture.title)),
      isQueued,
      draft: isQueued ? 'none' : this.#draftOn(text, capture, history),
    };
  }

  #dialogOn(text: string, { wasReady }: AgentHistory): SeenDialog | null {
    for (const [regex, pattern] of this.#dialogs) {
      if (pattern.atStart && wasReady) continue;
      const match = regex.exec(text);
      if (match !== null) return { pattern, name: pattern.name, text: dialogAround(text, match.index) };
    }
    return null;
  }

  #draftOn(text: string, capture: PaneCapture, { idleRow }: AgentHistory): Screen['draft'] {
    if (this.#draft.length > 0) return this.#draft.some((pattern) => pattern.test(text)) ? 'some' : 'none';
    // Without clear keys there is no use in guessing.
    if (this.#ways.injection.clearKeys.length === 0 || idleRow === null) return 'none';
    const row = rowAtCursor(capture);
    return row === '' || row === idleRow ? 'none' : 'perhaps';
  }
}

function compiled(source: string): RegExp {
  return new RegExp(source, 'mu');
}

/** The dialog as a person sees it: from a ruled line above it, if one is near, to the end of the screen. */
function dialogAround(text: string, index: number): string {
  const lines = text.split('\n');
  const at = text.slice(0, index).split('\n').length - 1;
  const above = lines.slice(Math.max(0, at - ABOVE_MAX), at).findLastIndex((line) => RULE.test(line));
  const from = above === -1 ? at - ABOVE_UNRULED : Math.max(0, at - ABOVE_MAX) + above + 1;
  const shown = lines.slice(Math.max(0, from)).join('\n');
  return shown.replaceAll(/^(?:[^\S\n]*\n)+|\s+$/g, '');
}

const RULE = /^\s*[╭┌╔]?([─━═])\1{19,}/u;
const ABOVE_MAX = 30;
const ABOVE_UNRULED = 15;

export function limitsOn(text: string, patterns: readonly LimitPattern[]): readonly string[] {
  return patterns.flatMap(({ pattern }) => [...text.matchAll(new RegExp(pattern, 'gmu'))].map(([match]) => match));
}

/** Error messages, one line each, from top to bottom. */
export function errorsOn(text: string, patterns: readonly string[]): readonly ShownError[] {
  return patterns
    .flatMap((pattern) => [...text.matchAll(new RegExp(pattern, 'gmu'))])
    .toSorted((one, other) => one.index - other.index)
    .map(({ index, 0: whole, 1: message = whole }) => ({
      message: message.replaceAll(/\s+/g, ' ').trim(),
      line: text.slice(0, index).split('\n').length - 1,
    }));
}

export interface ShownError {
  readonly message: string;
  /** First line, from 0. */
  readonly line: number;
}

/**
 * The last error if it is at the end of the screen and newer than a text: below the text if that is visible, otherwise
 * one more than before.
 */
export function errorAfter(
  { text }: Screen,
  patterns: readonly string[],
  { said, before }: { readonly said: string; readonly before: readonly string[] },
): string | null {
  const failures = errorsOn(text, patterns);
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

/** Enough for a long message and the input area below it. */
const END_LINES = 20;

/** A clause for messages. */
export function describeScreen({ text }: Screen): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.length === 0 ? 'its screen is empty' : `its screen ends with:\n${lines.slice(-SHOWN_LINES).join('\n')}`;
}

const SHOWN_LINES = 12;
