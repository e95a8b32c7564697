// The license of every package in a bundle, as each of them requires.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `metafile`: of esbuild. `root`: the folder that its paths are relative to. */
export function licensesOf({ inputs }, root) {
  const folders = Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  return [...new Set(folders)]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
      return `${name} ${version} (${license})\n\n${licenseText(join(root, folder))}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenseText(folder) {
  for (const name of ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'License.txt', 'LICENSE-MIT', 'license', 'LICENCE']) {
    try {
      return readFileSync(join(folder, name), 'utf8').trim();
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  return '(the package has no license file)';
}
