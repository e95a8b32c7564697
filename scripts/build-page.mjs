// Builds dist/ui/: the page that `meow ui` serves. Contains the documents, and their assets with a hash of their contents
// in their names, each also compressed (.br, .gz). Nothing in them refers to another host.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const FOLDER = 'src/page';
/**
 * `{{main.tsx}}` in them is the address of the asset that is built from that file, `{{text main.tsx}}` its text, and
 * `{{hash main.tsx}}` the hash of its text for a content security policy. `{{run}}` stays: src/web/export.ts replaces it.
 */
const DOCUMENTS = ['page.html', 'enter.html', 'export.html', 'terminal-frame.html'];
/** Bundled by esbuild. */
const BUNDLED = ['main.tsx', 'enter.ts', 'page.css', 'terminal-frame.ts', 'terminal-frame.css'];
/** Served as they are. */
const COPIED = ['icon.svg', 'icon-needs.svg'];
/** Where the server serves assets: part of every address. */
const ASSETS = '/assets/';

/** File name → contents; and the metafile of esbuild, for the licenses. */
export async function buildPage(root) {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: BUNDLED.map((name) => join(FOLDER, name)),
    outdir: 'dist/ui',
    entryNames: '[name]-[hash]',
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
  });
  const assets = new Map(COPIED.map((name) => copied(name, readFileSync(join(root, FOLDER, name)))));
  for (const { path, contents } of outputFiles) {
    const { entryPoint } = Object.entries(metafile.outputs).find(([output]) => basename(output) === basename(path))[1];
    assets.set(basename(entryPoint), { name: basename(path), contents: Buffer.from(contents) });
  }
  const files = new Map(
    DOCUMENTS.map((name) => [name, documentWith(name, readFileSync(join(root, FOLDER, name), 'utf8'), assets)]),
  );
  for (const { name, contents } of assets.values()) {
    files.set(name, contents);
    files.set(`${name}.gz`, gzipSync(contents, { level: 9 }));
    files.set(`${name}.br`, brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
  return { files, metafile };
}

function copied(name, contents) {
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 8);
  return [name, { name: `${basename(name, extname(name))}-${hash}${extname(name)}`, contents }];
}

function documentWith(name, template, assets) {
  return Buffer.from(
    template.replaceAll(/\{\{(?:(text|hash) )?([^}]+)\}\}/g, (place, form, source) => {
      if (place === '{{run}}') return place;
      const asset = assets.get(source);
      if (asset === undefined) throw new Error(`${name}: no asset is built from ${source}`);
      if (form === undefined) return `${ASSETS}${asset.name}`;
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
