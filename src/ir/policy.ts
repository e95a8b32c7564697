// Policies put together: what a whole workflow asks for, and what one of its steps adds. Whoever comes later may only
// tighten. Paths are globs: `*` stands for a part of one name, `**` for any number of folders.

import { segmentMatcher } from '../base/segment-pattern.ts';
import type { Policy } from './conducted.ts';

/** Forbids nothing, and leaves questions unanswered rather than to fail for them. */
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

/** What both allow, and never more: where two globs overlap in part, neither is kept. */
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

/** Those of `inner` that `outer` leaves nothing of, for a word to their author. */
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

/** What is left of a glob within others; null where that is nothing, or cannot be told. */
function intersectGlob(outer: readonly string[], glob: string): string | null {
  if (outer.some((other) => covers(other, glob))) return glob;
  // The file of that name, and no longer the folder: braces make a pattern of a plain name.
  return isPlain(glob) && !glob.includes(',') && outer.some((other) => globCovers(other, glob)) ? `{${glob}}` : null;
}

/** A plain name that is allowed allows all that is below it. */
function covers(outer: string, inner: string): boolean {
  if (isPlain(outer)) return inner === outer || inner.startsWith(`${outer}/`);
  return globCovers(outer, inner) && (!isPlain(inner) || globCovers(outer, `${inner}/**`));
}

function isPlain(glob: string): boolean {
  return !/[*?[\]{}\\]/.test(glob);
}

/** Whether a glob fits a path, or every path that another one fits. In doubt it does not. */
export function globCovers(outer: string, inner: string): boolean {
  if (outer === inner || outer === '**') return true;
  // A choice may have slashes in it.
  if (/[{}]/.test(outer + inner))
    return isPlain(outer.slice(0, -2)) && outer.endsWith('/**') && inner.startsWith(outer.slice(0, -2));
  const wide = outer.split('/');
  const narrow = inner.split('/');
  // Row by row from the end: whether the rest of `wide` from here fits the rest of `narrow` from there.
  let below = [...narrow.map(() => false), true];
  for (const [index, segment] of [...wide.entries()].reverse()) {
    const isLast = index === wide.length - 1;
    const row = [...narrow.map(() => false), false];
    for (let at = narrow.length - 1; at >= 0; at--) {
      row[at] =
        segment === '**'
          ? // At the end it stands for one name at least, before that for none as well.
            isLast || below[at] === true || row[at + 1] === true
          : segmentCovers(segment, narrow[at] ?? '') && below[at + 1] === true;
    }
    below = row;
  }
  return below[0] === true;
}

/** Of one name between slashes. Other wildcards than `*` are compared by their letters. */
function segmentCovers(outer: string, inner: string): boolean {
  if (inner === '**') return false;
  return outer === inner || (!/[?[\]\\]/.test(outer) && segmentMatcher(outer)(inner));
}
