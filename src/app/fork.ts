// Forks: new runs that keep the results of another run as far as its workflow still asks for the same (kernel/keep.ts).
// A fork owns everything that it keeps: its first record has the results, and its folder a copy of their files.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isJsonMap, type Json } from '../base/json.ts';
import { copyMissing } from '../drivers/conductor/artifacts.ts';
import type { ForkStart } from '../drivers/conductor/workspace.ts';
import type { Store } from '../engine/ports.ts';
import { storedFileOf } from '../ir/output.ts';
import { conductorOf, type Program, type RunRequest } from '../ir/program.ts';
import type { Fork } from '../kernel/fork.ts';
import { forkOf } from '../kernel/keep.ts';
import { checkRunId } from '../stores/errors.ts';
import type { Adapters } from './adapters.ts';
import { KEPT_ARTIFACTS } from './conductor-run.ts';
import { FORCED_ADAPTER } from './enter-workflow.ts';
import { keepSnapshots, type PreparedFork, withWorktree } from './fork-worktree.ts';
import { givenVariables, prepareRun, type PreparedRun, randomId, type RunFlags } from './prepare-run.ts';
import type { Project } from './project.ts';
import { hasRun, type ReadRun, requireStep } from './runs.ts';
import type { Settings } from './sources.ts';

export { plannedState, artifactsOf } from './fork-worktree.ts';
export { planLines, planView, whyKept } from '../view/plan.ts';

export interface ForkFlags extends Omit<RunFlags, 'reference'> {
  /** Steps of the old run to discard. */
  readonly from?: readonly string[];
  /** The workflow; absent: the one stored with the run. */
  readonly source?: string;
}

/** Throws a UsageError for input that does not fit the run. */
export async function prepareFork(
  { project, settings, adapters, store }: ForkContext,
  run: ReadRun,
  flags: ForkFlags,
): Promise<PreparedFork> {
  const { program: old, state } = run;
  const { request } = state;
  if (request === null) throw new UsageError(`run ${run.id} never began`, 'start the workflow with meow run');
  if (conductorOf(old) !== null && flags.inPlace === true) {
    throw new UsageError('a fork works in a worktree of its own', 'fork without --in-place');
  }
  for (const step of flags.from ?? []) requireStep(run, step);
  if (flags.id !== undefined) {
    checkRunId(flags.id);
    if (await hasRun(store, flags.id)) throw new UsageError(`run ${flags.id} exists already`, 'choose another --id');
  }
  const fork = forkOf(run.id, run, flags.from ?? []);
  if (flags.source === undefined)
    return withWorktree({ store, run }, { fork, ...repeated(project, old, request, flags) });
  const variables = keptVariables(old, request, flags);
  const prepared = await prepareRun(project, settings, adapters, {
    ...forcedAdapter(old),
    ...flags,
    reference: flags.source,
    varJson: [...variables, ...(flags.varJson ?? [])],
    meta: [...Object.entries(request.meta).map(([name, value]) => `${name}=${value}`), ...(flags.meta ?? [])],
  });
  const language = prepared.ready?.program.source.language ?? old.source.language;
  if (language !== old.source.language) {
    throw new UsageError(
      `${flags.source} is written for ${language}, but run ${run.id} for ${old.source.language}`,
      'fork with a workflow of the same language',
    );
  }
  // A workflow that was entered by a computed path is compiled again.
  const results = Object.entries(fork.results).filter(([, { grown }]) => grown.length === 0);
  return withWorktree({ store, run }, { fork: { ...fork, results: Object.fromEntries(results) }, ...prepared });
}

export interface ForkContext {
  readonly project: Project;
  readonly settings: Settings;
  readonly adapters: Adapters;
  readonly store: Store;
}

/** The adapter that the old run was started with: simulated agents must not become real ones. */
function forcedAdapter({ attachments }: Program): Pick<RunFlags, 'adapter'> {
  const adapter = attachments[FORCED_ADAPTER];
  return adapter === undefined ? {} : { adapter };
}

/** The same workflow again. */
function repeated(project: Project, program: Program, request: RunRequest, flags: ForkFlags): PreparedRun {
  const { id = randomId(), allowance } = flags;
  const variables = { ...request.variables, ...givenVariables(flags, program) };
  const mark = randomBytes(4).toString('hex');
  const again = { ...request, id, mark, variables, folder: join(project.runs, id) };
  const ready = { program, request: { ...again, allowance: { ...request.allowance, ...allowance } }, at: Date.now() };
  return { diagnostics: [], ready };
}

/** Variables that the new run has from the old one. One that had its default gets the default of the new text. */
function keptVariables(program: Program, { variables }: RunRequest, flags: ForkFlags): readonly string[] {
  const given = new Set([...(flags.var ?? []), ...(flags.varJson ?? [])].map((text) => text.split('=', 1)[0]));
  const parameters = program.blocks[program.entry]?.parameters ?? [];
  return parameters.flatMap(({ name, fallback }) => {
    const value = variables[name];
    const usual = fallback?.kind === 'literal' ? fallback.value : fallback?.kind === 'text' ? fallback.text : undefined;
    const isUsual = JSON.stringify(value) === JSON.stringify(usual);
    return value === undefined || isUsual || given.has(name) ? [] : [`${name}=${JSON.stringify(value)}`];
  });
}

/** A store whose new runs begin with the files of kept results, and with refs for kept snapshots. */
export function withKeptFiles(store: Store, { from, results, worktree }: Fork, artifacts: string | null): Store {
  const paths = new Set(Object.values(results).flatMap(({ outputs }) => [...storedFiles(outputs)]));
  return {
    ...store,
    async create(id, program) {
      const journal = await store.create(id, program);
      try {
        for (const path of paths) await copyFile(store, from, id, path);
        for (const folder of COPIED_FOLDERS) await copyFolder(store, from, id, folder);
        if (artifacts !== null) copyMissing(artifacts, store.files(id).localPath(KEPT_ARTIFACTS));
        if (worktree !== undefined) await keepSnapshots(id, worktree as unknown as ForkStart);
        return journal;
      } catch (error) {
        await journal.close();
        throw error;
      }
    },
  };
}

/** Sessions of simulated agents, and the folders of lanes. */
const COPIED_FOLDERS = ['sim-sessions', 'tasks'];

function* storedFiles(value: Json): Generator<string> {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) yield* storedFiles(item);
  if (!isJsonMap(value)) return;
  const stored = storedFileOf(value);
  if (stored !== null) yield stored.file;
  for (const inner of Object.values(value)) yield* storedFiles(inner);
}

async function copyFile(store: Store, from: string, to: string, path: string): Promise<void> {
  const bytes = await store.files(from).read(path);
  if (bytes !== null) await store.files(to).replace(path, bytes);
}

async function copyFolder(store: Store, from: string, to: string, folder: string): Promise<void> {
  for (const { name, kind } of await store.files(from).list(folder)) {
    const path = `${folder}/${name}`;
    if (kind === 'folder') await copyFolder(store, from, to, path);
    if (kind === 'file') await copyFile(store, from, to, path);
  }
}
