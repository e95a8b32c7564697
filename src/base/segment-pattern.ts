// Patterns for one segment of a dotted name, such as `test-*`.

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
