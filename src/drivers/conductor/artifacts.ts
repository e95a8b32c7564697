// Files that a visit leaves for people and planners, in `artifacts/STEP/VISIT/` of the run directory.
// app/run-directory.ts adds a manifest when the visit has ended.
//
// artifacts/2  A visit never writes into the folder of another. A visit that is found again writes the same files once
//              more.
// artifacts/3  Agents may write to the run directory. Nothing is written through a link that they planted there: a
//              folder or a file that is a link, a pipe or the like is replaced (sys/files.ts).

import { chmodSync, copyFileSync, linkSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:fs/promises';
import { dirname, extname, join, relative, sep } from 'node:path';

import { ABSENT, tolerate } from '../../sys/errors.ts';
import { lookAt, makeFolderBelow } from '../../sys/files.ts';
import { exists } from '../git/worktree-paths.ts';
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

/** Format of manifests and of the output `artifacts` of every step. */
export type Artifact = {
  readonly role: ArtifactRole;
  /** Relative to the run directory, with `/`. */
  readonly path: string;
  readonly media_type: string;
  readonly required: boolean;
};

export class VisitFolder {
  readonly #path: string;
  readonly #runDir: string;
  readonly #artifacts = new Map<string, Artifact>();

  /** Creates the folder if it is missing. System errors are thrown, here and in its methods. */
  constructor({ context: { runDir }, visit, step }: Task) {
    this.#path = join(runDir, 'artifacts', step, visit.slice(step.length + 1));
    this.#runDir = runDir;
    makeFolderBelow(runDir, this.#path);
  }

  get artifacts(): readonly Artifact[] {
    return [...this.#artifacts.values()];
  }

  /** Path for a writer that needs one. `name` may contain folders. */
  place(name: string): string {
    const path = join(this.#path, name);
    makeFolderBelow(this.#runDir, dirname(path));
    removeAt(path);
    return path;
  }

  #record(role: ArtifactRole, name: string, required: boolean): Artifact {
    const path = relative(this.#runDir, join(this.#path, name)).split(sep).join('/');
    const media_type = MEDIA_TYPES[extname(name).toLowerCase()] ?? 'application/octet-stream';
    const artifact = { role, path, media_type, required };
    this.#artifacts.set(path, artifact);
    return artifact;
  }

  write(role: ArtifactRole, name: string, contents: string): Artifact {
    writeFileSync(this.place(name), contents, { flag: 'wx', mode: 0o600 });
    return this.#record(role, name, true);
  }

  writeJson(role: ArtifactRole, name: string, value: unknown): Artifact {
    return this.write(role, name, `${JSON.stringify(value, null, 2)}\n`);
  }

  copy(role: ArtifactRole, name: string, from: string, required = true): Artifact {
    copyNew(from, this.place(name));
    return this.#record(role, name, required);
  }

  copyIfExists(role: ArtifactRole, name: string, from: string): void {
    if (isFile(from)) this.copy(role, name, from);
  }

  /** The same for a file that nobody writes to any more: a large one is hard-linked if the system allows it. */
  linkIfExists(role: ArtifactRole, name: string, from: string): void {
    if (!isFile(from)) return;
    const place = this.place(name);
    const isLarge = statSync(from).size > COPIED_BYTES_MAX;
    const refusals = ['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'];
    const isLinked = isLarge && tolerate(refusals, false, () => linkSync(from, place)) !== false;
    if (!isLinked) copyNew(from, place);
    this.#record(role, name, true);
  }
}

const COPIED_BYTES_MAX = 1_000_000;

/** Whether it is a file that can be copied: somebody may have put a pipe or a link in its place. */
function isFile(path: string): boolean {
  return lookAt(path)?.isFile() === true;
}

/** Copies regular files of a folder that another does not have. */
export function copyMissing(from: string, to: string, folder = ''): void {
  const entries = tolerate(ABSENT, [], () => readdirSync(join(from, folder), { withFileTypes: true }));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) copyMissing(from, to, path);
    if (!entry.isFile() || exists(join(to, path))) continue;
    makeFolderBelow(to, dirname(join(to, path)));
    copyNew(join(from, path), join(to, path));
  }
}

/** Removes whatever is at a path that is about to be written. */
export function removeAt(path: string): void {
  if (exists(path)) rmSync(path, { force: true, recursive: true });
}

/** Copies to a path that does not exist. Readable by the user only, like all files of a run. */
export function copyNew(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  // A copy gets the mode of its source.
  if ((statSync(from).mode & 0o777) !== 0o600) chmodSync(to, 0o600);
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
