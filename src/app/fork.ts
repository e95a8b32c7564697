// Forks: new runs that keep the results of another run as far as its workflow still asks for the same (kernel/keep.ts).
// A fork owns everything that it keeps: its first record has the results, and its folder a copy of their files.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

import { err, UsageError } from '../base/errors.ts';
import { isJsonMap, isSameJson, type Json, own } from '../base/json.ts';
import { copyMissing } from '../drivers/conductor/artifacts.ts';
import type { ForkStart } from '../drivers/conductor/workspace.ts';
import { syncDisk } from '../drivers/sync-disk.ts';
import type { RunFiles, Store } from '../engine/ports.ts';
import { EFFECT_KINDS } from '../ir/effect.ts';
import { storedFileOf } from '../ir/output.ts';
import { type Allowance, conductorOf, type Program, type RunRequest } from '../ir/program.ts';
import { fillValue, referencesInValue, type ValueTemplate } from '../ir/text.ts';
import { forkOf } from '../kernel/keep.ts';
import type { RunState } from '../kernel/state.ts';
import { checkRunId } from '../stores/errors.ts';
import type { Adapters } from './adapters.ts';
import { KEPT_ARTIFACTS } from './conductor-run.ts';
import { FORCED_ADAPTER } from './enter-workflow.ts';
import { keptLines, MEMORY, memoryAfter, SESSION, SIM_SESSIONS, TURNS } from './fork-sim-sessions.ts';
import { keepSnapshots, type OldRun, plannedState, type PreparedFork, withWorktree } from './fork-worktree.ts';
import {
  givenVariables,
  type InheritedVariables,
  prepareRun,
  type PreparedRun,
  randomId,
  readGiven,
  readMeta,
  readPermissions,
  type RunFlags,
  traceContext,
} from './prepare-run.ts';
import { ownEnvironment, type Project } from './project.ts';
import { withBudgets } from './run-budgets.ts';
import { withoutSecrets } from './run-secrets.ts';
import { type ReadRun, requireStep } from './runs.ts';
import { changedSources, type Settings } from './sources.ts';

export { plannedState, artifactsOf, type OldRun, type PreparedFork } from './fork-worktree.ts';
export { planLines, planView, whyKept } from '../view/plan.ts';

export interface ForkFlags extends Omit<RunFlags, 'reference'> {
  /** Steps of the old run to discard. */
  readonly from?: readonly string[];
  /** The workflow; absent: the one stored with the run. */
  readonly source?: string;
}

