// Makes commits of what is in a working tree, by one `git fast-import`: contents go in as they are, past every filter, and
// neither an index nor the tree is touched.

import { lstatSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { open, readlink } from 'node:fs/promises';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Git } from './git.ts';
import { inside, quoted, textOf } from './names.ts';
import { Refusal } from './git-error.ts';

/** A file, a link, or a commit of a repository within. */
export interface Content {
  readonly name: string;
  readonly mode: string;
  /** Null: what is in the working tree. */
  readonly oid: string | null;
}

export interface ImportRequest {
  readonly git: Git;
  readonly path: string;
  readonly ref: string;
  readonly message: string;
  readonly seconds: number;
  readonly head: string | null;
  /** All that differs from HEAD. */
  readonly removed: readonly string[];
  readonly contents: readonly Content[];
  /** All in which the index differs from HEAD; null where in nothing. */
  readonly staged: { readonly removed: readonly string[]; readonly contents: readonly Content[] } | null;
  /** Further commits that are to be kept. */
  readonly keep: readonly string[];
}

export interface Imported {
  readonly commit: string;
  /** Null where it is empty. */
  readonly tree: string | null;
  /** Those of the contents that had none, in their order. */
  readonly oids: readonly string[];
}

/** Or git's complaint. */
export async function importState(
  request: ImportRequest,
): Promise<{ readonly imported: Imported } | { readonly complaint: string; readonly pid: number }> {
  const answer = await request.git.ask(['fast-import', '--quiet', '--force', '--done'], {
    cwd: request.path,
    input: streamOf(request),
  });
  if (answer.status !== 0) return { complaint: answer.stderr, pid: answer.pid };
  const lines = answer.stdout.toString('latin1').replace(/\n$/, '').split('\n');
  const tree = /^040000 tree ([0-9a-f]+)\t/.exec(lines.pop() ?? '')?.[1] ?? null;
  const commit = lines.pop() ?? '';
  // That of the index has been told before, and nobody needs it.
  return { imported: { commit, tree, oids: request.staged === null ? lines : lines.slice(0, -1) } };
}

async function* streamOf(request: ImportRequest): AsyncGenerator<Uint8Array | string> {
  const { path, ref, head, message, seconds, staged } = request;
  yield 'feature done\n';
  let marks = 0;
  const placed: (Content & { readonly from: string })[] = [];
  for (const content of request.contents) {
    let from = content.oid;
    if (from === null) {
      marks += 1;
      from = `:${marks}`;
      yield `blob\nmark ${from}\n`;
      yield* bytesOfFile(path, content);
      yield `\nget-mark ${from}\n`;
    }
    placed.push({ ...content, from });
  }
  const begin = `reset ${ref}\n${head === null ? '' : `from ${head}\n`}\n`;
  const commit = (mark: string, note: string): string =>
    `commit ${ref}\nmark ${mark}\ncommitter meow <meow@localhost> ${seconds} +0000\n` +
    `data ${Buffer.byteLength(note)}\n${note}\n`;
  const stagedMark = `:${marks + 1}`;
  if (staged !== null) {
    yield begin + commit(stagedMark, `${message}: the index`);
    for (const name of staged.removed) yield `D ${quoted(name)}\n`;
    for (const { mode, oid, name } of staged.contents) yield `M ${mode} ${oid ?? ''} ${quoted(name)}\n`;
    yield `get-mark ${stagedMark}\n`;
  }
  const mark = `:${marks + 2}`;
  yield begin + commit(mark, message);
  for (const parent of [...(staged === null ? [] : [stagedMark]), ...request.keep]) yield `merge ${parent}\n`;
  for (const name of request.removed) yield `D ${quoted(name)}\n`;
  for (const { mode, from, name } of placed) yield `M ${mode} ${from} ${quoted(name)}\n`;
  yield `get-mark ${mark}\nls ${mark} ""\ndone\n`;
}

async function* bytesOfFile(path: string, { name, mode }: Content): AsyncGenerator<Uint8Array | string> {
  const file = inside(path, name);
  try {
    if (mode === '120000') {
      const target = await readlink(file, { encoding: 'buffer' });
      yield `data ${target.length}\n`;
      yield target;
      return;
    }
    const handle = await open(file, 'r');
    try {
      const { size } = await handle.stat();
      yield `data ${size}\n`;
      let left = size;
      while (left > 0) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(left, CHUNK_BYTES)));
        if (bytesRead === 0) throw changing(name);
        left -= bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'EINVAL')) throw changing(name);
    if (isErrno(error, 'EACCES', 'EPERM')) {
      throw new Refusal(
        'refused',
        `${textOf(name)} cannot be read (${error.code})`,
        `make it readable, or have git ignore it`,
      );
    }
    throw error;
  }
}

const CHUNK_BYTES = 1024 * 1024;

function changing(name: string): Refusal {
  return new Refusal(
    'refused',
    `${textOf(name)} was changed while it was read`,
    'end whatever still works in the tree, and try again',
  );
}

/** What stands there now: git's mode of it and a print that changes with every change; null where nothing of git's does. */
export function lookAt(
  path: string,
  name: string,
): { readonly mode: string; readonly print: string; readonly changedAt: number } | 'folder' | null {
  const found = statIfThere(inside(path, name));
  if (found === null) return null;
  if (found.isDirectory()) return 'folder';
  if (!found.isFile() && !found.isSymbolicLink()) return null;
  const mode = found.isSymbolicLink() ? '120000' : (found.mode & 0o100n) === 0n ? '100644' : '100755';
  const print = [mode, found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ');
  return { mode, print, changedAt: Number(found.ctimeMs) };
}

export function exists(path: string | Buffer): boolean {
  return statIfThere(path) !== null;
}

function statIfThere(path: string | Buffer): BigIntStats | null {
  try {
    // Exceptions are dear, and much is not there.
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (isErrno(error, 'ENOTDIR')) return null;
    throw error;
  }
}
