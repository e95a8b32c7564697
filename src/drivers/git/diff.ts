// Differences of a working tree, as a list and as a patch.

import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOf, nameOf, textOf } from './names.ts';
import { entryAt, folderOf } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import type { InnerRepository, SnapshotRecord } from './snapshot.ts';

export interface Change {
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'typechange';
  /** Present path, or the path before it was deleted. */
  readonly path: string;
  /** Path before a rename. */
  readonly from: string | null;
  /** False if a path has bytes that are not UTF-8 and are shown differently. */
  readonly isExact: boolean;
  /** Modes as git writes them; `000000` for none. */
  readonly modeBefore: string;
  readonly modeAfter: string;
}

const PLAIN = ['--no-ext-diff', '--no-textconv', '--no-color', '-M'];

/** Between a commit or a snapshot and a snapshot. A repository within the tree is one entry. */
export async function changesBetween(
  info: WorktreeInfo,
  from: Pick<SnapshotRecord, 'tree' | 'repositories'>,
  to: Pick<SnapshotRecord, 'tree' | 'repositories'>,
): Promise<readonly Change[]> {
  const inner = innerChanges(from.repositories, to.repositories);
  if (from.tree === to.tree) return inner;
  const args = ['diff-tree', '-r', '-z', ...PLAIN, from.tree, to.tree];
  return [...readChanges(await info.git.run(args, { cwd: info.path })), ...inner];
}

function readChanges(output: Buffer): readonly Change[] {
  const fields = output.toString('latin1').split('\0').values();
  const changes: Change[] = [];
  for (const field of fields) {
    const [, modeBefore, modeAfter, letter] = /^:(\d+) (\d+) \S+ \S+ (\w)/.exec(field) ?? [];
    if (modeBefore === undefined || modeAfter === undefined) continue;
    const first = fields.next().value ?? '';
    const isRenamed = letter === 'R' || letter === 'C';
    const name = isRenamed ? (fields.next().value ?? '') : first;
    const from = isRenamed ? first : null;
    changes.push({
      status: STATUSES[letter ?? ''] ?? 'modified',
      path: textOf(name),
      from: from === null ? null : textOf(from),
      isExact: [name, from ?? name].every((each) => nameOf(textOf(each)) === each),
      modeBefore,
      modeAfter,
    });
  }
  return changes;
}

const STATUSES: Readonly<Record<string, Change['status']>> = {
  A: 'added',
  C: 'added',
  D: 'deleted',
  R: 'renamed',
  T: 'typechange',
};

function innerChanges(from: readonly InnerRepository[], to: readonly InnerRepository[]): readonly Change[] {
  const before = new Map(from.map((one) => [one.name, one]));
  const after = new Map(to.map((one) => [one.name, one]));
  const change = (name: string, status: Change['status']): Change => ({
    status,
    path: textOf(name),
    from: null,
    isExact: nameOf(textOf(name)) === name,
    modeBefore: status === 'added' ? '000000' : '160000',
    modeAfter: status === 'deleted' ? '000000' : '160000',
  });
  return [
    ...to.flatMap(({ name, head }) => {
      const known = before.get(name);
      if (known === undefined) return [change(name, 'added')];
      return known.head === head ? [] : [change(name, 'modified')];
    }),
    ...from.flatMap(({ name }) => (after.has(name) ? [] : [change(name, 'deleted')])),
  ];
}

/**
 * `of`: a snapshot of the present tree. Contents are as git would commit them, so that line ends and filters do not show as
 * changes. Binary files are complete. The file gets its name when it is complete.
 */
export async function writeDiff(
  info: WorktreeInfo,
  request: { readonly against: string; readonly of: SnapshotRecord; readonly file: string },
): Promise<void> {
  const { against, of, file } = request;
  const { git, path: cwd } = info;
  const index = join(folderOf(info), 'diff.index');
  await rm(`${index}.lock`, { force: true });
  const output = await open(`${file}.new`, 'w', 0o600);
  try {
    await git.run(['read-tree', of.tree], { cwd, index });
    const names: Buffer[] = [];
    for (const name of of.own) {
      const found = entryAt(cwd, name);
      if (found !== null && found !== 'folder' && found.mode.startsWith('100')) names.push(bytesOf(`${name}\0`));
    }
    if (names.length > 0) await git.run(['update-index', '-z', '--stdin'], { cwd, index, input: names });
    const args = ['diff-index', '--cached', '-p', '--binary', ...PLAIN, against];
    await git.run(args, { cwd, index, output: output.fd });
    await rename(`${file}.new`, file);
  } finally {
    await output.close();
    await rm(index, { force: true });
  }
}
