// node scripts/code-cache.mjs BUNDLE CACHE
//
// Writes V8's code cache of a bundle after the usual commands have been compiled. Called by the build, in a separate
// folder.

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
  // Enough to use the code for parallel steps; and in sequence, like most workflows.
  const steps = Array.from({ length: 12 }, (_, n) => {
    const needs = n < 2 ? '' : `needs = ["s${n - 1}"]\n`;
    return `[[main.steps]]\nid = "s${n}"\nexecutor = "shell"\ncommand = "true"\n${needs}`;
  });
  writeFileSync('a.meow.toml', `[main]\n${steps.join('')}`);
  for (const line of ['run a.meow.toml --id a', 'status a', 'validate a.meow.toml']) {
    await module.exports.main(line.split(' '));
  }
}
writeFileSync(cache, script.createCachedData());
process.exitCode = 0;
