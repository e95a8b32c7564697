// `meow init`: creates a `.meow` folder with a configuration, a runnable example, and the schemas by which editors check files.
// Existing files are kept, except schemas of another version.
//
// The examples are files of the package, lib/init/NAME.meow.toml, with their tests and the script of their simulated agents
// beside them. The list shows their own descriptions. Each file gets a line that names its schema.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { findProject } from '../../app/project.ts';
import { schemaLine, schemaNamed, schemaNames, schemaText } from '../../app/schemas.ts';
import { packageFolder, shownPath } from '../../app/sources.ts';
import { present, UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { asUsageError, isErrno } from '../../sys/errors.ts';
import { EXIT, printLine } from '../output.ts';

const FIRST = 'hello';
const ENDING = '.meow.toml';

export function init({ template = FIRST }: { readonly template?: string }): number {
  const folder = templateFolder();
  const names = templateNames();
  if (!names.includes(template)) throw unknownTemplate(folder, names, template);
  const project = findProject();
  const meow = join(project.cwd, '.meow');
  const example = join(meow, 'templates', `${template}${ENDING}`);
  const beside = ['sim', 'test']
    .map((schema) => ({ schema, file: `${template}.${schema}.toml` }))
    .filter(({ file }) => existsSync(join(folder, file)));
  const made = [
    write(join(meow, 'config.toml'), schemaLine('config', `./${SCHEMAS}/config.json`) + read(folder, 'config.toml')),
    write(join(meow, '.gitignore'), IGNORED),
    write(example, withSchema('meow', read(folder, `${template}${ENDING}`))),
    ...beside.map(({ file, schema }) => write(join(meow, 'templates', file), withSchema(schema, read(folder, file)))),
  ];
  for (const { path, isNew } of made) {
    printLine(`${isNew ? 'wrote' : 'kept '} ${shownPath(project, path)}${isNew ? '' : ' (exists)'}`);
  }
  const schemas = schemaNames().map(({ name }) => writeSchema(join(meow, SCHEMAS), name));
  const isKept = schemas.every((isWritten) => !isWritten);
  printLine(`${isKept ? 'kept ' : 'wrote'} ${shownPath(project, join(meow, SCHEMAS))} (for editors)`);
  printLine();
  printLine(`Run the example:    meow run ${template}`);
  printLine(`Run its tests:      meow test .meow/templates`);
  printLine(`Read and change it: ${shownPath(project, example)}`);
  return EXIT.done;
}

/** The folder of schemas in `.meow`. */
const SCHEMAS = 'schemas';

/** For a file in the folder of templates. */
function withSchema(name: string, text: string): string {
  return schemaLine(name, `../${SCHEMAS}/${name}.json`) + text;
}

/** Whether it was absent or different. */
function writeSchema(folder: string, name: string): boolean {
  const path = join(folder, `${name}.json`);
  const text = schemaText(present(schemaNamed(name), `the schema ${name}`));
  const { isNew } = write(path, text);
  if (isNew) return true;
  if (readFileSync(path, 'utf8') === text) return false;
  rmSync(path);
  write(path, text);
  return true;
}

/** Files of runs. Workflows may be stored beside them. */
const IGNORED = '/workflows/*/\n/workflows/*.yaml\n/workflows/*.yaml.*\n/worktrees/\n';

function templateFolder(): string {
  return join(packageFolder(), 'lib/init');
}

/** The recommended one first. */
export function templateNames(): readonly string[] {
  const names = readdirSync(templateFolder()).flatMap((file) =>
    file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : [],
  );
  return [FIRST, ...names.filter((name) => name !== FIRST).toSorted()];
}

function unknownTemplate(folder: string, names: readonly string[], wanted: string): UsageError {
  const width = Math.max(...names.map(({ length }) => length));
  const lines = names.map((name) => {
    // The description of the first workflow in the file.
    const [, description = ''] = /^description = "(.*)"$/m.exec(read(folder, `${name}${ENDING}`)) ?? [];
    return `    ${name.padEnd(width)}  ${description}`;
  });
  const head = `${didYouMean(wanted, names)}the templates are:`;
  return new UsageError(`unknown template ${JSON.stringify(wanted)}`, [head, ...lines].join('\n'));
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
    // An incomplete file would be kept the next time.
    if (isErrno(error, 'ENOSPC', 'EDQUOT', 'EIO')) rmSync(path, { force: true });
    throw asUsageError(error, `write ${path}`, path);
  }
}

/** Creates the parents too. On a read-only file system Node's own function reports a missing folder. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}
