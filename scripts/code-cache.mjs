// node scripts/code-cache.mjs BUNDLE CACHE
//
// Writes what V8 makes of a bundle once the code of the usual commands has been compiled. Called by the build, in a folder
// of its own.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { basename, dirname } from 'node:path';
import { Script } from 'node:vm';

const [file, cache] = process.argv.slice(2);
const script = new Script(Module.wrap(readFileSync(file, 'latin1')), { filename: file });
const module = { exports: {} };
script.runInThisContext()(module.exports, createRequire(file), module, file, dirname(file));

if (basename(file) === 'cli.cjs') {
  mkdirSync('.meow');
  writeFileSync('a.meow.toml', '[main]\n[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "true"\n');
  for (const line of ['run a.meow.toml --id a', 'status a', 'validate a.meow.toml']) {
    await module.exports.main(line.split(' '));
  }
}
writeFileSync(cache, script.createCachedData());
process.exitCode = 0;
