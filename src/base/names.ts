// Names that people write: the known name closest to an unknown one, and patterns such as `test-*`.

/** Returns null unless a name is close enough to be a typo: few letters differ, and at least half agree. */
export function nearest(
  wanted: string,
  known: Iterable<string>,
  editsMax = Math.max(1, Math.floor(wanted.length / 3)),
): string | null {
  let best: string | null = null;
  let bestDistance = editsMax + 1;
  const lower = wanted.toLowerCase();
  for (const name of known) {
    if (Math.abs(name.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(lower, name.toLowerCase(), bestDistance);
    if (distance < bestDistance && 2 * distance <= Math.max(wanted.length, name.length)) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** Counts insertions, deletions, replacements and swaps of neighbours, up to `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
      least = Math.min(least, cost);
    }
    // The distance can only grow from here, except that a swap looks back one more row and saves at most one.
    if (least > limit) return limit;
    beforeLast = last;
    last = row;
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
