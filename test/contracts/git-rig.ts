// Repositories in a temporary folder: a user's, and the worktree of a run.
//
//   await using rig = await GitRig.setup(); const worktree = await rig.worktree();

import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { Result } from '../../src/base/errors.ts';
import type { GitProblem } from '../../src/drivers/git/git.ts';
import { Repository } from '../../src/drivers/git/repository.ts';
import type { RestoreRequest } from '../../src/drivers/git/restore.ts';
import type { Snapshot } from '../../src/drivers/git/snapshot.ts';
import type { Worktree } from '../../src/drivers/git/worktree.ts';

/** Path, one character per byte → its contents. */
export type Picture = ReadonlyMap<string, string>;

/** Folders of repositories, by the options of `git init`. */
const templates = new Map<string, string>();

export class GitRig implements AsyncDisposable {
  readonly base: string;
  /** The user's repository. */
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;

  /** With a commit, and a tree that is not clean. */
  static async setup(init: readonly string[] = []): Promise<GitRig> {
    const rig = new GitRig(realpathSync(mkdtempSync(join(tmpdir(), 'meow-git-'))));
    const template = templates.get(init.join(' '));
    // Three starts of git less for each of several hundred tests.
    if (template === undefined) rig.#makeTemplate(init);
    else cpSync(template, rig.user, { recursive: true, preserveTimestamps: true });
    rig.write('a.txt', "the user's change\n");
    rig.write('untracked', 'u\n');
    return rig;
  }

