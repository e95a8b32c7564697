// The worktree of a fork of a Conductor run: it begins as the snapshot after the last kept step, from the commit that the
// old run started from. The snapshots of kept steps become refs of the fork, so it does not need those of the old run.

import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { Json, JsonMap } from '../base/json.ts';
import { type Before, type ForkStart, startFacts } from '../drivers/conductor/workspace.ts';
import { readItems } from '../drivers/read-driver.ts';
import { branchOf, Repository } from '../drivers/git/repository.ts';
import { type Snapshot, writeRef } from '../drivers/git/snapshot.ts';
import { storedText } from '../drivers/outputs.ts';
import type { Store } from '../engine/ports.ts';
import type { ReadSpec } from '../ir/effect.ts';
import { storedFileOf } from '../ir/output.ts';
import { conductorOf, withWorkplace, workplaceOf } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import { decide } from '../kernel/decide.ts';
import type { Fork } from '../kernel/fork.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import { visitsOf, type VisitView } from '../view/visits.ts';
import { orThrow } from './errors.ts';
import type { PreparedRun } from './prepare-run.ts';
import { ownEnvironment, type Project } from './project.ts';
import type { ReadRun } from './runs.ts';

export interface PreparedFork extends PreparedRun {
  readonly fork: Fork;
}

/**
 * The fork as far as it is known: everything that is kept has ended, and what would run has started. Lists of kept
 * iterations are read as they are now.
 */
export async function plannedState(old: OldRun, { fork, ready }: PreparedFork): Promise<RunState | null> {
  if (ready === null) return null;
  const { program, at } = ready;
  const { budgets: _, origin: __, ...asked } = ready.request;
  const request = { ...asked, allowance: { ...asked.allowance, agents: null, usd: null, tokens: null } };
  const state = initialState(program);
  decide(state, { kind: 'run-requested', request, programHash: '', fork }, at);
  const places = { files: old.store.files(old.run.id), cwd: request.cwd };
  for (let read = nextRead(state); read !== null; read = nextRead(state)) {
    const outcome = await readItems(read.spec, places);
    decide(state, { kind: 'effect-finished', effect: read.effect, outcome }, at);
  }
  return state;
}

function nextRead({ inFlight }: RunState): { readonly effect: string; readonly spec: ReadSpec<FilledText> } | null {
  for (const [effect, { effect: spec, attempt }] of inFlight)
    if (spec?.kind === 'read' && attempt === 1) return { effect, spec };
  return null;
}

export interface OldRun {
  readonly store: Store;
  readonly run: ReadRun;
}

/** Unchanged unless it is the fork of a Conductor run that changes files. Throws a UsageError if a snapshot is gone. */
export async function withWorktree(old: OldRun, prepared: PreparedFork): Promise<PreparedFork> {
  const { ready, fork } = prepared;
  if (ready === null || conductorOf(ready.program)?.mutates !== true) return prepared;
  const planned = await plannedState(old, prepared);
  if (planned === null) return prepared;
  const visits = visitsOf(old.run.state.steps.values());
  const last = visits.findLastIndex(({ id }) => planned.steps.get(id)?.keptFrom === fork.from);
  const kept = visits.slice(0, last + 1);
  const befores = await Promise.all(kept.map(({ id }) => beforeOf(old, id)));
  const facts = befores.map(startFacts).find((each) => each !== null) ?? null;
  const base = facts?.snapshot.head ?? workplaceOf(old.run.program).base;
  const placed = { ...ready, program: withWorkplace(ready.program, { base, inPlace: false }) };
  if (facts === null) return { ...prepared, ready: placed };
  const branch = branchOf(ready.request.id);
  const start = ownSnapshot(facts.snapshot, branch);
  const after = (await stateAfter(old, visits, last)) ?? facts.snapshot;
  const state = { ...ownSnapshot(after, branch), name: 'fork' };
  await requireCommit(old.run.id, state, kept.at(-1)?.id ?? '');
  const ownBefores = befores.flatMap((before, index): [string, JsonMap][] =>
    before === null ? [] : [[`${kept[index]?.id ?? ''}.snapshot`, ownBefore(before, branch)]],
  );
  const results = { ...fork.results };
  for (const [id, before] of ownBefores) {
    const result = results[id];
    if (result === undefined) continue;
    const stored = result.kept.filter((name) => name !== 'before');
    results[id] = { ...result, outputs: { ...result.outputs, before }, kept: stored };
  }
  const refs = [start, state, ...befores.filter((before) => before !== null)];
  const snapshots = refs.map(({ name, commit }) => ({ name, commit }));
  const worktree = { start, excludes: facts.excludes, state, snapshots } satisfies ForkStart;
  return { ...prepared, ready: placed, fork: { ...fork, results, worktree } };
}

