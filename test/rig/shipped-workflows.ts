// Every workflow that comes with meow, in examples/ and lib/, as `meow prove` takes it.

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Adapters } from '../../src/app/adapters.ts';
import { findProject } from '../../src/app/project.ts';
import { type Proved, proveWorkflow } from '../../src/app/prove.ts';
import { readSettings } from '../../src/app/sources.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Workflows of files without a main one. */
const WORKFLOWS: Readonly<Record<string, string>> = {
  'lib/approval.meow.toml': '#ask',
  'lib/claude-events.meow.toml': '#setup-hooks',
  'lib/context-monitor.meow.toml': '#watch',
};

/** Values for required variables. Conductor has none. */
const VARIABLES = ['agent', 'worktree', 'task_id', 'track_name', 'prompt'].map((name) => `${name}=x`);

/** Paths from the root of the repository. */
export function shippedWorkflows(): readonly string[] {
  return [...workflowsIn('examples'), ...workflowsIn('lib')];
}

export async function proveShipped(path: string, statesMax: number): Promise<Proved> {
  const project = findProject(join(ROOT, dirname(path)));
  const around = [project, readSettings(project), new Adapters(project)] as const;
  const given = path.includes('conductor') ? {} : { var: VARIABLES };
  const reference = `${join(ROOT, path)}${WORKFLOWS[path] ?? ''}`;
  return proveWorkflow(...around, { reference, ...given, states: statesMax }, () => false);
}

/** Raymond folders, MEOW files, and YAML files with tests beside them. */
function workflowsIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return isWorkflow(path) ? [path] : [];
    return ['START.md', 'START.sh'].some((name) => existsSync(join(ROOT, path, name))) ? [path] : workflowsIn(path);
  });
}

function isWorkflow(path: string): boolean {
  // Their workflows are explored by those of lib/tests.
  if (path === 'lib/retry.meow.toml' || path === 'lib/merge-queue.meow.toml') return false;
  // Five workers at once have too many states. That of lib/tests has one.
  if (path === 'examples/agents/merge-queue.meow.toml') return false;
  if (path.endsWith('.meow.toml')) return true;
  return path.endsWith('.yaml') && existsSync(join(ROOT, path.replace(/\.yaml$/, '.test.toml')));
}
