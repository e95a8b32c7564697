// A project in a temporary folder, in which tests call the built `meow` as a user would. Every process that it starts
// has a marker in its environment, so that nothing survives the test, neither a detached engine nor a process of a
// step.
//
//   await using rig = await Rig.setup(); rig.write('a.meow.toml', …); const { stdout, code } = await rig.meow('run',
// 'a.meow.toml');

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = resolve(import.meta.dirname, '../..');
export const MEOW = join(ROOT, 'bin/meow');
const KILL_AT_APPEND = join(ROOT, 'test/e2e/crash-sweep/kill-at-append.cjs');

/**
 * Longer than anything takes on a busy machine, where a second of work may take half a minute. Shorter than the timeout
 * of a test.
 */
const PATIENCE_MS = 120_000;

const LIFE_MAX_MS = 200_000;

export interface Result {
  readonly stdout: string;
  readonly stderr: string;
  /** As in a shell: 128 plus the number of the signal for a killed process. */
  readonly code: number;
}

export class Rig implements AsyncDisposable {
  /** The project. */
  readonly folder: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly #base: string;
  readonly #mark = randomUUID();

  static async setup(): Promise<Rig> {
    if (!existsSync(join(ROOT, 'dist/meow.cjs'))) throw new Error('dist/ is missing: run `npm run build` first');
    const rig = new Rig(realpathSync(mkdtempSync(join(tmpdir(), 'meow-e2e-'))));
    execFileSync('git', ['init', '--quiet', rig.folder]);
    return rig;
  }

  private constructor(base: string) {
    this.#base = base;
    this.folder = join(base, 'project');
    this.home = join(base, 'home');
    mkdirSync(this.folder);
    mkdirSync(this.home);
    const inherited = Object.entries(process.env).filter(([name]) => !/^(MEOW_|NO_COLOR$|FORCE_COLOR$|LC_)/.test(name));
    this.environment = {
      ...(Object.fromEntries(inherited) as Record<string, string>),
      HOME: this.home,
      LANG: 'C.UTF-8',
      MEOW_RIG: this.#mark,
    };
  }

  path(file: string): string {
    return join(this.folder, file);
  }

