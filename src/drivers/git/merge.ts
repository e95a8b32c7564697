// Merges a commit into a branch: the git part of the merge queue. Callers make sure that there is one merge for each branch
// at a time.
//
// merge/1  A merge commit has the contents of a tree that was checked out in a throw-away worktree, byte for byte as git
//          stores it: rebasing, merging and checking out run no filter, hook, merge driver or configuration of the
//          repository or the user. Converting line ends (`.gitattributes`) is all that git does to a file.
// merge/2  The branch moves by compare-and-swap, from the commit that the merge commit has as its first parent.
// merge/3  A linear history is rebased. One with merge commits is merged as it is, since a rebase would ask for the conflicts
//          again that those merge commits have resolved.
// merge/4  The tree of the offered commit is never touched. Working trees in which the branch is checked out follow it, as if
//          the user had merged (with the user's filters): before the branch moves they must be clean, and a file beside the
//          worktree says which have to follow, so that the next merge completes what was killed in between.
// merge/5  Everything temporary has fixed places, which the next merge into the same branch empties before it begins.

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import type { Result } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { makeFolder, makeFolderBelow, readJsonFile, writeJsonFile } from '../../sys/files.ts';
import { asResult, failed, type Git, GitError, type GitProblem } from './git.ts';
import type { Repository } from './repository.ts';
import { uncommittedIn } from './work-done.ts';
import { isFolder, namesIn, readSmallFile, registeredGitDir, textOf } from './worktree-paths.ts';

/** The merge that an offer asks for, before anything is checked. */
export type PreparedMerge =
  /** `base`: the commit of the branch; `commit`: the merge commit, which no branch has yet. */
  | { readonly kind: 'ready'; readonly base: string; readonly commit: string }
  | { readonly kind: 'conflict'; readonly base: string; readonly files: readonly string[] }
  /** The branch has everything already. */
  | { readonly kind: 'nothing'; readonly base: string };

export interface MergedOffer {
  /** The merge commit, and its first parent. */
  readonly commit: string;
  readonly base: string;
}

/** Line of the message of a merge commit that names its offer. */
const TRAILER = 'Meow-Offer';

/** Folder for everything about merges of a repository. */
export function mergeFolder(repository: Repository): string {
  return join(repository.info.commonDir, 'meow-merge');
}

/** Name of a file or folder for a branch or a key. */
export function mergeName(text: string): string {
  if (/^[A-Za-z0-9_-]{1,60}$/.test(text)) return text;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return `${text.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, 40)}-${hash}`;
}

/** The latest merge commit with this key in the first-parent history of branches; of all local ones if none is named. */
export function findMerged(
  repository: Repository,
  key: string,
  target: string | null,
): Promise<Result<MergedOffer | null, GitProblem>> {
  return asResult(async () => {
    const trailer = `${TRAILER}: ${key}`;
    const refs = target === null ? ['--branches'] : [`refs/heads/${target}`];
    const format = '--format=%x1e%H %P%n%(trailers:key=Meow-Offer)';
    const search = ['--first-parent', '--merges', '--fixed-strings', `--grep=${trailer}`];
    const found = await gitOf(repository).run(['log', ...search, format, ...refs, '--']);
    for (const record of found.toString('utf8').split('\x1e').slice(1)) {
      const [head = '', ...lines] = record.split('\n');
      const [commit = '', base = ''] = head.split(' ');
      if (lines.includes(trailer)) return { commit, base };
    }
    return null;
  });
}

/** Files of the offered worktree that are not committed, and so not part of the offer. */
export function uncommittedFiles(repository: Repository): Promise<Result<readonly string[], GitProblem>> {
  return asResult(async () => {
    const { head, info } = repository;
    const { path, gitDir } = info;
    const facts = { run: 'offer', kind: 'in-place', path, branch: null, base: head, pointer: null } as const;
    const { paths } = await uncommittedIn(repository, { ...facts, start: null, excludes: null }, gitDir);
    return paths;
  });
}

export class BranchMerge {
  readonly target: string;
  /** For files about merges into this branch. */
  readonly folder: string;
  /** The throw-away worktree. */
  readonly tree: string;
  readonly #repository: Repository;

