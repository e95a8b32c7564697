// Packs the extension for VS Code: `npm run pack:vscode [FILE]`, by default editors/vscode/meow-workflows.vsix.
//
// A .vsix is a zip archive with a manifest, the types of its files, and the folder `extension/`. It is written here
// instead of by @vscode/vsce, which brings 28 packages for publishing, and asks a registry for its newest version.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { zipOf } from '../test/fixtures/raymond/zip.ts';
import { licensesOf } from './licenses.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'editors/vscode');
const FILES = [
  'package.json',
  'README.md',
  'language-configuration.json',
  'syntaxes/meow.tmLanguage.json',
  'syntaxes/placeholders.tmLanguage.json',
  'syntaxes/tags.tmLanguage.json',
];

const { metafile, outputFiles } = await build({
  absWorkingDir: ROOT,
  entryPoints: [join(FOLDER, 'src/extension.ts')],
  bundle: true,
  write: false,
  platform: 'node',
  // That of the oldest supported version of VS Code.
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
  minify: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
});
const [bundle] = outputFiles;
const packed = zipOf([
  { name: 'extension.vsixmanifest', text: manifest() },
  { name: '[Content_Types].xml', text: contentTypes() },
  ...FILES.map((name) => ({ name: `extension/${name}`, text: readFileSync(join(FOLDER, name)) })),
  { name: 'extension/LICENSE.txt', text: readFileSync(join(ROOT, 'LICENSE')) },
  { name: 'extension/THIRD-PARTY-LICENSES.txt', text: licensesOf(metafile, ROOT) },
  { name: 'extension/extension.cjs', text: Buffer.from(bundle.contents) },
]);
const file = resolve(process.argv[2] ?? join(FOLDER, 'meow-workflows.vsix'));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, packed);
process.stdout.write(`${file} (${Math.ceil(packed.length / 1_000)} kB)\n`);

function manifest() {
  const described = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8'));
  const { name, displayName, description, version, publisher, categories, keywords, engines, extensionKind } =
    described;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${xml(name)}" Version="${xml(version)}" Publisher="${xml(publisher)}"/>
    <DisplayName>${xml(displayName)}</DisplayName>
    <Description xml:space="preserve">${xml(description)}</Description>
    <Tags>${xml(keywords.join(','))}</Tags>
    <Categories>${xml(categories.join(','))}</Categories>
    <GalleryFlags>Public</GalleryFlags>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${xml(engines.vscode)}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionDependencies" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionPack" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="${xml(extensionKind.join(','))}"/>
    </Properties>
    <License>extension/LICENSE.txt</License>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
}

function contentTypes() {
  const types = {
    json: 'application/json',
    md: 'text/markdown',
    txt: 'text/plain',
    cjs: 'application/javascript',
    vsixmanifest: 'text/xml',
  };
  const defaults = Object.entries(types).map(
    ([ending, type]) => `  <Default Extension=".${ending}" ContentType="${type}"/>`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
${defaults.join('\n')}
</Types>
`;
}

function xml(text) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (char) => entities[char]);
}
