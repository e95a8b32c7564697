// Writes commits of working-tree contents with git's plumbing on private indexes. Neither the tree nor its index is touched.
//
// Files become blobs byte by byte (`hash-object --no-filters`). A commit's tree is built in an empty index
// (`update-index --index-info`, `write-tree`) and committed by `commit-tree`.

import { createHash } from 'node:crypto';
import { mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ABSENT, isErrno } from '../../sys/errors.ts';
import { failed, GitError, LINK, REPOSITORY, withoutEnd } from './git.ts';
import { changing, type Entries, type Entry } from './walk.ts';
import {
  algorithmOf,
  bytesOf,
  folderOf,
  inside,
  nameOf,
  plumbing,
  privateIndex,
  quoted,
  textOf,
  type WorktreeInfo,
} from './worktree-paths.ts';

export interface CommitRequest {
  readonly entries: Entries;
  /** Null if the branch has no commit yet. */
  readonly head: string | null;
  /** Entries of the working tree's index; null if it is like HEAD. Those with several stages have names of their own. */
  readonly staged: Entries | null;
  /** Further parents, to keep them alive. */
  readonly keep: readonly string[];
  readonly message: string;
}

export interface WrittenCommit {
  readonly commit: string;
  readonly tree: string;
  readonly entries: Entries;
}

/** `isStored`: whether the repository is known to have an object. */
export async function writeCommit(
  info: WorktreeInfo,
  request: CommitRequest,
  isStored: (oid: string) => boolean,
): Promise<WrittenCommit> {
  const { head, staged, keep, message } = request;
  const { tree, entries } = await storeTree(info, request.entries, isStored);
  const parents = head === null ? [] : [head];
  if (staged !== null) {
    const index = (await writeTree(info, staged, true)) ?? tree;
    parents.push(await commitTree(info, index, parents, `${message}: the index`));
  }
  return { commit: await commitTree(info, tree, [...parents, ...keep], message), tree, entries };
}

/** Stores files of the working tree and the tree that has them. */
export async function storeTree(
  info: WorktreeInfo,
  wanted: Entries,
  isStored: (oid: string) => boolean,
): Promise<Pick<WrittenCommit, 'tree' | 'entries'>> {
  let entries = await store(info, wanted, isStored);
  let tree = await writeTree(info, entries, false);
  if (tree === null) {
    // An object known from an earlier snapshot may have been garbage-collected.
    entries = await store(info, wanted, () => false);
    tree = await writeTree(info, entries, false);
  }
  if (tree === null) throw changing(info.path);
  return { tree, entries };
}

function commitTree(info: WorktreeInfo, tree: string, parents: readonly string[], message: string): Promise<string> {
  return plumbing(info).line(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent]), '-m', message]);
}

/** Null if an object is missing. `mayMiss`: the index of an agent may name objects that do not exist. */
async function writeTree(info: WorktreeInfo, entries: Entries, mayMiss: boolean): Promise<string | null> {
  const index = privateIndex(info, 'snapshot.index');
  await readIntoIndex(info, index, entries);
  const answer = await plumbing(info).ask(['write-tree', ...(mayMiss ? ['--missing-ok'] : [])], { index });
  await rm(index, { force: true });
  return answer.status === 0 ? withoutEnd(answer.stdout) : null;
}

/** Writes an index with these entries. `index`: does not exist. */
export async function readIntoIndex(info: WorktreeInfo, index: string, entries: Entries): Promise<void> {
  const input = [...entries].map(([name, { mode, oid }]) => bytesOf(`${mode} ${oid}\t${name}\0`));
  await plumbing(info).run(['update-index', '-z', '--index-info'], { index, input });
}

/** Entries of a tree, as git reads them from its objects. */
export async function entriesOfTree(info: WorktreeInfo, tree: string): Promise<Entries> {
  return readEntries(await plumbing(info).run([...TREE_ARGS, tree]));
}

const TREE_ARGS = ['ls-tree', '-r', '-z', '--full-tree'];

function readEntries(output: Buffer): Entries {
  const entries = new Map<string, Entry>();
  for (const line of output.toString('latin1').split('\0')) {
    const tab = line.indexOf('\t');
    const [mode = '', , oid = ''] = line.slice(0, tab).split(' ');
    if (tab !== -1) entries.set(line.slice(tab + 1), { mode, oid });
  }
  return entries;
}