  /** Fails if there is no such branch. */
  static async open(repository: Repository, target: string): Promise<Result<BranchMerge, GitProblem>> {
    return asResult(async () => {
      const git = gitOf(repository);
      if ((await git.tipOf(target)) === null) {
        const branches = (await git.line(['for-each-ref', '--format=%(refname:strip=2)', 'refs/heads/'])).split('\n');
        const guess = didYouMean(target, branches);
        throw new GitError('gone', `there is no branch ${target}`, `${guess}name another one: --target BRANCH`);
      }
      return new BranchMerge(repository, target);
    });
  }

  private constructor(repository: Repository, target: string) {
    this.#repository = repository;
    this.target = target;
    this.folder = join(mergeFolder(repository), mergeName(target));
    makeFolderBelow(repository.info.commonDir, this.folder);
    const [inProject, inRepository] = this.#places();
    // Where worktrees of runs are, programs find the dependencies that are installed beside them.
    this.tree = inProject !== undefined && isFolder(join(dirname(dirname(inProject)))) ? inProject : inRepository;
  }

  /** Removes what a killed merge has left, and completes what it began (merge/4). */
  recover(): Promise<Result<readonly string[], GitProblem>> {
    return asResult(async () => {
      await this.#clear();
      return this.#followUp();
    });
  }

