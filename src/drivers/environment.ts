// The environment of a command; later entries win:
//
//   the caller's environment, without variables that another run has set, and without MEOW_DECISION_KEY
//   MEOW_VAR_NAME     variables in scope, without those that begin with @ and those that are too large
//   the step's own `env`
//   PATH              with our folder in front, so that `meow` is found
//   MEOW_WORKFLOW, MEOW_STEP, MEOW_ATTEMPT
//   MEOW_ORCH_SOCK, MEOW_INBOX   the addresses of the run
//   MEOW_PERMISSIONS  of agents, if somebody chose: what they may do without asking
//   TRACEPARENT       the attempt, for programs that take part in traces
//   MEOW_RUN          the marker: it identifies every process of the attempt

import { statSync } from 'node:fs';
import { resolve } from 'node:path';

import { err, ok, type Result } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import type { RunFiles } from '../engine/ports.ts';
import { type Effect, environmentName } from '../ir/effect.ts';
import type { Permissions } from '../ir/adapter.ts';
import { plainText } from '../ir/text.ts';
import { traceparentOf } from '../base/trace-ids.ts';
import { ABSENT, isErrno, REFUSED } from '../sys/errors.ts';
import { allProcesses, type Environment, MARKER, type ProcessEntry } from '../sys/process.ts';
import type { Secrets } from '../sys/secrets.ts';
import type { Spawner } from './spawner.ts';

/** Environment variables by their names. */
export type EnvVariables = Readonly<Record<string, string>>;

/** What every driver that starts processes needs to know about its run. */
export interface DriverContext {
  readonly runId: string;
  /** Distinguishes the run's processes from those of another run with the same id. */
  readonly mark: string;
  readonly files: RunFiles;
  /** The default working directory. Absolute. */
  readonly cwd: string;
  /** The caller's environment, without variables that another run has set. */
  readonly environment: EnvVariables;
  /** The folder of `meow`, put in front of PATH. */
  readonly binFolder?: string | null;
  /** The addresses of the run: MEOW_ORCH_SOCK and MEOW_INBOX. */
  readonly socket: string;
  readonly inbox: string;
  /** What agents may do without asking; null if nobody chose. */
  readonly permissions?: Permissions | null;
  /** Of the run: what drivers write to files of their own, or pass in arguments, must have none. Absent: none are known. */
  readonly secrets?: Secrets;
  /** Trace context of the program that started the run; null or absent if there is none. */
  readonly traceparent?: string | null;
  /** Shared by the drivers of the run; a driver that gets none makes its own. */
  readonly spawner?: Spawner;
}

type MarkedRun = Pick<DriverContext, 'runId' | 'mark'>;

/** The marker's value for one attempt. */
export function markerOf(run: MarkedRun, effectId: string): string {
  return `${run.runId}.${run.mark}:${effectId}`;
}

/** Whether a marker is one of an attempt before this one of the same step, or of a further turn of such an attempt. */
export function isEarlierAttempt(run: MarkedRun, { step, attempt }: Effect, marker: string): boolean {
  const start = markerOf(run, `${step}#`);
  const number = marker.startsWith(start) ? /^(\d+)(?:\.\d+)?$/.exec(marker.slice(start.length))?.[1] : undefined;
  return number !== undefined && Number(number) < attempt;
}

/** Every living process that a step of this run started, whether or not the step still runs. Without a mark: of any run with this id. */
export function processesOfRun(runId: string, mark: string | null = null): readonly ProcessEntry[] {
  const start = mark === null ? `${runId}.` : markerOf({ runId, mark }, '');
  return allProcesses().filter(({ marker }) => marker?.startsWith(start) === true);
}

/** A run that a step starts has its own agents and steps, and must not inherit these variables. */
export function withoutRunVariables(environment: EnvVariables): EnvVariables {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_RUNS.test(name)));
}

/** With the path of the key that proves decisions of people, which no step or agent is told. */
const OF_RUNS = /^MEOW_(?:WORKFLOW|STEP|ATTEMPT|AGENT|PERMISSIONS|ORCH_SOCK|INBOX|HOOKS|DECISION_KEY|VAR_.*)$/;

/** Adds the variables that all processes of a run share. */
export function inRun(environment: EnvVariables, run: Omit<DriverContext, 'environment'>): EnvVariables {
  const constant = { MEOW_WORKFLOW: run.runId, MEOW_ORCH_SOCK: run.socket, MEOW_INBOX: run.inbox };
  return { ...environment, ...pathBehind(run.binFolder ?? null, environment['PATH']), ...constant };
}

/** An error is a sentence. */
export function environmentFor(request: {
  /** Made by `inRun`. */
  readonly base: EnvVariables;
  readonly run: Pick<DriverContext, 'runId' | 'mark' | 'binFolder' | 'traceparent'>;
  readonly effect: Effect;
  readonly own: EnvVariables;
}): Result<Environment, string> {
  const { base, run, effect } = request;
  for (const [name, value] of Object.entries(request.own)) {
    if (name === '' || /[=\0]/.test(name))
      return err(`${JSON.stringify(name)} cannot be the name of an environment variable`);
    if (value.includes('\0'))
      return err(`the environment variable ${name} contains a NUL byte, which no command can receive`);
  }
  const { MEOW_WORKFLOW: _, MEOW_ORCH_SOCK: __, MEOW_INBOX: ___, MEOW_DECISION_KEY: ____, ...requested } = request.own;
  const own = {
    ...variablesFor(effect.variables),
    ...requested,
    ...(requested['PATH'] === undefined ? {} : pathBehind(run.binFolder ?? null, requested['PATH'])),
    TRACEPARENT: traceparentOf({ id: run.runId, ...run }, effect.step, effect.attempt),
    MEOW_STEP: effect.step,
    MEOW_ATTEMPT: String(effect.attempt),
    [MARKER]: markerOf(run, effect.id),
  };
  return ok({ base, own });
}

function pathBehind(folder: string | null, path: string | undefined): EnvVariables {
  if (folder === null) return path === undefined ? {} : { PATH: path };
  return { PATH: path === undefined || path === '' ? folder : `${folder}:${path}` };
}

/** Variables in scope under their own names, without reserved ones. */
export function variablesByName(variables: Readonly<Record<string, Json>>): EnvVariables {
  const entries = Object.entries(variables).flatMap(([name, value]) => {
    const text = plainText(value);
    const fits =
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && Buffer.byteLength(text) <= VALUE_BYTES_MAX && !text.includes('\0');
    return !fits || name === 'PATH' || /^(?:MEOW|RAYMOND)_/.test(name) ? [] : [[name, text] as const];
  });
  return Object.fromEntries(entries);
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
    chosen[environmentName(name)] = text;
  }
  return chosen;
}

/**
 * The absolute path of a working directory; an error is a sentence. An empty path means the base. If the path has several
 * lines, the last one counts: a command like `git worktree add` prints messages before the path.
 */
export function resolveWorkdir(from: string, path: string): Result<string, string> {
  if (path.includes('\0')) return err('the path of its folder contains a NUL byte');
  const whole = found(resolve(from, path));
  const last = path.trimEnd().split('\n').at(-1) ?? '';
  return whole.ok || last === path ? whole : found(resolve(from, last));
}

function found(path: string): Result<string, string> {
  try {
    return statSync(path).isDirectory() ? ok(path) : err(`its folder ${path} is not a folder`);
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'ENAMETOOLONG')) return err(`its folder ${path} does not exist`);
    if (isErrno(error, ...REFUSED)) return err(`its folder ${path} cannot be entered (${error.code})`);
    throw error;
  }
}
