// Zip archives as folders: `flow.zip` is a folder with its files, and `flow.zip/START.md` a file in it. Nothing is
// unpacked into the project. A run keeps a copy of the archives whose scripts it executes.

import { createHash } from 'node:crypto';
import { realpathSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { attachFiles, type Program } from '../ir/program.ts';
import { isSystemError, tolerate } from '../sys/errors.ts';
import { InvalidWorkflow } from './errors.ts';
import { readZip, ZIP_BYTES_MAX, type ZipFile } from './zip.ts';

export interface Archive {
  /** Absolute, without links. */
  readonly path: string;
  readonly hash: string;
  /** By path. A single folder at the top is left out. */
  readonly files: ReadonlyMap<string, ZipFile>;
  /** Folder of its copy, below the folder of a run. */
  readonly stored: string;
}

export interface ArchivedPath {
  readonly archive: Archive;
  /** Empty for the archive itself. */
  readonly inside: string;
  readonly kind: 'file' | 'folder' | null;
}

export class Archives {
  readonly #opened = new Map<string, Archive>();

  /** Null if the path is neither an archive nor in one. Throws if the archive cannot be read. */
  find(path: string, shown: (path: string) => string): ArchivedPath | null {
    const located = locate(path);
    if (located === null) return null;
    const archive = this.#open(located.zip, shown(located.zip));
    return { archive, inside: located.inside, kind: kindIn(archive, located.inside) };
  }

  /** Does not open the archive: one that nobody enters may be broken. Null if the path is neither an archive nor in one. */
  realPath(path: string): string | null {
    const located = locate(path);
    return located === null ? null : join(realpathSync(located.zip), located.inside);
  }

  /** With the files of the archives whose scripts the Program executes. */
  attachTo(program: Program): Program {
    const files = this.#usedBy(program.blocks).flatMap(({ files: all, stored }) =>
      [...all].map(([path, { bytes, isExecutable }]) => ({
        path: `${stored}/${path}`,
        base64: bytes.toString('base64'),
        isExecutable,
      })),
    );
    return files.length === 0 ? program : attachFiles(program, files);
  }

  hasScripts(blocks: Program['blocks']): boolean {
    return this.#usedBy(blocks).length > 0;
  }

  #usedBy(blocks: Program['blocks']): readonly Archive[] {
    if (this.#opened.size === 0) return [];
    const commands = JSON.stringify(blocks);
    return [...this.#opened.values()].filter(({ stored }) => commands.includes(`/${stored}/`));
  }

  /** Hashes of the archives that were read, by path. */
  *hashes(): Generator<readonly [string, string]> {
    for (const { path, hash } of this.#opened.values()) yield [path, hash];
  }

  #open(zip: string, shown: string): Archive {
    const path = realpathSync(zip);
    const known = this.#opened.get(path);
    if (known !== undefined) return known;
    const bytes = readArchive(path, shown);
    const hash = createHash('sha256').update(bytes).digest('hex');
    const [claimed = hash] = /(?<![\da-f])[\da-f]{64}(?![\da-f])/i.exec(basename(zip)) ?? [];
    if (claimed.toLowerCase() !== hash)
      throw new InvalidWorkflow(
        `${shown} does not have the SHA-256 that its name claims; it has ${hash}`,
        'get it again from where it came from, or rename it',
      );
    const read = readZip(bytes);
    if (!read.ok) {
      const hint = 'make it again from the folder of the workflow: cd FOLDER && zip -r ../flow.zip .';
      throw new InvalidWorkflow(`${shown} ${read.error}`, hint);
    }
    const archive = { path, hash, files: withoutTop(read.value), stored: `archives/${hash.slice(0, 16)}` };
    this.#opened.set(path, archive);
    return archive;
  }
}

/** The file of the archive, and the path in it: empty for the archive itself. */
function locate(path: string): { readonly zip: string; readonly inside: string } | null {
  const parts = path.split('/');
  for (const [index, part] of parts.entries()) {
    if (!/.\.zip$/i.test(part)) continue;
    const zip = parts.slice(0, index + 1).join('/');
    if (tolerate('any', null, () => statSync(zip))?.isFile() !== true) continue;
    const inside = parts.slice(index + 1).filter((each) => each !== '');
    return { zip, inside: inside.join('/') };
  }
  return null;
}

function readArchive(path: string, shown: string): Buffer {
  try {
    const { size } = statSync(path);
    if (size <= ZIP_BYTES_MAX) return readFileSync(path);
    const megabytes = Math.ceil(size / 1_000_000);
    const message = `${shown} has ${megabytes} MB, more than the ${ZIP_BYTES_MAX / 1_000_000} MB of an archive`;
    throw new InvalidWorkflow(message, 'is it the right file?');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new UsageError(`cannot read ${shown} (${error.code})`, 'check the path, and that you may read it');
  }
}

/** Tools often put the folder itself into the archive. */
function withoutTop(files: ReadonlyMap<string, ZipFile>): ReadonlyMap<string, ZipFile> {
  const [first = ''] = files.keys();
  const top = first.slice(0, first.indexOf('/') + 1);
  if (top === '' || ![...files.keys()].every((path) => path.startsWith(top))) return files;
  return new Map([...files].map(([path, file]) => [path.slice(top.length), file]));
}

function kindIn({ files }: Archive, inside: string): 'file' | 'folder' | null {
  if (inside === '') return 'folder';
  if (files.has(inside)) return 'file';
  return [...files.keys()].some((path) => path.startsWith(`${inside}/`)) ? 'folder' : null;
}
