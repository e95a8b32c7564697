// From the flags of `meow run` to a Program and a request: everything that is checked before a run exists.

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';

import { hasErrors } from '../base/diagnostic.ts';
import type { Diagnostic } from '../base/diagnostic.ts';
import type { Json } from '../base/json.ts';
import { ok } from '../base/result.ts';
import { UsageError } from '../base/usage-error.ts';
import { SIM_SCRIPT } from '../drivers/agent/sim-host.ts';
import { Repository } from '../drivers/git/repository.ts';
import { conductorOf, withWorkplace } from '../ir/conductor.ts';
import type { Allowance, Program, RunRequest } from '../ir/program.ts';
import { UNLIMITED } from '../ir/program.ts';
import { checkRunId } from '../stores/usage-errors.ts';
import { isErrno } from '../sys/errno.ts';
import type { Adapters } from './adapters.ts';
import { compileWorkflow } from './compile.ts';
import { ownEnvironment } from './project.ts';
import type { Project } from './project.ts';
import type { Settings } from './settings.ts';
import { readGiven, readMeta, resolveVariables } from './variables.ts';

export { createRun } from '../engine/client.ts';
export { refuseAdapters } from './adapters.ts';
export type { Allowance } from '../ir/program.ts';

/** As it was written on the command line. */
export interface RunFlags {
  /** `PATH[#WORKFLOW]`, or a bare name. */
  readonly reference: string;
  readonly var?: readonly string[];
  readonly varJson?: readonly string[];
  readonly meta?: readonly string[];
  readonly id?: string;
  readonly language?: string;
  readonly adapter?: string;
  readonly allowOutside?: boolean;
  readonly inPlace?: boolean;
  /** Nothing will run, so the repository is not looked at. */
  readonly dryRun?: boolean;
  /** What it leaves out has its default. */
  readonly allowance: Partial<Allowance>;
}

export interface PreparedRun {
  readonly diagnostics: readonly Diagnostic[];
  /** Null if there are errors. */
  readonly ready: { readonly program: Program; readonly request: RunRequest; readonly at: number } | null;
}

/** Throws a UsageError for flags that do not fit the workflow or its repository. */
export async function prepareRun(
  project: Project,
  settings: Settings,
  adapters: Adapters,
  flags: RunFlags,
): Promise<PreparedRun> {
  const given = readGiven(flags.var ?? [], flags.varJson ?? []);
  const meta = readMeta(flags.meta ?? []);
  if (flags.id !== undefined) checkRunId(flags.id);
  const values = Object.fromEntries<Json>([...given.texts, ...given.values]);
  const { reference, language = null, adapter = null } = flags;
  const compiled = compileWorkflow(
    { project, config: settings.config, adapters, reference, language, adapter },
    { values, meta: Object.keys(meta) },
  );
  const script = await readSimulation(compiled.path, project.cwd);
  const diagnostics = [...settings.diagnostics, ...compiled.diagnostics, ...script.diagnostics];
  if (compiled.program === null || hasErrors(diagnostics)) return { diagnostics, ready: null };
  const program = await placed(withScript(compiled.program, script.text), project.cwd, flags);
  const id = flags.id ?? `wf-${randomLetters(8)}`;
  const at = Date.now();
  const { fileVariables } = compiled;
  const variables = resolveVariables(given, program, { id, at, cwd: project.cwd, fileVariables });
  const request: RunRequest = {
    id,
    mark: randomLetters(8),
    // Prompts of a state machine may use the notes of their run.
    variables: program.source.language === 'raymond' ? { ...meta, ...variables } : variables,
    meta,
    cwd: project.cwd,
    allowOutside: flags.allowOutside ?? false,
    allowance: { ...DEFAULT_ALLOWANCE, ...flags.allowance },
  };
  return { diagnostics, ready: { program, request, at } };
}

const DEFAULT_ALLOWANCE: Allowance = {
  ...UNLIMITED,
  transitions: 1_000,
  agents: Math.max(4, availableParallelism()),
};

/**
 * The script of simulated agents, next to the workflow: `deploy.sim.toml` for `deploy.meow.toml`. It is stored with the run,
 * so that simulated agents do the same after a resume. `workflow`: an absolute path.
 */
async function readSimulation(
  workflow: string,
  cwd: string,
): Promise<{ readonly text: string | null; readonly diagnostics: readonly Diagnostic[] }> {
  const name = `${basename(workflow).replace(/(?:\.meow\.toml|\.toml|\.ya?ml|\.md)$/, '')}.sim.toml`;
  const path = join(dirname(workflow), name);
  try {
    const text = readFileSync(path, 'utf8');
    const { readSimScript } = await import('../sim/script.ts');
    return { text, diagnostics: readSimScript(text, relative(cwd, path)).diagnostics };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return { text: null, diagnostics: [] };
    throw error;
  }
}

function withScript(program: Program, script: string | null): Program {
  return script === null ? program : { ...program, attachments: { ...program.attachments, [SIM_SCRIPT]: script } };
}

/** With the commit that a Conductor run starts from. Refuses a repository that the run cannot work in. */
async function placed(program: Program, cwd: string, flags: RunFlags): Promise<Program> {
  const inPlace = flags.inPlace === true;
  const conductor = conductorOf(program);
  if (conductor === null) {
    if (inPlace) throw new UsageError('--in-place is for Conductor workflows', 'other runs work in place anyway');
    return program;
  }
  const [variable] = [...(flags.var ?? []), ...(flags.varJson ?? [])];
  if (program.source.language === 'conductor' && variable !== undefined) {
    throw new UsageError(`a Conductor workflow has no variables: ${variable}`, 'keep notes with its run: --meta k=v');
  }
  if (!conductor.mutates || flags.dryRun === true) return withWorkplace(program, { base: null, inPlace });
  const repository = await Repository.open(cwd, ownEnvironment());
  if (!repository.ok) throw new UsageError(repository.error.message, repository.error.cure);
  const clean = inPlace ? await repository.value.checkClean() : ok(undefined);
  if (!clean.ok) throw new UsageError(clean.error.message, clean.error.cure);
  return withWorkplace(program, { base: repository.value.head, inPlace });
}

/** A collision among 36^8 names is unlikely enough; the store refuses an id that exists. */
function randomLetters(count: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length: count }, () => letters[randomInt(letters.length)]).join('');
}
