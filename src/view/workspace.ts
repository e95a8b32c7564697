// The work of a Conductor run: where it is, how much it is, and the commands that show, merge or discard it.

import { sanitize } from '../base/sanitize.ts';
import { shellWord } from '../ir/quote.ts';
import { counted, type Palette } from './row.ts';

export interface WorkspaceView {
  /** Null if HEAD is detached in the user's own tree. */
  readonly branch: string | null;
  readonly worktree: string;
  readonly base: string;
  readonly commits: number;
  readonly uncommitted: number;
  /** With new files. */
  readonly diffstat: string | null;
  /** Objects of git: the state before the run, and the present one. */
  readonly from: string;
  readonly tree: string;
}

/** `folder`: the worktree as a person would write it; null if the run works in the user's own tree. */
export function workspaceLines(
  run: string,
  { branch, commits, uncommitted, diffstat, from, tree }: WorkspaceView,
  folder: string | null,
  palette: Palette,
): readonly string[] {
  const place = `${branch === null ? 'detached HEAD' : `branch ${branch}`}${folder === null ? '' : ` in ${folder}`}`;
  const amounts = [
    ...(commits > 0 ? [counted(commits, 'commit')] : []),
    ...(uncommitted > 0 ? [counted(uncommitted, 'uncommitted file')] : []),
    ...(diffstat === null ? [] : [diffstat]),
  ];
  const git = folder === null ? 'git' : `git -C ${shellWord(folder)}`;
  const commands = [
    ...(amounts.length > 0 ? [`show: ${SAFE_DIFF} ${from.slice(0, 12)} ${tree.slice(0, 12)}`] : []),
    ...(folder !== null && uncommitted > 0 ? [`commit: ${git} add -A && ${git} commit`] : []),
    ...(folder !== null && amounts.length > 0 ? [`merge: git merge ${branch}`] : []),
    ...(folder === null ? [] : [`discard: meow gc ${run} --force`]),
  ];
  const found = amounts.length === 0 ? 'nothing changed' : amounts.join(', ');
  return [
    `${palette.dim('work:')} ${sanitize(place)}: ${found}`,
    ...commands.map((command) => `  ${sanitize(command)}`),
  ];
}

/** Compares objects, not the worktree, so new files are shown. Programs that an agent may have configured are not started. */
const SAFE_DIFF = 'git --no-pager diff --no-ext-diff --no-textconv';
