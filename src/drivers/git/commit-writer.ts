// Writes commits of working-tree contents with git's plumbing on private indexes. Neither the tree nor its index is touched.
//
// Files become blobs byte by byte (`hash-object --no-filters`). The tree of HEAD is read into an index of ours once for each
// HEAD; each snapshot changes a copy of it (`update-index --index-info`, `write-tree`) and is committed by `commit-tree`.

import { copyFileSync, renameSync } from 'node:fs';
import { mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { failed } from './git.ts';
import { GitError } from './git-error.ts';
import { bytesOf, inside, quoted, textOf } from './names.ts';
import { exists, folderOf, namesIn } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';

/** A file, a symbolic link, or the commit of a repository within the tree. */
export interface Content {
  readonly name: string;
  readonly mode: string;
  /** Null: to be read from the working tree. */
  readonly oid: string | null;
}

/** All differences to the tree of HEAD. */
export interface TreeChange {
  readonly removed: readonly string[];
  readonly contents: readonly Content[];
}

/** All differences between HEAD and the working tree's index. */
export interface StagedChange extends TreeChange {
  /** A copy of that index. */
  readonly index: string;
  /** Names that it has several stages of. Their stages are among the contents, under names of their own. */
  readonly unmerged: readonly string[];
}

export interface CommitRequest extends TreeChange {
  /** Null if the branch has no commit yet. */
  readonly head: string | null;
  /** Null if the working tree's index is like HEAD. */
  readonly staged: StagedChange | null;
  /** Further parents, to keep them alive. */
  readonly keep: readonly string[];
  readonly message: string;
}

export interface WrittenCommit {
  readonly commit: string;
  readonly tree: string;
  /** Every content with its object id. */
  readonly contents: readonly HashedContent[];
}

export interface HashedContent extends Content {
  readonly oid: string;
}

const REPOSITORY = '160000';
const LINK = '120000';

export class CommitWriter {
  readonly #info: WorktreeInfo;

  constructor(info: WorktreeInfo) {
    this.#info = info;
  }

  async write(request: CommitRequest): Promise<WrittenCommit> {
    const { head, removed, staged, message } = request;
    makeFolder(folderOf(this.#info));
    let contents = await this.#hash(request.contents);
    let tree = await this.#tree(await this.#baseIndex(head), { removed, contents });
    if (tree.status !== 0) {
      // An object known from an earlier snapshot may have been garbage-collected.
      contents = await this.#hash(
        request.contents.map((content) => (content.mode === REPOSITORY ? content : { ...content, oid: null })),
      );
      tree = await this.#tree(await this.#baseIndex(head), { removed, contents });
      if (tree.status !== 0) throw failed(['write-tree'], tree);
    }
    const parents = head === null ? [] : [head];
    if (staged !== null) {
      const stages = staged.unmerged.length > 0 ? staged.contents : [];
      const index = await this.#tree(staged.index, { removed: staged.unmerged, contents: stages });
      if (index.status !== 0) throw failed(['write-tree'], index);
      parents.push(await this.#commit(oidIn(index.stdout), parents, `${message}: the index`));
    }
    const oid = oidIn(tree.stdout);
    return { commit: await this.#commit(oid, [...parents, ...request.keep], message), tree: oid, contents };
  }

  #commit(tree: string, parents: readonly string[], message: string): Promise<string> {
    const args = ['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent]), '-m', message];
    return this.#info.git.line(args, { cwd: this.#info.path });
  }

  /** Answer of `write-tree`, which fails if an object is missing. */
  async #tree(base: string | null, { removed, contents }: TreeChange) {
    const { git, path: cwd, oidBytes } = this.#info;
    const index = join(folderOf(this.#info), 'snapshot.index');
    await breakLock(index);
    if (base === null) await rm(index, { force: true });
    else copyFileSync(base, index);
    const nothing = '0'.repeat(oidBytes * 2);
    const input = [
      ...removed.map((name) => bytesOf(`0 ${nothing}\t${name}\0`)),
      ...contents.map(({ mode, oid, name }) => bytesOf(`${mode} ${oid ?? nothing}\t${name}\0`)),
    ];
    if (input.length > 0) await git.run(['update-index', '-z', '--index-info'], { cwd, index, input });
    return git.ask(['write-tree'], { cwd, index });
  }

  /** Index of HEAD's tree, under a name that says which; null for an empty index. */
  async #baseIndex(head: string | null): Promise<string | null> {
    if (head === null) return null;
    const { git, path: cwd } = this.#info;
    const folder = folderOf(this.#info);
    const base = `base-${head}.index`;
    const earlier = namesIn(folder).filter((name) => /^base-[0-9a-f]+\.index$/.test(name));
    if (earlier.includes(base)) return join(folder, base);
    const index = join(folder, 'base.index');
    await breakLock(index);
    // From one HEAD to another, git reads only what differs.
    const [last] = earlier;
    if (last !== undefined) renameSync(join(folder, last), index);
    await git.run(['read-tree', ...(last === undefined ? [] : ['-m', '-i']), head], { cwd, index });
    renameSync(index, join(folder, base));
    return join(folder, base);
  }

  async #hash(contents: readonly Content[]): Promise<readonly HashedContent[]> {
    const unread = contents.filter(({ oid }) => oid === null);
    const targets = unread.some(({ mode }) => mode === LINK)
      ? await mkdtemp(join(folderOf(this.#info), 'links-'))
      : null;
    try {
      const paths: string[] = [];
      for (const [at, { name, mode }] of unread.entries()) {
        paths.push(mode === LINK && targets !== null ? await this.#linkTarget(name, join(targets, `${at}`)) : name);
      }
      const oids = (await this.#hashFiles(paths)).values();
      return contents.map((content) => ({ ...content, oid: content.oid ?? oids.next().value ?? '' }));
    } finally {
      if (targets !== null) await rm(targets, { recursive: true, force: true });
    }
  }

  async #hashFiles(paths: readonly string[]): Promise<readonly string[]> {
    if (paths.length === 0) return [];
    const args = ['hash-object', '-w', '--no-filters', '--stdin-paths'];
    const input = paths.map((path) => `${quoted(path)}\n`);
    const answer = await this.#info.git.ask(args, { cwd: this.#info.path, input });
    if (answer.status === 0) return answer.stdout.toString('latin1').trimEnd().split('\n');
    throw unreadable(answer.stderr) ?? failed(args, answer);
  }

  /** Writes the target of a link to a file, since git would follow the link. Returns that file. */
  async #linkTarget(name: string, file: string): Promise<string> {
    try {
      await writeFile(file, await readlink(inside(this.#info.path, name), { encoding: 'buffer' }));
      return Buffer.from(file).toString('latin1');
    } catch (error) {
      if (isErrno(error, ...ABSENT, 'EINVAL')) throw changing(textOf(name));
      throw error;
    }
  }
}

/** A git that was killed leaves its lock. Nobody else uses these indexes. */
async function breakLock(index: string): Promise<void> {
  if (exists(`${index}.lock`)) await rm(`${index}.lock`, { force: true });
}

function oidIn(output: Buffer): string {
  return output.toString('latin1').trim();
}

function unreadable(stderr: string): GitError | null {
  const [, name, reason] = /could not open '([^\n]*)' for reading: ([^\n]*)/.exec(stderr) ?? [];
  if (name === undefined || reason === undefined) return null;
  if (/^(?:No such file|Not a directory)/.test(reason)) return changing(name);
  return new GitError('refused', `${name} cannot be read (${reason})`, 'make it readable, or let git ignore it');
}

function changing(name: string): GitError {
  return new GitError(
    'refused',
    `${name} was changed while it was read`,
    'stop whatever still works in the tree, and try again',
  );
}
