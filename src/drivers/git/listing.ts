// Output of `git status` as data. Pure.

import { textOf } from './names.ts';

export interface Listing {
  /** Commit of HEAD; null if the branch has none yet. */
  readonly head: string | null;
  /** Short name, as text; null if HEAD is detached. */
  readonly branch: string | null;
  readonly changed: readonly ChangedName[];
  readonly untracked: readonly string[];
  /** Untracked repositories within the tree, without a trailing slash. Their contents are not listed. */
  readonly nested: readonly string[];
  /** An ignored folder stands for its contents, with a trailing slash. */
  readonly ignored: readonly string[];
}

/** A name that differs between HEAD, the index and the working tree. */
export interface ChangedName {
  readonly name: string;
  readonly isSubmodule: boolean;
  /** In the index, merged or not. */
  readonly isTracked: boolean;
  readonly isUnmerged: boolean;
  /** Entry of the index if it differs from HEAD; several if it is unmerged. */
  readonly staged: readonly { readonly mode: string; readonly oid: string }[];
}

export const LISTING_ARGS = [
  'status',
  '--porcelain=v2',
  '-z',
  '--branch',
  '--untracked-files=all',
  '--ignored=matching',
  '--no-renames',
  '--no-ahead-behind',
  '--ignore-submodules=none',
] as const;

const NOTHING = '000000';

export function readListing(output: Buffer): Listing {
  let head: string | null = null;
  let branch: string | null = null;
  const changed: ChangedName[] = [];
  const untracked: string[] = [];
  const nested: string[] = [];
  const ignored: string[] = [];
  for (const record of output.toString('latin1').split('\0')) {
    const rest = record.slice(2);
    if (record.startsWith('# branch.oid ')) head = known(rest.slice('branch.oid '.length), '(initial)');
    else if (record.startsWith('# branch.head '))
      branch = known(textOf(rest.slice('branch.head '.length)), '(detached)');
    else if (record.startsWith('1 ')) changed.push(ordinary(rest));
    else if (record.startsWith('u ')) changed.push(unmerged(rest));
    else if (record.startsWith('! ')) ignored.push(rest);
    else if (record.startsWith('? ') && rest.endsWith('/')) nested.push(rest.slice(0, -1));
    else if (record.startsWith('? ')) untracked.push(rest);
  }
  return { head, branch, changed, untracked, nested, ignored };
}

/** Like HEAD, except for ignored files. */
export function isClean({ changed, untracked, nested }: Listing): boolean {
  return changed.length === 0 && untracked.length === 0 && nested.length === 0;
}

function known(value: string, nothing: string): string | null {
  return value === nothing ? null : value;
}

/** `XY sub mH mI mW hH hI name` */
function ordinary(rest: string): ChangedName {
  const [fields, name] = split(rest, 7);
  const [change = '', submodule = '', , mode = NOTHING, , , oid = ''] = fields;
  const isStaged = change[0] !== '.' && mode !== NOTHING;
  return {
    name,
    isSubmodule: submodule.startsWith('S'),
    isTracked: change[0] !== 'D',
    isUnmerged: false,
    staged: isStaged ? [{ mode, oid }] : [],
  };
}

/** `XY sub m1 m2 m3 mW h1 h2 h3 name` */
function unmerged(rest: string): ChangedName {
  const [fields, name] = split(rest, 9);
  const [, submodule = '', ...others] = fields;
  const stages = [0, 1, 2].map((stage) => ({ mode: others[stage] ?? NOTHING, oid: others[stage + 4] ?? '' }));
  return {
    name,
    isSubmodule: submodule.startsWith('S'),
    isTracked: true,
    isUnmerged: true,
    staged: stages.filter(({ mode }) => mode !== NOTHING),
  };
}

/** That many words, and the rest, which may contain anything. */
function split(text: string, words: number): readonly [readonly string[], string] {
  let at = 0;
  for (let count = 0; count < words; count += 1) at = text.indexOf(' ', at) + 1;
  return [text.slice(0, at).split(' '), text.slice(at)];
}
