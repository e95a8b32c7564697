// What the tests of a file depend on, so that `meow test --watch` repeats them when it changes. Files are compared by their
// times: that works on every file system, and a test file has few.

import { readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { tolerate } from '../sys/errors.ts';
import { TestedWorkflow } from './test-run.ts';
import { type FoundTests, workflowOf } from './testing.ts';

/** Changes with each file that the tests depend on. */
export async function stampOf(found: FoundTests): Promise<string> {
  return (await dependenciesOf(found)).map((path) => `${path} ${timeOf(path)}`).join('\n');
}

async function dependenciesOf(found: FoundTests): Promise<readonly string[]> {
  const { path, content } = found;
  const workflow = workflowOf(found);
  const beside = content.tests.flatMap(({ folder, expect: { trace } }) =>
    [folder, trace].filter((each) => each !== null),
  );
  const named = [...new Set(beside)].flatMap((each) => filesAt(resolve(dirname(path), each)));
  const script = path.replace(/\.test\.toml$/, '.sim.toml');
  const sources = workflow === null ? [] : [...filesAt(workflow), ...(await sourcesOf(workflow))];
  return [...new Set([path, script, ...named, ...sources])];
}

/** Files that the workflow refers to; none if it cannot be read. */
async function sourcesOf(workflow: string): Promise<readonly string[]> {
  try {
    const { compiled } = await new TestedWorkflow(workflow).compile({ variables: {}, flags: {} });
    return [...compiled.sources.keys()];
  } catch (error) {
    if (error instanceof UsageError) return [];
    throw error;
  }
}

function filesAt(path: string): readonly string[] {
  const stats = tolerate('any', null, () => statSync(path));
  if (stats?.isDirectory() !== true) return [path];
  const entries = tolerate('any', [], () => readdirSync(path, { withFileTypes: true }));
  return entries.flatMap((entry) =>
    entry.name === '.git' || entry.name === 'node_modules' ? [] : filesAt(join(path, entry.name)),
  );
}

function timeOf(path: string): number {
  return tolerate('any', 0, () => statSync(path).mtimeMs);
}
