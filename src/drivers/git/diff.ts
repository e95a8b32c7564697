// Differences of a working tree, as a list and as a patch.

import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';

import { clearPlaceOf } from '../../sys/files.ts';
import { forgedBlobs } from './blobs.ts';
import { readIntoIndex } from './commit-writer.ts';
import { GitError, REPOSITORY } from './git.ts';
import type { InnerRepository, SnapshotRecord } from './snapshot.ts';
import { type Entries, isSame } from './walk.ts';
import { nameOf, plumbing, privateIndex, textOf, type WorktreeInfo } from './worktree-paths.ts';

/** Part of a step's outputs. */
export type Change = {
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
};

const PLAIN = ['--no-ext-diff', '--no-textconv', '--no-color', '-M'];

type Contents = Pick<SnapshotRecord, 'tree' | 'repositories' | 'special'>;
type Tree = Pick<SnapshotRecord, 'tree'>;
type Listed = { readonly entries: Entries };

/** From one snapshot to another. A repository within the tree is one entry more. */
export async function changesBetween(
  info: WorktreeInfo,
  from: Contents & Listed,
  to: Contents & Listed,
): Promise<readonly Change[]> {
  const inner = innerChanges(from.repositories, to.repositories);
  const special = specialChanges(from.special, to.special);
  const files = from.tree === to.tree ? [] : await fileChanges(info, from, to);
  // A file that was replaced by a pipe, or a pipe by a file, is one change.
  const present = new Set(special.map(({ path }) => path));
  const replaced = new Set(files.filter(({ path }) => present.has(path)).map(({ path }) => path));
  return [
    ...files.map((change) => (replaced.has(change.path) ? { ...change, status: 'typechange' as const } : change)),
    ...special.filter(({ path }) => !replaced.has(path)),
    ...inner,
  ];
}

/** Compares entries that were read in the working tree, not a tree that git reads from objects. */
async function diffOf(info: WorktreeInfo, from: Tree, to: Listed, format: readonly string[]): Promise<Buffer> {
  return withIndexOf(info, to, (index) => diffIndex(info, from, index, format));
}

async function withIndexOf<T>(info: WorktreeInfo, to: Listed, use: (index: string) => Promise<T>): Promise<T> {
  const index = privateIndex(info, 'diff.index');
  try {
    await readIntoIndex(info, index, to.entries);
    return await use(index);
  } finally {
    await rm(index, { force: true });
  }
}

function diffIndex(info: WorktreeInfo, from: Tree, index: string, format: readonly string[], output?: number) {
  const call = output === undefined ? { index } : { index, output };
  return plumbing(info).run(['diff-index', '--cached', ...format, ...PLAIN, from.tree], call);
}

async function fileChanges(info: WorktreeInfo, from: Tree & Listed, to: Listed): Promise<readonly Change[]> {
  try {
    return readChanges(await diffOf(info, from, to, ['--raw', '-z']));
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    // Somebody has removed objects: no renames then, but every change.
    return [...new Set([...from.entries.keys(), ...to.entries.keys()])].flatMap((name) => {
      const [before, after] = [from.entries.get(name), to.entries.get(name)];
      if (isSame(before, after)) return [];
      const isOtherKind = before?.mode.slice(0, 3) !== after?.mode.slice(0, 3);
      const status = before === undefined ? 'added' : after === undefined ? 'deleted' : 'modified';
      const modes = { modeBefore: before?.mode ?? '000000', modeAfter: after?.mode ?? '000000' };
      return { status: status === 'modified' && isOtherKind ? 'typechange' : status, ...pathsOf(name, null), ...modes };
    });
  }
}

