// The entry point. It prints the version itself, because that must be instant, and loads everything else on demand. The
// commands for agents are a small bundle of their own. This file must import nothing that the fast path does not need.
//
// Other bundles of dist/ are loaded with V8's code cache, since compiling a bundle takes longer than running most commands.
// The build makes a cache beside each bundle. An installed package has none, because a cache fits only one version of Node:
// there, the first start saves one in the user's cache folder when it exits. V8 verifies a cache and compiles as usual if
// it does not fit; but it identifies a source by its length only, so the file name contains the build.

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type * as V8 from 'node:v8';
import { Script } from 'node:vm';

import type * as Agent from './agent.ts';
import type * as Cli from './cli.ts';

declare const MEOW_VERSION: string;
/** Changes with every build whose sources differ. */
declare const MEOW_BUILD: string;

/**
 * Commands that may drive a run for hours, and mostly wait. V8 optimizes their functions only after much more work than usual,
 * since most would take more time to optimize than that saves. And it collects new objects at once, instead of letting their
 * part of the heap grow to 48 MB. For short commands, setting flags takes longer than it saves.
 */
const ENGINE_FLAGS = '--interrupt-budget=1000000 --semi-space-growth-factor=1';
/** The heap grows by half of what is in use before V8 collects it, not fourfold: ten thousand tests need what a thousand do. */
const TEST_FLAGS = '--heap-growing-percent=50';
const FLAGS = new Map([
  ['run', ENGINE_FLAGS],
  ['resume', ENGINE_FLAGS],
  ['fork', ENGINE_FLAGS],
  ['serve', ENGINE_FLAGS],
  ['worker', ENGINE_FLAGS],
  ['test', TEST_FLAGS],
]);

const args = process.argv.slice(2);
const FOR_AGENTS = ['done', 'prime', 'session-id', 'event', 'await-event', 'step-status', 'await-approval', 'mcp'];

if (args.length === 1 && ['version', '--version', '-V'].includes(args[0] ?? '')) {
  process.stdout.write(`${MEOW_VERSION}\n`);
} else if (args[0] === 'sim-agent' || args[0] === 'sim-turn') {
  // The simulated agent: a separate program, not a command for people.
  void import('../sim/main.ts').then(async ({ main, mainOfTurn }) => {
    process.exitCode = await (args[0] === 'sim-turn' ? mainOfTurn : main)(args.slice(1));
  });
} else if (args[0] === 'sender') {
  // Sends notifications: a separate program, which runs start.
  void import('../app/sender/main.ts').then(async ({ main }) => {
    process.exitCode = await main();
  });
} else if (FOR_AGENTS.includes(args[0] ?? '') && !args.includes('--help') && !args.includes('-h')) {
  run('agent');
} else {
  run('cli');
}

/**
 * Sets the exit code and lets the process end, so that output is flushed and an open handle shows as a hang in tests. Once
 * nothing is left to wait for, the process exits without freeing its memory.
 */
function run(bundle: 'agent' | 'cli'): void {
  process.once('beforeExit', () => process.exit());
  const { main } = loadBundle(bundle) as typeof Agent | typeof Cli;
  void main(args).then((status) => {
    process.exitCode = status;
  });
}

type Wrapped = (
  exports: object,
  require: NodeJS.Require,
  module: { exports: object },
  file: string,
  folder: string,
) => void;

function loadBundle(name: string): object {
  const folder = import.meta.dirname;
  // The build leaves only ASCII in it.
  const file = join(folder, `${name}.cjs`);
  const saved = savedCache(name);
  const cachedData = read(join(folder, `${name}.${MEOW_BUILD}.cache`)) ?? read(saved);
  const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
    filename: file,
    ...(cachedData === null ? {} : { cachedData }),
  });
  const isCached = cachedData !== null && script.cachedDataRejected !== true;
  if (!isCached) saveOnExit(script, saved);
  const module = { exports: {} };
  const load = createRequire(file);
  (script.runInThisContext() as Wrapped)(module.exports, load, module, file, folder);
  // A cache must be saved under the flags that it is loaded with.
  const flags = FLAGS.get(args[0] ?? '');
  // Loading this module takes a millisecond, which other commands do not have.
  if (isCached && flags !== undefined) (load('node:v8') as typeof V8).setFlagsFromString(flags);
  return module.exports;
}

/** For this build and this Node. */
function savedCache(name: string): string {
  const { XDG_CACHE_HOME: configured } = process.env;
  const caches = configured === undefined || configured === '' ? join(homedir(), '.cache') : configured;
  return join(caches, 'meow', `${MEOW_BUILD}-${process.version}-${process.arch}`, `${name}.cache`);
}

/** At exit, the cache contains the functions that the command used. */
function saveOnExit(script: Script, path: string): void {
  process.once('exit', () => {
    try {
      const folder = dirname(path);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const unfinished = `${path}.${process.pid}`;
      writeFileSync(unfinished, script.createCachedData(), { mode: 0o600 });
      renameSync(unfinished, path);
      removeOtherBuilds(folder);
    } catch (error) {
      // Without a cache meow only starts more slowly.
      if (!isSystemError(error)) throw error;
    }
  });
}

function removeOtherBuilds(folder: string): void {
  const parent = dirname(folder);
  for (const name of readdirSync(parent)) {
    if (join(parent, name) !== folder) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function read(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (isSystemError(error)) return null;
    throw error;
  }
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}
