// The repository of a recorded Conductor run, for the test that is made from it: the files that the run started with, and what
// each turn and each command changed. The journal names snapshots; their files are in the repository.

import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import type { ConductedSpec } from '../ir/conductor.ts';
import type { Outputs } from '../ir/output.ts';
import { shellWord } from '../ir/quote.ts';

/** A file of a snapshot. */
export interface SnapshotFile {
  /** As git writes it. */
  readonly mode: string;
  /** Equal for equal contents. */
  readonly id: string;
}

export interface RepositoryReader {
  /** Files of a commit, by path. */
  files(commit: string): ReadonlyMap<string, SnapshotFile>;
  contents(file: SnapshotFile): Buffer;
  /** A file of the run directory: of artifacts and harnesses. Null if it does not exist. */
  runFile(path: string): { readonly contents: Buffer; readonly isExecutable: boolean } | null;
  /** An output that is stored in a file. */
  stored(path: string): Json;
  /** A file of the repository's folder as it is now; null if it does not exist. */
  present(path: string): Buffer | null;
}

/** What a turn or a command did: as actions of an agent, and as files of a command. */
export interface RecordedChanges {
  /** `visit`: of the step that was inspected; otherwise whatever was last. */
  readonly by: 'visit' | 'anything';
  readonly actions: readonly JsonMap[];
  readonly files: Readonly<Record<string, string>>;
}

export class RecordedRepository {
  readonly #reader: RepositoryReader | null;
  #base: string | null = null;
  /** The latest snapshot; null after a rollback, until the next one. */
  #now: string | null = null;
  /** HEAD of the latest snapshot. */
  #head: Json = null;

  constructor(reader: RepositoryReader | null) {
    this.#reader = reader;
  }

  /**
   * The files that the run started with, as texts. If they are too large for a test file, or not all are texts: null, and
   * `changedFiles` has those that the repository's folder now has in another form.
   */
  initialFiles(): ReadonlyMap<string, string> | null {
    const files = this.#initial();
    const texts = new Map<string, string>();
    let bytes = 0;
    for (const [path, contents] of files) {
      const text = textOf(contents);
      bytes += contents.length;
      if (text === null || bytes > FILES_BYTES_MAX) return null;
      texts.set(path, text);
    }
    return texts;
  }

