// The work of a Conductor run: where it is, how much it is, and the commands that show, merge or discard it.

import { sanitize } from '../base/sanitize.ts';
import type { Palette } from './row.ts';

/** Part of `meow status --json`. */
export interface WorkspaceView {
  /** Null if HEAD is detached in the user's own tree. */
  readonly branch: string | null;
  readonly worktree: string;
  /** The commit that the run started from. */
  readonly base: string;
  readonly commits: number;
  readonly uncommitted: number;
  readonly diffstat: string | null;
}

/** `folder`: the worktree as a person would write it; null if the run works in the user's own tree. */
export function workspaceLines(
  run: string,
  { branch, base, commits, uncommitted, diffstat }: WorkspaceView,
  folder: string | null,
  palette: Palette,
): readonly string[] {
  const place = `${branch === null ? 'detached HEAD' : `branch ${branch}`}${folder === null ? '' : ` in ${folder}`}`;
  const amounts = [
    ...(commits > 0 ? [counted(commits, 'commit')] : []),
    ...(uncommitted > 0 ? [counted(uncommitted, 'uncommitted file')] : []),
    ...(diffstat === null ? [] : [diffstat]),
  ];
  const git = folder === null ? 'git' : `git -C ${quoted(folder)}`;
  const commands = [
    ...(amounts.length > 0 ? [`show: ${git} diff ${base.slice(0, 12)}`] : []),
    ...(folder !== null && uncommitted > 0 ? [`commit: ${git} add -A && ${git} commit`] : []),
    ...(folder !== null && amounts.length > 0 ? [`merge: git merge ${branch}`] : []),
    ...(folder === null ? [] : [`discard: meow gc ${run} --force`]),
  ];
  const found = amounts.length === 0 ? 'nothing changed' : amounts.join(', ');
  const lines = [`${palette.dim('work:')} ${sanitize(place)}: ${found}`];
  return commands.length === 0 ? lines : [...lines, `  ${sanitize(commands.join(' · '))}`];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
