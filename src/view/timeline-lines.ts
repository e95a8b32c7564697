// Prints one line of a run's timeline.

import { formatDuration, formatMoment } from '../base/time.ts';
import type { Palette, Style } from './palette.ts';
import { widthOf } from './row.ts';
import { sanitize, shorten } from './sanitize.ts';
import type { TimelineLine } from './timeline.ts';

/** `elapsed`: since the start of the run (`+1.2s`). `moment`: `2026-01-08T21:00:00.000Z`. */
export type TimelineClock = { readonly kind: 'elapsed'; readonly startedAt: number } | { readonly kind: 'moment' };

/** Pads ids to the given width; a longer id pushes its text to the right. */
export function renderTimelineLine(
  line: TimelineLine,
  clock: TimelineClock,
  idWidth: number,
  palette: Palette,
): string {
  const when =
    clock.kind === 'moment'
      ? formatMoment(line.at)
      : `+${formatDuration(Math.max(0, line.at - clock.startedAt))}`.padEnd(ELAPSED_WIDTH);
  const style = styleOf(line.tone, palette);
  const shown = sanitize(line.text);
  const text = style === null ? shown : style(shown);
  if (line.step === null) return `${palette.dim(when)} ${text}`;
  const id = shorten(line.step);
  return `${palette.dim(when)} ${palette.bold(id)}${' '.repeat(Math.max(0, idWidth - widthOf(id)))} ${text}`;
}

const ELAPSED_WIDTH = 8;

function styleOf(tone: TimelineLine['tone'], palette: Palette): Style | null {
  switch (tone) {
    case 'plain':
      return null;
    case 'good':
      return palette.green;
    case 'bad':
      return palette.red;
    case 'warning':
      return palette.yellow;
    case 'quiet':
      return palette.dim;
  }
}
