// Output of `git status` and `git ls-files` as data. Pure.

import type { Entries, Entry } from './walk.ts';
import { textOf } from './worktree-paths.ts';

export interface Listing {
  /** Commit of HEAD; null if the branch has none yet. */
  readonly head: string | null;
  /** Short name, as text; null if HEAD is detached. */
  readonly branch: string | null;
  /** Names that differ between HEAD, the index and the working tree. */
  readonly changed: readonly string[];
  readonly untracked: readonly string[];
  /** Untracked repositories within the tree, without a trailing slash. Their contents are not listed. */
  readonly nested: readonly string[];
}

export const LISTING_ARGS = [
  'status',
  '--porcelain=v2',
  '-z',
  '--branch',
  '--untracked-files=all',
  '--no-renames',
  '--no-ahead-behind',
  '--ignore-submodules=none',
] as const;

export function readListing(output: Buffer): Listing {
  let head = '(initial)';
  let branch = '(detached)';
  const changed: string[] = [];
  const untracked: string[] = [];
  const nested: string[] = [];
  for (const record of output.toString('latin1').split('\0')) {
    const rest = record.slice(2);
    if (record.startsWith('# branch.oid ')) head = record.slice('# branch.oid '.length);
    else if (record.startsWith('# branch.head ')) branch = textOf(record.slice('# branch.head '.length));
    else if (record.startsWith('1 ')) changed.push(after(rest, 7));
    else if (record.startsWith('u ')) changed.push(after(rest, 9));
    else if (record.startsWith('? ') && rest.endsWith('/')) nested.push(rest.slice(0, -1));
    else if (record.startsWith('? ')) untracked.push(rest);
  }
  const at = { head: head === '(initial)' ? null : head, branch: branch === '(detached)' ? null : branch };
  return { ...at, changed, untracked, nested };
}

/** Everything that differs from HEAD, except ignored files, as text. */
export function changedPaths({ changed, untracked, nested }: Listing): readonly string[] {
  return [...new Set([...changed, ...untracked, ...nested])].map(textOf);
}

export function isClean(listing: Listing): boolean {
  return changedPaths(listing).length === 0;
}

/** What follows that many words. It may contain anything. */
function after(text: string, words: number): string {
  let at = 0;
  for (let count = 0; count < words; count += 1) at = text.indexOf(' ', at) + 1;
  return text.slice(at);
}

/** Entries of an index file, from `git ls-files`. */
export interface IndexListing {
  readonly names: ReadonlySet<string>;
  /** Those with several stages have names of their own: `NAME~STAGE`. */
  readonly entries: Entries;
}

export const INDEX_ARGS = ['ls-files', '-s', '-z'] as const;

export function readIndexListing(output: Buffer): IndexListing {
  const names = new Set<string>();
  const entries = new Map<string, Entry>();
  for (const record of output.toString('latin1').split('\0')) {
    const tab = record.indexOf('\t');
    if (tab === -1) continue;
    const [mode = '', oid = '', stage] = record.slice(0, tab).split(' ');
    const name = record.slice(tab + 1);
    names.add(name);
    entries.set(stage === '0' ? name : `${name}~${stage}`, { mode, oid });
  }
  return { names, entries };
}