/** Throws a UsageError for input that does not fit the run. */
export async function prepareFork(context: ForkContext, run: ReadRun, flags: ForkFlags): Promise<PreparedFork> {
  const { project, settings, adapters, store } = context;
  const { program: old, state } = run;
  const { request } = state;
  if (request === null) throw new UsageError(`run ${run.id} never began`, 'start the workflow with meow run');
  requireKnownEffects(run);
  if (conductorOf(old) !== null && flags.inPlace === true) {
    throw new UsageError('a fork works in a worktree of its own', 'fork without --in-place');
  }
  for (const step of flags.from ?? []) requireStep(run, step);
  if (flags.id !== undefined) checkRunId(flags.id);
  const { scripts } = changedSources(old);
  // It shares the budget of the run that it comes from, unless it gets one of its own.
  const { usd, tokens } = flags.allowance;
  const hasOwnBudget = (usd ?? null) !== null || (tokens ?? null) !== null;
  const related = (prepared: PreparedRun): PreparedRun => {
    if (prepared.ready === null) return prepared;
    const { request: whole, ...ready } = prepared.ready;
    const { origin: _, ...asked } = whole;
    const origin = hasOwnBudget ? {} : { origin: request.origin ?? run.id };
    return {
      ...prepared,
      ready: { ...ready, request: withBudgets(settings.config, project.runs, { ...asked, ...origin }) },
    };
  };
  const fork = { ...forkOf(run.id, run, flags.from ?? []), ...(scripts.length === 0 ? {} : { scripts }) };
  if (flags.source === undefined) {
    if (flags.adapter !== undefined) {
      throw new UsageError('--adapter compiles the workflow anew', `name its file: --source ${old.source.name}`);
    }
    return withWorktree({ store, run }, { fork, ...related(repeated(context, old, request, flags)) });
  }
  // A fork works where the run has worked, and its workflow is named from there.
  const { cwd } = request;
  const { varsOfFiles, ...inherited } = inheritedVariables(old, request, flags);
  const prepared = await prepareRun({ ...project, cwd }, settings, adapters, {
    ...forcedAdapter(old),
    ...(request.permissions === undefined ? {} : { permissions: request.permissions }),
    ...(request.background === undefined ? {} : { background: request.background }),
    ...flags,
    allowOutside: flags.allowOutside ?? request.allowOutside,
    allowance: { ...givenAllowance(old, request), ...flags.allowance },
    reference: referenceFrom(cwd, project, flags.source),
    var: [...varsOfFiles, ...(flags.var ?? [])],
    inherited,
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
  return withWorktree(
    { store, run },
    { fork: { ...fork, results: Object.fromEntries(results) }, ...related(prepared) },
  );
}

/** An earlier version may have compiled to effects that this one does not have. */
function requireKnownEffects({ id, program }: ReadRun): void {
  const acts = Object.values(program.blocks).flatMap(({ steps }) => steps.map(({ act }) => act));
  const unknown = acts.find((act) => act.kind === 'effect' && !Object.hasOwn(EFFECT_KINDS, act.effect.kind));
  if (unknown?.kind !== 'effect') return;
  throw new UsageError(
    `run ${id} was started by another version of meow: this one does not know ${unknown.effect.kind} effects`,
    'fork it with the version that started it, or start the workflow again; meow status still shows it',
  );
}

/** `PATH#WORKFLOW` or a bare name, as it is written in another folder. */
function referenceFrom(cwd: string, project: Project, reference: string): string {
  const [path = '', ...workflow] = reference.split('#');
  const whole = resolve(project.cwd, path);
  return cwd === project.cwd || !existsSync(whole) ? reference : [relative(cwd, whole) || '.', ...workflow].join('#');
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
function repeated(
  { project, settings }: ForkContext,
  program: Program,
  request: RunRequest,
  flags: ForkFlags,
): PreparedRun {
  const { id = randomId(), allowance, allowOutside = request.allowOutside, permissions = request.permissions } = flags;
  const { given } = request;
  const place = { cwd: project.cwd, fileVariables: Object.keys(given?.files ?? {}) };
  const { variables, files } = givenVariables(flags, program, place);
  const mark = randomBytes(4).toString('hex');
  const { traceparent: _, ...same } = request;
  const again: RunRequest = {
    ...same,
    ...traceContext(),
    id,
    mark,
    variables: { ...request.variables, ...variables },
    meta: { ...request.meta, ...readMeta(flags) },
    folder: join(project.runs, id),
    allowOutside,
    ...(permissions === undefined ? {} : { permissions: readPermissions(permissions) }),
    allowance: { ...request.allowance, ...allowance },
    ...(given === undefined
      ? {}
      : {
          given: {
            ...given,
            variables: [...new Set([...given.variables, ...Object.keys(variables)])],
            files: { ...given.files, ...files },
            allowance: { ...given.allowance, ...allowance },
          },
        }),
  };
  const references = readGiven(flags).references;
  const masked = new Set([...Object.keys(request.variables), ...references.keys()]);
  for (const name of Object.keys(variables)) if (!references.has(name)) masked.delete(name);
  const recorded = withoutSecrets({ ...program, blocks: {} }, again, {
    config: settings.config,
    environment: ownEnvironment(),
    masked,
    isDry: flags.dryRun === true,
  });
  return { diagnostics: [], ready: { program, request: recorded.request, at: Date.now() } };
}

/** Variables that the new run has from the old one. `varsOfFiles`: as `--var`, whose files are read again. */
function inheritedVariables(
  program: Program,
  { variables, meta, given }: RunRequest,
  flags: ForkFlags,
): InheritedVariables & { readonly varsOfFiles: readonly string[] } {
  const flagged = new Set([...(flags.var ?? []), ...(flags.varJson ?? [])].map((text) => text.split('=', 1)[0]));
  const parameters = new Map((program.blocks[program.entry]?.parameters ?? []).map((one) => [one.name, one]));
  const wasGiven = (name: string, value: Json): boolean => {
    if (given !== undefined) return given.variables.includes(name);
    // Nobody has recorded that: an early version.
    const fallback = parameters.get(name)?.fallback;
    if (fallback === undefined) return !Object.hasOwn(meta, name);
    return fallback === null || (!namesMoment(fallback) && !isSameJson(value, constantOf(fallback)));
  };
  const values: Record<string, Json> = {};
  const defaults: Record<string, InheritedVariables['defaults'][string]> = {};
  const varsOfFiles: string[] = [];
  for (const [name, value] of Object.entries(variables)) {
    if (flagged.has(name)) continue;
    const fallback = parameters.get(name)?.fallback ?? null;
    const file = own(given?.files ?? {}, name);
    if (!wasGiven(name, value)) {
      if (file === undefined && fallback !== null && namesMoment(fallback)) defaults[name] = { fallback, value };
    } else if (file === undefined) values[name] = value;
    else varsOfFiles.push(`${name}=${file}`);
  }
  return { values, defaults, varsOfFiles };
}

/** Whether a default is filled in when the run starts. */
function namesMoment(fallback: ValueTemplate): boolean {
  return referencesInValue(fallback).length > 0;
}

function constantOf(fallback: ValueTemplate): Json {
  const filled = fillValue(fallback, () => err('a constant has no placeholders'));
  return filled.ok ? filled.value : null;
}

/** The limits that the old run was started with, if they are not those of its workflow or ours. */
function givenAllowance(program: Program, { allowance, given }: RunRequest): Partial<Allowance> {
  if (given !== undefined) return given.allowance;
  const { usd, ...others } = allowance;
  return usd === (program.budgetUsd ?? null) ? others : allowance;
}

/** A store whose new runs begin with the files of kept results, and with refs for kept snapshots. */
export function withKeptFiles({ store, run }: OldRun, prepared: PreparedFork, artifacts: string | null): Store {
  const { results, worktree } = prepared.fork;
  const paths = new Set(Object.values(results).flatMap(({ outputs }) => [...storedFiles(outputs)]));
  const old = store.files(run.id);
  const copy = async (files: RunFiles, id: string): Promise<void> => {
    for (const path of [...paths, 'sessions.jsonl']) await copyFile(old, files, path);
    for (const folder of COPIED_FOLDERS) await copyFolder(old, files, folder);
    await copySimSessions(old, files, async () => stepsKept(await plannedState({ store, run }, prepared)));
    if (artifacts !== null) copyMissing(artifacts, files.localPath(KEPT_ARTIFACTS));
    if (worktree !== undefined) await keepSnapshots(id, worktree as unknown as ForkStart);
    await syncDisk([files.localPath('')]);
  };
  return { ...store, create: (id, program) => store.create(id, program, (files) => copy(files, id)) };
}

/** Sessions of agents, with transcripts of those that cannot fork one, and the folders of lanes. */
const COPIED_FOLDERS = ['sessions', 'tasks'];

function* storedFiles(value: Json): Generator<string> {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) yield* storedFiles(item);
  if (!isJsonMap(value)) return;
  const stored = storedFileOf(value);
  if (stored !== null) yield stored.file;
  for (const inner of Object.values(value)) yield* storedFiles(inner);
}

async function copyFile(from: RunFiles, to: RunFiles, path: string): Promise<void> {
  const bytes = await from.read(path);
  if (bytes !== null) await to.replace(path, bytes);
}

/** `findKept`: tells which steps the fork keeps. */
async function copySimSessions(
  from: RunFiles,
  to: RunFiles,
  findKept: () => Promise<(step: string) => boolean>,
): Promise<void> {
  const files = (await from.list(SIM_SESSIONS)).filter(({ kind }) => kind === 'file');
  if (files.length === 0) return;
  const isKept = await findKept();
  for (const { name } of files) {
    const path = `${SIM_SESSIONS}/${name}`;
    const bytes = name.endsWith(SESSION) || name.endsWith(TURNS) ? await from.read(path) : null;
    if (bytes === null) continue;
    const lines = keptLines(bytes.toString(), isKept);
    await to.replace(path, Buffer.from(lines.map((line) => `${line}\n`).join('')));
    const memory = name.endsWith(TURNS) ? memoryAfter(lines) : null;
    if (memory !== null)
      await to.replace(`${path.slice(0, -TURNS.length)}${MEMORY}`, Buffer.from(JSON.stringify(memory)));
  }
}

/** A part of a step that is kept is kept with it. */
function stepsKept(planned: RunState | null): (step: string) => boolean {
  const isKept = (id: string): boolean => (planned?.steps.get(id)?.keptFrom ?? null) !== null;
  return (step) => isKept(step) || (!planned?.steps.has(step) && isKept(step.replace(/\.[^.]*$/, '')));
}

async function copyFolder(from: RunFiles, to: RunFiles, folder: string): Promise<void> {
  for (const { name, kind } of await from.list(folder)) {
    const path = `${folder}/${name}`;
    if (kind === 'folder') await copyFolder(from, to, path);
    if (kind === 'file') await copyFile(from, to, path);
  }
}
