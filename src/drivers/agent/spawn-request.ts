// A spawn request, read from its effect: all texts resolved, an existing folder, and the environment except for what
// differs between starts.

import type { RunFiles } from '../../engine/ports.ts';
import { hasControlCharacters } from '../../base/controls.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Effect, SpawnSpec } from '../../ir/effect.ts';
import type { FilledText } from '../../ir/text.ts';
import type { AgentStart } from './files.ts';
import type { Adapter } from '../../ir/adapter.ts';
import { adapterEnvironment, holeValues } from './render-adapter.ts';
import { environmentFor, inRun } from '../environment.ts';
import { wholeEnvironment } from '../../sys/process.ts';
import { MARKER } from '../../sys/process-table.ts';
import type { DriverContext } from '../environment.ts';
import { resolveText } from '../resolve-text.ts';
import { resolveWorkdir } from '../resolve-workdir.ts';
import { findProgram } from '../recording-shell.ts';

export interface AgentName {
  readonly agent: string;
  readonly adapter: string;
}

export interface SpawnRequest {
  /** Absolute. */
  readonly workdir: string;
  /** Null starts a new session. */
  readonly resumeSession: string | null;
  readonly args: string | null;
  readonly environmentOf: (start: AgentStart) => Result<Readonly<Record<string, string>>, string>;
}

/** The error is a sentence. */
export function agentName(spec: SpawnSpec<FilledText>, files: RunFiles): Result<AgentName, string> {
  const agent = resolveText(spec.agent, files);
  if (!agent.ok) return agent;
  // Messages to the run cannot carry such a name.
  if (hasControlCharacters(agent.value))
    return err(`the name ${JSON.stringify(agent.value)} contains control characters`);
  const adapter = resolveText(spec.adapter, files);
  return adapter.ok ? ok({ agent: agent.value, adapter: adapter.value }) : adapter;
}

/** The error is a sentence. */
export function spawnRequest(
  effect: Effect,
  spec: SpawnSpec<FilledText>,
  adapter: Adapter,
  run: DriverContext,
): Result<SpawnRequest, string> {
  const texts: string[] = [];
  for (const text of [spec.cwd ?? '', spec.resumeSession ?? '', spec.args ?? '', ...Object.values(spec.env)]) {
    const whole = resolveText(text, run.files);
    if (!whole.ok) return whole;
    texts.push(whole.value);
  }
  const [folder = '', session = '', args = '', ...values] = texts;
  const workdir = resolveWorkdir(run.cwd, folder);
  if (!workdir.ok) return err(workdir.error);
  const own = Object.fromEntries(Object.keys(spec.env).map((key, index) => [key, values[index] ?? '']));
  return ok({
    workdir: workdir.value,
    resumeSession: session === '' ? null : session,
    args: args === '' ? null : args,
    environmentOf: (start) => {
      const place = { agent: start.agent, workdir: start.workdir, folder: start.folder.path };
      const base = adapterEnvironment(adapter, run.environment, holeValues(adapter, run, place));
      if (!base.ok) return base;
      const layers = environmentFor({ base: inRun(base.value, run), run, effect, own });
      if (!layers.ok) return layers;
      const environment = { ...wholeEnvironment(layers.value), MEOW_AGENT: start.agent, [MARKER]: start.marker };
      // The current step changes with every prompt; the step that spawned the agent is not one of them.
      return ok(Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_STEPS.has(name))));
    },
  });
}

const OF_STEPS = new Set(['MEOW_STEP', 'MEOW_ATTEMPT']);

/**
 * Why an agent could not start, if its shell reports a missing program: a clause with advice. Null for other messages.
 * `said`: the last output.
 */
export function missingProgram(
  { name, program }: Adapter,
  { status, said }: { readonly status: number | null; readonly said: string | null },
  { PATH = '' }: Readonly<Record<string, string>>,
): string | null {
  if (status !== 126 && status !== 127) return null;
  if (program !== null && findProgram(program.name, PATH) === null)
    return `${program.name}, which the adapter ${name} starts, is not on PATH; meow doctor says how to install it`;
  // Message of a shell: `sh: 2: fox: not found`.
  const which = /(?:^|: )([^:]+): [^:]+$/.exec(said?.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? 'a program';
  const problem = status === 127 ? 'was not found' : 'could not be executed';
  return `${which}, which the adapter ${name} starts, ${problem}; all that it starts: meow adapter show ${name}`;
}
