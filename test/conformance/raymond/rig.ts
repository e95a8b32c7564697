// Raymond workflows from folders and files of the tree, as input for the language. Paths of scripts are relative to the
// folder, so goldens do not depend on the location of the tree.

import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

import type { Diagnostic } from '../../../src/base/source.ts';
import type { Block } from '../../../src/ir/program.ts';
import type { CompiledRaymond, RaymondInput } from '../../../src/languages/raymond/compile.ts';
import { compileRaymond, validateRaymond } from '../../../src/languages/raymond/compile.ts';
import type { Found, RaymondFile, RaymondSource } from '../../../src/languages/raymond/syntax.ts';

export const ADAPTERS: RaymondInput['adapters'] = {
  forced: null,
  fallback: 'sim',
  refusal: (adapter) => (adapter === 'gone' ? { message: 'there is no adapter "gone"', hint: 'Use another.' } : null),
  meant: (name) => name,
  canFork: (adapter) => adapter !== 'simple',
  canChoose: (adapter) => adapter !== 'simple',
};

/** `root`: the folder that paths in messages are relative to. */
function readWorkflow(root: string, path: string): RaymondSource {
  const whole = join(root, path);
  if (statSync(whole).isDirectory()) return readFolder(root, whole, null);
  if (/\.ya?ml$/.test(whole)) {
    return { kind: 'single', key: whole, name: relative(root, whole), text: readFileSync(whole, 'utf8'), start: null };
  }
  return readFolder(root, dirname(whole), basename(whole));
}

function readFolder(root: string, folder: string, start: string | null): RaymondSource {
  const files = readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path): RaymondFile => {
      const bytes = readFileSync(path);
      return {
        name: basename(path),
        file: relative(root, path),
        text: bytes.includes(0) ? null : bytes.toString('utf8'),
        isExecutable: (statSync(path).mode & 0o111) !== 0,
        path: relative(root, path),
        leadsOut: dirname(realpathSync(path)) !== realpathSync(folder),
      };
    });
  return { kind: 'folder', key: folder, name: relative(root, folder) || '.', files, start };
}

/** Other workflows of the tree; MEOW files are entered by a block of that name. */
function findIn(root: string): RaymondInput['find'] {
  return (from, path): Found | null => {
    const folder = from.kind === 'folder' ? from.name : dirname(from.name);
    const found = join(folder, path);
    if (found.startsWith('..'))
      return { kind: 'refused', message: `${path} is outside of the project`, hint: 'Copy it into the project.' };
    if (found.endsWith('.meow.toml')) {
      return { kind: 'found', entry: `${found}#main`, required: [], visited: [] };
    }
    const whole = join(root, found);
    if (existsSync(whole)) return { kind: 'raymond', source: readWorkflow(root, found) };
    // The name of a state, without its extension.
    return existsSync(dirname(whole)) && existsSync(`${whole}.md`)
      ? { kind: 'raymond', source: readFolder(root, dirname(whole), basename(whole)) }
      : null;
  };
}

export function compileAt(root: string, path: string, more: Partial<RaymondInput> = {}): CompiledRaymond {
  const source = readWorkflow(root, path);
  const entered = new Map<string, Block>();
  const find = findIn(root);
  const compiled = compileRaymond({
    source,
    given: [],
    adapters: ADAPTERS,
    find: (from, wanted) => {
      const found = find(from, wanted);
      if (found?.kind === 'found') entered.set(found.entry, emptyBlock(found.entry));
      return found;
    },
    ...more,
  });
  const { program } = compiled;
  // Replaces the linker.
  const blocks = { ...Object.fromEntries(entered), ...program?.blocks };
  return { ...compiled, program: program === null ? null : { ...program, blocks } };
}

function emptyBlock(name: string): Block {
  return { name, parameters: [], steps: [], naming: 'path', visits: null };
}

export function validateAt(root: string, path: string, more: Partial<RaymondInput> = {}): readonly Diagnostic[] {
  return validateRaymond({ source: readWorkflow(root, path), adapters: ADAPTERS, find: findIn(root), ...more });
}
