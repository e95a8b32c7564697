// The environment of a command; later entries win:
//
//   the caller's environment, without variables that another run has set
//   MEOW_VAR_NAME     variables in scope, without those that begin with @ and those that are too large
//   the step's own `env`
//   PATH              with our folder in front, so that `meow` is found
//   MEOW_WORKFLOW, MEOW_STEP, MEOW_ATTEMPT
//   MEOW_ORCH_SOCK, MEOW_INBOX   the addresses of the run
//   MEOW_RUN          the marker: it identifies every process of the attempt

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

/** What every driver that starts processes needs to know about its run. */
export interface DriverContext {
  readonly runId: string;
  /** Distinguishes the run's processes from those of another run with the same id. */
  readonly mark: string;
  readonly files: RunFiles;
  /** The default working directory. Absolute. */
  readonly cwd: string;
  /** The caller's environment, without variables that another run has set. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder of `meow`, put in front of PATH. */
  readonly binFolder?: string | null;
  /** The addresses of the run: MEOW_ORCH_SOCK and MEOW_INBOX. */
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

/** A run that a step starts has its own agents and steps, and must not inherit these variables. */
export function withoutRunVariables(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_RUNS.test(name)));
}

const OF_RUNS = /^MEOW_(?:WORKFLOW|STEP|ATTEMPT|AGENT|ORCH_SOCK|INBOX|HOOKS|VAR_.*)$/;

/** Adds the variables that all processes of a run share. */
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

/** Variables in scope under their own names, without reserved ones. */
export function variablesByName(variables: Readonly<Record<string, Json>>): readonly (readonly [string, string])[] {
  return Object.entries(variables).flatMap(([name, value]) => {
    const text = plainText(value);
    const fits =
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && Buffer.byteLength(text) <= VALUE_BYTES_MAX && !text.includes('\0');
    return !fits || name === 'PATH' || /^(?:MEOW|RAYMOND)_/.test(name) ? [] : [[name, text] as const];
  });
}

/** Limits for one value and for all together. The system allows 128 KiB for one, and about 2 MB with the arguments. */
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
