// A run as an archive, for another machine or for later: `meow-run.json`, `ID.yaml` and `ID/…`, without secrets. An imported run
// can be read and forked, but not resumed: its processes, files and secrets are elsewhere.
//
//   archive/1  An archive has no secret: logs are masked, and records of earlier versions too.
//   archive/2  An import is complete or leaves nothing. Everything is checked before the run gets its name.

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isJsonMap, type Json, parseJson } from '../base/json.ts';
import { isRunId } from '../stores/errors.ts';
import { IMPORTED } from '../stores/files.ts';
import { encodeProgram, encodeRecords, hashProgram } from '../stores/journal-lines.ts';
import { takeLock } from '../stores/lock.ts';
import { ABSENT, asUsageError, isErrno, isSystemError, REFUSED, tolerate } from '../sys/errors.ts';
import { makeFolder, replacePrivate, writePrivate } from '../sys/files.ts';
import { revealJson } from '../sys/secrets.ts';
import type { Project } from './project.ts';
import { PRINTS_FILE, redactorOfRun } from './redact.ts';
import { readRun, resolveRun, storeOf } from './runs.ts';
import { packTar, type TarFile, unpackTar } from './tar.ts';

const MANIFEST = 'meow-run.json';
const FORMAT = 1;

export interface ExportedRun {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** Refuses a run that an engine works on. */
export async function packRun(
  project: Project,
  wanted: string,
  { withLogs, version }: { readonly withLogs: boolean; readonly version: string },
): Promise<ExportedRun> {
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const run = await readRun(store, id);
  const folder = store.files(id).localPath('');
  const answer = await takeLock(`${folder}.yaml.lock`);
  if (answer.kind === 'held')
    throw new UsageError(`an engine works on run ${id}`, `wait until it ends, or stop it: meow stop ${id}`);
  try {
    const redactor = redactorOfRun(folder);
    const manifest = { format: FORMAT, id, version, exported_at: new Date().toISOString() };
    const files: TarFile[] = [{ name: MANIFEST, bytes: Buffer.from(`${JSON.stringify(manifest)}\n`) }];
    const state = tolerate([...ABSENT, ...REFUSED], null, () => readFileSync(`${folder}.yaml`));
    if (state !== null) files.push({ name: `${id}.yaml`, bytes: redactor.redactBytes(state) });
    for (const path of filesBelow(folder, '')) {
      if (NEVER.test(path) || (!withLogs && LOGS.test(path))) continue;
      const bytes = RECORDS.has(path) ? null : readFileSync(join(folder, path));
      if (bytes !== null)
        files.push({ name: `${id}/${path}`, bytes: STORED.test(path) ? bytes : redactor.redactBytes(bytes) });
    }
    files.push(...recordsOf(id, run, (text) => redactor.redact(text)));
    return { id, bytes: packTar(files) };
  } catch (error) {
    throw isSystemError(error) ? asUsageError(error, `export the run ${id}`, folder) : error;
  } finally {
    await answer.lock.release();
  }
}

const RECORDS: ReadonlySet<string> = new Set(['journal.jsonl', 'program.json']);
/** Homes of agents have links to logins. */
const NEVER = new RegExp(`^(?:homes|adapters|tmux|inbox)/|^(?:sock|${PRINTS_FILE})$|\\.(?:new|tmp)$`);
const LOGS = /(?:^|[./])(?:stdout|stderr|transcript[^/]*)$|^engine\.log$/;
/** They have references already, and their hashes are in the journal. */
const STORED = /^steps\/.*outputs\//;

function filesBelow(folder: string, inside: string): readonly string[] {
  return readdirSync(join(folder, inside), { withFileTypes: true }).flatMap((entry) => {
    const path = inside === '' ? entry.name : `${inside}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(folder, path);
    return entry.isFile() ? [path] : [];
  });
}

/** Journal and Program. Those of earlier versions may contain secrets, and get new checksums. */
function recordsOf(
  id: string,
  { program, programHash, records }: Awaited<ReturnType<typeof readRun>>,
  redact: (text: string) => string,
): readonly TarFile[] {
  // Masking is what revealing is, with another function.
  const masked = <T>(value: T): T => revealJson(value as Json, { reveal: redact }) as T;
  const safeProgram = masked(program);
  const hash = hashProgram(safeProgram);
  const safeRecords = JSON.parse(JSON.stringify(masked(records)).replaceAll(programHash, hash)) as typeof records;
  const files: TarFile[] = [
    { name: `${id}/program.json`, bytes: Buffer.from(encodeProgram(safeProgram, hash)) },
    { name: `${id}/journal.jsonl`, bytes: Buffer.from(encodeRecords(safeRecords, safeRecords.length)) },
  ];
  return files;
}

/** Returns the id of the run. Throws a UsageError, and leaves nothing, if the file is not such an archive or its id is taken. */
export async function importRun(project: Project, file: string): Promise<string> {
  const packed = tolerate([...ABSENT, ...REFUSED, 'EISDIR'], null, () => readFileSync(file));
  if (packed === null) throw new UsageError(`cannot read ${file}`, 'name an archive that meow export has written');
  const refused = (why: string): UsageError =>
    new UsageError(`${file} ${why}`, 'get it again from where it came from: meow export RUN -o FILE.tar.gz');
  const unpacked = unpackTar(packed);
  if (!unpacked.ok) throw refused(unpacked.error);
  const files = unpacked.value;
  const id = idIn(files);
  if (id === null) throw refused('is not the archive of a run');
  const stray = files.find(({ name }) => name !== MANIFEST && name !== `${id}.yaml` && !name.startsWith(`${id}/`));
  if (stray !== undefined) throw refused(`contains ${JSON.stringify(stray.name)}, which does not belong to run ${id}`);
  const place = join(project.runs, id);
  if ([place, `${place}.yaml`].some((path) => tolerate(ABSENT, null, () => lstatSync(path)) !== null))
    throw new UsageError(`a run ${id} exists already`, `look at it: meow status ${id}; or import into another project`);
  makeFolder(project.runs);
  const scratch = join(project.runs, `.${id}.yaml.${randomBytes(6).toString('hex')}.tmp`);
  try {
    for (const { name, bytes } of files) {
      if (name === MANIFEST) continue;
      const path = join(scratch, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writePrivate(path, bytes);
    }
    for (const folder of [scratch, join(scratch, id)]) chmodSync(folder, 0o700);
    writePrivate(join(scratch, id, IMPORTED), '');
    // With all checksums.
    await readRun(storeOf({ runs: scratch }), id).catch((error: unknown) => {
      throw error instanceof UsageError ? refused(`is damaged: ${error.message}`) : error;
    });
    const state = join(scratch, `${id}.yaml`);
    if (tolerate(ABSENT, null, () => lstatSync(state)) === null) replacePrivate(state, `id: ${id}\n`);
    renameSync(join(scratch, id), place);
    tolerate(['EEXIST'], undefined, () => linkSync(state, `${place}.yaml`));
    unlinkSync(state);
    return id;
  } catch (error) {
    if (isErrno(error, 'EEXIST', 'ENOTEMPTY')) throw new UsageError(`a run ${id} exists already`, `meow status ${id}`);
    // A file in the archive is the folder of another.
    if (isErrno(error, 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'EINVAL')) throw refused('has names that cannot be files');
    throw isSystemError(error) ? asUsageError(error, `import the run ${id}`, project.runs) : error;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function idIn(files: readonly TarFile[]): string | null {
  const bytes = files.find(({ name }) => name === MANIFEST)?.bytes;
  const manifest = bytes === undefined ? null : parseJson(Buffer.from(bytes).toString());
  if (!isJsonMap(manifest) || manifest['format'] !== FORMAT) return null;
  const { id } = manifest;
  if (typeof id !== 'string' || !isRunId(id)) return null;
  const hasRecords = ['journal.jsonl', 'program.json'].every((name) =>
    files.some((file) => file.name === `${id}/${name}`),
  );
  return hasRecords ? id : null;
}
