// Plan of a restore: the changes that turn the present working tree into a snapshot. Pure.
//
// restore-plan/1  Every file of the snapshot that differs in content, mode or kind is written.
// restore-plan/2  A file that a commit can hold (tracked, or untracked and not ignored) and that the snapshot does not have is
//                 removed: the snapshot `undone-N` has it.
// restore-plan/3  Anything that no commit can hold (ignored files, `.git` of repositories within the tree, files in folders whose
//                 names git takes for its own) is moved aside, not deleted, if it is new or in the way of restore-plan/1. So
//                 are pipes, sockets and devices, and a submodule as a whole, if it had no repository before.
// restore-plan/4  Other files that were ignored at the time of the snapshot stay, changed or not, and so does everything in
//                 a folder that was ignored as a whole. So do `.git` of repositories, pipes, sockets and devices that
//                 existed, even if their folder is ignored now. If it is unknown what was ignored, everything that is
//                 ignored now stays.

import { REPOSITORY } from './git.ts';
import { type Entries, type Entry, isSame } from './walk.ts';
import { foldersOf, NameSet } from './worktree-paths.ts';

export interface RestoreQuestion {
  readonly now: Entries;
  /** What the tree has besides; folders with a trailing slash. */
  readonly ignoredNow: readonly string[];
  readonly specialNow: readonly string[];
  readonly repositoriesNow: readonly string[];
  readonly wanted: Entries;
  /** Null if unknown. */
  readonly ignoredThen: readonly string[] | null;
  readonly specialThen: readonly string[];
  readonly repositoriesThen: readonly string[];
  /** Names in a folder; folders with a trailing slash. */
  readonly list: (folder: string) => readonly string[];
}

export interface RestorePlan {
  /** Files, links and whole folders. */
  readonly aside: readonly string[];
  readonly removals: readonly string[];
  readonly writes: readonly (Entry & { readonly name: string })[];
}

export function planRestore(question: RestoreQuestion): RestorePlan {
  const { now, wanted, ignoredNow, specialNow, list } = question;
  const submodules = question.repositoriesThen.filter((name) => wanted.get(name)?.mode === REPOSITORY);
  const leftNames = [...(question.ignoredThen ?? ignoredNow), ...submodules.flatMap((name) => [name, `${name}/`])];
  const left = new NameSet(leftNames);
  // The walk lists neither repositories nor pipes in a folder that is ignored now, so they are found by their names.
  const kept = new NameSet([
    ...leftNames,
    ...question.specialThen,
    ...question.repositoriesThen.flatMap((name) => [`${name}/.git`, `${name}/.git/`]),
  ]);
  const content = new NameSet(wanted.keys());
  const aside: string[] = [];

  /** A folder ends with a slash. */
  const sift = (entry: string): void => {
    const name = entry.replace(/\/$/, '');
    if (name === entry) {
      if (!now.has(name) && (wanted.has(name) || !kept.covers(name))) aside.push(name);
      return;
    }
    const isKept = kept.covers(entry);
    if (!content.isWithin(name) && (isKept || !kept.isWithin(name))) {
      if (!isKept) aside.push(name);
      return;
    }
    for (const child of list(name)) sift(`${entry}${child}`);
  };
  for (const entry of ignoredNow) sift(entry);
  const repositoriesThen = new Set(question.repositoriesThen);
  for (const name of question.repositoriesNow) {
    if (repositoriesThen.has(name) || left.covers(`${name}/.git`)) continue;
    // The walk does not list the files of a submodule, so they go with its `.git`.
    aside.push(now.get(name)?.mode === REPOSITORY ? name : `${name}/.git`);
  }
  const specialThen = new Set(question.specialThen);
  for (const name of specialNow) {
    if (wanted.has(name) || !(specialThen.has(name) || left.covers(name))) aside.push(name);
  }

  const removals: string[] = [];
  for (const [name, { mode }] of now) {
    if (wanted.has(name) || left.covers(name)) continue;
    if (mode === REPOSITORY) aside.push(name);
    else removals.push(name);
  }
  const all = new Set(aside);
  const isRight = (name: string, entry: Entry): boolean => isSame(now.get(name), entry) && !all.has(name);
  const writes = [...wanted].flatMap(([name, entry]) => (isRight(name, entry) ? [] : [{ name, ...entry }]));
  return { aside: [...all].filter((name) => !foldersOf(name).some((folder) => all.has(folder))), removals, writes };
}