/** On the branch of the fork. Records beside the journal are those of the old run, and not used. */
function ownSnapshot({ name, commit, tree, head, branch: old }: Snapshot, branch: string): Snapshot {
  return { name, commit, tree, head, branch: old === null ? null : branch };
}

function ownBefore(before: Before, branch: string): JsonMap {
  const { pointer: _, digest: __, start, ...rest } = before;
  const own = { ...rest, ...ownSnapshot(before, branch) };
  return start === undefined ? own : { ...own, start: ownSnapshot(start, branch) };
}

/** The state of the worktree after a visit, as far as the old run has seen it. */
async function stateAfter(old: OldRun, visits: readonly VisitView[], index: number): Promise<Snapshot | null> {
  const next = visits[index + 1];
  const seen = next === undefined ? null : await beforeOf(old, next.id);
  if (seen !== null) return seen;
  for (let at = index; at >= 0; at -= 1) {
    const visit = visits[at];
    const state = visit === undefined ? null : await endOf(old, visits.slice(0, at), visit);
    if (state !== null) return state;
  }
  return null;
}

async function endOf(old: OldRun, earlier: readonly VisitView[], visit: VisitView): Promise<Snapshot | null> {
  const { id, kind, outcome, outputs } = visit;
  if (kind === 'rollback' && outcome === 'completed') {
    const worker = earlier.findLast((each) => each.kind === 'work');
    const before = worker === undefined ? null : await beforeOf(old, worker.id);
    return outputs['target'] === 'pre_run' ? (before?.start ?? null) : before;
  }
  const step = kind === 'validate' ? `${id}._inspect` : `${id}.inspect`;
  return (await outputOf(old, step, 'after')) as Snapshot | null;
}

async function beforeOf(old: OldRun, visit: string): Promise<Before | null> {
  return (await outputOf(old, `${visit}.snapshot`, 'before')) as Before | null;
}

/** Read from its file if it is large. */
async function outputOf({ store, run }: OldRun, id: string, name: string): Promise<Json> {
  const { outputs = {}, kept = [] } = run.state.steps.get(id) ?? {};
  const value = outputs[name] ?? null;
  const file = kept.includes(name) ? storedFileOf(value) : null;
  if (file === null) return value;
  const text = storedText(file, store.files(run.id));
  if (!text.ok) throw new UsageError(`run ${run.id} cannot be forked: ${text.error}`);
  return JSON.parse(text.value) as Json;
}

async function requireCommit(run: string, { commit }: Snapshot, step: string): Promise<void> {
  const { info } = orThrow(await Repository.open(process.cwd(), ownEnvironment()));
  if ((await info.git.ask(['cat-file', '-e', `${commit}^{tree}`])).status === 0) return;
  throw new UsageError(
    `the files of run ${run} after ${step} are no longer in the repository`,
    `run that step again: meow fork ${run} --from '${step}'`,
  );
}

/** Refs of the fork for the snapshots that it keeps. */
export async function keepSnapshots(run: string, { start, snapshots }: ForkStart): Promise<void> {
  const { info } = orThrow(await Repository.open(process.cwd(), ownEnvironment()));
  const branch = branchOf(run);
  const own = { ...info, run, kind: 'worktree', branch, base: start.head ?? '' } as const;
  for (const { name, commit } of snapshots) await writeRef(own, name, commit);
}

/** The artifacts of a Conductor run, an absolute path; null for other runs. */
export function artifactsOf({ meow }: Project, { id, program }: ReadRun): string | null {
  const conductor = conductorOf(program);
  return conductor === null ? null : join(meow, '..', conductor.artifactsDir, id, 'artifacts');
}