  write(file: string, text: string | Uint8Array): void {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), text);
  }

  read(file: string): string {
    return readFileSync(this.path(file), 'utf8');
  }

  exists(file: string): boolean {
    return existsSync(this.path(file));
  }

  /** Everything in the project except `.git`; folders end with a slash. */
  files(folder = ''): readonly string[] {
    return readdirSync(this.path(folder))
      .toSorted()
      .flatMap((name) => {
        const path = join(folder, name);
        if (path === '.git') return [];
        return statSync(this.path(path)).isDirectory() ? [`${path}/`, ...this.files(path)] : [path];
      });
  }

  /** Runs to its end. */
  meow(...args: readonly string[]): Promise<Result> {
    return this.start(...args).ended;
  }

  /** With additional environment variables. */
  meowWith(environment: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Result> {
    return this.startWith(environment, ...args).ended;
  }

  startWith(environment: Readonly<Record<string, string>>, ...args: readonly string[]): Live {
    return new Live(MEOW, args, this.folder, { ...this.environment, ...environment });
  }

  /** Killed with -9 at a moment of the Nth append to the journal: `3:durable`. It ends by itself if there are fewer. */
  meowKilledAt(append: string, ...args: readonly string[]): Promise<Result> {
    return this.meowWith({ NODE_OPTIONS: `--require ${KILL_AT_APPEND}`, KILL_AT: append }, ...args);
  }

  /** In another working directory than the project. */
  meowIn(folder: string, ...args: readonly string[]): Promise<Result> {
    return new Live(MEOW, args, folder, this.environment).ended;
  }

  start(...args: readonly string[]): Live {
    return new Live(MEOW, args, this.folder, this.environment);
  }

  /** A shell command line, with `meow` on its PATH. */
  shell(script: string): Promise<Result> {
    const path = `${dirname(MEOW)}:${this.environment['PATH'] ?? ''}`;
    return new Live('/bin/sh', ['-c', script], this.folder, { ...this.environment, PATH: path }).ended;
  }

  async status(id: string, ...flags: readonly string[]): Promise<RunObject> {
    const { stdout, stderr, code } = await this.meow('status', id, ...flags, '--json');
    if (code !== 0) throw new Error(`meow status ${id} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as RunObject;
  }

  /** Kinds of decisions with their steps, in order: `step-started build`. */
  decisions(id: string): readonly string[] {
    return this.read(`.meow/workflows/${id}/journal.jsonl`)
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .flatMap((line) => (JSON.parse(line) as { decisions: { kind: string; step?: string }[] }).decisions)
      .map(({ kind, step }) => (step === undefined ? kind : `${kind} ${step}`));
  }

  /** Waits for a file that a step creates. */
  appears(file: string): Promise<void> {
    return until(() => this.exists(file), `${file} to appear`);
  }

  /** Waits for a decision in the journal. */
  decided(id: string, decision: string): Promise<void> {
    const journal = `.meow/workflows/${id}/journal.jsonl`;
    return until(() => this.exists(journal) && this.decisions(id).includes(decision), `${decision} in run ${id}`);
  }

  /** The process that holds the run. */
  enginePid(id: string): number {
    return (JSON.parse(this.read(`.meow/workflows/${id}.yaml.lock`)) as { pid: number }).pid;
  }

  /** Running processes of the rig. tmux servers are started without its marker, but have its home. */
  processes(): readonly number[] {
    return marked([`MEOW_RIG=${this.#mark}`, `HOME=${this.home}`]);
  }

  /**
   * Processes left by ended engines. The perl helper of an engine exits shortly after it, when its stdin closes
   * (src/drivers/spawner.ts): that is awaited, and nothing else is.
   */
  async left(): Promise<readonly number[]> {
    await until(() => !this.processes().some(isStarter), 'those that started processes to end');
    return this.processes();
  }

  /** In the folder `disk`, on its own file system: `size=64k`, `ro`. Null if mounting is not permitted. */
  async onDisk(options: string, commands: string): Promise<Result | null> {
    mkdirSync(this.path('disk'), { recursive: true });
    const mounted = (what: string): Promise<Result> =>
      this.shell(`unshare -rm sh -c 'mount -t tmpfs -o ${options} tmpfs disk && cd disk && ${what}'`);
    return (await mounted('true')).code === 0 ? mounted(commands) : null;
  }

  /** Like a power failure. */
  async killAll(): Promise<void> {
    // A killed process may have started another just before.
    await until(() => {
      const living = this.processes();
      for (const pid of living) endProcess(pid);
      return living.length === 0;
    }, 'the processes of the test to end');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll();
    rmSync(this.#base, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The parts of `meow status --json` that tests use. */
export interface RunObject {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly type: string; readonly message: string; readonly step: string | null } | null;
  readonly vars: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, string>>;
  readonly steps: Readonly<
    Record<
      string,
      {
        readonly status: string;
        readonly attempt: number;
        readonly outputs: Readonly<Record<string, unknown>>;
        readonly kept_from: string | null;
      }
    >
  >;
  readonly cost: { readonly usd: number | null };
  readonly agents: readonly Readonly<Record<string, unknown>>[];
  readonly counts: Readonly<Record<string, number>>;
  readonly engine: { readonly pid: number } | null;
}

/** A process that a test communicates with while it runs. */
export class Live {
  readonly ended: Promise<Result>;
  readonly process: ChildProcess;
  #stdout = '';
  #stderr = '';
  #over = false;
  readonly #deadline: NodeJS.Timeout;

  constructor(command: string, args: readonly string[], cwd: string, environment: Readonly<Record<string, string>>) {
    this.process = spawn(command, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    // Before the test itself times out, which would skip the cleanup.
    this.#deadline = setTimeout(() => this.#giveUp(), LIFE_MAX_MS);
    this.ended = new Promise((done, fail) => {
      this.process.once('error', fail);
      this.process.once('close', (code, signal) => {
        clearTimeout(this.#deadline);
        this.#over = true;
        const status = signal === null ? (code ?? 0) : 128 + constants.signals[signal];
        done({ stdout: this.#stdout, stderr: this.#stderr, code: status });
      });
    });
  }

  /** For a server that several tests share: it lives until they stop it. */
  keep(): void {
    clearTimeout(this.#deadline);
  }

  #giveUp(): void {
    this.process.kill('SIGKILL');
    // Its children may keep them open.
    this.process.stdout?.destroy();
    this.process.stderr?.destroy();
  }

  /** Standard output so far. */
  get printed(): string {
    return this.#stdout;
  }

  /** Waits for a line of stdout or stderr that matches. */
  async line(pattern: RegExp): Promise<void> {
    const said = (): boolean => pattern.test(this.#stdout) || pattern.test(this.#stderr);
    await until(() => said() || this.#over, `${pattern}`);
    if (!said()) throw new Error(`it ended without ${pattern}:\n${this.#stdout}${this.#stderr}`);
  }

  /** The first line of stdout. */
  async firstLine(): Promise<string> {
    await until(() => this.#stdout.includes('\n') || this.#over, 'its first line');
    if (!this.#stdout.includes('\n')) throw new Error(`it ended without a line:\n${this.#stdout}${this.#stderr}`);
    return this.#stdout.slice(0, this.#stdout.indexOf('\n'));
  }

  /** Sends a signal only to this process, like `kill`. */
  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** Polls until the condition holds. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(10);
  }
}

/** A step that writes its pid to ID.began, waits until a file ID.go exists, and then appends its id to `ran`. */
export function waitingStep(id: string, extra = ''): string {
  return shellStep(
    id,
    `echo $$ >> ${id}.began; while [ ! -e ${id}.go ]; do sleep 0.02; done; echo ${id} >> ran`,
    extra,
  );
}

export function shellStep(id: string, command: string, extra = ''): string {
  return `[[main.steps]]\nid = "${id}"\nexecutor = "shell"\ncommand = ${JSON.stringify(command)}\n${extra}\n`;
}

/** A text with every duration replaced by T. */
export function timeless(text: string): string {
  return text.replaceAll(/\+\d[\d.hms]* +/g, '+T ').replaceAll(/\b\d+(\.\d+)?m?s\b/g, 'T');
}

export function isAlive(pid: number): boolean {
  try {
    // A zombie is not alive.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // The process does not exist.
  }
}

function marked(marks: readonly string[]): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        return marks.some((mark) => environment.includes(mark)) && isAlive(pid);
      } catch {
        return false; // It has exited meanwhile, or belongs to somebody else.
      }
    });
}

/** The perl helper of an engine, alive or dead (src/drivers/spawner.ts). */
function isStarter(pid: number): boolean {
  try {
    return /^[^\0]*\/perl\0-e\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
  } catch {
    return false; // It has exited meanwhile.
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited by itself.
  }
}
