// What a working tree has changed, as a patch and as a list.

import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOf, nameOf, textOf } from './names.ts';
import { entryAt, folderOf } from './worktree-paths.ts';
import type { Place } from './worktree-paths.ts';
import type { InnerRepository, SnapshotRecord } from './snapshot.ts';

export interface Change {
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'typechange';
  /** Where it is now, or was until it was deleted. */
  readonly path: string;
  /** Before it was renamed. */
  readonly from: string | null;
  /** The paths are what they are; else they have bytes that are no text, and look otherwise. */
  readonly isExact: boolean;
  /** As git writes them; `000000` where there is none. */
  readonly modeBefore: string;
  readonly modeAfter: string;
}

const PLAIN = ['--no-ext-diff', '--no-textconv', '--no-color', '-M'];

/** Between a commit or a snapshot and a snapshot. Repositories within the tree are told of as a whole. */
export async function changesBetween(
  place: Place,
  from: Pick<SnapshotRecord, 'tree' | 'repositories'>,
  to: Pick<SnapshotRecord, 'tree' | 'repositories'>,
): Promise<readonly Change[]> {
  const inner = innerChanges(from.repositories, to.repositories);
  if (from.tree === to.tree) return inner;
  const args = ['diff-tree', '-r', '-z', ...PLAIN, from.tree, to.tree];
  return [...readChanges(await place.git.run(args, { cwd: place.path })), ...inner];
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
 * `of` is what is in the working tree now. Contents are as git would commit them, so that line ends and filters make no
 * change of their own. Binary files are whole; bytes go straight into the file, which gets its name when it is complete.
 */
export async function writeDiff(
  place: Place,
  request: { readonly against: string; readonly of: SnapshotRecord; readonly file: string },
): Promise<void> {
  const { against, of, file } = request;
  const { git, path: cwd } = place;
  const index = join(folderOf(place), 'diff.index');
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
