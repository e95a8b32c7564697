// Builds dist/ui/: the page that `meow ui` serves. Contains the documents, and their assets with a hash of their contents
// in their names, each also compressed (.br, .gz). Nothing in them refers to another host.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const FOLDER = 'src/page';
/**
 * `{{main.tsx}}` in them is the address of the asset that is built from that file, and `{{preloads main.tsx}}` links to the files
 * that it always loads. `{{text main.tsx}}` is its text with all that it imports, and `{{hash main.tsx}}` the hash of that text for a
 * content security policy. `{{run}}` stays: src/web/export.ts replaces it.
 */
const DOCUMENTS = ['page.html', 'enter.html', 'export.html', 'terminal-frame.html'];
/** In several files: what it imports dynamically is loaded when it is shown. */
const SPLIT = 'main.tsx';
/** Each in one file. The script of the page, too: an exported run loads nothing. */
const WHOLE = ['main.tsx', 'enter.ts', 'page.css', 'terminal-frame.ts', 'terminal-frame.css'];
/** Served as they are. */
const COPIED = ['icon.svg', 'icon-needs.svg'];
/** Where the server serves assets: part of every address. */
const ASSETS = '/assets/';

/** File name → contents; and the metafile of esbuild, for the licenses. */
export async function buildPage(root) {
  const options = optionsIn(root);
  const whole = await build({ ...options, entryPoints: WHOLE.map((name) => join(FOLDER, name)) });
  const main = join(root, FOLDER, SPLIT);
  const split = await build({ ...options, entryPoints: [main], splitting: true, plugins: [loadedAfter(main)] });
  const texts = assetsOf(whole);
  const copies = COPIED.map((name) => copied(name, readFileSync(join(root, FOLDER, name))));
  const assets = new Map([...copies, ...texts, ...assetsOf(split)]);
  const files = new Map(
    DOCUMENTS.map((name) => [name, documentWith(name, readFileSync(join(root, FOLDER, name), 'utf8'), assets, texts)]),
  );
  for (const { name, contents } of assets.values()) {
    files.set(name, contents);
    files.set(`${name}.gz`, gzipSync(contents, { level: 9 }));
    files.set(`${name}.br`, brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
  return { files, metafile: { inputs: { ...whole.metafile.inputs, ...split.metafile.inputs } } };
}

/**
 * esbuild writes a file for each set of entries that share code. What is imported dynamically is loaded after `main`, so it may
 * import it as well: then all that `main` needs is one file, and compresses as one.
 */
function loadedAfter(main) {
  const later = new Set();
  return {
    name: 'loaded-after-main',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
        if (kind === 'dynamic-import') later.add(resolve(resolveDir, path));
      });
      onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
        if (!later.has(path)) return undefined;
        const contents = `${readFileSync(path, 'utf8')}\nimport ${JSON.stringify(main)};\n`;
        return { contents, loader: extname(path).slice(1) };
      });
    },
  };
}

function optionsIn(root) {
  return {
    absWorkingDir: root,
    outdir: 'dist/ui',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    write: false,
    format: 'esm',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  };
}

/** By the name of the source, or by its own name if it is what several sources share. `preloads`: files that it always loads. */
function assetsOf({ metafile, outputFiles }) {
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  return new Map(
    outputFiles.map(({ path, contents }) => {
      const name = basename(path);
      const { entryPoint, imports } = outputs.get(name);
      const preloads = imports.filter(({ kind }) => kind === 'import-statement').map((each) => basename(each.path));
      return [basename(entryPoint ?? path), { name, contents: Buffer.from(contents), preloads }];
    }),
  );
}

function copied(name, contents) {
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 8);
  return [name, { name: `${basename(name, extname(name))}-${hash}${extname(name)}`, contents }];
}

function documentWith(name, template, assets, texts) {
  return Buffer.from(
    template.replaceAll(/\{\{(?:(text|hash|preloads) )?([^}]+)\}\}/g, (place, form, source) => {
      if (place === '{{run}}') return place;
      const asset = (form === 'text' || form === 'hash' ? texts : assets).get(source);
      if (asset === undefined) throw new Error(`${name}: no asset is built from ${source}`);
      if (form === undefined) return `${ASSETS}${asset.name}`;
      if (form === 'preloads')
        return asset.preloads.map((each) => `<link rel="modulepreload" href="${ASSETS}${each}" />`).join('\n    ');
      const text = inlineText(asset);
      return form === 'text' ? text : `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    }),
  );
}

/** For an element `script` or `style`: nothing in the text may end it, or hide its end. */
function inlineText({ name, contents }) {
  const text = contents.toString('utf8');
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} cannot be part of a document: it contains markup`);
  return text;
}
