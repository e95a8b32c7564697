// Starts runs of schedules. A run is started by `meow run --detach` in a process of its own, with an id that only this start can
// have. So a run is created once or not at all, whatever is killed meanwhile.

import { dirname } from 'node:path';

import type { Schedule } from '../../languages/schedule.ts';
import { callCommand, type CommandResult } from '../call-command.ts';
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

function callRun(
  { project, schedule, environment, body }: Pick<StartRequest, 'project' | 'schedule' | 'environment' | 'body'>,
  more: readonly string[],
): Promise<CommandResult> {
  const variables = Object.entries(schedule.variables).flatMap(([name, value]) => [
    '--var-json',
    `${name}=${JSON.stringify(value)}`,
  ]);
  return callCommand({
    args: ['run', schedule.path, ...variables, ...schedule.args, ...more],
    cwd: dirname(project.meow),
    environment,
    ...(body === undefined ? {} : { input: body.text }),
  });
}