  /** The user's repository with its commit, and a copy of it for the next rigs of this process. */
  #makeTemplate(init: readonly string[]): void {
    this.git('.', 'init', '--quiet', '-b', 'main', ...init, this.user);
    this.write('.gitignore', '*.log\nbuild/\n');
    this.write('a.txt', 'a\n');
    this.write('dir/c.txt', 'c\n');
    this.write('dir/sub/f', 'f\n');
    this.write('run.sh', '#!/bin/sh\n', 0o755);
    this.git('user', 'add', '-A');
    this.git('user', 'commit', '--quiet', '-m', 'base');
    const folder = mkdtempSync(join(tmpdir(), 'meow-git-template-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    cpSync(this.user, folder, { recursive: true, preserveTimestamps: true });
    templates.set(init.join(' '), folder);
  }

  private constructor(base: string) {
    this.base = base;
    this.user = join(base, 'user');
    mkdirSync(this.user);
    mkdirSync(join(base, 'home'));
    this.environment = {
      PATH: process.env['PATH'] ?? '',
      HOME: join(base, 'home'),
      GIT_CONFIG_NOSYSTEM: '1',
      // None of these may take effect.
      GIT_DIR: '/nowhere',
      GIT_INDEX_FILE: '/nowhere/index',
      GIT_EXTERNAL_DIFF: '/bin/false',
    };
    writeFileSync(
      join(base, 'home', '.gitconfig'),
      '[user]\nname = u\nemail = u@example.org\n[core]\nhooksPath = /nowhere\n[status]\nshowUntrackedFiles = no\n[diff]\nnoprefix = true\n[commit]\ngpgSign = true\n[gpg]\nprogram = /bin/false\n',
    );
  }

  /** Runs git as a user or an agent would, in a folder below the base. Must succeed. */
  git(folder: string, ...args: readonly string[]): string {
    return execFileSync('git', GIT_ARGS.concat(args), { ...this.#options(folder), encoding: 'latin1' });
  }

  /** The same, but may fail. Returns its output. */
  try(folder: string, ...args: readonly string[]): string {
    return spawnSync('git', GIT_ARGS.concat(args), this.#options(folder)).stdout.toString('latin1');
  }

  /** Names with one character per byte that a rule of git ignores, tracked or not. */
  ignoredAmong(folder: string, names: readonly string[]): ReadonlySet<string> {
    const args = GIT_ARGS.concat('check-ignore', '--no-index', '--stdin', '-z');
    const input = Buffer.from(names.map((name) => `${name}\0`).join(''), 'latin1');
    const { status, stdout } = spawnSync('git', args, { ...this.#options(folder), stdio: 'pipe', input });
    // 1: none of them.
    if (status !== 0 && status !== 1) throw new Error(`git check-ignore failed with ${status}`);
    return new Set(stdout.toString('latin1').split('\0').slice(0, -1));
  }

  #options(folder: string) {
    const env = {
      PATH: this.environment['PATH'] ?? '',
      HOME: join(this.base, 'home'),
      GIT_OPTIONAL_LOCKS: '0',
      GIT_EDITOR: 'true',
    };
    return { cwd: join(this.base, folder), env, stdio: ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore'] };
  }

  /** In the user's tree. */
  write(path: string, text: string | Uint8Array, mode = 0o644): void {
    const file = join(this.user, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode });
  }

  async open(folder = this.user): Promise<Repository> {
    return value(await Repository.open(folder, this.environment));
  }

  async worktree(run = 'wf-1'): Promise<Worktree> {
    const repository = await this.open();
    return value(await repository.addWorktree(this.request(repository, run)));
  }

  request(repository: Repository, run = 'wf-1') {
    return {
      run,
      path: join(this.base, 'trees', run),
      base: repository.head,
      runFolder: join(this.base, 'runs', run),
    };
  }

  /** As the journal knows it, of the run wf-1 in the user's repository. */
  snapshot(name: string): Snapshot {
    const record = join(this.user, '.git/meow/wf-1/snapshots', `${name}.json`);
    const { commit, tree, head, branch } = JSON.parse(readFileSync(record, 'utf8')) as Snapshot;
    return { name, commit, tree, head, branch };
  }

  /** A commit as if it were a snapshot. */
  commit(folder: string, commit: string): Snapshot {
    const tree = this.git(folder, 'rev-parse', `${commit}^{tree}`).trim();
    return { name: 'none', commit, tree, head: commit, branch: null };
  }

  restoreTo(name: string | Snapshot, id: string, more: Partial<RestoreRequest> = {}): RestoreRequest {
    const to = typeof name === 'string' ? this.snapshot(name) : name;
    return {
      id,
      to,
      start: to,
      protectedBranches: ['main', 'release/*'],
      lastCommit: null,
      before: join(this.base, 'before.patch'),
      after: join(this.base, 'after.patch'),
      ...more,
    };
  }

  /** Everything of the user that a run must not touch. */
  userPicture(): unknown {
    const inGit = (path: string) => join(this.user, '.git', path);
    return {
      files: [...picture(this.user)],
      status: this.git('user', 'status', '--porcelain=v2', '-z', '--branch', '-uall'),
      index: [statSync(inGit('index'), { bigint: true }).mtimeNs, hash(readFileSync(inGit('index')))],
      head: readFileSync(inGit('HEAD'), 'utf8'),
      log: readFileSync(inGit('logs/HEAD'), 'utf8'),
      main: this.git('user', 'rev-parse', 'main'),
      config: readFileSync(inGit('config'), 'utf8'),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** The product must disable signing; the test's own git must not fail because of it. */
const GIT_ARGS: readonly string[] = [
  '-c',
  'commit.gpgSign=false',
  '-c',
  'gc.auto=0',
  '-c',
  'protocol.file.allow=always',
];

export function value<T>(result: Result<T, GitProblem>): T {
  if (result.ok) return result.value;
  throw new Error(`${result.error.kind}: ${result.error.message}`);
}

export function problem(result: Result<unknown, GitProblem>): GitProblem {
  if (result.ok) throw new Error('it was not refused');
  return result.error;
}

/** All files and links below a folder, without the top-level .git. */
export function picture(root: string): Picture {
  const found = new Map<string, string>();
  const visit = (folder: Buffer, prefix: string): void => {
    for (const entry of readdirSync(folder, { encoding: 'buffer' })) {
      const path = Buffer.concat([folder, Buffer.from('/'), entry]);
      const name = prefix + entry.toString('latin1');
      if (name === '.git') continue;
      const stat = lstatSync(path);
      if (stat.isDirectory()) visit(path, `${name}/`);
      else if (stat.isSymbolicLink()) found.set(name, `link ${readlinkSync(path, { encoding: 'latin1' })}`);
      else found.set(name, `${(stat.mode & 0o100) === 0 ? 'file' : 'program'} ${hash(readFileSync(path))}`);
    }
  };
  visit(Buffer.from(root), '');
  return found;
}

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
