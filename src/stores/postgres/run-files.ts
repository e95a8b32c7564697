// Files of a run in the database, in pieces of at most 256 KiB.
//
//   fleet-files/1  A piece is added at the offset where the file ends, so a piece that is sent again is stored once.
//   fleet-files/2  A replaced file is staged as another version and published by one statement.
//   fleet-files/3  A reader gets the bytes of one version, also if the file is replaced meanwhile.

import { setTimeout as sleep } from 'node:timers/promises';

import { assert, UsageError } from '../../base/errors.ts';
import type { RunFile, RunFiles } from '../../engine/ports.ts';
import type { Connection } from './connection.ts';

export interface RunFilesParts {
  readonly runId: string;
  /** The take under which this process holds the run; null if it does not. */
  readonly take: () => string | null;
  /** Calls a function of the schema. */
  readonly call: <Row extends object>(
    db: Connection,
    text: string,
    ...values: readonly unknown[]
  ) => Promise<readonly Row[]>;
  readonly reader: Connection;
  readonly writer: Connection;
}

const PIECE_BYTES = 256 * 1024;
const READ_BYTES = 4 * 1024 * 1024;
const CHANGES_MS = 300;

export function postgresRunFiles({ runId, take, call, reader, writer }: RunFilesParts): RunFiles {
  const write = async (text: string, ...values: readonly unknown[]): Promise<string> => {
    const [row] = await call<{ answer: string }>(writer, `select SCHEMA.${text} as answer`, runId, take(), ...values);
    const answer = row?.answer ?? 'refused';
    if (answer !== 'refused') return answer;
    throw new UsageError(
      `files of run ${runId} cannot be written: it does not exist, or another process holds it`,
      `see who does: meow status ${runId} --fleet`,
    );
  };

  const readPiece = async (path: string, start: number, end: number): Promise<FilePiece | null> => {
    const [found] = await call<FilePiece>(
      reader,
      'select * from SCHEMA.read_file($1, $2, $3, $4)',
      runId,
      path,
      start,
      end,
    );
    return found ?? null;
  };

  return {
    isRemote: true,

    async list(folder) {
      const rows = await call<{ name: string; is_file: boolean; size: number }>(
        reader,
        'select * from SCHEMA.list_files($1, $2)',
        runId,
        checkPath(folder),
      );
      return rows.map(({ name, is_file: isFile, size }): RunFile => ({ name, kind: isFile ? 'file' : 'folder', size }));
    },

    async read(path, start = 0, length = Infinity) {
      checkPath(path);
      for (;;) {
        const bytes = await readVersion((from, to) => readPiece(path, from, to), start, length);
        if (bytes !== 'replaced') return bytes;
      }
    },

    async *changes(folder, signal) {
      checkPath(folder);
      let seen: string | null = null;
      while (!signal.aborted) {
        const [row] = await call<{ mark: string }>(reader, 'select SCHEMA.files_mark($1, $2) as mark', runId, folder);
        const mark = row?.mark ?? '';
        if (mark !== seen) {
          seen = mark;
          yield;
        } else await sleep(CHANGES_MS, undefined, { signal }).catch(ignoreAbort);
      }
    },

    async append(path, bytes) {
      checkFile(path);
      let offset = (await readPiece(path, 0, 0))?.size ?? 0;
      for (const piece of piecesOf(bytes)) {
        const answer = await write('put($1, $2, $3, $4, $5)', path, offset, piece);
        if (answer !== 'ok') throw new UsageError(`two processes write the file ${path} of run ${runId}`);
        offset += piece.length;
      }
    },

    async replace(path, bytes) {
      checkFile(path);
      const [row] = await call<{ version: string }>(writer, 'select SCHEMA.new_version()::text as version');
      const version = row?.version ?? '';
      let offset = 0;
      for (const piece of bytes.length === 0 ? [] : piecesOf(bytes)) {
        await write('stage($1, $2, $3, $4, $5)', version, offset, piece);
        offset += piece.length;
      }
      const answer = await write('publish($1, $2, $3, $4, $5)', path, version, offset);
      assert(answer === 'ok', `version ${version} of ${path} is not complete: ${answer}`);
    },

    async remove(path) {
      await write('remove_files($1, $2, $3)', checkPath(path));
    },

    localPath(path) {
      throw new UsageError(
        `${path === '' ? 'the folder' : path} of run ${runId} is in the database and not on this machine`,
        `read it: meow logs ${runId} --fleet`,
      );
    },
  };
}

interface FilePiece {
  readonly version: string;
  readonly size: number;
  /** Where the first part begins in the file; null if there are none. */
  readonly first_at: number | null;
  readonly parts: readonly Buffer[];
}

async function readVersion(
  readPiece: (from: number, to: number) => Promise<FilePiece | null>,
  start: number,
  length: number,
): Promise<Uint8Array | null | 'replaced'> {
  const found: Buffer[] = [];
  let version: string | null = null;
  for (let at = start, end = start + 1; at < end; ) {
    const to = Math.min(at + READ_BYTES, start + length);
    const piece = await readPiece(at, to);
    if (piece === null) return version === null ? null : 'replaced';
    version ??= piece.version;
    if (piece.version !== version) return 'replaced';
    end = Math.min(start + length, piece.size);
    const bytes = Buffer.concat(piece.parts).subarray(
      at - (piece.first_at ?? at),
      Math.min(to, end) - (piece.first_at ?? at),
    );
    if (bytes.length === 0) break;
    found.push(bytes);
    at += bytes.length;
  }
  return Buffer.concat(found);
}

function* piecesOf(bytes: Uint8Array): Generator<Buffer> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at === 0 || at < buffer.length; at += PIECE_BYTES) yield buffer.subarray(at, at + PIECE_BYTES);
}

function checkPath(path: string): string {
  assert(!path.split('/').includes('..') && !path.startsWith('/'), `${path} leads out of the run`);
  return path;
}

function checkFile(path: string): void {
  assert(path !== '', 'a file needs a name');
  checkPath(path);
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error;
}
