// Programs that tests start, as one file each. A bundle starts in a tenth of the CPU time that a loader of TypeScript takes.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const bundles = new Map<string, string>();

/** The path of the bundle, which is made once in each test process. `import.meta` refers to the bundle. */
export function bundled(program: URL): string {
  const source = fileURLToPath(program);
  const made = bundles.get(source);
  if (made !== undefined) return made;
  const folder = mkdtempSync(join(tmpdir(), 'meow-bundle-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, basename(source).replace(/ts$/, 'mjs'));
  buildSync({
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    // Libraries in CommonJS call it for Node's own modules.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  });
  bundles.set(source, outfile);
  return outfile;
}
