// What has to be done to a working tree so that it is what a snapshot says. Pure.
//
// D1  What the snapshot has is written wherever it differs, in content, mode or kind.
// D2  What is there now and can be in a commit (tracked, or untracked and not ignored), and was not there, is removed: the
//     snapshot that is taken first has it.
// D3  What is there now and can be in no commit (ignored files, repositories within the tree), and was not there, or is in
//     the way of D1, is moved aside, not deleted.
// D4  What else was ignored when the snapshot was taken is left alone, whatever has become of it; so is all in a folder that was
//     ignored as a whole, for nobody knows what was in it. And so are repositories that were there.
//     A repository in a folder with tracked files is not seen by git: `.git` in one that had some is left as well.
// D5  What should not be there because of a sparse checkout is removed.

import { foldersOf, NameSet } from './names.ts';

export interface Entry {
  /** `100644`, `100755`, `120000` for a link, `160000` for a repository. */
  readonly mode: string;
  readonly oid: string;
  /** The blob has the very bytes; else they pass through git's filters. */
  readonly isOwn: boolean;
}

/** By name: all that is in the tree, and can be in a commit. */
export type Entries = ReadonlyMap<string, Entry>;

export interface RestoreQuestion {
  readonly now: Entries;
  /** What is there beside it; folders with a slash. Repositories without. */
  readonly ignoredNow: readonly string[];
  readonly nestedNow: readonly string[];
  readonly wanted: Entries;
  readonly ignoredThen: readonly string[];
  readonly repositoriesThen: readonly string[];
  /** Tracked files were in it, or may have been. */
  readonly wasTracked: (folder: string) => boolean;
  /** Names in a folder, with a slash behind folders. */
  readonly list: (folder: string) => readonly string[];
  /** There is a repository in the folder. */
  readonly isRepository: (folder: string) => boolean;
}

export interface RestorePlan {
  /** Files, links and folders, with all that is in them. */
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
