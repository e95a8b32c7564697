// The time axis of a run: moments from 0 to 1. Time in which nothing worked is folded to a narrow strip if it would take
// more than IDLE_MIN of the width, so that a night without work does not hide what happened before and after it.

import type { Interval } from './spans.ts';

export interface TimeAxis {
  readonly from: number;
  readonly to: number;
  /** Folded parts, in order. `start` and `width`: on the axis. */
  readonly gaps: readonly AxisPart[];
  readonly ticks: readonly { readonly at: number; readonly place: number }[];
  /** Where a moment is; outside of the axis: at its nearer end. */
  place(at: number): number;
}

export interface AxisPart {
  readonly from: number;
  readonly to: number;
  readonly start: number;
  readonly width: number;
}

const IDLE_MIN = 0.05;
const GAP_WIDTH = 0.05;
/** All gaps together take at most this much. */
const GAPS_MAX = 0.4;
const TICKS = 7;
const TICK_DISTANCE = 0.085;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 28, 91, 364].map((count) => count * DAY),
];

/** `busy`: in order. `offset`: of local time, in milliseconds, so that ticks are at full hours of the person's clock. */
export function timeAxis(busy: readonly Interval[], from: number, to: number, offset: number): TimeAxis {
  const end = Math.max(to, from + 1);
  const folded = foldedGaps(idleGaps(busy, from, end), end - from);
  const shown = end - from - folded.reduce((sum, gap) => sum + (gap.to - gap.from), 0);
  const gapWidth = folded.length === 0 ? 0 : Math.min(GAP_WIDTH, GAPS_MAX / folded.length);
  const scale = (1 - gapWidth * folded.length) / Math.max(1, shown);
  const parts: AxisPart[] = [];
  const gaps: AxisPart[] = [];
  let start = 0;
  let at = from;
  for (const gap of folded) {
    const width = (gap.from - at) * scale;
    parts.push({ from: at, to: gap.from, start, width });
    gaps.push({ ...gap, start: start + width, width: gapWidth });
    start += width + gapWidth;
    at = gap.to;
  }
  parts.push({ from: at, to: end, start, width: 1 - start });
  const all = [...parts, ...gaps].toSorted((a, b) => a.from - b.from || a.to - b.to);
  const place = (moment: number): number => {
    const part = all.find((each) => moment <= each.to) ?? all.at(-1);
    if (part === undefined || moment <= from) return 0;
    const share = part.to === part.from ? 0 : (Math.min(moment, part.to) - part.from) / (part.to - part.from);
    return part.start + part.width * Math.min(1, Math.max(0, share));
  };
  return { from, to: end, gaps, place, ticks: ticksIn(parts, gaps, shown, offset) };
}

/** Time in which nothing worked, without that before the first and after the last work. */
function idleGaps(busy: readonly Interval[], from: number, end: number): readonly { from: number; to: number }[] {
  const gaps: { from: number; to: number }[] = [];
  let idleFrom = from;
  for (const work of busy) {
    if (work.from > idleFrom) gaps.push({ from: idleFrom, to: Math.min(work.from, end) });
    idleFrom = Math.max(idleFrom, work.to ?? end);
  }
  if (busy.length > 0 && idleFrom < end) gaps.push({ from: idleFrom, to: end });
  return gaps;
}

/** The longest first: what is folded leaves more room for the others, so more of them may be too long. */
function foldedGaps(
  gaps: readonly { readonly from: number; readonly to: number }[],
  whole: number,
): readonly { readonly from: number; readonly to: number }[] {
  const folded: { readonly from: number; readonly to: number }[] = [];
  let shown = whole;
  for (const gap of gaps.toSorted((a, b) => b.to - b.from - (a.to - a.from))) {
    const length = gap.to - gap.from;
    if (length <= shown * IDLE_MIN) break;
    folded.push(gap);
    shown -= length;
  }
  return folded.toSorted((a, b) => a.from - b.from);
}

function ticksIn(
  parts: readonly AxisPart[],
  gaps: readonly AxisPart[],
  shown: number,
  offset: number,
): TimeAxis['ticks'] {
  const step = STEPS.find((each) => shown / each <= TICKS) ?? STEPS.at(-1) ?? DAY;
  const taken = gaps.map(({ start, width }) => start + width / 2);
  // The end of the axis is labelled too.
  taken.push(1);
  const ticks: { at: number; place: number }[] = [];
  for (const { from, to, start, width } of parts) {
    for (let at = Math.ceil((from + offset) / step) * step - offset; at < to; at += step) {
      const place = start + (width * (at - from)) / Math.max(1, to - from);
      if (taken.some((other) => Math.abs(other - place) < TICK_DISTANCE)) continue;
      taken.push(place);
      ticks.push({ at, place });
    }
  }
  return ticks;
}
