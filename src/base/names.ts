// Names that people write: the known name closest to an unknown one, and patterns such as `test-*`.

/** Returns null unless a name is close enough to be a typo: few letters differ, and at least half agree. */
export function nearest(
  wanted: string,
  known: Iterable<string>,
  editsMax = Math.min(TYPO_EDITS_MAX, Math.max(1, Math.floor(wanted.length / 3))),
): string | null {
  let best: string | null = null;
  let bestDistance = editsMax + 1;
  const lower = wanted.toLowerCase();
  const letters = new LetterCounts(lower);
  let compared = 0;
  for (const name of known) {
    if (Math.abs(name.length - wanted.length) >= bestDistance) continue;
    const other = name.toLowerCase();
    // Most names differ in more letters, which is fast to see: hostile texts have thousands of long names.
    if (letters.distanceMin(other) >= bestDistance) continue;
    compared += 1;
    if (compared > COMPARED_MAX) break;
    const distance = editDistance(lower, other, bestDistance);
    if (distance < bestDistance && 2 * distance <= Math.max(wanted.length, name.length)) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** The beginning of a hint, with the known name closest to the one that somebody wrote; empty if none is close. */
export function didYouMean(wanted: string, known: Iterable<string>): string {
  const guess = nearest(wanted, known);
  return guess === null ? '' : `did you mean ${guess}? `;
}

/** More is not a typo, however long the name is. */
const TYPO_EDITS_MAX = 8;

/** With so many names of nearly the same letters, none is the one that was meant. */
const COMPARED_MAX = 200;

/** The letters of a text: how many of them another text has not, whatever their order. */
class LetterCounts {
  static readonly #SIZE = 64;
  readonly #counts = new Int32Array(LetterCounts.#SIZE);
  readonly #length: number;

  constructor(text: string) {
    this.#length = text.length;
    this.#add(text, 1);
  }

  /** At most the edit distance. */
  distanceMin(other: string): number {
    this.#add(other, -1);
    let missing = 0;
    for (const count of this.#counts) if (count > 0) missing += count;
    this.#add(other, 1);
    return Math.max(missing, missing + other.length - this.#length);
  }

  #add(text: string, sign: 1 | -1): void {
    for (let at = 0; at < text.length; at++) {
      const slot = text.charCodeAt(at) % LetterCounts.#SIZE;
      this.#counts[slot] = (this.#counts[slot] ?? 0) + sign;
    }
  }
}

/** Counts insertions, deletions, replacements and swaps of neighbours, up to `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  const width = b.length + 1;
  let [beforeLast, last, row] = [new Int32Array(width), new Int32Array(width), new Int32Array(width)];
  for (let j = 0; j < width; j++) last[j] = j;
  for (let i = 1; i <= a.length; i++) {
    // Further from the diagonal everything costs more than the limit.
    const from = Math.max(1, i - limit);
    const to = Math.min(b.length, i + limit);
    row[from - 1] = from === 1 ? i : limit + 1;
    let least = i;
    for (let j = from; j <= to; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row[j] = cost;
      least = Math.min(least, cost);
    }
    if (to < b.length) row[to + 1] = limit + 1;
    // The distance can only grow from here, except that a swap looks back one more row and saves at most one.
    if (least > limit) return limit;
    [beforeLast, last, row] = [last, row, beforeLast];
  }
  return Math.min(limit, last[b.length] ?? 0);
}

/** `*` matches any characters. Linear time: no regular expression is built from the author's text. */
export function segmentMatcher(pattern: string): (segment: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (segment) => segment === pattern;
  return (segment) => {
    const end = segment.length - last.length;
    if (end < first.length || !segment.startsWith(first) || !segment.endsWith(last)) return false;
    let from = first.length;
    for (const piece of rest) {
      const at = segment.indexOf(piece, from);
      if (at === -1 || at + piece.length > end) return false;
      from = at + piece.length;
    }
    return true;
  };
}
