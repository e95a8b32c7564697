// The directory of a Conductor run, for people, planners and scripts. Everything in it follows from the journal; what a
// crash leaves out is written when the run is resumed.
//
//   metadata.json      identifies the run; written once
//   status.json        current status; replaced when it changes
//   events.ndjson      events, one per line
//   artifacts/STEP/N/  the Nth visit of a step: its manifest, written when it has ended, and the requests and decisions of
//                      gates; the steps that perform the visit write the rest, before the journal records it
//   diff.patch, transcript.md, final-state.txt   when the engine lets go of the run

import { closeSync, existsSync, mkdirSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import { copyNew, removeAt } from '../drivers/conductor/artifacts.ts';
import { hideFromGit, type WorkspaceRequest, worktreePath } from '../drivers/conductor/workspace.ts';
import { branchOf } from '../drivers/git/repository.ts';
import type { Program } from '../ir/program.ts';
import { plainText } from '../ir/text.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { asUsageError, isErrno, UNUSABLE } from '../sys/errors.ts';
import {
  makeFolderBelow,
  openPrivate,
  ownFolder,
  readJsonFile,
  replacePrivate,
  stateFile,
  type StateFile,
  writePrivate,
} from '../sys/files.ts';
import { gateArtifact, RunEvents } from '../view/run-events.ts';
import { moment, openGates, runError, runStatus } from '../view/status.ts';
import { outcomeOf, visitKind, visitsOf, type VisitView } from '../view/visits.ts';

/** Where a Conductor run works. All paths are absolute. */
export interface ConductorPlaces {
  readonly workflowId: string;
  /** The folder that contains `.meow`. */
  readonly project: string;
  readonly runs: string;
  /** The run directory, and its path in the project. */
  readonly runDir: string;
  readonly runDirName: string;
  readonly kind: WorkspaceRequest['kind'];
  /** The commit that the run starts from; null without git. */
  readonly base: string | null;
}

export interface RunDirectoryOptions extends ConductorPlaces {
  readonly runId: string;
  /** Distinguishes the run from another with the same id. */
  readonly mark: string;
  readonly program: Program;
  /** Takes a line for people. */
  warn(line: string): void;
}

const METADATA = 'metadata.json';

export class RunDirectory {
  readonly #options: RunDirectoryOptions;
  readonly #events: RunEvents;
  readonly #status: StateFile;
  #file: number | null = null;
  #disown = (): void => {};
  /** Counted incrementally: a run may have many. */
  #visits = 0;
  #latest: string | null = null;
  #ended: string | null = null;
  /** Decisions of an earlier engine may not have been written. */
  #isBehind = false;
  #complained = false;

  constructor(options: RunDirectoryOptions) {
    this.#options = options;
    this.#events = new RunEvents(options.program, options.runId);
    this.#status = stateFile(join(options.runDir, 'status.json'));
  }

  /** Creates or reopens the directory. `before`: the records of earlier engines. */
  open(before: readonly JournalRecord[]): void {
    const { runDir: path, runs, runId } = this.#options;
    try {
      mkdirSync(dirname(path), { recursive: true });
      // The folder of a run that has begun is ours. A link in its place is not.
      if (before.length > 0) makeFolderBelow(path, path);
      if (!this.#isOurs()) this.#make(before);
      hideFromGit(path, '*\n');
      // Workflows may be stored next to runs.
      hideFromGit(runs, '/.gitignore\n/*/\n/*.yaml\n/*.yaml.*\n');
      hideFromGit(join(runs, '..', 'worktrees'), '*\n');
      this.#disown = ownFolder(path);
      makeFolderBelow(path, join(path, 'artifacts'));
      removeAt(join(path, 'events.ndjson'));
      this.#file = openPrivate(join(path, 'events.ndjson'));
      this.#tell(before);
      this.#isBehind = before.length > 0;
    } catch (error) {
      if (isErrno(error, 'EEXIST', 'ENOTEMPTY', 'ENOTDIR')) {
        throw new UsageError(
          `the run directory ${path} exists and belongs to another run`,
          'choose another id with --id, or another defaults.artifacts_dir',
        );
      }
      throw asUsageError(error, `make the run directory of ${runId}`, path);
    }
  }

  observe(records: readonly JournalRecord[], state: RunState): void {
    if (this.#file === null) return;
    this.#tell(records);
    this.#catchUp(state);
    for (const step of visitsTouched(records, state)) this.#writeVisit(step, state);
    void this.#writeStatus(state);
  }

  /** `patch`: a file with all changes of the run; null if there are none. */
  async finish(state: RunState, patch: string | null): Promise<void> {
    if (this.#file === null) return;
    const visits = visitsOf(state.steps.values());
    this.#catchUp(state);
    if (patch !== null) this.#put('diff.patch', (place) => copyNew(patch, place));
    this.#put('transcript.md', (place) => writePrivate(place, transcript(this.#options.runId, visits)));
    this.#put('final-state.txt', (place) => writePrivate(place, finalState(state, visits)));
    await this.#writeStatus(state);
    closeSync(this.#file);
    this.#file = null;
    this.#disown();
  }

  /**
   * In one step; never replaces that of another run. If a step of the run has started, the directory is its own: its metadata
   * was lost in a power failure, or an agent has changed it.
   */
  #make(before: readonly JournalRecord[]): void {
    const { runDir: path, runId, mark, program, workflowId, base, kind, project } = this.#options;
    const worktree = kind === 'worktree' ? worktreePath(project, runId) : project;
    const branch = kind === 'worktree' ? branchOf(runId) : null;
    const metadata = { run_id: runId, mark, workflow_id: workflowId, source: program.source.name };
    const place = { base_commit: base, worktree, branch, started_at: formatMoment(before[0]?.at ?? Date.now()) };
    const text = `${JSON.stringify({ ...metadata, ...place }, null, 2)}\n`;
    const metadataPath = join(path, METADATA);
    if (existsSync(path) && (hasStartedStep(before) || (before.length > 0 && readJsonFile(metadataPath) === null))) {
      replacePrivate(metadataPath, text);
      return;
    }
    const made = `${path}.${mark}`;
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, 0o700);
    writePrivate(join(made, METADATA), text);
    try {
      renameSync(made, path);
    } catch (error) {
      rmSync(made, { recursive: true });
      throw error;
    }
  }

  #isOurs(): boolean {
    const known = readJsonFile(join(this.#options.runDir, METADATA)) as JsonMap | null;
    return known?.['run_id'] === this.#options.runId && known['mark'] === this.#options.mark;
  }

  #tell(records: readonly JournalRecord[]): void {
    const events = records.flatMap((record) => this.#events.eventsOf(record));
    for (const { event_type: type, visit, attempt } of events) {
      if (typeof visit !== 'string') continue;
      if (type === 'step_started') {
        this.#latest = visit;
        if (attempt === 1) this.#visits += 1;
      }
      if (type === 'step_completed' || type === 'step_failed') this.#ended = visit;
    }
    const lines = events.map((event) => `${JSON.stringify(event)}\n`);
    if (lines.length > 0 && this.#file !== null) writeSync(this.#file, lines.join(''));
  }

  async #writeStatus(state: RunState): Promise<void> {
    try {
      await this.#status.write(`${JSON.stringify(this.#statusOf(state), null, 2)}\n`);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.#complain(error.message);
    }
  }

  #catchUp(state: RunState): void {
    if (this.#isBehind) for (const step of state.steps.values()) this.#writeVisit(step, state);
    this.#isBehind = false;
  }

  #writeVisit(step: StepState, state: RunState): void {
    const [visit] = visitsOf([step]);
    if (visit === undefined || visit.kind === 'halt') return;
    const artifacts = visit.kind === 'gate' ? this.#writeGate(visit, step, state) : (visit.outputs['artifacts'] ?? []);
    if (visit.kind !== 'gate' && visit.outcome === null) return;
    this.#putJson(visit, 'manifest.json', {
      step_id: visit.step,
      opcode: step.definition.executor.toUpperCase(),
      attempt: visit.visit,
      started_at: moment(visit.startedAt),
      ended_at: moment(visit.endedAt),
      outcome: visit.outcome,
      artifacts,
    });
  }

  #writeGate(visit: VisitView, step: StepState, state: RunState): readonly JsonMap[] {
    const gate = openGates(state).find(({ step: asker }) => asker === step.id);
    const spec = step.definition.act.kind === 'effect' ? step.definition.act.effect : null;
    const artifacts: JsonMap[] = [];
    const write = (role: 'gate_request' | 'gate_outcome', content: JsonMap): void => {
      this.#putJson(visit, `${role}.json`, content);
      artifacts.push(gateArtifact(role, visit.id));
    };
    write('gate_request', {
      run_id: this.#options.runId,
      step_id: visit.step,
      gate: visit.step,
      reason: gate?.prompt ?? (spec?.kind === 'gate' && typeof spec.prompt === 'string' ? spec.prompt : null),
      approvers: spec?.kind === 'gate' ? [...(spec.approvers ?? [])] : [],
      requested_at: moment(visit.startedAt),
      required_decision: 'approve or reject',
    });
    if (visit.outcome !== null && visit.outcome !== 'completed') {
      const { decided_by = null, notes = null } = visit.outputs;
      write('gate_outcome', { outcome: visit.outcome, decided_by, notes, decided_at: moment(visit.endedAt) });
    }
    return artifacts;
  }

  #putJson({ id, visit }: VisitView, name: string, content: JsonMap): void {
    const path = join('artifacts', id.replace(/#\d+$/, ''), String(visit), name);
    this.#put(path, (place) => writePrivate(place, `${JSON.stringify(content, null, 2)}\n`));
  }

  /** Agents may write here, so links that they left are never followed (sys/files.ts). */
  #put(name: string, write: (place: string) => void): void {
    const { runDir } = this.#options;
    const place = join(runDir, name);
    try {
      makeFolderBelow(runDir, dirname(place));
      removeAt(place);
      write(place);
    } catch (error) {
      if (!isErrno(error, ...UNUSABLE)) throw error;
      this.#complain(`cannot write ${place}: ${error.message}`);
    }
  }

  /** The run does not depend on the directory; what is missing is written at the latest when the run is resumed. */
  #complain(why: string): void {
    if (!this.#complained) this.#options.warn(why);
    this.#complained = true;
  }

  #statusOf(state: RunState): JsonMap {
    const latest = state.steps.get(this.#latest ?? '');
    const ended = state.steps.get(this.#ended ?? '');
    return {
      run_id: this.#options.runId,
      workflow_id: this.#options.workflowId,
      status: runStatus(state),
      current_step: latest?.finishedAt === null ? latest.id : null,
      last_outcome: ended === undefined ? null : outcomeOf(ended),
      visits: this.#visits,
      open_gates: openGates(state).map(({ id }) => id),
      error: runError(state)?.message ?? null,
      started_at: moment(state.startedAt),
      ended_at: moment(state.endedAt),
    };
  }
}

/** The directory exists before the first step starts, but not before the first record, which has the kept steps of a fork. */
function hasStartedStep(records: readonly JournalRecord[]): boolean {
  return records.some(({ decisions }) =>
    decisions.some((decision) => decision.kind === 'step-started' && decision.keptFrom === undefined),
  );
}

/** Visits that were asked about or have ended in these records. */
function visitsTouched(records: readonly JournalRecord[], state: RunState): ReadonlySet<StepState> {
  const touched = records.flatMap(({ decisions }) =>
    decisions.flatMap((decision) => {
      if (decision.kind !== 'gate-asked' && decision.kind !== 'step-done' && decision.kind !== 'step-failed') return [];
      const step = state.steps.get(decision.step);
      return step === undefined || visitKind(step.definition) === null ? [] : [step];
    }),
  );
  return new Set(touched);
}

/** Everything that agents and people said and decided, in order. */
function transcript(runId: string, visits: readonly VisitView[]): string {
  const parts = visits.map((visit) => {
    const texts = textsOf(visit).map((text) => text.trim());
    return [`## ${visit.id}: ${visit.outcome ?? 'under way'}`, ...texts.filter((text) => text !== '')].join('\n\n');
  });
  return `${[`# ${runId}`, ...parts].join('\n\n')}\n`;
}

function textsOf({ kind, step, visit, failure, outputs }: VisitView): readonly string[] {
  const list = (name: string): readonly Json[] => {
    const value = outputs[name];
    return Array.isArray(value) ? value : [];
  };
  const why = failure?.message ?? '';
  switch (kind) {
    case 'work': {
      const { result = '' } = outputs;
      // Large outputs are in a file.
      return [why, typeof result === 'string' ? result : `See artifacts/${step}/${visit}/.`];
    }
    case 'validate': {
      const validators = list('validators').filter(isJsonMap);
      return validators.length === 0 ? [why] : [validators.map(validatorLine).join('\n')];
    }
    case 'evaluate': {
      const { planner_status: planned, status, fix_instructions: instructions = null } = outputs;
      const notes = ['escalations', 'contradictions', 'blockers', 'risk_flags'].flatMap(list);
      return [
        why,
        planned === undefined || planned === status ? '' : `The planner said ${plainText(planned)}.`,
        notes.map((note) => `- ${plainText(note)}`).join('\n'),
        instructions === null ? '' : plainText(instructions),
      ];
    }
    case 'gate': {
      const { decided_by: by = null, notes = '' } = outputs;
      return by === null ? [why] : [notes === '' ? plainText(by) : `${plainText(by)}: ${plainText(notes)}`];
    }
    case 'rollback': {
      const { target, undone_ref: undone = null } = outputs;
      const reachable = undone === null ? '' : `; what was undone is in ${plainText(undone)}`;
      return target === undefined ? [why] : [`Back to ${plainText(target)}${reachable}.`];
    }
    case 'halt':
      return [why];
  }
}

function validatorLine({ id = null, outcome = null, exit_code: code = null, message = null }: JsonMap): string {
  const status = code === null ? '' : `, exit code ${plainText(code)}`;
  const why = message === null ? '' : `: ${plainText(message)}`;
  return `- ${plainText(id)}: ${plainText(outcome)}${status}${why}`;
}

function finalState(state: RunState, visits: readonly VisitView[]): string {
  const error = runError(state);
  const lines = [
    `status: ${runStatus(state)}`,
    `reason: ${state.reason ?? error?.message ?? '-'}`,
    `last step: ${visits.at(-1)?.id ?? '-'}`,
    ...visits.map(({ id, outcome }) => `  ${id} ${outcome ?? '-'}`),
  ];
  return `${lines.join('\n')}\n`;
}
