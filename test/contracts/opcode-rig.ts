// Validators under test: a temporary run with a worktree and a run directory, and real commands. Scripts signal by
// creating files in the worktree, and block by reading a pipe: nothing here waits for time.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { ok } from '../../src/base/errors.ts';
import { limitedCommands } from '../../src/drivers/command/limited-commands.ts';
import type { ConductorSettings, Visit, Workspace } from '../../src/drivers/conductor/context.ts';
import { processesOfRun } from '../../src/drivers/environment.ts';
import type { Driver } from '../../src/engine/ports.ts';
import type { CommandValidator, Mechanical, ScriptValidator, Validator } from '../../src/ir/conductor.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import type { Outputs } from '../../src/ir/output.ts';
import type { RunValidation } from '../../src/languages/conductor/syntax.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { isErrno } from '../../src/sys/errors.ts';
import { gone } from './driver-command-rig.ts';
import { type VisitRequest, Visits } from './opcode-visit.ts';

export interface OpcodeRigOptions {
  readonly settings?: Partial<ConductorSettings>;
  /** Names of environment variables that scripts may see. */
  readonly envAllow?: readonly string[];
  /** The user's environment, besides PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Replaces a folder without git. */
  readonly workspace?: Workspace & { readonly folder: string };
}

let rigs = 0;

export class OpcodeRig {
  readonly runId = `wf-opcodes-${process.pid}-${++rigs}`;
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'meow-opcodes-')));
  readonly worktree: string;
  readonly runFolder = join(this.root, "it's a run");
  readonly runDir: string;
  readonly history: Visit[] = [];
  readonly #options: OpcodeRigOptions;
  #count = 0;
  #driver: Driver;
  readonly #visits: Visits;

  constructor(options: OpcodeRigOptions = {}) {
    this.#options = options;
    this.worktree = options.workspace?.folder ?? join(this.root, 'tree');
    this.runDir = join(this.root, '.meow', 'run', this.runId);
    for (const folder of [this.worktree, this.runFolder, this.runDir]) mkdirSync(folder, { recursive: true });
    this.#driver = this.#newDriver();
    const { settings, workspace } = options;
    this.#visits = new Visits({
      context: {
        run: this.#run,
        runDir: this.runDir,
        runDirName: `.meow/run/${this.runId}`,
        workspace: workspace ?? { open: () => Promise.resolve(ok({ folder: this.worktree, git: null, start: null })) },
        history: () => this.history,
        settings: { allowedEntrypoints: [], protectedBranches: [], ...settings },
      },
      drivers: () => ({ command: this.#driver, turn: this.#driver }),
    });
  }

  /** The engine has died and receives nothing more; another takes over the run. */
  nextLife(): void {
    this.#visits.die();
    this.#driver = this.#newDriver();
  }

  get #run() {
    const { environment = {} } = this.#options;
    return {
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(this.runFolder),
      cwd: this.root,
      environment: { PATH: process.env['PATH'] ?? '', HOME: this.root, ...environment },
      binFolder: join(this.root, 'bin'),
      socket: join(this.root, 'sock'),
      inbox: join(this.root, 'inbox'),
    };
  }

  #newDriver(): Driver {
    const run = this.#run;
    return limitedCommands({
      ...run,
      environment: { ...run.environment, MEOW_RUN_DIR: this.runDir },
      graceMs: GRACE_MS,
    });
  }

  /** Of the step `check`; each is a new visit unless one is given. */
  validate(
    validators: readonly Validator[],
    more: Partial<RunValidation> & { readonly visit?: number } = {},
  ): VisitRequest {
    const { visit = ++this.#count, ...spec } = more;
    const { envAllow = [] } = this.#options;
    return {
      visit: `check#${visit}`,
      spec: { kind: 'run_validation', validators, idleMs: null, envAllow, witness: null, ...spec },
    };
  }

  start(request: VisitRequest): Promise<Outcome> {
    return this.#visits.perform(request);
  }

  /** After a restart of the engine. */
  find(request: VisitRequest): Promise<Outcome> {
    return this.#visits.perform(request);
  }

  /** A pass of the step `check` that later ones know about. */
  async pass(validators: readonly Validator[], more: Partial<RunValidation> = {}): Promise<Outcome> {
    const request = this.validate(validators, more);
    const outcome = await this.start(request);
    const visit = Number(request.visit.split('#')[1]);
    const known = { id: request.visit, step: 'check', visit, kind: 'validate', failure: null } as const;
    this.history.push({ ...known, outcome: 'error', outputs: outputsOf(outcome), startedAt: 0, endedAt: 0 });
    return outcome;
  }

  /** In the worktree. */
  write(path: string, text: string | Uint8Array, mode = 0o644): string {
    return put(join(this.worktree, path), text, mode);
  }

  /** A program in the run directory, and the validator that runs it. */
  harness(script: string, more: Partial<ScriptValidator> = {}): ScriptValidator {
    const name = `${more.id ?? 'harness'}.sh`;
    put(join(this.runDir, 'harness', name), `#!/bin/sh\n${script}\n`, 0o755);
    return scriptValidator(`.meow/run/\${run_id}/harness/${name}`, more);
  }

  artifact(path: string): string {
    return readFileSync(join(this.runDir, path), 'latin1');
  }

  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  /** Resolves when no process of the run is alive. A process that has recorded its exit may still be exiting. */
  async over(): Promise<void> {
    for (const pid of this.left()) await gone(pid);
  }

  /** For scripts: creates the file NAME and then blocks until somebody writes to the pipe NAME.pipe. */
  holding(name: string): string {
    execFileSync('mkfifo', [join(this.worktree, `${name}.pipe`)]);
    return `echo x >> ${name}; read -r line < ${name}.pipe`;
  }

  async letGo(name: string): Promise<void> {
    await writeFile(join(this.worktree, `${name}.pipe`), 'go\n');
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
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
    return Promise.resolve();
  }
}

const GRACE_MS = 300;

export function put(path: string, text: string | Uint8Array, mode = 0o644): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
  return path;
}

export function builtin(id: string, command: string, more: Partial<CommandValidator> = {}): CommandValidator {
  return { kind: 'builtin', id, command, cwd: null, artifacts: [], timeoutMs: null, ...more };
}

export function scriptValidator(entrypoint: string, more: Partial<ScriptValidator> = {}): ScriptValidator {
  return { kind: 'script', id: 'harness', entrypoint, args: [], cwd: null, artifacts: [], timeoutMs: null, ...more };
}

/** Whether it failed or not. */
export function outputsOf(outcome: Outcome): Outputs {
  return outcome.kind === 'success' ? outcome.outputs : outcome.failure.outputs;
}

export interface Recorded {
  readonly id: string;
  readonly outcome: Mechanical;
  readonly exit_code: number | null;
  readonly message: string | null;
  readonly network: string;
  readonly network_reason: string;
  readonly artifacts: readonly { readonly path: string; readonly source: string; readonly created: boolean }[];
}

export function recordsOf(outcome: Outcome): readonly Recorded[] {
  return outputsOf(outcome)['validators'] as unknown as readonly Recorded[];
}

/** The only record. */
export function recordOf(outcome: Outcome): Recorded {
  const [first] = recordsOf(outcome);
  if (first === undefined) throw new Error(`there is no record: ${JSON.stringify(outcome)}`);
  return first;
}
