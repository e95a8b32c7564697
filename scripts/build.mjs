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

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Bundle → source. A new line here is a new file in dist/ that another entry can import lazily. */
const ENTRIES = {
  meow: 'src/cli/main.ts',
  cli: 'src/cli/cli.ts',
  agent: 'src/cli/agent.ts',
  'stored-step': 'src/cli/stored-step.ts',
  'sim-agent': 'src/sim/main.ts',
};

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

const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
files.set('THIRD-PARTY-LICENSES.txt', licensesOf(metafile));
replaceFolder(join(root, 'dist'), files);

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
