// A temporary copy of the source tree, to which toys are added.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import type { Edit, Toy } from './toys.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Everything that is type-checked or built. Recorded runs are neither. */
const COPIED = [
  'bench',
  'bin',
  'editors',
  'lib',
  'scripts',
  'src',
  'test',
  'package.json',
  'tsconfig.json',
  'tsconfig.pure.json',
];
const LEFT_OUT = /^test\/journals\/\d/;

export class SourceCopy {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'meow-extension-')));

  constructor() {
    for (const part of [...COPIED, 'vitest.config.ts']) {
      const filter = (path: string): boolean => !LEFT_OUT.test(relative(ROOT, path));
      cpSync(join(ROOT, part), join(this.root, part), { recursive: true, filter });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(this.root, 'node_modules'));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Returns the paths of the existing files that it touches. */
  add({ files, edits }: Toy): readonly string[] {
    for (const [fixture, path] of Object.entries(files)) {
      if (existsSync(join(this.root, path)))
        throw new Error(`${path} is not a new file: choose another path for the toy`);
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      writeFileSync(join(this.root, path), moved(fixture, files));
    }
    for (const edit of edits) this.#edit(edit);
    return [...new Set(edits.map(({ path }) => path))].filter((path) => existsSync(join(ROOT, path)));
  }

  #edit({ path, find, replace }: Edit): void {
    const text = readFileSync(join(this.root, path), 'utf8');
    const found = text.split(find).length - 1;
    if (found !== 1) throw new Error(`${path} contains ${JSON.stringify(find)} ${found} times: adapt toys.ts`);
    writeFileSync(
      join(this.root, path),
      text.replace(find, () => replace),
    );
  }
}

/** The text of a fixture, with its imports written for its new place. */
function moved(fixture: string, files: Toy['files']): string {
  const path = files[fixture] ?? '';
  const folder = join(import.meta.dirname, dirname(fixture));
  const target = (specifier: string): string => {
    const imported = resolve(folder, specifier);
    return files[relative(import.meta.dirname, imported)] ?? relative(ROOT, imported);
  };
  return readFileSync(join(import.meta.dirname, fixture), 'utf8').replaceAll(/(?<= from ')\.[^']*/g, (specifier) => {
    const written = relative(dirname(path), target(specifier));
    return written.startsWith('.') ? written : `./${written}`;
  });
}
