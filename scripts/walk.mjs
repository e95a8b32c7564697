// npm run walk              count the source files that two typical runs execute, and compare with the limits
// npm run walk -- --list    the same, with the paths of the files
//
// A file counts if `meow run` calls one of its functions; code that runs while a module is loaded does not count, nor
// do child processes. V8's coverage says which functions of the bundles in dist/ are called, and the source maps of the
// bundles say which files they come from. Build before you call it.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Module, { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** NODE_V8_COVERAGE would omit bundles that Node's own loader does not load, and would count child processes. */
const HOOK = `
const { Session } = require('node:inspector');
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
process.on('exit', () => {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error;
    require('node:fs').writeFileSync(process.env.MEOW_WALK_REPORT, JSON.stringify(coverage.result));
  });
});
`;

/** Tables of keys and shapes of records call functions with names while they are loaded, which V8 cannot tell from other calls. */
const TABLES = /\/languages\/(?:[a-z]+\/)?keys\.ts$|\/base\/shape\.ts$/;

/** Source maps of bundles that have been read. */
const maps = new Map();

const WALKS = [
  { name: 'one shell step', limit: 100, run: runShellStep },
  { name: "RUN_AGENT's fix loop", limit: 180, run: runFixLoop },
];

const folder = mkdtempSync(join(tmpdir(), 'meow-walk-'));
try {
  walkAll();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function walkAll() {
  const program = join(folder, 'program');
  for (const part of ['bin', 'lib', 'dist', 'package.json']) {
    // V8 does not count the calls of functions from a code cache.
    cpSync(join(root, part), join(program, part), { recursive: true, filter: (path) => !path.endsWith('.cache') });
  }
  for (const { name, limit, run } of WALKS) {
    const project = mkdtempSync(join(folder, 'project-'));
    const files = run(join(program, 'bin/meow'), project);
    const comparison = files.length > limit ? 'over the limit' : 'within the limit';
    process.stdout.write(`${name}: ${files.length} files, ${comparison} of ${limit}\n`);
    if (process.argv.includes('--list')) process.stdout.write(files.map((file) => `  ${file}\n`).join(''));
    if (files.length > limit) process.exitCode = 1;
  }
}

function runShellStep(meow, project) {
  mkdirSync(join(project, '.meow'));
  writeFileSync(
    join(project, 'one.meow.toml'),
    '[main]\nname = "one"\n\n[[main.steps]]\nid = "one"\nexecutor = "shell"\ncommand = "true"\n',
  );
  return executedFiles([meow, 'run', 'one.meow.toml'], project);
}

function runFixLoop(meow, project) {
  cpSync(join(root, 'examples/conductor/fix-loop'), project, { recursive: true });
  const git = (...args) => execFileSync('git', args, { cwd: project, env: environment(project), stdio: 'ignore' });
  git('init', '--initial-branch=main');
  git('add', '.');
  git('-c', 'user.name=walk', '-c', 'user.email=walk@localhost', 'commit', '--message=start');
  return executedFiles([meow, 'run', 'fix-loop.yaml', '--adapter', 'sim'], project);
}

/** Sorted paths of the source files whose functions Node calls. */
function executedFiles(args, cwd) {
  const hook = join(folder, 'hook.cjs');
  const report = join(folder, 'report.json');
  writeFileSync(hook, HOOK);
  execFileSync(process.execPath, ['--require', hook, ...args], {
    cwd,
    env: { ...environment(cwd), MEOW_WALK_REPORT: report },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const files = new Set();
  for (const { url, functions } of JSON.parse(readFileSync(report, 'utf8'))) {
    const bundle = /\/dist\/([^/]+\.cjs)$/.exec(url)?.[1];
    if (bundle === undefined) continue;
    for (const offset of offsetsCalled(bundle, functions)) files.add(sourceAt(bundle, offset));
  }
  files.delete(null);
  return [...files].filter((file) => !TABLES.test(file)).toSorted((a, b) => (a < b ? -1 : 1));
}

/** Start offsets in a bundle of the functions that were called, except calls while a module is loaded. */
function offsetsCalled(bundle, functions) {
  // A bundle that meow loads by itself is inside the wrapper of a module.
  const length = readFileSync(join(root, 'dist', bundle)).length;
  const isWrapped = functions.some(({ ranges: [{ endOffset }] }) => endOffset > length);
  const shift = isWrapped ? Module.wrapper[0].length : 0;
  const offsets = [];
  const enclosing = [];
  for (const { functionName, ranges } of functions.toSorted(
    (a, b) => a.ranges[0].startOffset - b.ranges[0].startOffset,
  )) {
    const [{ startOffset, endOffset, count }] = ranges;
    while (enclosing.length > 0 && enclosing.at(-1).endOffset <= startOffset) enclosing.pop();
    // esbuild names the function around a lazily loaded module after its file.
    const isTopLevel = startOffset <= shift || functionName.includes('/');
    const isCalledByLoading = functionName === '' && (enclosing.at(-1)?.isTopLevel ?? true);
    if (count > 0 && !isTopLevel && !isCalledByLoading) offsets.push(startOffset - shift);
    enclosing.push({ endOffset, isTopLevel });
  }
  return offsets;
}

/** Null for the code of libraries and of the bundler. */
function sourceAt(bundle, offset) {
  if (!maps.has(bundle)) {
    const text = readFileSync(join(root, 'dist', bundle), 'latin1');
    const lines = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines.push(at + 1);
    maps.set(bundle, {
      lines,
      map: new SourceMap(JSON.parse(readFileSync(join(root, 'dist', `${bundle}.map`), 'utf8'))),
    });
  }
  const { lines, map } = maps.get(bundle);
  const line = lines.findLastIndex((start) => start <= offset);
  const { originalSource = '' } = map.findEntry(line, offset - lines[line]);
  return /^(?:\.\.\/)*(src\/.*)$/.exec(originalSource)?.[1] ?? null;
}

function environment(home) {
  return { PATH: process.env.PATH, HOME: home };
}
