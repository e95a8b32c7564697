// Combines policies: those of a workflow, and those of one of its steps. An inner policy may only tighten. Paths are
// globs: `*` matches within one name, `**` any number of folders.

import { segmentMatcher } from '../base/names.ts';
import type { Policy } from './conductor.ts';

/** Forbids nothing, and denies prompts instead of failing. */
export const NO_RESTRICTIONS: Policy = {
  name: null,
  text: '',
  allowedPaths: null,
  forbiddenPaths: [],
  forbiddenOperations: [],
  network: 'allow',
  access: 'workspace_write',
  onPrompt: 'deny',
  lockfiles: 'allow',
};

/** The intersection, never more: if two globs overlap only in part, neither is kept. */
export function tighten(outer: Policy, inner: Policy): Policy {
  return {
    name: inner.name ?? outer.name,
    text: [...new Set([outer.text, inner.text])].filter((text) => text !== '').join('\n\n'),
    allowedPaths: allowedByBoth(outer.allowedPaths, inner.allowedPaths),
    forbiddenPaths: [...new Set([...outer.forbiddenPaths, ...inner.forbiddenPaths])],
    forbiddenOperations: [...new Set([...outer.forbiddenOperations, ...inner.forbiddenOperations])],
    network: outer.network === 'deny' ? 'deny' : inner.network,
    access: outer.access === 'read_only' ? 'read_only' : inner.access,
    onPrompt: outer.onPrompt === 'fail' ? 'fail' : inner.onPrompt,
    lockfiles: outer.lockfiles === 'deny' ? 'deny' : inner.lockfiles,
  };
}

/** Globs of `inner` that `outer` makes useless, for a warning. */
export function pathsWithoutEffect(outer: Policy, inner: Policy): readonly string[] {
  const around = outer.allowedPaths;
  if (around === null) return [];
  const reaches = (glob: string): boolean => around.some((other) => covers(glob, other));
  return (inner.allowedPaths ?? []).filter((glob) => intersectGlob(around, glob) === null && !reaches(glob));
}

function allowedByBoth(outer: Policy['allowedPaths'], inner: Policy['allowedPaths']): Policy['allowedPaths'] {
  if (outer === null || inner === null) return inner ?? outer;
  const narrower = inner.flatMap((glob) => intersectGlob(outer, glob) ?? []);
  const kept = outer.filter((glob) => inner.some((other) => covers(other, glob)));
  return [...new Set([...narrower, ...kept])];
}

/** The part of a glob that others cover; null if empty or undecidable. */
function intersectGlob(outer: readonly string[], glob: string): string | null {
  if (outer.some((other) => covers(other, glob))) return glob;
  // Only the file of that name, not a folder: braces turn a plain name into a pattern.
  return isPlain(glob) && !glob.includes(',') && outer.some((other) => globCovers(other, glob)) ? `{${glob}}` : null;
}

/** An allowed plain name allows everything below it. */
function covers(outer: string, inner: string): boolean {
  if (isPlain(outer)) return inner === outer || inner.startsWith(`${outer}/`);
  return globCovers(outer, inner) && (!isPlain(inner) || globCovers(outer, `${inner}/**`));
}

function isPlain(glob: string): boolean {
  return !/[*?[\]{}\\]/.test(glob);
}

/** Whether a glob matches a path, or every path that another glob matches. False if undecidable. */
export function globCovers(outer: string, inner: string): boolean {
  if (outer === inner || outer === '**') return true;
  // Alternatives in braces may contain slashes.
  if (/[{}]/.test(outer + inner))
    return isPlain(outer.slice(0, -2)) && outer.endsWith('/**') && inner.startsWith(outer.slice(0, -2));
  const wide = outer.split('/');
  const narrow = inner.split('/');
  // From the end: whether `wide` from this segment on matches `narrow` from that segment on.
  let below = [...narrow.map(() => false), true];
  for (const [index, segment] of [...wide.entries()].reverse()) {
    const isLast = index === wide.length - 1;
    const row = [...narrow.map(() => false), false];
    for (let at = narrow.length - 1; at >= 0; at--) {
      row[at] =
        segment === '**'
          ? // At the end it matches at least one name, elsewhere also none.
            isLast || below[at] === true || row[at + 1] === true
          : segmentCovers(segment, narrow[at] ?? '') && below[at + 1] === true;
    }
    below = row;
  }
  return below[0] === true;
}

/** For one name between slashes. Wildcards other than `*` are compared literally. */
function segmentCovers(outer: string, inner: string): boolean {
  if (inner === '**') return false;
  return outer === inner || (!/[?[\]\\]/.test(outer) && segmentMatcher(outer)(inner));
}
