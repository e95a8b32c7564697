// Builds dist/ from src/: one CommonJS bundle for each entry below, with every library inside it, and the page (dist/ui/).
//
// A command line tool starts often and runs briefly, so `meow --version` must read little. `meow.cjs` imports only what
// the fast paths need, and loads the rest by `await import('./cli.ts')`. An import() of another entry stays an import
// of its bundle; an import() of any other file is bundled in place, and still runs only when it is reached.
//
// Bundles share no modules: a class imported by two entries exists twice. So entries pass only plain data to each
// other.
//
// Defined for the sources: MEOW_VERSION (a string). `import.meta.dirname` and `.filename` refer to the bundle.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildPage } from './build-page.mjs';
import { licensesOf } from './licenses.mjs';

/** Bundle → source. A new line here is a new file in dist/ that another entry can import lazily. */
const ENTRIES = {
  meow: 'src/cli/main.ts',
  cli: 'src/cli/cli.ts',
  agent: 'src/cli/agent.ts',
  mcp: 'src/mcp/tools.ts',
  lsp: 'src/lsp/server.ts',
  web: 'src/web/server.ts',
  'offline-step-status': 'src/app/offline-step-status.ts',
  'sim-agent': 'src/sim/main.ts',
  sender: 'src/app/sender/main.ts',
  'otlp-exporter': 'src/app/telemetry/otlp-exporter.ts',
};

/** Placeholder for the name of the build, which is known after bundling. */
const BUILD_PLACE = '@@meow-build@@';
/** Bundles that are loaded with their code cache (src/cli/main.ts). */
const CACHED = ['cli', 'agent'];

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const bundleOf = new Map(Object.entries(ENTRIES).map(([bundle, source]) => [resolve(root, source), `./${bundle}.cjs`]));

const entriesStayApart = {
  name: 'entries-stay-apart',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
      const bundle = bundleOf.get(resolve(resolveDir, path));
      if (bundle === undefined || kind !== 'dynamic-import') return undefined;
      return { path: bundle, external: true };
    });
  },
};

const { metafile, outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  write: false,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  // Less to read at every start. Names stay, for stack traces in bug reports.
  minifyWhitespace: true,
  minifySyntax: true,
  // Keeps `import()` of a bundle from becoming a slower load through the ES module loader.
  supported: { 'dynamic-import': false },
  define: {
    MEOW_VERSION: JSON.stringify(version),
    MEOW_BUILD: JSON.stringify(BUILD_PLACE),
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
  // An optional dependency, which only fleets need.
  external: ['pg'],
  plugins: [entriesStayApart],
  sourcemap: 'linked',
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  logOverride: { 'empty-import-meta': 'error' },
}).catch(() => process.exit(1)); // esbuild has printed the reason

const page = await buildPage(root).catch(() => process.exit(1));
const files = new Map(
  outputFiles.map(({ path, contents, text }) => [basename(path), path.endsWith('.cjs') ? asciiOf(text) : contents]),
);
files.set('THIRD-PARTY-LICENSES.txt', licensesOf({ inputs: { ...metafile.inputs, ...page.metafile.inputs } }, root));
const named = nameBuild(files);
for (const bundle of CACHED) files.set(`${bundle}.${named}.cache`, codeCacheOf(files.get(`${bundle}.cjs`), bundle));
replaceFolder(join(root, 'dist/ui'), page.files);
replaceFolder(join(root, 'dist'), files, ['ui']);

/**
 * Plain ASCII source takes a quarter of the time to read. esbuild leaves other characters in regular expressions and
 * templates, where an escape means the same, except in raw templates.
 */
function asciiOf(source) {
  if (/String\.raw`[^`]*[^\0-\x7f]/.test(source)) throw new Error('a raw template with other characters than ASCII');
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return Buffer.from(source.replaceAll(/[^\0-\x7f]/g, escape), 'latin1');
}

/**
 * Named by the contents of the cached bundles. The entry is written last, so that nobody searches for a cache before
 * its bundle exists.
 */
function nameBuild(files) {
  const hash = createHash('sha256');
  for (const bundle of CACHED) hash.update(files.get(`${bundle}.cjs`));
  const name = hash.digest('hex').slice(0, 12);
  const entry = Buffer.from(files.get('meow.cjs')).toString('utf8');
  files.delete('meow.cjs');
  files.set('meow.cjs', Buffer.from(entry.replaceAll(BUILD_PLACE, name)));
  return name;
}

/**
 * Made by a separate process that has used the code of most commands. Without a cache meow works, but starts more
 * slowly.
 */
function codeCacheOf(source, bundle) {
  const folder = mkdtempSync(join(tmpdir(), 'meow-build-'));
  try {
    const file = join(folder, `${bundle}.cjs`);
    const cache = join(folder, 'cache');
    writeFileSync(file, source);
    execFileSync(process.execPath, [join(root, 'scripts/code-cache.mjs'), file, cache], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return readFileSync(cache);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each file is replaced atomically, so a `meow` that starts meanwhile finds the old or the new one, never a part. */
function replaceFolder(folder, files, folders = []) {
  mkdirSync(folder, { recursive: true });
  for (const [name, contents] of files) {
    const unfinished = join(folder, `.${name}.${process.pid}`);
    writeFileSync(unfinished, contents);
    renameSync(unfinished, join(folder, name));
  }
  for (const name of readdirSync(folder)) {
    // A name with a leading dot is a file that another build is still writing.
    if (!files.has(name) && !folders.includes(name) && !name.startsWith('.'))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}
