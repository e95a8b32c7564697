// An agent that makes random changes to a working tree, from a seed; and the expected state after undoing them.

import { appendFileSync, chmodSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { foldersOf } from '../../src/drivers/git/worktree-paths.ts';
import { below, oneOf, type Random } from '../../src/base/random.ts';
import { type GitRig, picture, type Picture } from './git-rig.ts';

/** One character per byte: some are not valid UTF-8. */
const NAMES: readonly string[] = [
  ['a.txt', 'b.txt', 'run.sh', 'dir/c.txt', 'dir/sub/f', 'dir/sub/g', 'deep/er/est', 'a.txt/inner', 'dir', 'link'],
  ['with space', 'caf\xe9', 'new\nline', '"q\\'],
  ['x.log', 'dir/y.log', 'build/out', 'build/more/out', 'inner/file', 'inner/z.log'],
].flat();

export class Agent {
  readonly #rig: GitRig;
  readonly #folder: string;
  readonly #path: string;
  readonly #random: Random;
  #count = 0;

  constructor(rig: GitRig, folder: string, random: Random) {
    this.#rig = rig;
    this.#folder = folder;
    this.#path = join(rig.base, folder);
    this.#random = random;
  }

  work(acts: number): readonly string[] {
    const done: string[] = [];
    for (let act = 0; act < acts; act += 1) {
      const [title, perform] = oneOf(this.#random, Object.entries(this.#acts));
      this.#count += 1;
      done.push(title);
      try {
        perform();
      } catch (error) {
        // It tries impossible operations: a file in a file, a folder over itself.
        if (!(error instanceof Error && 'code' in error)) throw error;
      }
    }
    return done;
  }

  readonly #acts: Readonly<Record<string, () => void>> = {
    create: () => this.#write(this.#name()),
    'create more': () => this.#write(this.#name()),
    append: () => appendFileSync(this.#at(this.#name()), `more ${this.#count}\n`),
    'replace in the same size': () => {
      const at = this.#at(this.#name());
      if (lstatSync(at).isFile()) writeFileSync(at, `${this.#count % 10}`.repeat(lstatSync(at).size));
    },
    delete: () => rmSync(this.#at(this.#name()), { recursive: true }),
    rename: () => renameSync(this.#at(this.#name()), this.#at(this.#name())),
    chmod: () => chmodSync(this.#at(this.#name()), oneOf(this.#random, [0o644, 0o755])),
    'file to folder': () => {
      rmSync(this.#at('a.txt'), { recursive: true, force: true });
      this.#write('a.txt/inner');
    },
    'folder to file': () => {
      rmSync(this.#at('dir'), { recursive: true, force: true });
      this.#write('dir');
    },
    'folder to link': () => {
      rmSync(this.#at('dir'), { recursive: true, force: true });
      symlinkSync(oneOf(this.#random, ['deep', '/etc', 'nowhere']), this.#at('dir'));
    },
    link: () => symlinkSync(oneOf(this.#random, ['a.txt', 'dir', '../outside', 'caf\xe9']), this.#at(this.#name())),
    'ignore more': () =>
      appendFileSync(this.#at('.gitignore'), `${oneOf(this.#random, ['b.txt', 'dir/', 'inner', '*.txt'])}\n`),
    'ignore less': () => writeFileSync(this.#at('.gitignore'), oneOf(this.#random, ['*.log\n', 'build/\n', ''])),
    'line ends': () => writeFileSync(this.#at('b.txt'), 'one\r\ntwo\r\n'),
    add: () => this.#git('add', '-A'),
    'add one': () => this.#git('add', '-f', '--', 'a.txt'),
    'add ignored': () => this.#git('add', '-f', '--', oneOf(this.#random, ['x.log', 'build', 'dir/y.log'])),
    intend: () => this.#git('add', '-N', '--', 'b.txt'),
    'remove from the index': () =>
      this.#git('rm', '-r', '--cached', '--quiet', '--', oneOf(this.#random, ['a.txt', 'dir', 'x.log'])),
    'remove folder': () => this.#git('rm', '-r', '-f', '--quiet', '--', 'dir'),
    'hide a change': () => {
      this.#git('update-index', oneOf(this.#random, ['--assume-unchanged', '--skip-worktree']), '--', 'a.txt');
      this.#write('a.txt');
    },
    commit: () => this.#commit(),
    'commit all': () => this.#commit('-a'),
    amend: () => this.#commit('-a', '--amend'),
    'commit everything': () => {
      this.#git('add', '-A');
      this.#commit();
    },
    branch: () => this.#git('checkout', '--quiet', '-b', `agent-${this.#count}-${below(this.#random, 1e6)}`),
    detach: () => this.#git('checkout', '--quiet', '--detach'),
    'back to its branch': () => this.#git('checkout', '--quiet', 'meow/run-wf-1'),
    'back a commit': () =>
      this.#git('reset', oneOf(this.#random, ['--hard', '--soft', '--mixed']), '--quiet', 'HEAD~1'),
    orphan: () => this.#git('checkout', '--quiet', '--orphan', `orphan-${this.#count}-${below(this.#random, 1e6)}`),
    stash: () => this.#git('stash', '--quiet', ...oneOf(this.#random, [[], ['-u'], ['-a']])),
    unstash: () => this.#git('stash', 'pop', '--quiet'),
    conflict: () => {
      this.#git('stash', '--quiet');
      this.#git('checkout', '--quiet', '-b', `side-${this.#count}-${below(this.#random, 1e6)}`, 'HEAD~1');
      this.#write('a.txt');
      this.#git('add', 'a.txt');
      this.#commit();
      this.#git(
        ...oneOf(this.#random, [['merge', '--quiet'], ['rebase', '--quiet'], ['cherry-pick']]),
        'meow/run-wf-1',
      );
    },
    'a repository within': () => {
      const folder = oneOf(this.#random, ['inner', 'deep/repo', 'dir/sub', 'build/repo']);
      mkdirSync(this.#at(folder), { recursive: true });
      this.#git('init', '--quiet', folder);
      writeFileSync(this.#at(`${folder}/file`), `${this.#count}`);
      if (below(this.#random, 2) === 0) return;
      this.#rig.try(`${this.#folder}/${folder}`, 'add', '-A');
      this.#rig.try(`${this.#folder}/${folder}`, 'commit', '--quiet', '-m', 'inner');
    },
    'collect garbage': () => this.#git('gc', '--quiet', '--prune=now'),
    'die at it': () => writeFileSync(join(this.#gitDir(), 'index.lock'), ''),
  };

  #gitDir(): string {
    return this.#rig.git(this.#folder, 'rev-parse', '--absolute-git-dir').trim();
  }

  #name(): string {
    return oneOf(this.#random, NAMES);
  }

  #at(name: string): Buffer {
    return Buffer.concat([Buffer.from(`${this.#path}/`), Buffer.from(name, 'latin1')]);
  }

  #write(name: string): void {
    const folder = name.slice(0, Math.max(0, name.lastIndexOf('/')));
    if (folder !== '') mkdirSync(this.#at(folder), { recursive: true });
    writeFileSync(this.#at(name), `${name} ${this.#count} ${below(this.#random, 100)}\n`);
  }

  #git(...args: readonly string[]): void {
    // A leftover lock would make all following operations fail.
    rmSync(join(this.#gitDir(), 'index.lock'), { force: true });
    this.#rig.try(this.#folder, ...args);
  }

  #commit(...more: readonly string[]): void {
    this.#git('commit', '--quiet', '-m', `commit ${this.#count}`, ...more);
  }
}

export interface Sight {
  readonly files: Picture;
  /** The index, HEAD and the output of git about the tree. */
  readonly git: Readonly<Record<'index' | 'status' | 'operations', string>>;
  /** Untracked files that are ignored, and folders without tracked files, with a trailing slash. */
  readonly ignored: readonly string[];
  /** Folders with a `.git`. */
  readonly repositories: readonly string[];
}

export function see(rig: GitRig, folder: string): Sight {
  const gitDir = rig.git(folder, 'rev-parse', '--absolute-git-dir').trim();
  const status = rig.git(
    folder,
    'status',
    '--porcelain=v2',
    '-z',
    '-uall',
    '--branch',
    '--no-renames',
    // A restore does not roll back the index of a repository within the tree.
    '--ignore-submodules=dirty',
  );
  const files = picture(join(rig.base, folder));
  const operations = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'rebase-merge', 'rebase-apply'];
  return {
    files,
    git: {
      index: rig.git(folder, 'ls-files', '-s', '-v', '-z'),
      status: status.replaceAll('\0', '\n'),
      operations: operations.filter((name) => existsSync(join(gitDir, name))).join(),
    },
    ignored: ignoredIn(rig, folder, files),
    repositories: [...new Set([...files.keys()].flatMap((name) => /^(.*?)\/\.git\//s.exec(name)?.[1] ?? []))],
  };
}

/**
 * Git reports neither ignored files of repositories within the tree, nor ignored folders in the place of tracked files, so it is
 * asked about each file. Files of HEAD are tracked even if they were removed from the index.
 */
function ignoredIn(rig: GitRig, folder: string, files: Picture): readonly string[] {
  const inHead = rig.try(folder, 'ls-tree', '-r', '-z', '--name-only', 'HEAD').split('\0');
  const tracked = new Set([...inHead, ...rig.git(folder, 'ls-files', '-z').split('\0')]);
  const isOwn = (name: string): boolean => !name.split('/').includes('.git');
  const folders = [...new Set([...files.keys()].flatMap(foldersOf))].filter(isOwn);
  const names = [...files.keys()].filter(isOwn);
  const matches = rig.ignoredAmong(folder, [...folders, ...names]);
  const isUntracked = (each: string): boolean => ![...tracked].some((name) => name.startsWith(`${each}/`));
  return [
    ...folders.filter((each) => matches.has(each) && isUntracked(each)).map((each) => `${each}/`),
    ...names.filter((name) => matches.has(name) && !tracked.has(name)),
  ];
}

/**
 * The expected state: everything as in the snapshot, and files that a snapshot excludes as before the restore: ignored files, and
 * the `.git` of repositories within the tree.
 */
export function expected(then: Sight, before: Sight): Picture {
  const gitFolders = then.repositories.map((folder) => `${folder}/.git/`);
  const isLeft = (name: string): boolean => isCovered(name, [...then.ignored, ...gitFolders]);
  return new Map([
    ...[...then.files].filter(([name]) => !isLeft(name)),
    ...[...before.files].filter(([name]) => isLeft(name)),
  ]);
}

function isCovered(name: string, by: readonly string[]): boolean {
  return by.some((left) => (left.endsWith('/') ? name.startsWith(left) : name === left));
}
