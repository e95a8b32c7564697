// Workflows that a state enters by a path that was computed at run time. They are compiled when an answer names them. What
// they add to the Program is in the journal with that answer, before anything of it starts.

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { own } from '../base/json.ts';
import { type Program, type ProgramPart, withPart } from '../ir/program.ts';
import { composePart } from '../languages/compose.ts';
import { locatePath, rootOf } from '../languages/raymond/language.ts';
import type { Config } from '../languages/config.ts';
import type { Adapters } from './adapters.ts';
import { Archives } from './archives.ts';
import { surroundings } from './compile.ts';
import { InvalidWorkflow } from './errors.ts';
import type { LiveRun } from './observer.ts';
import { findProject } from './project.ts';

/** Name of the attachment with the adapter that replaces every other: `--adapter`. */
export const FORCED_ADAPTER = 'adapter';

/** The journal keeps it twice. */
const PART_BYTES_MAX = 4_000_000;

export interface LoaderOptions {
  readonly run: LiveRun;
  readonly surroundings: { readonly cwd: string };
  readonly config: Config;
  readonly adapters: Adapters;
}

/** The same path means the same workflow until the engine ends, and afterwards what the journal says. */
export function workflowLoader(options: LoaderOptions): (machine: string, path: string) => Result<ProgramPart, string> {
  const loaded = new Map<string, ProgramPart>();
  return (machine, path) => {
    const key = JSON.stringify([machine, path]);
    const known = loaded.get(key);
    if (known !== undefined) return ok(known);
    // Parts whose answers are not recorded yet have their names already.
    const program = [...loaded.values()].reduce(withPart, options.run.state.program);
    const part = unlessInvalid(() => load(options, program, { machine, path }));
    if (part.ok) loaded.set(key, part.value);
    return part;
  };
}

function load(
  { surroundings: { cwd }, config, adapters }: LoaderOptions,
  program: Program,
  from: Pick<ProgramPart, 'machine' | 'path'>,
): Result<ProgramPart, string> {
  const home = own(program.machines, from.machine)?.home;
  if (home === undefined) return err(`${from.path} was not known when the run started`);
  const adapter = program.attachments[FORCED_ADAPTER] ?? null;
  const archives = new Archives();
  const around = surroundings({ project: findProject(cwd), config, adapters, adapter }, archives);
  const found = locatePath(around.reader, home, rootOf(around.reader, home), from.path);
  if (found === null) return err(`there is no workflow ${from.path} in ${around.reader.shown(home)}`);
  if (found.kind === 'refused') return err(found.message);
  const { path, workflow, state } = found;
  const part = composePart(program, from, { path, workflow, ...(state === null ? {} : { state }) }, around);
  if (!part.ok) return part;
  if (archives.hasScripts(part.value.blocks))
    return err(`${from.path} has scripts in an archive, which only a written path can enter`);
  if (JSON.stringify(part.value).length > PART_BYTES_MAX) return err(`${from.path} is too large to be entered here`);
  return part;
}

function unlessInvalid<T>(act: () => Result<T, string>): Result<T, string> {
  try {
    return act();
  } catch (error) {
    if (error instanceof UsageError || error instanceof InvalidWorkflow) return err(error.message);
    throw error;
  }
}
