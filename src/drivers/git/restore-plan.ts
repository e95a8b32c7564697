// Plan of a restore: the changes that turn the present working tree into a snapshot. Pure.
//
// restore-plan/1  Every file of the snapshot that differs in content, mode or kind is written.
// restore-plan/2  A file that a commit can hold (tracked, or untracked and not ignored) and that the snapshot does not have is
//                 removed: the snapshot `undone-N` has it.
// restore-plan/3  Anything that no commit can hold (ignored files, `.git` of repositories within the tree, files in folders whose
//                 names git takes for its own) is moved aside, not deleted, if it is new or in the way of restore-plan/1. So
//                 are pipes, sockets and devices.
// restore-plan/4  Other files that were ignored at the time of the snapshot stay, changed or not, and so does everything in
//                 a folder that was ignored as a whole. So does `.git` of repositories that existed. If it is unknown what was
//                 ignored, everything that is ignored now stays.

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
  const left = new NameSet([
    ...(question.ignoredThen ?? ignoredNow),
    ...submodules.flatMap((name) => [name, `${name}/`]),
  ]);
  const content = new NameSet(wanted.keys());
  const aside: string[] = [];

  /** A folder ends with a slash. */
  const sift = (entry: string): void => {
    const name = entry.replace(/\/$/, '');
    if (name === entry) {
      if (!now.has(name) && (wanted.has(name) || !left.covers(name))) aside.push(name);
      return;
    }
    const isLeft = left.covers(entry);
    if (!content.isWithin(name) && (isLeft || !left.isWithin(name))) {
      if (!isLeft) aside.push(name);
      return;
    }
    for (const child of list(name)) sift(`${entry}${child}`);
  };
  for (const entry of ignoredNow) sift(entry);
  const repositoriesThen = new Set(question.repositoriesThen);
  for (const name of question.repositoriesNow) if (!repositoriesThen.has(name)) aside.push(`${name}/.git`);
  const specialThen = new Set(question.specialThen);
  for (const name of specialNow) if (!specialThen.has(name) || wanted.has(name)) aside.push(name);

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