  /** Removes the worktree. */
  clear(): Promise<Result<void, GitProblem>> {
    return asResult(() => this.#clear());
  }

  /** Makes the merge commit in the worktree, and checks it out there. `head`: the offered commit. */
  prepare(offer: { readonly head: string; readonly key: string }): Promise<Result<PreparedMerge, GitProblem>> {
    return asResult(async () => {
      const { head, key } = offer;
      await this.#clear();
      const base = await this.#tip();
      const isUnrelated = (await this.#plain().find(['merge-base', base, head])) === null;
      if (isUnrelated) {
        const message = `the offered commit ${head.slice(0, 12)} has no history in common with ${this.target}`;
        throw new GitError('refused', message, 'offer a worktree of a branch that began at the target');
      }
      if ((await this.#plain().find(['merge-base', '--is-ancestor', head, base])) !== null)
        return { kind: 'nothing', base };
      const gitDir = await this.#add(base);
      const git = this.#private();
      await git.run(['read-tree', '--reset', '-u', base]);
      await git.run(['update-ref', '--no-deref', 'HEAD', base]);
      const combined = await combine(git, base, head);
      if (combined.kind === 'conflict') return { ...combined, base };
      const { tip, tree } = combined;
      if (tip === base) return { kind: 'nothing', base };
      // Removes files that only the target has.
      await git.run(['read-tree', '--reset', '-u', tree]);
      const message = `Merge offer ${key}\n\n${TRAILER}: ${key}\n`;
      const args = ['commit-tree', tree, '-p', base, '-p', tip];
      const commit = await this.#plain().line(args, { input: [message] });
      await this.#checkOut(gitDir, commit);
      return { kind: 'ready', base, commit };
    });
  }

  /** Gives every file of the commit its contents again, whatever a command has done to it; new files stay. */
  checkOut(commit: string): Promise<Result<void, GitProblem>> {
    return asResult(async () => {
      const gitDir = registeredGitDir(this.#repository.info.commonDir, this.tree);
      if (gitDir === null) throw new GitError('gone', `the worktree ${this.tree} was removed`, 'offer again');
      await this.#checkOut(gitDir, commit);
    });
  }

  /** Fails if the branch is checked out in a working tree that cannot follow to the commit. */
  checkCheckouts(commit: string | null): Promise<Result<void, GitProblem>> {
    return asResult(async () => {
      for (const path of await this.#checkouts()) await this.#requireClean(path, commit);
    });
  }

  /** False if somebody has moved the branch. Returns trees that could not follow, with git's reasons. */
  advance(merge: MergedOffer): Promise<Result<readonly string[] | 'moved', GitProblem>> {
    return asResult(async () => {
      const { commit, base } = merge;
      const trees = await this.#checkouts();
      for (const path of trees) await this.#requireClean(path, commit);
      writeJsonFile(this.#followers, { ...merge, trees });
      const ref = `refs/heads/${this.target}`;
      const moved = await gitOf(this.#repository).ask(['update-ref', '-m', 'meow merge offer', ref, commit, base]);
      if (moved.status !== 0) {
        rmSync(this.#followers, { force: true });
        if ((await this.#tip()) === base) throw failed(['update-ref'], moved);
        return 'moved';
      }
      return this.#followUp();
    });
  }

  get #followers(): string {
    return join(this.folder, 'followers.json');
  }

  /** Lets working trees follow the branch. */
  async #followUp(): Promise<readonly string[]> {
    const intent = readJsonFile(this.#followers) as Partial<MergedOffer & { trees: readonly unknown[] }> | null;
    const { commit, base, trees } = intent ?? {};
    const problems: string[] = [];
    const isWhole = [commit, base].every((oid) => typeof oid === 'string' && /^[0-9a-f]{40,64}$/.test(oid));
    if (isWhole && commit !== undefined && base !== undefined && commit === (await this.#tip())) {
      for (const path of await this.#checkouts()) {
        if (!Array.isArray(trees) || !trees.includes(path)) continue;
        const problem = await this.#follow(path, base, commit);
        if (problem !== null) problems.push(problem);
      }
    }
    rmSync(this.#followers, { force: true });
    return problems;
  }

  /** Null if the tree is at the commit. */
  async #follow(path: string, base: string, commit: string): Promise<string | null> {
    if ((await this.#changedIn(path)).length === 0) return null;
    const call = { cwd: path, mayWait: true };
    const { git } = this.#repository.info;
    const answer = await git.ask(['read-tree', '-m', '-u', base, commit], call);
    if (answer.status === 0) return null;
    const { message } = failed(['read-tree'], answer);
    return `${path} has ${this.target} checked out and could not follow: ${message}; see: git -C ${path} status`;
  }

  /** Git's own words about tracked files that differ from HEAD. */
  async #changedIn(path: string): Promise<readonly string[]> {
    const args = ['status', '--porcelain', '--untracked-files=no', '--ignore-submodules=dirty', '--no-renames'];
    const listed = await this.#repository.info.git.run(args, { cwd: path, mayWait: true });
    return listed
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '');
  }

  async #requireClean(path: string, commit: string | null): Promise<void> {
    const [changed] = await this.#changedIn(path);
    const refuse = (what: string): GitError =>
      new GitError(
        'dirty',
        `${this.target} is checked out in ${path}, where ${what}`,
        `commit or stash it, or check out another branch there: git -C ${path} switch --detach`,
      );
    if (changed !== undefined) throw refuse(`${changed.slice(3)} has uncommitted changes`);
    if (commit === null) return;
    const args = ['read-tree', '-n', '-m', '-u', `refs/heads/${this.target}`, commit];
    const answer = await this.#repository.info.git.ask(args, { cwd: path, mayWait: true });
    if (answer.status !== 0) throw refuse(`a file is in the way: ${failed(args, answer).message}`);
  }

  /** Working trees in which the branch is checked out. */
  async #checkouts(): Promise<readonly string[]> {
    const listed = (await gitOf(this.#repository).run(['worktree', 'list', '--porcelain'])).toString('utf8');
    return listed.split('\n\n').flatMap((entry) => {
      const lines = entry.split('\n');
      if (!lines.includes(`branch refs/heads/${this.target}`)) return [];
      const path = lines.find((line) => line.startsWith('worktree '))?.slice('worktree '.length);
      return path !== undefined && isFolder(path) ? [path] : [];
    });
  }

  async #tip(): Promise<string> {
    const tip = await gitOf(this.#repository).tipOf(this.target);
    if (tip !== null) return tip;
    throw new GitError('gone', `the branch ${this.target} was deleted`, 'create it again, or name another --target');
  }

  /** Git folder of the new worktree, which has no files yet. */
  async #add(commit: string): Promise<string> {
    makeFolder(dirname(this.tree));
    await gitOf(this.#repository).run(['worktree', 'add', '--quiet', '--detach', '--no-checkout', this.tree, commit]);
    const gitDir = registeredGitDir(this.#repository.info.commonDir, this.tree);
    if (gitDir === null) throw new GitError('gone', `the worktree ${this.tree} was removed`, 'offer again');
    return gitDir;
  }

  async #checkOut(gitDir: string, commit: string): Promise<void> {
    const { commonDir } = this.#repository.info;
    const index = join(gitDir, 'index');
    for (const path of [index, `${index}.lock`]) rmSync(path, { force: true, recursive: true });
    // An index of its own without any times: every file is written.
    const git = this.#private();
    await git.run(['read-tree', commit], { index });
    await git.run(['checkout-index', '--all', '--force', '--index', '--quiet'], { index });
    const inTree = this.#repository.info.git.inTree(this.tree, gitDir, commonDir);
    await inTree.run(['update-ref', '--no-deref', 'HEAD', commit]);
  }

  /** Objects only. */
  #plain(): Git {
    const { git, commonDir, oidBytes } = this.#repository.info;
    return git.plumbing(join(this.folder, 'plain-git'), commonDir, oidBytes);
  }

  /** Without configuration, for the files of the worktree. It starts with an empty index. */
  #private(): Git {
    const { git, commonDir, oidBytes } = this.#repository.info;
    return git.plumbing(join(this.folder, 'git'), commonDir, oidBytes, this.tree);
  }

  /** Fixed places for the worktree: with those of runs, or in the repository. */
  #places(): readonly [string | undefined, string] {
    const { commonDir } = this.#repository.info;
    const inRepository = join(this.folder, 'tree');
    if (basename(commonDir) !== '.git') return [undefined, inRepository];
    return [join(dirname(commonDir), '.meow', 'worktrees', `merge-${mergeName(this.target)}`), inRepository];
  }

  async #clear(): Promise<void> {
    const { commonDir } = this.#repository.info;
    const registered = join(commonDir, 'worktrees');
    for (const place of this.#places()) {
      if (place === undefined) continue;
      await rm(place, { recursive: true, force: true });
      for (const name of namesIn(registered)) {
        const pointer = readSmallFile(join(registered, name, 'gitdir'))?.trimEnd();
        if (pointer === join(place, '.git')) await rm(join(registered, name), { recursive: true, force: true });
      }
    }
    for (const name of ['git', 'plain-git']) await rm(join(this.folder, name), { recursive: true, force: true });
  }
}

/** Rebases or merges the head onto the base, which is checked out (merge/3). */
async function combine(
  git: Git,
  base: string,
  head: string,
): Promise<
  | { readonly kind: 'clean'; readonly tip: string; readonly tree: string }
  | { readonly kind: 'conflict'; readonly files: readonly string[] }
> {
  const fork = await git.line(['merge-base', base, head]);
  const treeOf = (commit: string): Promise<string> => git.line(['rev-parse', '--verify', `${commit}^{tree}`]);
  if (fork === base) return { kind: 'clean', tip: head, tree: await treeOf(head) };
  const isLinear = (await git.line(['rev-list', '--merges', '--max-count=1', `${base}..${head}`])) === '';
  const args = isLinear
    ? ['rebase', '--quiet', '--onto', base, fork, head]
    : ['merge', '--quiet', '--no-ff', '--no-commit', '--no-edit', head];
  const answer = await git.ask(args);
  if (answer.status !== 0) {
    const unmerged = await git.run(['ls-files', '--unmerged', '-z']);
    const names = unmerged
      .toString('latin1')
      .split('\0')
      .flatMap((entry) => entry.split('\t').slice(1).join('\t') || []);
    if (names.length === 0) throw failed(args, answer);
    return { kind: 'conflict', files: [...new Set(names)].map(textOf) };
  }
  if (!isLinear) return { kind: 'clean', tip: head, tree: await git.line(['write-tree']) };
  const tip = await git.line(['rev-parse', '--verify', 'HEAD^{commit}']);
  return { kind: 'clean', tip, tree: await treeOf(tip) };
}

/** Without any configuration of the user. */
function gitOf({ info: { git, path, gitDir, commonDir } }: Repository): Git {
  return git.inTree(path, gitDir, commonDir);
}
