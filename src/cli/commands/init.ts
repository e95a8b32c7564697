// `meow init`: a `.meow` folder with a configuration and an example that runs. What is there already is left as it is.
//
// The examples are files of the package, lib/init/NAME.meow.toml, with the script of its simulated agents beside it where
// there are any. What the list says about one is its own description.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { assert } from '../../base/assert.ts';
import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { asUsageError } from '../../app/errors.ts';
import { isErrno } from '../../sys/errno.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { printLine } from '../output.ts';
import { shownPath } from '../../app/sources.ts';

const FIRST = 'hello';
const ENDING = '.meow.toml';

export function init({ template = FIRST }: { readonly template?: string }): number {
  const folder = templatesFolder();
  const names = namesIn(folder);
  if (!names.includes(template)) throw unknownTemplate(folder, names, template);
  const project = findProject();
  const meow = join(project.cwd, '.meow');
  const example = join(meow, 'templates', `${template}${ENDING}`);
  const script = `${template}.sim.toml`;
  const made = [
    write(join(meow, 'config.toml'), read(folder, 'config.toml')),
    write(join(meow, '.gitignore'), IGNORED),
    write(example, read(folder, `${template}${ENDING}`)),
    ...(existsSync(join(folder, script)) ? [write(join(meow, 'templates', script), read(folder, script))] : []),
  ];
  for (const { path, isNew } of made) {
    printLine(`${isNew ? 'wrote' : 'kept '} ${shownPath(project, path)}${isNew ? '' : ' (exists)'}`);
  }
  printLine();
  printLine(`Run the example:    meow run ${template}`);
  printLine(`Read and change it: ${shownPath(project, example)}`);
  return EXIT.done;
}

/** What runs leave behind. Workflows may be kept beside them. */
const IGNORED = '/workflows/*/\n/workflows/*.yaml\n/workflows/*.yaml.*\n/worktrees/\n';

/** Seen from the bundle in `dist/` or from this source. */
function templatesFolder(): string {
  const found = ['..', '../../..'].map((up) => resolve(import.meta.dirname, up, 'lib/init')).find(existsSync);
  assert(found !== undefined, 'the package has no lib/init');
  return found;
}

/** The one to begin with first. */
function namesIn(folder: string): readonly string[] {
  const names = readdirSync(folder).flatMap((file) => (file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : []));
  return [FIRST, ...names.filter((name) => name !== FIRST).toSorted()];
}

function unknownTemplate(folder: string, names: readonly string[], wanted: string): UsageError {
  const guess = nearest(wanted, names);
  const width = Math.max(...names.map(({ length }) => length));
  const lines = names.map((name) => `    ${name.padEnd(width)}  ${descriptionOf(read(folder, `${name}${ENDING}`))}`);
  const meant = guess === null ? '' : `did you mean ${guess}? `;
  return new UsageError(
    `unknown template ${JSON.stringify(wanted)}`,
    [`${meant}the templates are:`, ...lines].join('\n'),
  );
}

/** As the first workflow of the text has it. */
function descriptionOf(text: string): string {
  return /^description = "(.*)"$/m.exec(text)?.[1] ?? '';
}

function read(folder: string, file: string): string {
  return readFileSync(join(folder, file), 'utf8');
}

function write(path: string, text: string): { readonly path: string; readonly isNew: boolean } {
  try {
    makeFolder(dirname(path));
    writeFileSync(path, text, { flag: 'wx' });
    return { path, isNew: true };
  } catch (error) {
    if (isErrno(error, 'EEXIST') && error.syscall === 'open') return { path, isNew: false };
    // What was begun would be kept the next time.
    if (isErrno(error, 'ENOSPC', 'EDQUOT', 'EIO')) rmSync(path, { force: true });
    throw asUsageError(error, `write ${path}`, path);
  }
}

/** With the folders above it. Node's own way to do that says of a file system that is read-only that a folder is missing. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}
