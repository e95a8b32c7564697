// Files about the agents of a run, each in `agents/NAME/` in the run's folder.
//
//   current          name of the current start: the latest
//   prompts/EFFECT   the start that an effect's prompt is addressed to; written before delivery
//   START/           one for each start, named after its effect
//     start.json     session, folder and so on; written before anything is started
//     status, stdout, stderr   as in step-folder.ts, written by the agent's own shell
//     ended-by-us    written before we stop the agent
//
// Hosts add their own files to both. Every file gets its name when it is complete.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { parseJson } from '../../base/json.ts';
import type { RunFiles } from '../../engine/ports.ts';
import { type Channel, CHANNELS } from '../../ir/adapter.ts';
import { makeFolder, readJsonFile, readRecord, writeJsonFile, writePrivate } from '../../sys/files.ts';
import { fileName, type StepFolder } from '../step-folder.ts';
import { fields, isText, nullable, oneOf } from '../../base/shape.ts';

/** One start of an agent, in whatever state. */
export interface AgentStart extends StartRecord {
  readonly folder: StepFolder & { readonly path: string };
  /** Set in the environment of all its processes. */
  readonly marker: string;
}

export interface StartRecord {
  /** Id of the effect that asked for it. */
  readonly effect: string;
  readonly agent: string;
  readonly adapter: string;
  readonly channel: Channel;
  /** Absolute. */
  readonly workdir: string;
  /** Null until the agent reports it. */
  readonly session: string | null;
}

const isStartRecord = fields<StartRecord>({
  effect: isText,
  agent: isText,
  adapter: isText,
  channel: oneOf(...CHANNELS),
  workdir: isText,
  session: nullable(isText),
});

export class AgentFolder {
  readonly path: string;
  readonly #inRun: string;
  readonly #markerOf: (effect: string) => string;

  constructor(run: { readonly files: RunFiles; readonly markerOf: (effect: string) => string }, name: string) {
    this.#inRun = agentPath(name);
    this.path = run.files.localPath(this.#inRun);
    this.#markerOf = run.markerOf;
  }

  /** Null if it was never requested. */
  start(effect: string): AgentStart | null {
    return this.#read(fileName(effect));
  }

  current(): AgentStart | null {
    const name = readJsonFile(join(this.path, 'current'));
    return typeof name === 'string' ? this.#read(name) : null;
  }

  /** Makes the start the current one. */
  makeStart(record: StartRecord): AgentStart {
    const name = fileName(record.effect);
    makeFolder(join(this.path, name));
    writeJsonFile(join(this.path, name, 'start.json'), record);
    writeJsonFile(join(this.path, 'current'), name);
    return this.#whole(name, record);
  }

  /** Effect id of the start that a prompt is addressed to; null if it was never delivered. */
  promptedStart(effect: string): string | null {
    const start = readJsonFile(join(this.path, 'prompts', fileName(effect)));
    return typeof start === 'string' ? start : null;
  }

  recordPrompt(effect: string, start: AgentStart): void {
    makeFolder(join(this.path, 'prompts'));
    writeJsonFile(join(this.path, 'prompts', fileName(effect)), start.effect);
  }

  #read(name: string): AgentStart | null {
    const record = readRecord(join(this.path, name, 'start.json'), isStartRecord);
    return record === null ? null : this.#whole(name, record);
  }

  #whole(name: string, record: StartRecord): AgentStart {
    const path = join(this.path, name);
    const folder = { path, prefix: `${path}/`, inRun: `${this.#inRun}/${name}/` };
    return { ...record, folder, marker: this.#markerOf(name) };
  }
}

/** Whether delivery of an effect's prompt to the agent may have begun. */
export function mayHavePrompt(files: RunFiles, agent: string, effect: string): boolean {
  return existsSync(files.localPath(promptPath(agent, effect)));
}

/** A start as it is read from wherever the files of the run are. */
export interface StoredStart extends StartRecord {
  /** Its folder, relative to the run's. */
  readonly inRun: string;
  /** Name of the start's folder, a part of its marker. */
  readonly name: string;
}

/** The start that counts; null if the agent was never started. */
export async function storedStart(files: RunFiles, agent: string): Promise<StoredStart | null> {
  const name = await readStored(files, agent, 'current');
  return typeof name === 'string' ? startNamed(files, agent, name) : null;
}

/** The start that an effect was for: it asked for it, or its prompt was meant for it. */
export async function storedStartOf(files: RunFiles, agent: string, effect: string): Promise<StoredStart | null> {
  const prompted = await readJson(files, promptPath(agent, effect));
  return startNamed(files, agent, fileName(typeof prompted === 'string' ? prompted : effect));
}

async function startNamed(files: RunFiles, agent: string, name: string): Promise<StoredStart | null> {
  const record = await readStored(files, agent, `${name}/start.json`);
  return !isStartRecord(record) ? null : { ...record, name, inRun: `${agentPath(agent)}/${name}` };
}

function readStored(files: RunFiles, agent: string, name: string): Promise<unknown> {
  return readJson(files, `${agentPath(agent)}/${name}`);
}

async function readJson(files: RunFiles, path: string): Promise<unknown> {
  const bytes = await files.read(path);
  return bytes === null ? null : parseJson(Buffer.from(bytes).toString('utf8'));
}

function promptPath(agent: string, effect: string): string {
  return `${agentPath(agent)}/prompts/${fileName(effect)}`;
}

function agentPath(name: string): string {
  return `agents/${fileName(name)}`;
}

export const ENDED_BY_US = 'ended-by-us';

export function markEnded(start: AgentStart): void {
  writePrivate(join(start.folder.path, ENDED_BY_US), '');
}

export function wasEndedByUs(start: AgentStart): boolean {
  return existsSync(join(start.folder.path, ENDED_BY_US));
}
