// Prints one line of a run's timeline.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import { type Palette, widthOf } from './row.ts';
import type { TimelineLine } from './timeline.ts';

/** `elapsed`: since the start of the run (`+1.2s`). `moment`: `2026-01-08T21:00:00.000Z`. */
type TimelineClock = { readonly kind: 'elapsed'; readonly startedAt: number } | { readonly kind: 'moment' };

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
  const style = STYLES[line.tone];
  const shown = sanitize(line.text);
  const text = style === null ? shown : palette[style](shown);
  if (line.step === null) return `${palette.dim(when)} ${text}`;
  const id = shorten(line.step);
  return `${palette.dim(when)} ${palette.bold(id)}${' '.repeat(Math.max(0, idWidth - widthOf(id)))} ${text}`;
}

const ELAPSED_WIDTH = 8;
const STYLES = { plain: null, good: 'green', bad: 'red', warning: 'yellow', quiet: 'dim' } as const;
