// Colours for terminals only, and only for those who want them (NO_COLOR).

import pc from 'picocolors';

import type { Palette } from '../view/palette.ts';
import { plainPalette } from '../view/palette.ts';

export function paintFor(stream: { readonly isTTY?: boolean }): Palette {
  const { NO_COLOR, TERM } = process.env;
  const wanted = stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb';
  return wanted ? pc.createColors(true) : plainPalette;
}

/** Whether lines can be drawn anew in place. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}
