// The text of a dialog, and how to recognize it again. Spinners, seconds and the marked choice do not matter. If other
// parts change, only what all versions have in common counts; GAP stands for the rest. Pure.

import type { Dialog } from '../../../ir/effect.ts';

/** Stands for a part of a line or for any number of lines. Programs do not draw it in dialogs. */
const GAP = '⋯';

/** Whether `seen` is the dialog that was reported: all of it, or the unchanging parts in order. */
export function isSameDialog(reported: Dialog, seen: Dialog): boolean {
  if (reported.name !== seen.name) return false;
  if (!reported.text.includes(GAP)) return essence(reported.text) === essence(seen.text);
  const lines = linesOf(seen.text);
  let from = 0;
  for (const line of linesOf(reported.text)) {
    if (line.isBlank) continue;
    const at = lines.findIndex((other, index) => index >= from && isSameLine(line, other));
    if (at === -1) return false;
    from = at + 1;
  }
  return true;
}

/** The common part of two versions of a text; `one` may already contain gaps. */
export function commonText(one: string, other: string): string {
  const [mine, theirs] = [linesOf(one), linesOf(other)];
  const common: string[] = [];
  let [from, fromThere] = [0, 0];
  for (const [at, there] of [...sharedLines(mine, theirs), [mine.length, theirs.length] as const]) {
    common.push(...versionsOf(mine.slice(from, at), theirs.slice(fromThere, there)));
    if (at < mine.length) common.push(mine[at]?.text ?? '');
    [from, fromThere] = [at + 1, there + 1];
  }
  return common.filter((line, at) => line !== GAP || common[at - 1] !== GAP).join('\n');
}

/** Whether two texts differ only in digits and symbols. */
export function isSameInWords(one: string, other: string): boolean {
  const words = (text: string): string => text.replaceAll(/\P{L}+/gu, ' ').trim();
  return words(one) === words(other);
}

interface Line {
  readonly text: string;
  readonly essence: string;
  /** Text before and after the gap; null without a gap. */
  readonly ends: readonly [string, string] | null;
  /** Contains no visible fixed text. */
  readonly isBlank: boolean;
}

function linesOf(text: string): readonly Line[] {
  return text.split('\n').map((line) => {
    const [head = '', tail] = line.split(GAP);
    const ends = tail === undefined ? null : ([essence(head), essence(tail)] as const);
    const whole = essence(line);
    return { text: line, essence: whole, ends, isBlank: whole === '' || whole === GAP };
  });
}

function isSameLine({ essence: mine, ends }: Line, { essence: theirs }: Line): boolean {
  if (ends === null) return mine === theirs;
  const [head, tail] = ends;
  return theirs.length >= head.length + tail.length && theirs.startsWith(head) && theirs.endsWith(tail);
}

type IndexPair = readonly [number, number];

/** Longest common subsequence of lines, as pairs of indices. */
function sharedLines(mine: readonly Line[], theirs: readonly Line[]): readonly IndexPair[] {
  // The longest from each line of `theirs` on, below the current line of `mine`.
  let below: (readonly IndexPair[])[] = [];
  for (const [at, line] of [...mine.entries()].toReversed()) {
    const row: (readonly IndexPair[])[] = [];
    for (const [there, other] of [...theirs.entries()].toReversed()) {
      const [down, right] = [below[there] ?? [], row[there + 1] ?? []];
      const isShared = line.essence !== GAP && isSameLine(line, other);
      if (isShared) row[there] = [[at, there], ...(below[there + 1] ?? [])];
      else row[there] = down.length >= right.length ? down : right;
    }
    below = row;
  }
  return below[0] ?? [];
}

/** Equally many lines on both sides are versions of the same lines. */
function versionsOf(mine: readonly Line[], theirs: readonly Line[]): readonly string[] {
  if (mine.length !== theirs.length) return [...mine, ...theirs].every(({ essence }) => essence === '') ? [] : [GAP];
  return mine.map(({ text }, at) => commonLine(text, theirs[at]?.text ?? ''));
}

/** Keeps whole words at the start and at the end. */
function commonLine(mine: string, theirs: string): string {
  const [one, other] = [mine.replaceAll(ANIMATED, ' '), theirs.replaceAll(ANIMATED, ' ')];
  const [head = '', tail = head] = one.split(GAP);
  let begin = 0;
  while (begin < head.length && head[begin] === other[begin]) begin += 1;
  begin = head.slice(0, begin).search(/\S*$/u);
  let end = 0;
  while (end < Math.min(tail.length, other.length - begin) && tail.at(-1 - end) === other.at(-1 - end)) end += 1;
  const last = tail.slice(tail.length - end).replace(/^\S*/u, '');
  const first = head.slice(0, begin);
  return `${first}${last}`.trim() === '' ? GAP : `${first}${GAP}${last}`;
}

function essence(text: string): string {
  return text.replaceAll(ANIMATED, '').replaceAll(/\s+/g, ' ').trim();
}

/** Spinners, markers of a choice, and seconds. */
const ANIMATED = /[\u2800-\u28ff◐◓◑◒◴◷◶◵✳✶✻✽✢·❯›▶▸]|^\s*>|\b\d+s\b/gmu;
