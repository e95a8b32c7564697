// What a command finds in its environment, from the weakest to the strongest:
//
//   the caller's environment, without what another run has put there
//   MEOW_VAR_NAME     variables in sight, save those that begin with @; what is too large for an environment is left out
//   the step's own `env`
//   PATH              with our folder in front, so that `meow` is found
//   MEOW_WORKFLOW, MEOW_STEP, MEOW_ATTEMPT
//   MEOW_ORCH_SOCK, MEOW_INBOX   where the run is talked to
//   MEOW_RUN          the marker: every process that this attempt started is known by it

import type { RunFiles } from '../engine/ports.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Json } from '../base/json.ts';
import type { Effect } from '../ir/effect.ts';
import { plainText } from '../ir/text.ts';
import type { Environment } from '../sys/process.ts';
import { allProcesses, MARKER } from '../sys/process-table.ts';
import type { ProcessEntry } from '../sys/process-table.ts';
import type { Spawner } from './spawner.ts';

/** What every driver that starts something must know of its run. */
export interface DriverContext {
  readonly runId: string;
  /** Tells the run's processes from those of another with the same id. */
  readonly mark: string;
  readonly files: RunFiles;
  /** Where work is done by what does not say where. Absolute. */
  readonly cwd: string;
  /** The caller's environment, without what another run has put there. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where `meow` is; in front of the PATH of what is started. */
  readonly binFolder?: string | null;
  /** Where the run is talked to: MEOW_ORCH_SOCK and MEOW_INBOX. */
  readonly socket: string;
  readonly inbox: string;
  /** Shared by the drivers of the run; a driver that gets none makes its own. */
  readonly spawner?: Spawner;
}

/** The marker's value for one attempt. */
export function markerOf(run: { readonly runId: string; readonly mark: string }, effectId: string): string {
  return `${run.runId}.${run.mark}:${effectId}`;
}

/** Every living process that a step of this run started, whether or not the step still runs. */
export function processesOfRun(runId: string): readonly ProcessEntry[] {
  return allProcesses().filter(({ marker }) => marker?.startsWith(`${runId}.`) === true);
}

/** What a run tells those that it starts is not for the run that one of them may start: it has its own agents and steps. */
export function withoutRunVariables(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_RUNS.test(name)));
}

const OF_RUNS = /^MEOW_(?:WORKFLOW|STEP|ATTEMPT|AGENT|ORCH_SOCK|INBOX|HOOKS|VAR_.*)$/;

/** With what is the same for all that a run starts. */
export function inRun(
  environment: Readonly<Record<string, string>>,
  run: Omit<DriverContext, 'environment'>,
): Readonly<Record<string, string>> {
  const constant = { MEOW_WORKFLOW: run.runId, MEOW_ORCH_SOCK: run.socket, MEOW_INBOX: run.inbox };
  return { ...environment, ...pathBehind(run.binFolder ?? null, environment['PATH']), ...constant };
}

/** An error is a sentence. */
export function environmentFor(request: {
  /** Made by `inRun`. */
  readonly base: Readonly<Record<string, string>>;
  readonly run: Pick<DriverContext, 'runId' | 'mark' | 'binFolder'>;
  readonly effect: Effect;
  readonly own: Readonly<Record<string, string>>;
}): Result<Environment, string> {
  const { base, run, effect } = request;
  for (const [name, value] of Object.entries(request.own)) {
    if (name === '' || /[=\0]/.test(name))
      return err(`${JSON.stringify(name)} cannot be the name of an environment variable`);
    if (value.includes('\0'))
      return err(`the environment variable ${name} contains a NUL byte, which no command can receive`);
  }
  const { MEOW_WORKFLOW: _, MEOW_ORCH_SOCK: __, MEOW_INBOX: ___, ...asked } = request.own;
  const own = {
    ...variablesFor(effect.variables),
    ...asked,
    ...(asked['PATH'] === undefined ? {} : pathBehind(run.binFolder ?? null, asked['PATH'])),
    MEOW_STEP: effect.step,
    MEOW_ATTEMPT: String(effect.attempt),
    [MARKER]: markerOf(run, effect.id),
  };
  return ok({ base, own });
}

function pathBehind(folder: string | null, path: string | undefined): Readonly<Record<string, string>> {
  if (folder === null) return path === undefined ? {} : { PATH: path };
  return { PATH: path === undefined || path === '' ? folder : `${folder}:${path}` };
}

/** For scripts that know the variables around them by their names; what is reserved is not among them. */
export function variablesByName(variables: Readonly<Record<string, Json>>): readonly (readonly [string, string])[] {
  return Object.entries(variables).flatMap(([name, value]) => {
    const text = plainText(value);
    const fits =
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && Buffer.byteLength(text) <= VALUE_BYTES_MAX && !text.includes('\0');
    return !fits || name === 'PATH' || /^(?:MEOW|RAYMOND)_/.test(name) ? [] : [[name, text] as const];
  });
}

/** Of one value, and of all together. The system's own limits are 128 KiB for one and about 2 MB with the arguments. */
const VALUE_BYTES_MAX = 100_000;
const VALUES_BYTES_MAX = 500_000;

function variablesFor(variables: Readonly<Record<string, Json>>): Record<string, string> {
  const chosen: Record<string, string> = {};
  let total = 0;
  for (const [name, value] of Object.entries(variables)) {
    if (name.startsWith('@')) continue;
    const text = plainText(value);
    const bytes = Buffer.byteLength(text) + name.length;
    if (bytes > VALUE_BYTES_MAX || total + bytes > VALUES_BYTES_MAX || text.includes('\0')) continue;
    total += bytes;
    chosen[`MEOW_VAR_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`] = text;
  }
  return chosen;
}
