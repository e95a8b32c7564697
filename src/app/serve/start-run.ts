// Starts runs of schedules. A run is started by `meow run --detach` in a process of its own, with an id that only this start can
// have. So a run is created once or not at all, whatever is killed meanwhile.

import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';

import type { Schedule } from '../../languages/schedule.ts';
import type { Project } from '../project.ts';
import { hasRun, storeOf } from '../runs.ts';

export interface StartRequest {
  readonly project: Project;
  readonly schedule: Pick<Schedule, 'path' | 'variables' | 'args'>;
  readonly id: string;
  readonly meta: Readonly<Record<string, string>>;
  /** A variable and its value, which may be too long for a command line. */
  readonly body?: { readonly name: string; readonly text: string };
  readonly environment: Readonly<Record<string, string>>;
}

export type StartAnswer =
  | { readonly kind: 'started' }
  /** Another process has created it. */
  | { readonly kind: 'exists' }
  /** Nothing runs. `why`: as the command printed it. */
  | { readonly kind: 'refused'; readonly why: string };

export async function startRun(request: StartRequest): Promise<StartAnswer> {
  const { project, id, body } = request;
  const store = storeOf(project);
  if (await hasRun(store, id)) return { kind: 'exists' };
  const { code, stderr } = await callRun(request, [
    '--detach',
    '--id',
    id,
    ...Object.entries(request.meta).flatMap(([name, value]) => ['--meta', `${name}=${value}`]),
    ...(body === undefined ? [] : ['--var-stdin', body.name]),
  ]);
  if (code === 0) return { kind: 'started' };
  if (await hasRun(store, id)) return { kind: 'exists' };
  return { kind: 'refused', why: stderr.trim() === '' ? `meow run ended with exit code ${code}` : stderr.trim() };
}

/** Why a run of the schedule would be refused, as `meow run` prints it; null if it would not. */
export async function refusalOf(
  request: Pick<StartRequest, 'project' | 'schedule' | 'environment'>,
): Promise<string | null> {
  const { code, stderr } = await callRun(request, ['--dry-run', '--json']);
  return code === 0 ? null : stderr.trimEnd();
}

async function callRun(
  { project, schedule, environment, body }: Pick<StartRequest, 'project' | 'schedule' | 'environment' | 'body'>,
  more: readonly string[],
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const variables = Object.entries(schedule.variables).flatMap(([name, value]) => [
    '--var-json',
    `${name}=${JSON.stringify(value)}`,
  ]);
  const args = ['run', schedule.path, ...variables, ...schedule.args, ...more];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'meow.cjs'), ...args], {
    cwd: dirname(project.meow),
    env: { ...environment },
    // Its own group, so that a Ctrl-C at the terminal of meow serve does not stop a run that is being created.
    detached: true,
    stdio: [body === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_MAX);
  });
  // It may refuse the run without reading anything.
  child.stdin?.on('error', () => {});
  child.stdin?.end(body?.text ?? '');
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, stderr };
}

const STDERR_MAX = 20_000;
