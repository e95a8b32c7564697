// Loads another bundle of dist/, with the code that V8 made of it when it was built: to compile a bundle takes longer than
// to run most commands. V8 looks at a code cache before it uses it, and compiles as ever where it is of another version
// or absent; but it tells sources apart by their length alone, so the name of a cache says which build it belongs to.

import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';

/** Changes with every build whose sources differ. */
declare const MEOW_BUILD: string;

type Wrapped = (
  exports: object,
  require: NodeJS.Require,
  module: { exports: object },
  file: string,
  folder: string,
) => void;

/** What the bundle exports. */
export function loadBundle(name: string): object {
  const folder = import.meta.dirname;
  // The build leaves nothing but ASCII in it.
  const file = join(folder, `${name}.cjs`);
  const cachedData = cacheOf(folder, name);
  const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
    filename: file,
    ...(cachedData === null ? {} : { cachedData }),
  });
  const module = { exports: {} };
  (script.runInThisContext() as Wrapped)(module.exports, createRequire(file), module, file, folder);
  return module.exports;
}

function cacheOf(folder: string, name: string): Buffer | null {
  try {
    return readFileSync(join(folder, `${name}.${MEOW_BUILD}.cache`));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
