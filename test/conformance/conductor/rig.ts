// Conductor workflows from files of the tree, as input for the language: with the prompts in `prompts/` and the
// built-in ones, a configuration, and a project with a command for one validator.

import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { ConductorInput } from '../../../src/languages/conductor/syntax.ts';
import { readConfig } from '../../../src/languages/config.ts';
import { type CompiledConductor, compileConductor } from '../../../src/languages/conductor/compile.ts';

const BUILT_IN = join(import.meta.dirname, '../../../lib/prompts');

const CONFIG = `
[conductor]
allowed_entrypoints = ["./scripts/*", "harness.py"]
[validators.tests]
command = "npm test"
timeout = "5m"
artifacts = ["junit.xml"]
[policy.careful]
allowed_paths = ["src/**", "docs/"]
forbidden_operations = ["delete"]
network = "deny"
`;

const ADAPTERS: ConductorInput['adapters'] = {
  forced: null,
  fallback: 'sim',
  meant: (name) => (name === 'claude-code' ? 'claude' : name),
  refusal: (adapter) =>
    adapter === 'gone' ? { message: 'there is no adapter "gone"', hint: 'Use another: meow adapter list.' } : null,
  canChoose: (adapter) => adapter !== 'simple',
};

/** `root`: what paths in messages are seen from. */
export function compileText(
  root: string,
  file: string,
  text: string,
  more: Partial<ConductorInput> = {},
): CompiledConductor {
  return compileConductor({
    source: { file, text },
    config: readConfig({ file: 'config.toml', text: CONFIG }).config?.conductor ?? raise(),
    adapters: ADAPTERS,
    prompts: (id) => findPrompt(root, id),
    validators: (id) => (id === 'lint' ? { command: 'npm run lint', from: 'package.json' } : null),
    enter: () => null,
    artifactsDirDefault: '.meow/run/',
    ...more,
  });
}

export function compileAt(root: string, file: string): CompiledConductor {
  return compileText(root, file, readFileSync(join(root, file), 'utf8'));
}

function findPrompt(root: string, id: string): { readonly path: string; readonly text: string } | null {
  const places = id.endsWith('.md')
    ? [join(root, id)]
    : [join(root, 'prompts', `${id}.md`), join(BUILT_IN, `${id}.md`)];
  const path = places.find((each) => existsSync(each));
  if (path === undefined) return null;
  const shown = path.startsWith(BUILT_IN) ? `lib/prompts/${relative(BUILT_IN, path)}` : relative(root, path);
  return { path: shown, text: readFileSync(path, 'utf8') };
}

function raise(): never {
  throw new Error('the configuration of the rig has problems');
}
