// Builds dist/ from src/: one CommonJS bundle for each entry below, with every library inside it.
//
// A command line tool is started often and lives shortly, so what `meow --version` reads must be small. `meow.cjs` is
// that: it imports nothing but what the fast paths need and reaches the rest by `await import('./cli.ts')`. An import()
// of another entry stays an import of its bundle; an import() of any other file is bundled in place, and still runs
// only when it is reached.
//
// Bundles share no modules: a class imported by two entries exists twice. So an entry hands plain data to another.
//
// Defined for the sources: MEOW_VERSION (a string). `import.meta.dirname` and `.filename` name the bundle's place.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Bundle → source. A new line here is a new file in dist/ that another entry can import lazily. */
const ENTRIES = {
  meow: 'src/cli/main.ts',
  cli: 'src/cli/cli.ts',
  agent: 'src/cli/agent.ts',
  mcp: 'src/mcp/tools.ts',
  'offline-step-status': 'src/app/offline-step-status.ts',
  'sim-agent': 'src/sim/main.ts',
};

/** Where the name of the build is put when the bundles are there to be named. */
const BUILD_PLACE = '@@meow-build@@';
/** Bundles that are loaded with their code cache (src/cli/load-bundle.ts). */
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
  // Less to read at every start. Names stay, for the sake of the traces that people report.
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
  plugins: [entriesStayApart],
  sourcemap: 'linked',
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  logOverride: { 'empty-import-meta': 'error' },
}).catch(() => process.exit(1)); // esbuild has said why

const files = new Map(
  outputFiles.map(({ path, contents, text }) => [basename(path), path.endsWith('.cjs') ? asciiOf(text) : contents]),
);
files.set('THIRD-PARTY-LICENSES.txt', licensesOf(metafile));
const named = nameBuild(files);
for (const bundle of CACHED) files.set(`${bundle}.${named}.cache`, codeCacheOf(files.get(`${bundle}.cjs`), bundle));
replaceFolder(join(root, 'dist'), files);

/**
 * A source of plain ASCII takes a quarter of the time to read. esbuild leaves other characters in regular expressions and
 * templates, where an escape means the same, save in raw templates.
 */
function asciiOf(source) {
  if (/String\.raw`[^`]*[^\0-\x7f]/.test(source)) throw new Error('a raw template with other characters than ASCII');
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return Buffer.from(source.replaceAll(/[^\0-\x7f]/g, escape), 'latin1');
}

/** By what the cached bundles are; the entry comes last, so that nobody looks for a cache before its bundle is there. */
function nameBuild(files) {
  const hash = createHash('sha256');
  for (const bundle of CACHED) hash.update(files.get(`${bundle}.cjs`));
  const name = hash.digest('hex').slice(0, 12);
  const entry = Buffer.from(files.get('meow.cjs')).toString('utf8');
  files.delete('meow.cjs');
  files.set('meow.cjs', Buffer.from(entry.replaceAll(BUILD_PLACE, name)));
  return name;
}

/** Made by a process of its own, which has used what most commands use. Without one meow is as good, and slower to start. */
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

/** Each file changes in one step, so a `meow` that is started meanwhile finds the old or the new one, never half. */
function replaceFolder(folder, files) {
  mkdirSync(folder, { recursive: true });
  for (const [name, contents] of files) {
    const unfinished = join(folder, `.${name}.${process.pid}`);
    writeFileSync(unfinished, contents);
    renameSync(unfinished, join(folder, name));
  }
  for (const name of readdirSync(folder)) {
    // A name with a dot in front is a file that another build is still writing.
    if (!files.has(name) && !name.startsWith('.')) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** The license of every package that went into a bundle, as each of them asks for. */
function licensesOf({ inputs }) {
  const folders = Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  return [...new Set(folders)]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
      return `${name} ${version} (${license})\n\n${licenseText(folder)}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenseText(folder) {
  for (const name of ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENSE-MIT', 'license', 'LICENCE']) {
    try {
      return readFileSync(join(root, folder, name), 'utf8').trim();
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  return '(the package has no license file)';
}