  changedFiles(): ReadonlyMap<string, string> {
    const changed = new Map<string, string>();
    for (const [path, contents] of this.#initial()) {
      const text = textOf(contents);
      if (text !== null && this.#reader?.present(path)?.equals(contents) !== true) changed.set(path, text);
    }
    return changed;
  }

  *#initial(): Iterable<readonly [path: string, contents: Buffer]> {
    const reader = this.#reader;
    if (reader === null || this.#base === null) return;
    for (const [path, file] of reader.files(this.#base)) if (isFile(file)) yield [path, reader.contents(file)];
  }

  /** Files that the run has changed, as `expect.files` of a test. */
  expectedFiles(): Readonly<Record<string, Json>> {
    const reader = this.#reader;
    if (reader === null || this.#base === null || this.#now === null) return {};
    return Object.fromEntries(
      changesBetween(reader.files(this.#base), reader.files(this.#now)).flatMap(([path, file]): [string, Json][] => {
        if (file === null) return [[path, { absent: true }]];
        const text = isFile(file) ? textOf(reader.contents(file)) : null;
        return text === null ? [] : [[path, text]];
      }),
    );
  }

  /** Null if the step changed nothing. */
  after(spec: ConductedSpec, given: Outputs | undefined): RecordedChanges | null {
    if (this.#reader === null) return null;
    const outputs = this.#whole(given ?? {});
    if (spec.kind === 'inspect') {
      const { kind } = spec.inspection;
      if (kind === 'policy') return this.#runFiles(outputs['run_files']);
      return kind === 'collect' ? this.#collected(spec.inspection.validator.id, outputs['artifacts']) : null;
    }
    if (spec.operation.kind === 'rollback') {
      this.#now = null;
      return null;
    }
    const isBefore = spec.operation.kind === 'snapshot';
    return this.#moved(outputs[isBefore ? 'before' : 'after'], isBefore || spec.operation.by === 'run');
  }

  #moved(snapshot: Json | undefined, byAnything: boolean): RecordedChanges | null {
    if (!isJsonMap(snapshot) || typeof snapshot['commit'] !== 'string') return null;
    const { commit, head = null } = snapshot;
    const [before, headBefore] = [this.#now, this.#head];
    this.#now = commit;
    this.#head = head;
    this.#base ??= commit;
    const reader = this.#reader;
    if (reader === null || before === null) return null;
    const changes = changesBetween(reader.files(before), reader.files(commit));
    const actions = changes.map(([path, file]) => actionFor(reader, path, file));
    const commits = head === headBefore ? [] : [{ run: COMMIT }];
    const files = changes.flatMap(([path, file]) => {
      const text = file !== null && isFile(file) ? textOf(reader.contents(file)) : null;
      return text === null ? [] : [[path, text] as const];
    });
    return {
      by: byAnything ? 'anything' : 'visit',
      actions: [...actions, ...commits],
      files: Object.fromEntries(files),
    };
  }

  /** Files that an agent put into the run directory. */
  #runFiles(paths: Json | undefined): RecordedChanges | null {
    if (!Array.isArray(paths)) return null;
    const actions = (paths as readonly Json[]).flatMap((path) => {
      const file = typeof path === 'string' ? this.#reader?.runFile(path) : null;
      if (typeof path !== 'string' || !file) return [];
      return [writing(`"$MEOW_RUN_DIR"/${shellWord(path)}`, file.contents, file.isExecutable)];
    });
    return { by: 'visit', actions, files: {} };
  }

  /** Files that a validator left, which were moved to the run directory. */
  #collected(validator: string, artifacts: Json | undefined): RecordedChanges | null {
    if (!Array.isArray(artifacts)) return null;
    const files = (artifacts as readonly Json[]).flatMap((artifact) => {
      const path = isJsonMap(artifact) ? artifact['path'] : null;
      if (typeof path !== 'string') return [];
      const [, , , owner, ...rest] = path.split('/');
      const contents = owner === validator && rest.length > 0 ? this.#reader?.runFile(path)?.contents : undefined;
      const text = contents === undefined ? null : textOf(contents);
      return text === null ? [] : [[rest.join('/'), text] as const];
    });
    return { by: 'visit', actions: [], files: Object.fromEntries(files) };
  }

  #whole(outputs: Outputs): JsonMap {
    return Object.fromEntries(
      Object.entries(outputs).map(([name, value]) => {
        const path = isJsonMap(value) ? value['$file'] : null;
        return [name, typeof path === 'string' && this.#reader !== null ? this.#reader.stored(path) : value];
      }),
    );
  }
}

/** A larger test file is hard to read. */
const FILES_BYTES_MAX = 200_000;

const COMMIT = 'git add -A && git -c user.name=agent -c user.email=agent@localhost commit --quiet -m work';

/** `null`: the file was removed. */
function changesBetween(
  before: ReadonlyMap<string, SnapshotFile>,
  after: ReadonlyMap<string, SnapshotFile>,
): readonly (readonly [path: string, file: SnapshotFile | null])[] {
  const isSame = (path: string): boolean =>
    before.get(path)?.id === after.get(path)?.id && before.get(path)?.mode === after.get(path)?.mode;
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].flatMap((path) => (isSame(path) ? [] : [[path, after.get(path) ?? null] as const]));
}

/** Not a link, and not another repository. */
function isFile({ mode }: SnapshotFile): boolean {
  return mode.startsWith('100');
}

function actionFor(reader: RepositoryReader, path: string, file: SnapshotFile | null): JsonMap {
  if (file === null) return { run: `rm -f -- ${shellWord(path)}` };
  const contents = reader.contents(file);
  const isExecutable = file.mode === '100755';
  if (file.mode === LINK) return { run: `ln -sfn -- ${shellWord(contents.toString())} ${shellWord(path)}` };
  const text = textOf(contents);
  // Texts of a script may have placeholders.
  if (text === null || text.includes('{{') || isExecutable) return writing(shellWord(path), contents, isExecutable);
  return { write: path, text };
}

const LINK = '120000';

/** `path`: quoted. */
function writing(path: string, contents: Buffer, isExecutable: boolean): JsonMap {
  const steps = [
    `mkdir -p -- "$(dirname -- ${path})"`,
    `echo ${contents.toString('base64')} | base64 -d > ${path}`,
    ...(isExecutable ? [`chmod +x -- ${path}`] : []),
  ];
  return { run: steps.join(' && ') };
}

/** Null if it is not text. */
function textOf(contents: Buffer): string | null {
  const text = contents.toString('utf8');
  return text.includes('\0') || !Buffer.from(text).equals(contents) ? null : text;
}
