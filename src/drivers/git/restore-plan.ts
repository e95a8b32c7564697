// Plan of a restore: the changes that turn the present working tree into a snapshot. Pure.
//
// restore-plan/1  Every file of the snapshot that differs in content, mode or kind is written.
// restore-plan/2  A file that a commit can hold (tracked, or untracked and not ignored) and that the snapshot does not have is
//                 removed: the snapshot `undone-N` has it.
// restore-plan/3  Anything that no commit can hold (ignored files, repositories within the tree) is moved aside, not deleted,
//                 if it is new or in the way of restore-plan/1.
// restore-plan/4  Other files that were ignored at the time of the snapshot stay, changed or not, and so does everything in
//                 a folder that was ignored as a whole. So do repositories that existed. Git does not see a repository in
//                 a folder with tracked files: `.git` in such a folder stays as well.
// restore-plan/5  Files that a sparse checkout leaves out are removed.

import { foldersOf, NameSet } from './names.ts';

export interface Entry {
  /** `100644`, `100755`, `120000` for a link, `160000` for a repository. */
  readonly mode: string;
  readonly oid: string;
  /** The blob has the exact bytes; otherwise git's filters apply. */
  readonly isOwn: boolean;
}

/** By name: everything in the tree that a commit can hold. */
export type Entries = ReadonlyMap<string, Entry>;

export interface RestoreQuestion {
  readonly now: Entries;
  /** What the tree has besides; folders with a trailing slash, repositories without. */
  readonly ignoredNow: readonly string[];
  readonly nestedNow: readonly string[];
  readonly wanted: Entries;
  readonly ignoredThen: readonly string[];
  readonly repositoriesThen: readonly string[];
  /** The folder had tracked files. */
  readonly wasTracked: (folder: string) => boolean;
  /** Names in a folder; folders with a trailing slash. */
  readonly list: (folder: string) => readonly string[];
  /** The folder is a repository. */
  readonly isRepository: (folder: string) => boolean;
}

export interface RestorePlan {
  /** Files, links and whole folders. */
  readonly aside: readonly string[];
  readonly removals: readonly string[];
  readonly writes: readonly (Entry & { readonly name: string })[];
}

export const LINK = '120000';
export const REPOSITORY = '160000';

export function planRestore(question: RestoreQuestion): RestorePlan {
  const { now, wanted, ignoredNow, nestedNow, ignoredThen, repositoriesThen, wasTracked, list, isRepository } =
    question;
  const left = new NameSet([...ignoredThen, ...repositoriesThen.flatMap((name) => [name, `${name}/`])]);
  const content = new NameSet(wanted.keys());
  const aside: string[] = [];

  const sift = (name: string, isFolder: boolean): void => {
    if (!isFolder) {
      if (!now.has(name) && (wanted.has(name) || !left.covers(name))) aside.push(name);
      return;
    }
    const isLeft = left.covers(`${name}/`);
    if (!content.isWithin(name) && (isLeft || !left.isWithin(name))) {
      if (!isLeft) aside.push(name);
      return;
    }
    for (const child of list(name)) {
      if (/^\.git\/?$/.test(child) && wasTracked(name)) continue;
      sift(`${name}/${child.replace(/\/$/, '')}`, child.endsWith('/'));
    }
  };
  for (const name of ignoredNow) sift(name.replace(/\/$/, ''), name.endsWith('/'));
  for (const name of nestedNow) sift(name, true);
  const around = new Set([...now.keys(), ...wanted.keys()].flatMap(foldersOf));
  for (const folder of around) {
    if (!wasTracked(folder) && !left.covers(`${folder}/`) && isRepository(folder)) aside.push(`${folder}/.git`);
  }

  const removals: string[] = [];
  for (const [name, { mode }] of now) {
    if (wanted.has(name) || left.covers(name)) continue;
    if (mode === REPOSITORY) aside.push(name);
    else removals.push(name);
  }
  const writes = [...wanted].flatMap(([name, entry]) => (isSame(now.get(name), entry) ? [] : [{ name, ...entry }]));
  const all = new Set(aside);
  return { aside: [...all].filter((name) => !foldersOf(name).some((folder) => all.has(folder))), removals, writes };
}

function isSame(one: Entry | undefined, other: Entry): boolean {
  return one !== undefined && one.mode === other.mode && one.oid === other.oid && one.isOwn === other.isOwn;
}
