// A spawn request, read from its effect: all texts resolved, an existing folder, and the environment except for what
// differs between starts.

import { err, ok, type Result } from '../../base/errors.ts';
import { hasControlCharacters } from '../../base/sanitize.ts';
import type { RunFiles } from '../../engine/ports.ts';
import type { Adapter } from '../../ir/adapter.ts';
import type { Effect, SpawnSpec } from '../../ir/effect.ts';
import type { FilledText } from '../../ir/text.ts';
import { MARKER, wholeEnvironment } from '../../sys/process.ts';
import { type DriverContext, type EnvVariables, resolveWorkdir } from '../environment.ts';
import { resolveTexts } from '../outputs.ts';
import { findProgram } from '../recording-shell.ts';
import type { AgentStart } from './files.ts';
import type { AgentExit } from './host.ts';
import { agentEnvironment, holeValues } from './render-adapter.ts';

export interface SpawnRequest {
  /** Absolute. */
  readonly workdir: string;
  /** Null starts a new session. */
  readonly resumeSession: string | null;
  readonly args: string | null;
  readonly environmentOf: (start: AgentStart) => Result<EnvVariables, string>;
}

export function agentName(
  { agent, adapter }: SpawnSpec<FilledText>,
  files: RunFiles,
): Result<Readonly<Record<'agent' | 'adapter', string>>, string> {
  const names = resolveTexts({ agent, adapter }, files);
  if (!names.ok || !hasControlCharacters(names.value.agent)) return names;
  // Messages to the run cannot carry such a name.
  return err(`the name ${JSON.stringify(names.value.agent)} contains control characters`);
}

export function spawnRequest(
  effect: Effect,
  spec: SpawnSpec<FilledText>,
  adapter: Adapter,
  run: DriverContext,
): Result<SpawnRequest, string> {
  const unresolved = { cwd: spec.cwd ?? '', session: spec.resumeSession ?? '', args: spec.args ?? '' };
  const texts = resolveTexts(unresolved, run.files);
  if (!texts.ok) return texts;
  const own = resolveTexts(spec.env, run.files);
  if (!own.ok) return own;
  const { cwd, session, args } = texts.value;
  const workdir = resolveWorkdir(run.cwd, cwd);
  if (!workdir.ok) return workdir;
  return ok({
    workdir: workdir.value,
    resumeSession: session === '' ? null : session,
    args: args === '' ? null : args,
    environmentOf: (start) => {
      const environment = agentEnvironment(adapter, run, effect, holeValues(adapter, run, start), own.value);
      if (!environment.ok) return environment;
      // The current step changes with every prompt; the step that spawned the agent is not one of them.
      const { MEOW_STEP: _, MEOW_ATTEMPT: __, ...others } = wholeEnvironment(environment.value);
      return ok({ ...others, [MARKER]: start.marker });
    },
  });
}

/**
 * Why an agent could not start, if its shell reports a missing program: a clause with advice. Null for other messages.
 * `output`: the last bytes.
 */
export function missingProgram(
  { name, program }: Adapter,
  { status, output }: Pick<AgentExit, 'status' | 'output'>,
  { PATH = '' }: EnvVariables,
): string | null {
  if (status !== 126 && status !== 127) return null;
  if (program !== null && findProgram(program.name, PATH) === null)
    return `${program.name}, which the adapter ${name} starts, is not on PATH; meow doctor says how to install it`;
  // Message of a shell: `sh: 2: fox: not found`.
  const which = /(?:^|: )([^:]+): [^:]+$/.exec(output?.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? 'a program';
  const problem = status === 127 ? 'was not found' : 'could not be executed';
  return `${which}, which the adapter ${name} starts, ${problem}; all that it starts: meow adapter show ${name}`;
}
