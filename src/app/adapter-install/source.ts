// Sources of adapters: a folder, or a git repository fetched with the user's own git. Fetched files are checked and
// copied; nothing is run.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { isErrno } from '../../sys/errno.ts';
import { UsageError } from '../../base/usage-error.ts';

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
  const hash = text.lastIndexOf('#');
  const address = hash === -1 ? text : text.slice(0, hash);
  const ref = hash === -1 ? null : text.slice(hash + 1);
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
  const { error, status, stderr } = spawnSync('git', args, {
    env: {
      ...Object.fromEntries(inherited),
      ...(process.stdin.isTTY ? {} : { GIT_TERMINAL_PROMPT: '0' }),
    },
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

function kindOf(path: string): 'folder' | 'file' | null {
  if (!existsSync(path)) return null;
  return statSync(path).isDirectory() ? 'folder' : 'file';
}