/** The same for a tree of ours: its id must be that of its contents, since git does not compare them. */
export async function trustedEntries(info: WorktreeInfo, tree: string): Promise<Entries> {
  const args = [...TREE_ARGS, tree];
  const answer = await plumbing(info).ask(args);
  if (answer.status !== 0) {
    const message = `the repository has lost the tree of a snapshot (${failed(args, answer).message})`;
    throw new GitError(
      'no-snapshot',
      message,
      '`meow gc` has removed it, or somebody by hand; commits are on the branch',
    );
  }
  const entries = readEntries(answer.stdout);
  if (treeId(entries, algorithmOf(info)) === tree) return entries;
  const message = `the object ${tree} of a snapshot does not have the contents that its name says`;
  throw new GitError('no-snapshot', message, 'it was forged, or the disk is damaged: run git fsck');
}

/** Id of the tree with these entries. */
export function treeId(entries: Entries, algorithm: 'sha1' | 'sha256'): string {
  const root: Folder = new Map();
  for (const [name, entry] of entries) {
    const parts = name.split('/');
    const last = parts.pop() ?? '';
    let folder = root;
    for (const part of parts) {
      let next = folder.get(part);
      if (!(next instanceof Map)) {
        next = new Map();
        folder.set(part, next);
      }
      folder = next;
    }
    folder.set(last, entry);
  }
  return idOf(root, algorithm);
}

type Folder = Map<string, Folder | Entry>;

function idOf(folder: Folder, algorithm: 'sha1' | 'sha256'): string {
  // Git compares folders as if their names ended with a slash.
  const sorted = [...folder].map(([name, child]) => ({ name, child, key: child instanceof Map ? `${name}/` : name }));
  sorted.sort((one, other) => (one.key < other.key ? -1 : 1));
  const lines = sorted.flatMap(({ name, child }) => {
    const [mode, oid] = child instanceof Map ? ['40000', idOf(child, algorithm)] : [child.mode, child.oid];
    return [bytesOf(`${mode} ${name}\0`), Buffer.from(oid, 'hex')];
  });
  const bytes = Buffer.concat(lines);
  return createHash(algorithm).update(`tree ${bytes.length}\0`).update(bytes).digest('hex');
}

/** Entries with the ids of objects that the repository has. */
async function store(info: WorktreeInfo, entries: Entries, isStored: (oid: string) => boolean): Promise<Entries> {
  const missing = [...entries].filter(([, { mode, oid }]) => mode !== REPOSITORY && !isStored(oid));
  if (missing.length === 0) return entries;
  const targets = missing.some(([, { mode }]) => mode === LINK) ? await mkdtemp(join(folderOf(info), 'links-')) : null;
  try {
    const paths: string[] = [];
    for (const [at, [name, { mode }]] of missing.entries()) {
      const isLink = mode === LINK && targets !== null;
      paths.push(
        isLink ? await linkTarget(info, name, join(targets, `${at}`)) : inside(info.path, name).toString('latin1'),
      );
    }
    const oids = await storeFiles(info, paths);
    const stored = missing.map(([name, entry], at) => [name, { ...entry, oid: oids[at] ?? entry.oid }] as const);
    return new Map([...entries, ...stored]);
  } finally {
    if (targets !== null) await rm(targets, { recursive: true, force: true });
  }
}

async function storeFiles(info: WorktreeInfo, paths: readonly string[]): Promise<readonly string[]> {
  const args = ['hash-object', '-w', '--no-filters', '--stdin-paths'];
  const answer = await plumbing(info).ask(args, { input: paths.map((path) => `${quoted(path)}\n`) });
  if (answer.status === 0) return withoutEnd(answer.stdout).split('\n');
  const [, name] = /could not open '([^\n]*)' for reading: (?:No such file|Not a directory)/.exec(answer.stderr) ?? [];
  throw name === undefined ? failed(args, answer) : changing(name);
}

/** Writes the target of a link to a file, since git would follow the link. Returns that file. */
async function linkTarget(info: WorktreeInfo, name: string, file: string): Promise<string> {
  try {
    await writeFile(file, await readlink(inside(info.path, name), { encoding: 'buffer' }));
    return nameOf(file);
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'EINVAL')) throw changing(textOf(name));
    throw error;
  }
}
