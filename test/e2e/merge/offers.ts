// A repository with workers in worktrees of their own, who offer their work to `main`; and everything that must be true of
// the result.

import { mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync, spawnSync } from 'node:child_process';
import { Rig, type Result } from '../../rig/rig.ts';

const KILLER = join(import.meta.dirname, 'git-that-kills.sh');
const USER = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];

/** Passes unless both `red` and `blue` exist, and records the tree that it saw, file by file. */
const CHECK = `index=$(mktemp -u) && GIT_INDEX_FILE=$index git add -A && tree=$(GIT_INDEX_FILE=$index git write-tree) &&
rm -f "$index" && [ "$tree" = "$(git rev-parse 'HEAD^{tree}')" ] && { [ ! -e red ] || [ ! -e blue ]; } && echo "$tree" >>"$PASSED"`;

export interface Offer {
  readonly outcome: string;
  readonly target: string | null;
  readonly base: string | null;
  readonly commit: string | null;
  readonly check: string | null;
  readonly output: string;
}

export class Offers implements AsyncDisposable {
  readonly rig: Rig;
  #kills = 0;

  static async setup(): Promise<Offers> {
    const offers = new Offers(await Rig.setup());
    offers.git('symbolic-ref', 'HEAD', 'refs/heads/main');
    offers.rig.write('.gitignore', '.meow/\n');
    for (const name of ['a', 'b', 'c']) offers.rig.write(name, `${name}\n`);
    offers.commit('.', 'base');
    return offers;
  }

  private constructor(rig: Rig) {
    this.rig = rig;
    mkdirSync(rig.path('../killer'));
    symlinkSync(KILLER, rig.path('../killer/git'));
  }

  git(...args: readonly string[]): string {
    return this.gitIn('.', ...args);
  }

  gitIn(folder: string, ...args: readonly string[]): string {
    const options = { cwd: this.rig.path(folder), env: this.rig.environment, encoding: 'utf8', stdio: 'pipe' } as const;
    return execFileSync('git', [...USER, ...args], options).trim();
  }

  commit(folder: string, message: string): void {
    this.gitIn(folder, 'add', '-A');
    this.gitIn(folder, 'commit', '--quiet', '--allow-empty', '-m', message);
  }

  /** A worktree on a branch of its own, with a commit that writes files. */
  worker(name: string, files: Readonly<Record<string, string>>): void {
    this.git('worktree', 'add', '--quiet', '-b', name, join('..', name));
    this.work(name, files);
  }

  work(name: string, files: Readonly<Record<string, string>>): void {
    for (const [file, text] of Object.entries(files)) this.rig.write(join('..', name, file), text);
    this.commit(join('..', name), `work of ${name}`);
  }

  /** Runs `meow merge offer` in the folder of a worker. */
  offer(name: string, ...flags: readonly string[]): Promise<Result> {
    return this.#offer(name, {}, flags);
  }

  async offered(name: string, ...flags: readonly string[]): Promise<Offer> {
    const { stdout, stderr, code } = await this.offer(name, ...flags);
    if (stdout === '') throw new Error(`no result (exit code ${code}): ${stderr}`);
    const offer = JSON.parse(stdout) as Offer;
    if (code !== (offer.outcome === 'merged' ? 0 : 1)) throw new Error(`exit code ${code} for ${stdout}${stderr}`);
    return offer;
  }

  /** False if it ended before it was killed. `at`: such as `7:before`, the call of git. */
  async offerKilledAt(at: string, name: string): Promise<boolean> {
    this.#kills += 1;
    const folder = this.rig.path(`../killer/${this.#kills}`);
    mkdirSync(folder);
    const path = this.rig.environment['PATH'] ?? '';
    const kill = { KILL_AT: at, KILL_FOLDER: folder, KILL_PATH: path };
    const { code } = await this.#offer(name, { ...kill, PATH: `${this.rig.path('../killer')}:${path}` }, []);
    return code === 137;
  }

  async #offer(name: string, more: Readonly<Record<string, string>>, flags: readonly string[]): Promise<Result> {
    const { PATH: path = '' } = this.rig.environment;
    // The check must not meet the git that kills.
    const check = `PATH='${path}'\n${CHECK}`;
    const own = flags.includes('--check') ? [] : ['--check', check];
    const passed = this.rig.path('../passed');
    const args = ['merge', 'offer', '--id', name, ...own, '--json', ...flags];
    return this.rig.meowWith({ PASSED: passed, ...more }, ...args, '--worktree', this.rig.path(join('..', name)));
  }

  /** First-parent history of main, the latest first, without the first commit. */
  history(): readonly { readonly commit: string; readonly tree: string; readonly key: string }[] {
    const format = '--format=%H %T %(trailers:key=Meow-Offer,valueonly,separator=%x2C)';
    const lines = this.git('log', '--first-parent', format, 'main').split('\n').slice(0, -1);
    return lines.map((line) => {
      const [commit = '', tree = '', key = ''] = line.split(' ');
      return { commit, tree, key };
    });
  }

  /** What is wrong, whatever was killed. `merged`: keys of the offers that were reported as merged, with their commits. */
  async problems(merged: ReadonlyMap<string, string>): Promise<readonly string[]> {
    const passed = new Set(readFileSync(this.rig.path('../passed'), 'utf8').split('\n'));
    const history = this.history();
    const known = history.flatMap(({ commit, tree, key }) => [
      ...(passed.has(tree) ? [] : [`${commit} (${key}) has not passed its check`]),
      ...(merged.get(key) === commit ? [] : [`${commit} (${key}) was not reported, or is merged twice`]),
    ]);
    const lost = [...merged].flatMap(([key, commit]) => {
      const isThere = history.some((each) => each.key === key && each.commit === commit);
      return isThere && this.git('show', `main:done-${key}`) === key ? [] : [`${key} is lost`];
    });
    return [...known, ...lost, ...(await this.left())];
  }

  /** What offers have left. */
  async left(): Promise<readonly string[]> {
    const trees = this.git('worktree', 'list', '--porcelain').split('\n');
    return [
      ...this.git('status', '--porcelain')
        .split('\n')
        .filter((line) => line !== ''),
      ...trees.filter((line) => line.includes('merge-main')),
      ...this.rig.files('.git/meow-merge').filter((name) => !name.endsWith('/')),
      ...(this.rig.exists('.meow/worktrees/merge-main') ? ['the worktree'] : []),
      ...(await this.rig.left()).map((pid) => `process ${pid}`),
    ];
  }

  /** Takes the latest target into a worker's branch; its own version of each file wins. */
  resolve(name: string): void {
    const folder = join('..', name);
    const merge = [
      '-c',
      'user.name=Ada',
      '-c',
      'user.email=ada@example.org',
      'merge',
      '--quiet',
      '--no-edit',
      '-X',
      'ours',
    ];
    const options = { cwd: this.rig.path(folder), env: this.rig.environment };
    if (spawnSync('git', [...merge, 'main'], options).status === 0) return;
    // One has deleted what the other has changed: it stays.
    this.commit(folder, 'both');
  }

  remove(name: string, file: string): void {
    rmSync(this.rig.path(join('..', name, file)), { force: true });
    this.commit(join('..', name), `${name} without ${file}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}
