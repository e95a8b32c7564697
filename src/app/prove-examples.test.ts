// Every workflow that comes with meow is explored in few states. It closes, unless it has a very long loop, and its
// claims hold.

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

import { Adapters } from './adapters.ts';
import { findProject } from './project.ts';
import { proveWorkflow } from './prove.ts';
import { readSettings } from './sources.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A thousand states take less than half a second. */
const STATES_MAX = 4_000;

/** Loops with a thousand rounds, and a state that forks for ever: not explored to the end, which takes few states. */
const ENDLESS = ['context-monitor', 'event-monitor', 'raymond/poll'];

/** Workflows of files without a main one. */
const WORKFLOWS: Readonly<Record<string, string>> = {
  'lib/approval.meow.toml': '#ask',
  'lib/claude-events.meow.toml': '#setup-hooks',
  'lib/context-monitor.meow.toml': '#watch',
};

/** Values for required variables. Conductor has none. */
const VARIABLES = ['agent', 'worktree', 'task_id', 'track_name', 'prompt'].map((name) => `${name}=x`);

test.each([...workflowsIn('examples'), ...workflowsIn('lib')])('%s', async (path) => {
  const project = findProject(join(ROOT, dirname(path)));
  const around = [project, readSettings(project), new Adapters(project)] as const;
  const given = path.includes('conductor') ? {} : { var: VARIABLES };
  const reference = `${join(ROOT, path)}${WORKFLOWS[path] ?? ''}`;
  const proved = await proveWorkflow(...around, { reference, ...given, states: STATES_MAX }, () => false);
  if (proved.kind === 'refused') expect.fail(proved.diagnostics.map(({ message }) => message).join('; '));
  const { explored, hangs, claims } = proved.proof;
  expect(explored.states).toBeLessThan(STATES_MAX);
  expect(explored.complete).toBe(!ENDLESS.some((name) => path.includes(name)));
  expect(hangs).toEqual([]);
  const expected = explored.complete ? true : null;
  expect(claims.filter(({ holds }) => holds !== expected)).toEqual([]);
});

/** Raymond folders, MEOW files, and YAML files with tests beside them. */
function workflowsIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return isWorkflow(path) ? [path] : [];
    return ['START.md', 'START.sh'].some((name) => existsSync(join(ROOT, path, name))) ? [path] : workflowsIn(path);
  });
}

function isWorkflow(path: string): boolean {
  // Its workflows are internal, and explored by that of lib/tests.
  if (path === 'lib/retry.meow.toml') return false;
  if (path.endsWith('.meow.toml')) return true;
  return path.endsWith('.yaml') && existsSync(join(ROOT, path.replace(/\.yaml$/, '.test.toml')));
}
