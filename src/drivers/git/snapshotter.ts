// Takes snapshots of one working tree.
//
// The tree is read without git (walk.ts), so the first snapshot of an engine reads every file. Git is asked for the commit of
// HEAD, for a new index, and for a new commit's tree. If nothing has changed, a snapshot costs one process; if something has
// changed, four more (commit-writer.ts).

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { isErrno, REFUSED } from '../../sys/errors.ts';
import { clearPlaceOf, readUntrustedFile } from '../../sys/files.ts';
import { type CommitRequest, entriesOfTree, storeTree, treeId, trustedEntries, writeCommit } from './commit-writer.ts';
import { GitError, LINK, REPOSITORY } from './git.ts';
import { type IgnoreRules, readIgnoreRules } from './ignore.ts';
import { INDEX_ARGS, type IndexListing, readIndexListing } from './listing.ts';
import type { InnerRepository, Snapshot, SnapshotRecord } from './snapshot.ts';
import {
  breakRefLock,
  digestOf,
  hashOfFolder,
  indexPath,
  OPERATION_BYTES_MAX,
  operationFiles,
  operationPath,
  writeRecord,
  writeRef,
} from './snapshot.ts';
import { type Entries, grantAccess, isSame, type Walked, Walker } from './walk.ts';
import {
  algorithmOf,
  entryAt,
  exists,
  folderIn,
  folderOf,
  inside,
  isFolder,
  namesIn,
  plumbing,
  privateIndex,
  replaceBytes,
  textOf,
  type WorktreeInfo,
} from './worktree-paths.ts';

/** A new snapshot, with what was read for it. */
export interface Taken extends SnapshotRecord {
  readonly ignored: readonly string[];
  readonly entries: Entries;
}

export type HeadState = Pick<Snapshot, 'head' | 'branch'>;

export type WorktreeStatus = HeadState & {
  /** Paths that differ from HEAD, or are untracked and not ignored. */
  readonly paths: readonly string[];
};

/** Size limit of a file with ignore rules. */
const RULES_BYTES_MAX = 1_000_000;

export class Snapshotter {
  readonly #info: WorktreeInfo;
  readonly #walker = new Walker();
  /** Commit → its tree; null if it does not exist. */
  readonly #trees = new Map<string, string | null>();
  /** The latest trees of commits and of snapshots, with their entries. */
  readonly #commits = new Map<string, Entries>();
  readonly #snapshots = new Map<string, Entries>();
  #index: { readonly file: string; readonly listing: IndexListing } | null = null;
  #last: { readonly key: string; readonly commit: string; readonly tree: string } | null = null;
  /** Objects that this engine has stored. */
  #stored: ReadonlySet<string> = new Set();
  #rules: { readonly text: string; readonly rules: IgnoreRules } | null = null;

  constructor(info: WorktreeInfo) {
    this.#info = info;
  }

  /** Rules outside of the tree that make git ignore files: of the user, and of the repository. */
  excludes(): string {
    const { excludesFile, commonDir } = this.#info;
    const texts = [excludesFile, join(commonDir, 'info', 'exclude')].map((path) =>
      path === null ? '' : (readUntrustedFile(path, RULES_BYTES_MAX)?.text ?? ''),
    );
    return texts.join('\n');
  }

  get ignored(): string {
    return this.#rules?.text ?? '';
  }

