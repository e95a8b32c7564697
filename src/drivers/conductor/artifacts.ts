// What a visit of a step leaves for people and planners: files in `artifacts/STEP/VISIT/` of the run's directory. Whoever keeps
// that directory adds a manifest when the visit has ended (app/run-directory.ts).
//
//   artifacts/2  A visit never writes where another has. One that is found again writes the same files once more.
//   artifacts/3  Agents may write to the run's directory. Nothing is written through a link that they have laid there: a folder
//       that is one is refused (EACCES), a file that is one is replaced.

import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, extname, join, relative, sep } from 'node:path';
import { present } from '../../base/assert.ts';
import { isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import type { Task } from './context.ts';

export type ArtifactRole =
  | 'runner_transcript'
  | 'runner_final_response'
  | 'runner_metadata'
  | 'policy_summary'
  | 'validation_report'
  | 'validation_stdout'
  | 'validation_stderr'
  | 'planner_decision'
  | 'gate_request'
  | 'gate_outcome'
  | 'workspace_diff'
  | 'workspace_status';

/** As it stands in manifests, and in the output `artifacts` of every step. */
export type Artifact = {
  readonly role: ArtifactRole;
  /** Seen from the run's directory, with `/`. */
  readonly path: string;
  readonly media_type: string;
  readonly required: boolean;
};

/** Makes the folder where it is missing. Here, and in what it does, an error of the system is thrown. */
export function visitFolder({ context, visit }: Pick<Task, 'context' | 'visit'>): VisitFolder {
  // `fix#2` is the second visit of the step `fix`.
  const [, step = '', number = ''] = present(/^(.+)#(\d+)$/.exec(visit), `${visit} is no visit of a step`);
  return new VisitFolder(context.runDir, step, Number(number));
}

export class VisitFolder {
  readonly step: string;
  readonly visit: number;
  /** Absolute. */
  readonly path: string;
  readonly #runDir: string;
  readonly #artifacts = new Map<string, Artifact>();

  constructor(runDir: string, step: string, visit: number) {
    this.step = step;
    this.visit = visit;
    this.path = join(runDir, 'artifacts', step, String(visit));
    this.#runDir = runDir;
    makeFolderWithin(runDir, this.path);
  }

  /** What has been recorded, in its order. */
  get artifacts(): readonly Artifact[] {
    return [...this.#artifacts.values()];
  }

  /** Where a file of this name is to be written, by whoever can only be told a path. `name` may have folders in it. */
  place(name: string): string {
    const path = join(this.path, name);
    makeFolderWithin(this.#runDir, dirname(path));
    clear(path);
    return path;
  }

  /** One that was written at its place. */
  record(role: ArtifactRole, name: string, more: { readonly required?: boolean } = {}): Artifact {
    const path = relative(this.#runDir, join(this.path, name)).split(sep).join('/');
    const artifact = { role, path, media_type: mediaType(name), required: more.required ?? true };
    this.#artifacts.set(path, artifact);
    return artifact;
  }

  write(
    role: ArtifactRole,
    name: string,
    contents: string | Uint8Array,
    more: { readonly required?: boolean } = {},
  ): Artifact {
    writeNew(this.place(name), contents);
    return this.record(role, name, more);
  }

  /** JSON, as people read it. */
  writeJson(role: ArtifactRole, name: string, value: unknown, more: { readonly required?: boolean } = {}): Artifact {
    return this.write(role, name, `${JSON.stringify(value, null, 2)}\n`, more);
  }

  /** A file that is somewhere else, byte for byte. */
  copy(role: ArtifactRole, name: string, from: string, more: { readonly required?: boolean } = {}): Artifact {
    copyNew(from, this.place(name));
    return this.record(role, name, more);
  }

  /** The same for one that nobody writes to any more: of a large one only another name, where the system allows it. */
  link(role: ArtifactRole, name: string, from: string, more: { readonly required?: boolean } = {}): Artifact {
    const place = this.place(name);
    if (statSync(from).size <= COPIED_BYTES_MAX || !isLinked(from, place)) copyNew(from, place);
    return this.record(role, name, more);
  }
}

/** A folder in the run's directory, that no link leads out of (artifacts/3). */
export function makeFolderWithin(runDir: string, folder: string): void {
  // Most are there, and exceptions are dear.
  if (!existsSync(folder)) makeFolder(folder);
  if (realpathSync.native(folder) === join(realpathSync.native(runDir), relative(runDir, folder))) return;
  const error = new Error(`${folder} is or is in a link, and nothing is written there`);
  throw Object.assign(error, { code: 'EACCES' });
}

const COPIED_BYTES_MAX = 1_000_000;

/** False where the system does not allow it. */
function isLinked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, 'EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP')) return false;
    throw error;
  }
}

/** Takes away what is at a place where something is to be written. */
export function clear(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmSync(path, { force: true, recursive: true });
}

/** Where there is nothing yet. Private to the user, as all that a run keeps. */
export function copyNew(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  // A copy has the mode of what was copied.
  if ((statSync(from).mode & 0o777) !== 0o600) chmodSync(to, 0o600);
}

function writeNew(path: string, contents: string | Uint8Array): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    const bytes = typeof contents === 'string' ? Buffer.from(contents) : contents;
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}

function mediaType(name: string): string {
  return MEDIA_TYPES[extname(name).toLowerCase()] ?? 'application/octet-stream';
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.json': 'application/json',
  '.ndjson': 'application/x-ndjson',
  '.jsonl': 'application/x-ndjson',
  '.md': 'text/markdown',
  '.txt': 'text/plain',
  '.log': 'text/plain',
  '.stdout': 'text/plain',
  '.stderr': 'text/plain',
  '.patch': 'text/x-diff',
  '.diff': 'text/x-diff',
  '.html': 'text/html',
  '.xml': 'application/xml',
  '.csv': 'text/csv',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
  '.pdf': 'application/pdf',
};
