// The workflow that a test file or a simulation script belongs to by its name.

import { basename, dirname, join } from 'node:path';

/** `deploy.meow.toml`, `deploy.yaml` or the folder `deploy` for `deploy.test.toml`; null if there is none. */
export function workflowBeside(path: string, exists: (path: string) => boolean): string | null {
  const name = basename(path).replace(/\.(?:test|sim)\.toml$/, '');
  const candidates = ['.meow.toml', '.yaml', '.yml', '', '.toml', '.md'].map((ending) =>
    join(dirname(path), `${name}${ending}`),
  );
  return candidates.find(exists) ?? null;
}
