// What is kept about the agents of a run, each in `agents/NAME/` in the run's folder.
//
//   current          the name of the start that counts: the latest
//   prompts/EFFECT   the start that the prompt of an effect is meant for; made before it is handed over
//   START/           one for each start, named for the effect that asks for it
//     start.json     who it is: session, folder; made before anything is started
//     status, stdout, stderr   as step-folder.ts has them, by the agent's own shell
//     ended-by-us    made before we end it
//
// and, in either, what a host keeps. Every file gets its name when it is complete.

import { existsSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Channel } from '../../ir/adapter.ts';
import type { StepFolder } from '../step-folder.ts';
import { fileName } from '../step-folder.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';

/** One start of an agent, whatever became of it. */
export interface AgentStart extends StartRecord {
  readonly folder: StepFolder;
  /** What all its processes carry. */
  readonly marker: string;
}

export interface StartRecord {
  /** The id of the effect that asked for it. */
  readonly effect: string;
  readonly agent: string;
  readonly adapter: string;
  readonly channel: Channel;
  /** Absolute. */
  readonly workdir: string;
  /** Null where it is not known before the agent tells it. */
  readonly session: string | null;
}

export class AgentFolder {
  readonly path: string;
  readonly #inRun: string;
  readonly #markerOf: (effect: string) => string;

  constructor(run: { readonly runFolder: string; readonly markerOf: (effect: string) => string }, name: string) {
    this.#inRun = join('agents', fileName(name));
    this.path = join(run.runFolder, this.#inRun);
    this.#markerOf = run.markerOf;
  }

  /** Null where it was never asked for. */
  start(effect: string): AgentStart | null {
    return this.#read(fileName(effect));
  }

  current(): AgentStart | null {
    const name = readJson(join(this.path, 'current'));
    return typeof name === 'string' ? this.#read(name) : null;
  }

  /** It counts from now on. */
  makeStart(record: StartRecord): AgentStart {
    const name = fileName(record.effect);
    makeFolder(join(this.path, name));
    writeJson(join(this.path, name, 'start.json'), record);
    writeJson(join(this.path, 'current'), name);
    return this.#whole(name, record);
  }

  /** The effect id of the start that a prompt is meant for; null where it was never handed over. */
  promptedStart(effect: string): string | null {
    const start = readJson(join(this.path, 'prompts', fileName(effect)));
    return typeof start === 'string' ? start : null;
  }

  recordPrompt(effect: string, start: AgentStart): void {
    makeFolder(join(this.path, 'prompts'));
    writeJson(join(this.path, 'prompts', fileName(effect)), start.effect);
  }

  #read(name: string): AgentStart | null {
    const record = readJson(join(this.path, name, 'start.json'));
    return record === null ? null : this.#whole(name, record as StartRecord);
  }

  #whole(name: string, record: StartRecord): AgentStart {
    const folder = { path: join(this.path, name), inRun: join(this.#inRun, name) };
    return { ...record, folder, marker: this.#markerOf(name) };
  }
}

export function markEnded(start: AgentStart): void {
  writePrivate(join(start.folder.path, 'ended-by-us'), '');
}

export function wasEndedByUs(start: AgentStart): boolean {
  return existsSync(join(start.folder.path, 'ended-by-us'));
}

/** The folder of the agent that a start is of. */
export function agentFolderOf(start: AgentStart): string {
  return dirname(start.folder.path);
}

function writeJson(path: string, value: unknown): void {
  writePrivate(`${path}.new`, `${JSON.stringify(value)}\n`);
  renameSync(`${path}.new`, path);
}

/** Null where it is absent, or the machine has lost its end: then nothing that it tells of has outlived the machine. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, ...ABSENT) || error instanceof SyntaxError) return null;
    throw error;
  }
}
