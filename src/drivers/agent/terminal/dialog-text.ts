// The text of a dialog, and how to recognize it again. Spinners, seconds and the marked choice do not matter. If other
// parts change, only what all versions have in common counts; GAP stands for the rest. Pure.

import type { Dialog } from '../../../ir/effect.ts';

/** Stands for a part of a line or for any number of lines. Programs do not draw it in dialogs. */
const GAP = '⋯';

/** Whether `seen` is the dialog that was reported: all of it, or the unchanging parts in order. */
export function isSameDialog(told: Dialog, seen: Dialog): boolean {
  if (told.name !== seen.name) return false;
  if (!told.text.includes(GAP)) return essence(told.text) === essence(seen.text);
  const lines = linesOf(seen.text);
  let from = 0;
  for (const line of linesOf(told.text)) {
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
  const kept: string[] = [];
  let [from, fromThere] = [0, 0];
  for (const [at, there] of [...sharedLines(mine, theirs), [mine.length, theirs.length] as const]) {
    kept.push(...moved(mine.slice(from, at), theirs.slice(fromThere, there)));
    if (at < mine.length) kept.push(mine[at]?.text ?? '');
    [from, fromThere] = [at + 1, there + 1];
  }
  return kept.filter((line, at) => line !== GAP || kept[at - 1] !== GAP).join('\n');
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

/** Longest common subsequence of lines, as pairs of indices. */
function sharedLines(mine: readonly Line[], theirs: readonly Line[]): readonly (readonly [number, number])[] {
  const isShared = (at: number, there: number): boolean => {
    const [one, other] = [mine[at], theirs[there]];
    return one !== undefined && other !== undefined && one.essence !== GAP && isSameLine(one, other);
  };
  // Length of the longest common subsequence from each pair of indices on.
  const ahead = Array.from({ length: mine.length + 1 }, () => new Uint16Array(theirs.length + 1));
  const count = (at: number, there: number): number => ahead[at]?.[there] ?? 0;
  for (let at = mine.length - 1; at >= 0; at -= 1) {
    const row = ahead[at] ?? new Uint16Array();
    for (let there = theirs.length - 1; there >= 0; there -= 1) {
      row[there] = isShared(at, there)
        ? count(at + 1, there + 1) + 1
        : Math.max(count(at + 1, there), count(at, there + 1));
    }
  }
  const pairs: (readonly [number, number])[] = [];
  for (let [at, there] = [0, 0]; at < mine.length && there < theirs.length; ) {
    if (isShared(at, there)) pairs.push([at++, there++]);
    else if (count(at + 1, there) >= count(at, there + 1)) at += 1;
    else there += 1;
  }
  return pairs;
}

/** Equally many lines on both sides are versions of the same lines. */
function moved(mine: readonly Line[], theirs: readonly Line[]): readonly string[] {
  if (mine.length !== theirs.length) return [...mine, ...theirs].every(({ essence }) => essence === '') ? [] : [GAP];
  return mine.map(({ text }, at) => movedLine(text, theirs[at]?.text ?? ''));
}

/** Keeps whole words at the start and at the end. */
function movedLine(mine: string, theirs: string): string {
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
