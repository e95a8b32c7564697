// Starts the programs of turns: directly as long as they are few. When turns follow each other fast, their starts would
// take most of the engine's only thread, and the spawner starts them and records how they end (drivers/spawner.ts).

import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { writePrivate } from '../../../sys/private-file.ts';
import { startProcess } from '../../../sys/process.ts';
import type { ProcessRequest } from '../../../sys/process.ts';
import type { SpawnEvents, Spawner, SpawnRequest } from '../../spawner.ts';
import { makeStepFolder } from '../../step-folder.ts';
import { PLAN } from './session-plan.ts';

/** The file of a turn that contains its prompt. */
export const PROMPT = 'prompt';

export interface ProgramRequest extends Omit<ProcessRequest, 'path' | 'args'> {
  readonly bare: BareCommand;
  /** A shell that runs the command and records its end. */
  shelled(): Pick<ProcessRequest, 'path' | 'args'>;
  /** Written into its folder before it begins. */
  readonly files: { readonly prompt: string; readonly plan: string };
}

export interface BareCommand {
  /** Absolute path; null: nothing to read. */
  readonly stdin: string | null;
  /** The path of a shell, and a script for it. */
  readonly shell: string;
  readonly text: string;
  /** If the script is nothing but words: the program, and the words. If it cannot be executed, the shell says why. */
  readonly direct: { readonly program: string; readonly words: readonly string[] } | null;
}

export class TurnLauncher {
  readonly #spawner: Spawner;
  /** When the latest were started. */
  readonly #times: number[] = [];

  constructor(spawner: Spawner) {
    this.#spawner = spawner;
  }

  start(request: ProgramRequest, events: SpawnEvents): void {
    if (this.#areMany()) this.#spawner.launch();
    if (this.#takes(request)) this.#spawner.start(spawnRequest(request), events);
    else startProgram(request, events);
  }

  /** Prepares it, and returns a function that lets it begin; null if it must be started as a whole. */
  prepare(request: ProgramRequest, events: SpawnEvents): (() => void) | null {
    return this.#takes(request) ? this.#spawner.prepare(spawnRequest(request), events) : null;
  }

  /** A request goes through a pipe, in fields that end with NUL: a long prompt would take its time. */
  #takes({ files: { prompt } }: ProgramRequest): boolean {
    return this.#spawner.ready && prompt.length <= PROMPT_MAX && !prompt.includes('\0');
  }

  #areMany(): boolean {
    const now = performance.now();
    this.#times.push(now);
    if (this.#times.length < MANY) return false;
    return now - (this.#times.shift() ?? now) < WITHIN_MS;
  }
}

/** Without the spawner. Events as of `startProcess`. */
export function startProgram(request: ProgramRequest, events: SpawnEvents): void {
  const { folder, files } = request;
  try {
    makeStepFolder(folder);
    writePrivate(join(folder, PROMPT), files.prompt);
    writePrivate(join(folder, PLAN), files.plan);
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    setImmediate(() => events.refused(error));
    return;
  }
  startProcess({ ...request, ...request.shelled() }, events);
}

function spawnRequest({ cwd, folder, environment, bare, files }: ProgramRequest): SpawnRequest {
  const { stdin, shell, text, direct } = bare;
  return {
    cwd,
    folder,
    environment,
    files: { [PROMPT]: files.prompt, [PLAN]: files.plan },
    stdin: stdin ?? '/dev/null',
    recordsEnd: true,
    commands: [...(direct === null ? [] : [[direct.program, ...direct.words] as const]), [shell, 'sh', '-c', text]],
  };
}

/** Launching the spawner takes some milliseconds, and some memory. */
const MANY = 8;
const WITHIN_MS = 10_000;
const PROMPT_MAX = 64 * 1024;
