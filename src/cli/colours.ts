// Colours for terminals only, and only for those who want them (NO_COLOR).

import pc from 'picocolors';

import type { Paint } from '../view/paint.ts';
import { plainPaint } from '../view/paint.ts';

export function paintFor(stream: { readonly isTTY?: boolean }): Paint {
  const { NO_COLOR, TERM } = process.env;
  const wanted = stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb';
  return wanted ? pc.createColors(true) : plainPaint;
}

/** Whether lines can be drawn anew in place. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}
