// Reads a working tree without git, so that nothing an agent tells git can hide a file.
//
// walk/1  Every file is read and hashed. A hash is reused only if the inode, its size and its times of change are the same, and
//         old enough to show another change: nobody can set the time of a change (ctime) back.
// walk/2  Only regular files are opened, without following links and without waiting.
// walk/3  A file is ignored by the `.gitignore` files of the tree and the rules that the caller gives. Tracked files are never
//         ignored.
// walk/4  A repository within the tree is read like a folder, except its `.git`. A submodule of the base commit is opaque.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from 'node:fs';

import { ABSENT, isErrno, REFUSED, tolerate, UNUSABLE } from '../../sys/errors.ts';
import { GitError, LINK, REPOSITORY } from './git.ts';
import { type IgnoreRules, isIgnored, readIgnoreRules } from './ignore.ts';
import { entryAt, exists, inside, NameSet, textOf } from './worktree-paths.ts';

/** By name: everything in the tree that a commit can hold. */
export type Entries = ReadonlyMap<string, Entry>;

export interface Entry {
  /** `100644`, `100755`, `120000` for a link, `160000` for a submodule. */
  readonly mode: string;
  readonly oid: string;
}

/** Both may be absent. */
export function isSame(one: Entry | undefined, other: Entry | undefined): boolean {
  return one?.mode === other?.mode && one?.oid === other?.oid;
}

export interface Walked {
  readonly entries: Entries;
  /** An ignored folder stands for its contents, with a trailing slash. */
  readonly ignored: readonly string[];
  /** What no commit can hold: pipes, sockets, devices, and files in folders whose names git takes for its own. */
  readonly special: readonly string[];
  /** Repositories within the tree, without `/.git`. */
  readonly repositories: readonly string[];
}

export interface WalkRequest {
  readonly path: string;
  readonly algorithm: 'sha1' | 'sha256';
  /** Names that are tracked. */
  readonly tracked: Iterable<string>;
  /** Submodules of the base commit. */
  readonly submodules: ReadonlyMap<string, string>;
  /** Rules with less weight than those of the tree. */
  readonly rules: IgnoreRules;
}

/** File systems keep coarse times: two changes in quick succession may look like one. */
const RECENT_MS = 2_000;

type KnownHashes = Map<string, { readonly fingerprint: string; readonly oid: string }>;

export class Walker {
  /** Hashes of files by name, with the fingerprint that they had. */
  #known: KnownHashes = new Map();

  walk({ path: root, algorithm, tracked, submodules, rules }: WalkRequest): Walked {
    const names = new Set(tracked);
    const trackedIn = new NameSet(names);
    const entries = new Map<string, Entry>();
    const ignored: string[] = [];
    const special: string[] = [];
    const repositories: string[] = [];
    const known: KnownHashes = new Map();
    const recentMs = Date.now() - RECENT_MS;

    const add = (name: string): void => {
      const found = entryAt(root, name);
      if (found === 'folder') return;
      if (found === null) {
        if (exists(inside(root, name))) special.push(name);
        return;
      }
      const earlier = this.#known.get(name);
      const oid = earlier?.fingerprint === found.fingerprint ? earlier.oid : hashAt(root, name, found.mode, algorithm);
      entries.set(name, { mode: found.mode, oid });
      if (found.changedAtMs < recentMs) known.set(name, { fingerprint: found.fingerprint, oid });
    };

    /** `above`: rules of the folders above, the nearest last. `isWithin`: the folder is ignored. */
    const visit = (folder: string, above: readonly FolderRules[], isWithin: boolean, isUnnameable: boolean): void => {
      const prefix = folder === '' ? '' : `${folder}/`;
      const children = readFolder(root, folder);
      const own = children.some(({ name }) => name === '.gitignore') ? rulesIn(root, `${prefix}.gitignore`) : [];
      const present = own.length > 0 ? [...above, { prefix, rules: own }] : above;
      for (const { name: child, isFolder } of children) {
        const name = `${prefix}${child}`;
        if (child === '.git') {
          if (folder !== '') repositories.push(folder);
          continue;
        }
        if (isUnnameable || /^\.git$/i.test(child)) {
          if (isFolder) visit(name, present, isWithin, true);
          else special.push(name);
          continue;
        }
        const link = submodules.get(name);
        if (isFolder && link !== undefined && isOpaque(root, name)) {
          entries.set(name, { mode: REPOSITORY, oid: link });
          if (exists(inside(root, `${name}/.git`))) repositories.push(name);
          continue;
        }
        const isTracked = isFolder ? trackedIn.isWithin(name) : names.has(name);
        const isLeftOut = isWithin || ((isFolder || !isTracked) && verdict(present, rules, name, isFolder));
        if (!isFolder) {
          if (isLeftOut && !isTracked) ignored.push(name);
          else add(name);
        } else if (isLeftOut && !isTracked) {
          ignored.push(`${name}/`);
        } else {
          visit(name, present, isLeftOut, false);
        }
      }
    };
    visit('', [], false, false);
    this.#known = known;
    return { entries, ignored, special, repositories };
  }
}