  /** Uses these rules from now on. */
  ignoring(text: string): void {
    if (this.#rules?.text === text) return;
    this.#rules = { text, rules: readIgnoreRules(Buffer.from(text).toString('latin1')) };
  }

  async head(): Promise<HeadState> {
    const { git, gitDir, refsAreFiles } = this.#info;
    const [commit, ref] = await Promise.all([
      git.find(['rev-parse', '--verify', '--quiet', 'HEAD']),
      refsAreFiles ? refIn(join(gitDir, 'HEAD')) : git.find(['symbolic-ref', '--quiet', 'HEAD']),
    ]);
    const head = commit !== null && (await this.#treeIn(commit)) !== null ? commit : null;
    return { head, branch: ref?.startsWith('refs/heads/') === true ? ref.slice('refs/heads/'.length) : null };
  }

  /** `keep`: further commits for the ref to keep alive. */
  async take(name: string, keep: readonly string[] = []): Promise<Taken> {
    const info = this.#info;
    // Fails for a bad name before anything is done.
    breakRefLock(info, name);
    const { head, branch, index, headTree, committed, walked } = await this.#readOwn();
    const repositories = await this.#repositories(walked);
    const staged = index === null || isEqual(index.listing.entries, committed) ? null : index.listing.entries;
    const request = { head, entries: walked.entries, staged, keep, message: `meow: ${name} of ${info.run}` };
    const written =
      this.#clean(request, headTree) ?? this.#repeated(request) ?? (await this.#write(request, committed));
    const { commit, tree, entries } = written;
    remember(this.#snapshots, tree, entries);
    await writeRef(info, name, commit);
    const operation = await this.#copyOperation();
    const { ignored, special } = walked;
    const about = { repositories, index: index?.file ?? null, ignored, special, operation };
    const record: SnapshotRecord = { name, commit, tree, head, branch, ...about };
    const digest = digestOf(record);
    writeRecord(info, { ...record, digest });
    return { ...record, digest, ignored, entries };
  }

  /** An agent may have made files or folders of the run's own tree unreadable. */
  async #readOwn() {
    try {
      return await this.#read();
    } catch (error) {
      const isAboutFiles = error instanceof GitError || isErrno(error, ...REFUSED);
      const { kind, path } = this.#info;
      if (!isAboutFiles || kind !== 'worktree' || !grantAccess(path)) throw error;
      return this.#read();
    }
  }

  async #read() {
    const [{ head, branch }, index] = await Promise.all([this.head(), this.#copyIndex()]);
    const headTree = head === null ? null : await this.treeOf(head);
    const committed = headTree === null ? NONE : await this.#committed(headTree);
    const walked = this.#walk(committed, index?.listing ?? null, await this.#submodules());
    return { head, branch, index, headTree, committed, walked };
  }

  /** The present state without a snapshot of it. `start`: the state before the run; null if unknown. */
  async look(start: Snapshot | null) {
    const { head, branch, headTree, committed, walked } = await this.#read();
    const began = start === null ? NONE : await this.entriesOf(start.tree);
    const known = new Set([...committed.values(), ...began.values()].map(({ oid }) => oid));
    const isClean = treeId(walked.entries, algorithmOf(this.#info)) === headTree;
    const { tree, entries } =
      isClean && headTree !== null
        ? { tree: headTree, entries: walked.entries }
        : await storeTree(this.#info, walked.entries, (oid) => known.has(oid));
    const paths = await this.#changed({ entries, special: walked.special }, committed, began);
    return { head, branch, tree, entries, paths };
  }

  /** A file that differs from HEAD as git checked it out, through a filter, and that nobody has changed, is not listed. */
  async status(start: Snapshot): Promise<WorktreeStatus> {
    const { head, branch, entries, special } = await this.take('now');
    const committed = head === null ? NONE : await this.#committed(await this.treeOf(head));
    const began = await this.entriesOf(start.tree);
    return { head, branch, paths: await this.#changed({ entries, special }, committed, began) };
  }

  /** `began`: the state before the run. */
  async #changed(
    { entries, special }: Pick<Walked, 'entries' | 'special'>,
    committed: Entries,
    began: Entries,
  ): Promise<readonly string[]> {
    const base = await this.#committed(await this.treeOf(this.#info.base));
    const isChanged = (name: string): boolean => {
      const [now, then] = [entries.get(name), committed.get(name)];
      return !isSame(now, then) && !(isSame(now, began.get(name)) && isSame(then, base.get(name)));
    };
    const names = [...new Set([...committed.keys(), ...entries.keys()])].filter(isChanged);
    return [...names, ...special].map(textOf);
  }

  /** Throws if the commit does not exist. */
  async treeOf(commit: string): Promise<string> {
    return (await this.#treeIn(commit)) ?? plumbing(this.#info).line(['rev-parse', '--verify', `${commit}^{tree}`]);
  }

  async #treeIn(commit: string): Promise<string | null> {
    const known = this.#trees.get(commit);
    if (known !== undefined) return known;
    const tree = await plumbing(this.#info).find(['rev-parse', '--verify', '--quiet', `${commit}^{commit}^{tree}`]);
    this.#trees.set(commit, tree);
    return tree;
  }

  /** Entries of a snapshot's tree, as they were written. */
  async entriesOf(tree: string): Promise<Entries> {
    const known = this.#snapshots.get(tree) ?? (await trustedEntries(this.#info, tree));
    remember(this.#snapshots, tree, known);
    return known;
  }

  /** Entries of a commit of anybody. */
  async #committed(tree: string): Promise<Entries> {
    const known = this.#commits.get(tree) ?? (await entriesOfTree(this.#info, tree));
    remember(this.#commits, tree, known);
    return known;
  }

  async #submodules(): Promise<ReadonlyMap<string, string>> {
    const entries = await this.#committed(await this.treeOf(this.#info.base));
    return new Map([...entries].filter(([, { mode }]) => mode === REPOSITORY).map(([name, { oid }]) => [name, oid]));
  }

  #walk(committed: Entries, index: IndexListing | null, submodules: ReadonlyMap<string, string>): Walked {
    if (this.#rules === null) this.ignoring(this.excludes());
    const tracked = new Set([...committed.keys(), ...(index?.names ?? [])]);
    const { path } = this.#info;
    const algorithm = algorithmOf(this.#info);
    return this.#walker.walk({ path, algorithm, tracked, submodules, rules: this.#rules?.rules ?? [] });
  }

  /** HEAD, if the tree is clean. */
  #clean({ head, entries, staged, keep }: CommitRequest, headTree: string | null) {
    if (head === null || headTree === null || staged !== null || keep.length > 0) return null;
    return treeId(entries, algorithmOf(this.#info)) === headTree ? { commit: head, tree: headTree, entries } : null;
  }

  /** The last snapshot's commit, if this one would be the same. */
  #repeated(request: CommitRequest) {
    return this.#last?.key === keyOf(request) ? { ...this.#last, entries: request.entries } : null;
  }

  async #write(request: CommitRequest, committed: Entries) {
    const inHead = new Set([...committed.values()].map(({ oid }) => oid));
    const stored = this.#stored;
    this.#stored = new Set();
    const written = await writeCommit(this.#info, request, (oid) => inHead.has(oid) || stored.has(oid));
    const { entries, commit, tree } = written;
    this.#stored = new Set([...entries.values()].map(({ oid }) => oid));
    this.#last = { key: keyOf({ ...request, entries }), commit, tree };
    return written;
  }

  async #repositories({ repositories, entries }: Walked): Promise<readonly InnerRepository[]> {
    const found: InnerRepository[] = [];
    for (const name of repositories) {
      const kind = entries.get(name)?.mode === REPOSITORY ? 'submodule' : 'nested';
      found.push({ kind, name, head: (await innerHead(this.#info, name)) ?? null });
    }
    return found;
  }

  /** Null if there is no index that git can read. */
  async #copyIndex() {
    const info = this.#info;
    const path = join(info.gitDir, 'index');
    const found = entryAt(info.gitDir, 'index');
    if (found === null || found === 'folder' || found.mode === LINK) return null;
    const isSplit = namesIn(info.gitDir).some((name) => name.startsWith('sharedindex.'));
    const bytes = isSplit ? await this.#joined(path) : readFileSync(path);
    const file = createHash('sha256').update(bytes).digest('hex');
    if (this.#index?.file === file && exists(indexPath(info, file))) return this.#index;
    folderIn(info, 'indexes');
    const copy = indexPath(info, file);
    replaceBytes(copy, bytes);
    const answer = await plumbing(info).ask(INDEX_ARGS, { index: copy });
    if (answer.status !== 0) return null;
    this.#index = { file, listing: readIndexListing(answer.stdout) };
    return this.#index;
  }

  /**
   * A split index in one file. Git finds the shared part only in its git folder, and deletes it some day. It must not
   * read the working tree meanwhile: that could run filters.
   */
  async #joined(path: string): Promise<Buffer> {
    const info = this.#info;
    const index = privateIndex(info, 'joined.index');
    // Its own git folder: other calls empty theirs.
    const folder = join(folderOf(info), 'split');
    const git = info.git.plumbing(folder, info.commonDir, info.oidBytes);
    writeFileSync(index, readFileSync(path), { flag: 'wx', mode: 0o600 });
    for (const name of namesIn(info.gitDir)) {
      const found = name.startsWith('sharedindex.') ? entryAt(info.gitDir, name) : null;
      if (found === null || found === 'folder' || found.mode === LINK) continue;
      replaceBytes(join(folder, name), readFileSync(join(info.gitDir, name)));
    }
    await git.run(['-c', 'core.splitIndex=false', 'update-index', '--no-split-index'], { index });
    const joined = readFileSync(index);
    rmSync(index);
    return joined;
  }

  async #copyOperation(): Promise<string | null> {
    const info = this.#info;
    const names = operationFiles(info);
    if (names.length === 0) return null;
    folderIn(info, 'operations');
    const draft = operationPath(info, '0');
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { mode: 0o700 });
    for (const name of names) copyFiles(join(info.gitDir, name), join(draft, name));
    const folder = hashOfFolder(draft);
    const path = operationPath(info, folder);
    if (isFolder(path) && hashOfFolder(path) === folder) {
      rmSync(draft, { recursive: true });
    } else {
      rmSync(path, { recursive: true, force: true });
      clearPlaceOf(path);
      renameSync(draft, path);
    }
    return folder;
  }
}

/** Copies regular files and folders, and nothing else. */
export function copyFiles(from: string, to: string): void {
  if (isFolder(from)) {
    mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(from)) copyFiles(join(from, name), join(to, name));
    return;
  }
  const text = readUntrustedFile(from, OPERATION_BYTES_MAX, 'latin1')?.text ?? null;
  if (text !== null) writeFileSync(to, text, { encoding: 'latin1', mode: 0o600 });
}

function refIn(path: string): string | null {
  return /^ref: (.+)\n$/.exec(readUntrustedFile(path, RULES_BYTES_MAX)?.text ?? '')?.[1] ?? null;
}

const NONE: Entries = new Map();
const REMEMBERED_MAX = 4;

/** Keeps the latest few. */
function remember(known: Map<string, Entries>, tree: string, entries: Entries): void {
  known.delete(tree);
  known.set(tree, entries);
  const [oldest] = known.keys();
  if (known.size > REMEMBERED_MAX && oldest !== undefined) known.delete(oldest);
}

function isEqual(one: Entries, other: Entries): boolean {
  if (one.size !== other.size) return false;
  for (const [name, entry] of one) if (!isSame(entry, other.get(name))) return false;
  return true;
}

/** Equal for two snapshots of the same state. */
function keyOf({ head, entries, staged, keep }: CommitRequest): string {
  const hash = createHash('sha256');
  for (const each of [entries, staged ?? NONE]) {
    for (const [name, { mode, oid }] of each) hash.update(`${mode} ${oid} ${name}\0`);
    hash.update('\0');
  }
  return [head, staged === null, ...keep, hash.digest('hex')].join(' ');
}

/** Undefined if there is no repository; null if it has no commit. */
export async function innerHead(info: WorktreeInfo, name: string): Promise<string | null | undefined> {
  if (!exists(inside(info.path, `${name}/.git`))) return undefined;
  // Node cannot use a working directory whose name is not UTF-8.
  const cwd = inside(info.path, name).toString('utf8');
  if (!exists(cwd)) return null;
  return info.git.find(['--git-dir', '.git', '--work-tree', '.', 'rev-parse', '--verify', '--quiet', 'HEAD'], { cwd });
}