function readChanges(output: Buffer): readonly Change[] {
  const fields = output.toString('latin1').split('\0').values();
  const changes: Change[] = [];
  for (const field of fields) {
    const [, modeBefore, modeAfter, letter] = /^:(\d+) (\d+) \S+ \S+ (\w)/.exec(field) ?? [];
    if (modeBefore === undefined || modeAfter === undefined) continue;
    const first = fields.next().value ?? '';
    const isRenamed = letter === 'R' || letter === 'C';
    const [from, name] = isRenamed ? [first, fields.next().value ?? ''] : [null, first];
    changes.push({ status: STATUSES[letter ?? ''] ?? 'modified', ...pathsOf(name, from), modeBefore, modeAfter });
  }
  return changes;
}

function pathsOf(name: string, from: string | null): Pick<Change, 'path' | 'from' | 'isExact'> {
  const isExact = [name, from ?? name].every((each) => nameOf(textOf(each)) === each);
  return { path: textOf(name), from: from === null ? null : textOf(from), isExact };
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
    ...pathsOf(name, null),
    modeBefore: status === 'added' ? '000000' : REPOSITORY,
    modeAfter: status === 'deleted' ? '000000' : REPOSITORY,
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

function specialChanges(from: readonly string[], to: readonly string[]): readonly Change[] {
  const change = (name: string, status: 'added' | 'deleted'): Change => ({
    status,
    ...pathsOf(name, null),
    modeBefore: status === 'added' ? '000000' : SPECIAL,
    modeAfter: status === 'added' ? SPECIAL : '000000',
  });
  const [before, after] = [new Set(from), new Set(to)];
  return [
    ...to.flatMap((name) => (before.has(name) ? [] : [change(name, 'added')])),
    ...from.flatMap((name) => (after.has(name) ? [] : [change(name, 'deleted')])),
  ];
}

/** No mode of git: a pipe, a socket or a device. */
const SPECIAL = '010000';

/** In git's words; null if nothing differs. */
export async function shortStat(info: WorktreeInfo, from: Tree, to: Listed): Promise<string | null> {
  const output = await diffOf(info, from, to, ['--shortstat']);
  return output.toString('latin1').trim() || null;
}

/**
 * Writes a patch from one snapshot to another. Binary files are complete. If objects were forged, the file lists the
 * changes instead: git would show what the forger wants. The file gets its name when it is complete, whatever has that
 * name.
 */
export async function writeDiff(info: WorktreeInfo, from: Tree, to: Listed, file: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}.new`;
  const output = await open(draft, 'wx', 0o600);
  try {
    await withIndexOf(info, to, async (index) => {
      const list = await diffIndex(info, from, index, ['--raw', '--no-abbrev', '-z']);
      const forged = await forgedBlobs(info, changedBlobs(list));
      if (forged.length === 0) await diffIndex(info, from, index, ['-p', '--binary'], output.fd);
      else await output.writeFile(withoutPatch(readChanges(list), forged));
    });
    clearPlaceOf(file);
    await rename(draft, file);
  } finally {
    await output.close();
    await rm(draft, { force: true });
  }
}

/** Of both sides, from a raw list. */
function changedBlobs(list: Buffer): readonly { readonly oid: string }[] {
  const sides = [...list.toString('latin1').matchAll(/(?:^|\0):(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) /g)].flatMap(
    ([, before = '', after = '', old = '', present = '']) => [
      { mode: before, oid: old },
      { mode: after, oid: present },
    ],
  );
  return sides.filter(({ mode }) => mode !== '000000' && mode !== REPOSITORY);
}

function withoutPatch(changes: readonly Change[], forged: readonly { readonly oid: string }[]): string {
  const ids = forged.map(({ oid }) => `  ${oid}\n`);
  const lines = changes.map(({ status, path, from }) => `  ${status} ${from === null ? path : `${from} -> ${path}`}\n`);
  return [
    'No patch: these objects of the repository do not have the contents that their names say.\n',
    'They were forged, or the disk is damaged: run git fsck.\n',
    ...ids,
    '\nChanges, compared by the contents of the files:\n',
    ...lines,
  ].join('');
}
