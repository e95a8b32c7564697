// Commands under test: a temporary run, effects written as scripts, and ways to wait for commands.
//
// Scripts signal by creating files in their folder, and block by reading a pipe: nothing here waits for time.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { commandDriver, type CommandDriverOptions } from '../../src/drivers/command/command-driver.ts';
import { processesOfRun } from '../../src/drivers/environment.ts';
import type { Spawner } from '../../src/drivers/spawner.ts';
import type { Driver } from '../../src/engine/ports.ts';
import type { CommandSpec, Effect, Outcome } from '../../src/ir/effect.ts';
import type { Capture } from '../../src/ir/output.ts';
import type { FilledText } from '../../src/ir/text.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { isErrno } from '../../src/sys/errors.ts';
import { type DriverRig, find, start } from './driver.ts';

type Wish = Partial<CommandSpec<FilledText>> & { step?: string; attempt?: number; variables?: Effect['variables'] };

let rigs = 0;

export class CommandRig implements DriverRig {
  driver: Driver;
  readonly runId = `wf-test-${process.pid}-${++rigs}`;
  /** Working directory of commands. */
  readonly folder: string;
  readonly runFolder: string;
  readonly #options: CommandDriverOptions;
  #effects = 0;

  constructor(options: Partial<CommandDriverOptions> = {}) {
    const root = mkdtempSync(join(tmpdir(), 'meow-command-'));
    this.folder = join(root, 'work');
    this.runFolder = join(root, "it's a run");
    mkdirSync(this.folder);
    mkdirSync(this.runFolder);
    this.#options = {
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(this.runFolder),
      cwd: this.folder,
      environment: { PATH: process.env['PATH'] ?? '', HOME: root },
      socket: join(root, 'sock'),
      inbox: join(root, 'inbox'),
      ...options,
    };
    this.driver = commandDriver(this.#options);
  }

  nextLife(): void {
    this.driver = commandDriver(this.#options);
  }

  command(script: FilledText, wish: Wish = {}): Effect {
    const { step = `step-${++this.#effects}`, attempt = 1, variables = {}, ...spec } = wish;
    return {
      id: `${step}#${attempt}`,
      step,
      attempt,
      spec: {
        kind: 'command',
        script,
        cwd: null,
        env: {},
        captures: [],
        verdict: 'success',
        errors: [],
        steering: null,
        ...spec,
      },
      session: { kind: 'fresh' },
      lane: 'main',
      variables,
    };
  }

  run(script: FilledText, wish: Wish = {}): Promise<Outcome> {
    return start(this, this.command(script, wish));
  }

  find(effect: Effect): Promise<Outcome> {
    return find(this, effect);
  }

  /** Runs a script and returns its output. */
  async printed(script: FilledText, wish: Wish = {}): Promise<string> {
    const outcome = await this.run(script, { ...wish, captures: [from('stdout')] });
    if (outcome.kind === 'failure') throw new Error(JSON.stringify(outcome.failure));
    return outcome.outputs['stdout'] as string;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  stepFile(effect: Effect, name: string): string {
    return join(this.runFolder, 'steps', `${effect.step}.${effect.attempt}.${name}`);
  }

  /** A script that creates the file `NAME` and then blocks until somebody writes to the pipe `NAME.pipe`. */
  holding(name: string): string {
    execFileSync('sh', ['-c', 'mkfifo "$0"', this.path(`${name}.pipe`)]);
    return `echo x >> ${name}; read -r line < ${name}.pipe`;
  }

  effect(what: 'succeeds' | 'fails' | 'holds'): Effect {
    const step = `step-${++this.#effects}`;
    const script = { succeeds: `echo x >> ${step}`, fails: `echo x >> ${step}; exit 3`, holds: '' }[what];
    return this.command(what === 'holds' ? this.holding(step) : script, { step });
  }

  async begun(effect: Effect): Promise<void> {
    await appears(this.path(effect.step));
  }

  async release(effect: Effect): Promise<void> {
    await writeFile(this.path(`${effect.step}.pipe`), 'go\n');
    await appears(this.stepFile(effect, 'status'), hasEnded);
  }

  async lose(effect: Effect): Promise<void> {
    const pid = Number(readFileSync(this.stepFile(effect, 'status'), 'utf8').split(' ')[0]);
    process.kill(-pid, 'SIGKILL');
    await gone(pid);
  }

  timesBegun(effect: Effect): number {
    return existsSync(this.path(effect.step)) ? readFileSync(this.path(effect.step), 'utf8').length / 2 : 0;
  }

  /** Pids that commands of this run left alive. */
  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  close(): Promise<void> {
    for (const pid of this.left()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        // It exited in the meantime.
        if (!isErrno(error, 'ESRCH')) throw error;
      }
    }
    rmSync(dirname(this.folder), { recursive: true, force: true });
    return Promise.resolve();
  }
}

export function from(
  kind: 'stdout' | 'stderr' | 'exit-code',
  more: Partial<Capture<FilledText>> = {},
): Capture<FilledText> {
  return { name: kind, from: { kind }, type: 'any', required: true, ...more };
}

export function fromFile(path: FilledText, more: Partial<Capture<FilledText>> = {}): Capture<FilledText> {
  return { name: 'file', from: { kind: 'file', path }, type: 'any', required: true, ...more };
}

/** Resolves when the file exists with matching contents. Its folder may not exist yet. */
export function appears(path: string, fits: (text: string) => boolean = (text) => text !== ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const existing = nearestFolder(path);
    const watcher = watch(existing, () => look());
    watcher.on('error', reject);
    const look = (): void => {
      // Watch the nearest existing folder: a watch does not report changes in subfolders.
      if (existing !== dirname(path)) {
        if (existing === nearestFolder(path)) return;
        watcher.close();
        appears(path, fits).then(resolve, reject);
      } else if (existsSync(path)) {
        const text = readFileSync(path, 'utf8');
        if (!fits(text)) return;
        watcher.close();
        resolve(text);
      }
    };
    look();
  });
}

function nearestFolder(path: string): string {
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  return folder;
}

/** Resolves when the process is gone. There is no event for the exit of a process that is not a child. */
export async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
}

function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ESRCH')) throw error;
    return false;
  }
}

/** The process that will become the next request. */
export async function spareOf({ pid }: Spawner): Promise<number> {
  for (;;) {
    const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
    const spare = Number(stdout.trim().split(/\s+/)[0]);
    if (spare > 0) return spare;
  }
}

/** Whether the text of a `status` file records an exit. */
export function hasEnded(status: string): boolean {
  return /^exit \d+\n/m.test(status);
}
