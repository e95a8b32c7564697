// Installs adapters from a folder, or from a git repository fetched with the user's own git. Fetched files are checked and
// copied; nothing is run.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { ABSENT, asUsageError, isErrno, tolerate } from '../sys/errors.ts';
import { kindOf } from './sources.ts';

export type Source =
  | { readonly kind: 'folder'; readonly path: string }
  /** `ref`: a branch, tag or commit; null: the default branch. */
  | { readonly kind: 'git'; readonly url: string; readonly ref: string | null };

/** `./my-adapter`, `github.com/x/y`, `https://…`, `git@…`; a repository may have `#REF`. */
export function sourceOf(text: string, cwd: string): Source {
  const whole = resolve(cwd, text);
  const kind = kindOf(whole);
  if (kind === 'folder') return { kind: 'folder', path: whole };
  if (kind === 'file') throw new UsageError(`${text} is a file`, 'name the folder that adapter.toml is in');
  const [, address = text, ref = null] = /^(.*)#([^#]*)$/s.exec(text) ?? [];
  if (ref !== null && !/^\w[\w./-]*$/.test(ref)) {
    throw new UsageError(`${JSON.stringify(ref)} is not a branch, tag or commit`, 'write SOURCE#v1.0, or SOURCE alone');
  }
  const url = urlOf(address, cwd);
  if (url !== null) return { kind: 'git', url, ref };
  if (/^(?:\.{0,2}\/|~)/.test(address)) throw new UsageError(`there is no folder ${address}`, 'check the path');
  throw new UsageError(
    `${JSON.stringify(text)} is neither a folder nor the address of a git repository`,
    'for example: meow adapter install ./my-adapter, or github.com/NAME/REPOSITORY',
  );
}

function urlOf(address: string, cwd: string): string | null {
  const path = resolve(cwd, address);
  if (kindOf(path) === 'folder') return path;
  if (/^[a-z][a-z0-9+.-]*:\/\/./i.test(address) || /^\w[\w.-]*@\w[\w.-]*:./.test(address)) return address;
  return /^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+(?::\d+)?\/./i.test(address) ? `https://${address}` : null;
}

/** Calls `use` with the folder; a fetched folder exists only during the call. */
export function withSource<T>(source: Source, use: (folder: string) => T): T {
  if (source.kind === 'folder') return use(source.path);
  const folder = mkdtempSync(join(tmpdir(), 'meow-adapter-'));
  try {
    // Fetches a single commit, named by branch, tag or id.
    git(source.url, ['init', '--quiet', folder]);
    git(source.url, ['-C', folder, 'fetch', '--quiet', '--depth', '1', '--', source.url, source.ref ?? 'HEAD']);
    git(source.url, ['-C', folder, 'checkout', '--quiet', '--detach', 'FETCH_HEAD']);
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function git(url: string, args: readonly string[]): void {
  // Ignores the variables of a repository around the caller.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^GIT_(?:DIR|WORK_TREE|INDEX_FILE|PREFIX)$/.test(name),
  );
  const env = { ...Object.fromEntries(inherited), ...(process.stdin.isTTY ? {} : { GIT_TERMINAL_PROMPT: '0' }) };
  const { error, status, stderr } = spawnSync('git', args, {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (error !== undefined) {
    if (!isErrno(error, 'ENOENT', 'EACCES')) throw error;
    throw new UsageError('there is no git on PATH, which fetches adapters', 'install git, or name a folder');
  }
  if (status === 0) return;
  const said = stderr.trim().split('\n').at(-1) ?? '';
  throw new UsageError(
    `git cannot fetch ${url}: ${said}`,
    'check the address, and that git may read it: git ls-remote',
  );
}

/** A larger folder is not an adapter. */
const FILES_MAX = 200;
const BYTES_MAX = 5_000_000;

/** Installs an adapter's folder atomically: copies it beside `target`, which it replaces, then renames. */
export function putFolder(source: string, target: string): void {
  const files = filesIn(source);
  try {
    mkdirSync(dirname(target), { recursive: true });
    const staging = mkdtempSync(join(dirname(target), '.new-'));
    try {
      const fresh = join(staging, 'fresh');
      for (const file of files) {
        mkdirSync(dirname(join(fresh, file)), { recursive: true });
        copyFileSync(join(source, file), join(fresh, file));
      }
      if (isThere(target)) renameSync(target, join(staging, 'old'));
      renameSync(fresh, target);
    } catch (error) {
      if (existsSync(join(staging, 'old')) && !isThere(target)) renameSync(join(staging, 'old'), target);
      throw error;
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  } catch (error) {
    throw asUsageError(error, 'install the adapter', target);
  }
}

/** Removes a link without touching its target. */
export function removeFolder(target: string): void {
  try {
    const away = mkdtempSync(join(dirname(target), '.old-'));
    renameSync(target, join(away, 'old'));
    rmSync(away, { recursive: true, force: true });
  } catch (error) {
    throw asUsageError(error, 'remove the adapter', target);
  }
}

/** True for a dangling link, too. */
export function isThere(path: string): boolean {
  return tolerate(ABSENT, null, () => lstatSync(path)) !== null;
}

/** Plain files only, relative to the folder: a link could bring in anything. */
function filesIn(folder: string): readonly string[] {
  const files: string[] = [];
  let bytes = 0;
  const visit = (inside: string): void => {
    for (const entry of readdirSync(join(folder, inside), { withFileTypes: true })) {
      const path = join(inside, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== '.git') visit(path);
        continue;
      }
      if (!entry.isFile()) {
        const problem = `${path} is not a regular file; an adapter has only regular files`;
        throw new UsageError(problem, 'remove it, or put a copy there');
      }
      files.push(path);
      bytes += lstatSync(join(folder, path)).size;
      if (files.length > FILES_MAX || bytes > BYTES_MAX) {
        throw new UsageError(`${folder} is too much for an adapter: over ${FILES_MAX} files or ${BYTES_MAX / 1e6} MB`);
      }
    }
  };
  visit('');
  return files;
}
