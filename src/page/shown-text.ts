// How texts and times are written on the page. Text of steps, agents and authors is foreign: it is shown as text, must not
// control how its surroundings are read, and can be very long.

import { sanitize, visibleControls } from '../base/sanitize.ts';

const LINE_MAX = 300;
const TEXT_MAX = 20_000;

/** One line of foreign text. */
export function line(text: string, max = LINE_MAX): string {
  // Long texts are cut first: a prompt can have a megabyte.
  const start = sanitize(text.slice(0, max * 2));
  return start.length > max ? `${start.slice(0, max - 1)}…` : start;
}

/** Foreign text with its lines. */
export function text(whole: string, max = TEXT_MAX): string {
  return visibleControls(whole.length > max ? `${whole.slice(0, max - 1)}…` : whole);
}

export type Piece = { readonly kind: 'text' | 'link'; readonly text: string };

/** Links in foreign text: only of the web, and shown in full. */
export function withLinks(whole: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of whole.matchAll(/\bhttps?:\/\/[^\s<>"'`()[\]{}]+[^\s<>"'`()[\]{}.,;:!?]/g)) {
    if (match.index > from) pieces.push({ kind: 'text', text: whole.slice(from, match.index) });
    pieces.push({ kind: 'link', text: match[0] });
    from = match.index + match[0].length;
  }
  if (from < whole.length) pieces.push({ kind: 'text', text: whole.slice(from) });
  return pieces;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago or how long: `51s`, `4m`, `2h 58m`, `3d 4h`. Never negative. */
export function age(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return inTwo(ms, HOUR, 'h', MINUTE, 'm');
  return inTwo(ms, DAY, 'd', HOUR, 'h');
}

/** Of something that has ended: `410ms`, `10s`, `4m 12s`, `52m`, `1h 52m`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms >= MINUTE && ms < 10 * MINUTE) return inTwo(ms, MINUTE, 'm', SECOND, 's');
  return age(ms);
}

function inTwo(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % big) / small);
  return `${Math.floor(ms / big)}${bigName}${rest === 0 ? '' : ` ${rest}${smallName}`}`;
}

/** `14:05` today, otherwise `18 Nov 14:05`, in the time zone of the browser. */
export function moment(at: number, today: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  if (date.toDateString() === new Date(today).toDateString()) return time;
  return `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${time}`;
}

/** A sentence with times as the views write them, in UTC: here they are those of the person's clock. */
export function withLocalTimes(sentence: string, today: number): string {
  return sentence.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => {
    const at = Date.parse(time);
    const isToday = new Date(at).toDateString() === new Date(today).toDateString();
    return isToday ? new Date(at).toLocaleTimeString('en-GB') : moment(at, today);
  });
}

export function numeral(count: number): string {
  return count.toLocaleString('en-US');
}

/** `$2.41`. */
export function dollars(usd: number): string {
  return `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;
}

/** `9.4M`, `61k`, `212`. */
export function tokens(count: number): string {
  if (count >= 999_500) return `${(count / 1_000_000).toFixed(1)}M`;
  return count >= 1000 ? `${Math.round(count / 1000)}k` : String(count);
}
