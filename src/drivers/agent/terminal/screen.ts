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
  /** The input is seen, without text. False also if that cannot be told. */
  readonly isEmpty: boolean;
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

export type ScreenReader = (capture: PaneCapture, history: AgentHistory) => Screen;

export function screenReader({ ready, acknowledge, injection, dialogs }: TerminalProfile): ScreenReader {
  const compiled = (source: string): RegExp => new RegExp(source, 'mu');
  const readyPatterns = (ready?.patterns ?? []).map(compiled);
  const busyPatterns = acknowledge.busy.map(compiled);
  const queuedPatterns = acknowledge.queued.map(compiled);
  const draftPatterns = injection.draft.map(compiled);
  const dialogPatterns = dialogs.map((pattern) => ({ pattern, regex: compiled(pattern.pattern) }));

  const dialogOn = (text: string, { wasReady }: AgentHistory): SeenDialog | null => {
    for (const { pattern, regex } of dialogPatterns) {
      if (pattern.atStart && wasReady) continue;
      const match = regex.exec(text);
      if (match !== null) return { pattern, name: pattern.name, text: dialogAround(text, match.index) };
    }
    return null;
  };

  const draftOn = (text: string, capture: PaneCapture, { idleRow }: AgentHistory): Screen['draft'] => {
    if (draftPatterns.length > 0) return draftPatterns.some((pattern) => pattern.test(text)) ? 'some' : 'none';
    // Without clear keys there is no use in guessing.
    if (injection.clearKeys.length === 0 || idleRow === null) return 'none';
    const row = rowAtCursor(capture);
    return row === '' || row === idleRow ? 'none' : 'perhaps';
  };

  /** A blank row, and a screen that matches no pattern, could be anything. */
  const isEmpty = (capture: PaneCapture, { idleRow }: AgentHistory): boolean => {
    const row = rowAtCursor(capture);
    return (readyPatterns.length > 0 && draftPatterns.length > 0) || (row !== '' && row === idleRow);
  };

  return (capture, history) => {
    const text = capture.lines.map((line) => line.trimEnd()).join('\n');
    const fits = (pattern: RegExp): boolean => pattern.test(text);
    const dialog = dialogOn(text, history);
    const isQueued = queuedPatterns.some(fits);
    const isReady = dialog === null && readyPatterns.every(fits);
    const draft = isQueued ? 'none' : draftOn(text, capture, history);
    return {
      capture,
      text,
      dialog,
      isReady,
      // Some agents show it only in the title.
      isBusy: dialog === null && busyPatterns.some((pattern) => fits(pattern) || pattern.test(capture.title)),
      isQueued,
      isEmpty: isReady && !isQueued && draft === 'none' && isEmpty(capture, history),
      draft,
    };
  };
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

/** Error messages, one line each, from top to bottom. `line`: the first, from 0. */
export function errorsOn(text: string, patterns: readonly string[]) {
  return patterns
    .flatMap((pattern) => [...text.matchAll(new RegExp(pattern, 'gmu'))])
    .toSorted((one, other) => one.index - other.index)
    .map(({ index, 0: whole, 1: message = whole }) => ({
      message: message.replaceAll(/\s+/g, ' ').trim(),
      line: text.slice(0, index).split('\n').length - 1,
    }));
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