/**
 * Gives the owner access to what the owner has lost access to: `chmod 000` must not keep a tree from being read or
 * restored. Folders become writable, files readable. Returns whether there was any.
 */
export function grantAccess(root: string): boolean {
  const owner = process.geteuid?.();
  const visit = (name: string): boolean => {
    const path = name === '' ? root : inside(root, name);
    const stats = tolerate(UNUSABLE, undefined, () => lstatSync(path, { throwIfNoEntry: false }));
    if (stats === undefined || stats.uid !== owner || !(stats.isFile() || stats.isDirectory())) return false;
    const needed = stats.isDirectory() ? 0o700 : 0o400;
    const isDenied = (stats.mode & needed) !== needed;
    if (isDenied) tolerate(UNUSABLE, undefined, () => chmodSync(path, (stats.mode & 0o777) | needed));
    if (!stats.isDirectory()) return isDenied;
    const children = tolerate(UNUSABLE, [], () => readdirSync(path, { encoding: 'buffer' }));
    const prefix = name === '' ? '' : `${name}/`;
    return children.reduce((before, child) => visit(`${prefix}${child.toString('latin1')}`) || before, isDenied);
  };
  return visit('');
}

interface FolderRules {
  /** Put before the names in the folder. */
  readonly prefix: string;
  readonly rules: IgnoreRules;
}

function verdict(present: readonly FolderRules[], rules: IgnoreRules, name: string, isFolder: boolean): boolean {
  for (const { prefix, rules: own } of present.toReversed()) {
    const found = isIgnored(own, name.slice(prefix.length), isFolder);
    if (found !== null) return found;
  }
  return isIgnored(rules, name, isFolder) ?? false;
}

/** With a repository in it, or empty: whatever else is in it is not of a submodule. */
function isOpaque(root: string, name: string): boolean {
  return exists(inside(root, `${name}/.git`)) || readFolder(root, name).length === 0;
}

function readFolder(root: string, folder: string): readonly { readonly name: string; readonly isFolder: boolean }[] {
  try {
    return readdirSync(inside(root, folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) => ({
      name: entry.name.toString('latin1'),
      isFolder: entry.isDirectory(),
    }));
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...ABSENT)) throw unreadable(folder === '' ? root : textOf(folder), error);
    throw error;
  }
}

/** A larger file has no rules. */
const RULES_BYTES_MAX = 1_000_000;

function rulesIn(root: string, name: string): IgnoreRules {
  if (entryAt(root, name) === null || entryAt(root, name) === 'folder') return [];
  const pieces: Buffer[] = [];
  const size = readFile(root, name, (bytes) => pieces.push(Buffer.from(bytes)), RULES_BYTES_MAX);
  return size === null ? [] : readIgnoreRules(Buffer.concat(pieces).toString('latin1'));
}

/** Object id of a file's bytes, or of a link's target. */
function hashAt(root: string, name: string, mode: string, algorithm: WalkRequest['algorithm']): string {
  try {
    if (mode === LINK) {
      return blobId(readlinkSync(inside(root, name), { encoding: 'buffer' }), algorithm);
    }
    const hash = createHash(algorithm);
    readFile(root, name, (bytes, size) => {
      if (size !== null) hash.update(`blob ${size}\0`);
      hash.update(bytes);
    });
    return hash.digest('hex');
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...ABSENT, 'EINVAL', 'ELOOP', 'ENXIO')) throw unreadable(textOf(name), error);
    throw error;
  }
}

function blobId(bytes: Buffer, algorithm: WalkRequest['algorithm']): string {
  return createHash(algorithm).update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
}

const CHUNK = Buffer.allocUnsafe(1024 * 1024);

/**
 * Feeds the bytes of a regular file, of which the first call gets the size. Returns the size; null if it is not a regular file,
 * or larger than `bytesMax`. A link is not followed.
 */
function readFile(
  root: string,
  name: string,
  feed: (bytes: Buffer, size: number | null) => void,
  bytesMax = Number.POSITIVE_INFINITY,
): number | null {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let file: number;
  try {
    file = openSync(inside(root, name), flags);
  } catch (error) {
    if (bytesMax < Number.POSITIVE_INFINITY && isErrno(error, 'ELOOP', 'ENXIO', ...REFUSED, ...ABSENT)) return null;
    throw error;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > bytesMax) return null;
    feed(NOTHING, stats.size);
    let left = stats.size;
    while (left > 0) {
      const read = readSync(file, CHUNK, 0, Math.min(CHUNK.length, left), null);
      if (read === 0) throw changing(textOf(name));
      feed(CHUNK.subarray(0, read), null);
      left -= read;
    }
    return stats.size;
  } finally {
    closeSync(file);
  }
}

const NOTHING = Buffer.alloc(0);

export function changing(name: string): GitError {
  return new GitError(
    'refused',
    `${name} was changed while it was read`,
    'stop whatever still works in the tree, and try again',
  );
}

function unreadable(name: string, { code }: NodeJS.ErrnoException): GitError {
  if (ABSENT.some((each) => each === code) || code === 'EINVAL' || code === 'ELOOP') return changing(name);
  return new GitError('refused', `${name} cannot be read (${code})`, 'make it readable, or let git ignore it');
}
