// Validators: how each runs, its result, and the result of all.
//
// validators/1  A validator that must not or cannot run is recorded and not started.
// validators/2  Its command and the files that match its globs are recorded before it starts. Later steps rely on that,
//               and never remove what the validator wrote.
// validators/3  When it has ended, so have its children, except those in sessions of their own.
// validators/4  Its output and files are stored whatever its outcome. A missing or refused artifact, an invalid harness
//               report, or one with goldens that it must not propose, turns a success into an error; nothing else does.
// validators/5  The worst outcome is that of the validation, with its message and kind of failure.

import { tmpdir } from 'node:os';

import { err, ok, type Result } from '../../base/errors.ts';
import { own } from '../../base/json.ts';
import { formatDuration } from '../../base/time.ts';
import { type Mechanical, OUTCOME_OF, type Validator } from '../../ir/conductor.ts';
import { type Outcome, success } from '../../ir/effect.ts';
import { shellWord } from '../../ir/quote.ts';
import { tolerate } from '../../sys/errors.ts';
import { makeFolder } from '../../sys/files.ts';
import { resolveWorkdir } from '../environment.ts';
import { failed, tail } from '../outputs.ts';
import { fileName, readProcess, stepFile } from '../step-folder.ts';
import { type Artifact, VisitFolder } from './artifacts.ts';
import { collect, type CollectedArtifact, type CollectedReport, type Found } from './collect.ts';
import { foundBefore, isInside, patternsOf } from './collect.ts';
import type { ConductorContext, Places, StepRecord, Task } from './context.ts';
import { done, earlierVisits, folderOf, interpolate, mapsIn, stepOf, valueOf, withOutputs } from './context.ts';
import { findEntrypoint, networkDenial, type Refusal, withoutNetwork } from './entrypoint.ts';
import { killLeftovers } from './workspace.ts';

/** Format of the step's outputs. */
type ValidatorRecord = {
  readonly id: string;
  readonly kind: Validator['kind'];
  readonly command: string;
  readonly outcome: Mechanical;
  readonly exit_code: number | null;
  readonly message: string | null;
  readonly duration_ms: number | null;
  readonly network: 'denied' | 'open';
  /** The method, or why not. */
  readonly network_reason: string;
  readonly artifacts: readonly CollectedArtifact[];
};

type ValidatorOutputs = {
  readonly record: ValidatorRecord;
  readonly reports: readonly CollectedReport[];
  readonly artifacts: readonly Artifact[];
};

export async function prepareValidator(task: Task, validator: Validator): Promise<Outcome> {
  const placed = await placesOf(task);
  if (!placed.ok) return failed('refused', placed.error);
  const places = placed.value;
  const cwd = cwdOf(validator, places);
  if (!cwd.ok) return refused(validator, cwd.error);
  const patterns = patternsOf(validator.artifacts, cwd.value, places);
  if (!patterns.ok) return refused(validator, { outcome: 'error', message: patterns.error });
  const command = await commandOf(task, validator, places);
  if (!command.ok) return refused(validator, command.error);
  const found = await foundBefore(patterns.value, collectedBefore(task, validator.id), places);
  if (!found.ok) return refused(validator, { outcome: 'error', message: found.error });
  const folders = { cwd: cwd.value, home: homeOf(task.context), tmpdir: tmpdir() };
  return done(task, { ...command.value, ...folders, found: found.value });
}

/** Recorded like any other, but not started (validators/1). */
function refused(validator: Validator, { outcome, message }: Refusal): Outcome {
  const { id, kind } = validator;
  const command =
    validator.kind === 'builtin' ? validator.command : [validator.entrypoint, ...validator.args].join(' ');
  const ran = { exit_code: null, duration_ms: null, artifacts: [] };
  const network = { network: 'denied', network_reason: 'it was not started' } as const;
  const record: ValidatorRecord = { id, kind, command, outcome, message, ...ran, ...network };
  const outputs: ValidatorOutputs = { record, reports: [], artifacts: [] };
  return failed(outcome === 'killed_policy' ? 'policy' : 'not-started', message, { outputs });
}

async function placesOf({ context, step }: Task): Promise<Result<Places, string>> {
  const opened = await context.workspace.open();
  if (!opened.ok) return opened;
  return ok({ run_id: context.run.runId, run_dir: context.runDir, worktree: opened.value.folder, step_id: step });
}

type Command = Pick<ValidatorRecord, 'command' | 'network' | 'network_reason'> & { readonly script: string };

async function commandOf({ context }: Task, validator: Validator, places: Places): Promise<Result<Command, Refusal>> {
  if (validator.kind === 'builtin') {
    const network_reason = "a project's own command is run as its user would";
    return ok({ command: validator.command, script: validator.command, network: 'open', network_reason });
  }
  const texts: string[] = [];
  for (const text of [validator.entrypoint, ...validator.args]) {
    const filled = interpolate(text, places);
    if (!filled.ok) return err({ outcome: 'error', message: filled.error });
    texts.push(filled.value);
  }
  const [program = '', ...rest] = texts;
  const { run } = context;
  const words = findEntrypoint(program, places.worktree, context);
  if (!words.ok) return words;
  makeFolder(homeOf(context));
  const denial = await networkDenial(run.environment);
  const whole = withoutNetwork(denial, [...words.value, ...rest], run.files.localPath(''));
  return ok({
    command: texts.map(shellWord).join(' '),
    script: `${WITHOUT_RUN}${whole.map(shellWord).join(' ')}`,
    network: denial.kind,
    network_reason: denial.reason,
  });
}

/** Removes the variables that give access to the run. Prefix of a script. */
const WITHOUT_RUN = 'unset MEOW_WORKFLOW MEOW_STEP MEOW_ATTEMPT MEOW_ORCH_SOCK MEOW_INBOX;';

/** A scratch folder. */
function homeOf({ run }: ConductorContext): string {
  return run.files.localPath('scratch');
}

/** In the worktree or the run directory. */
function cwdOf({ cwd }: Validator, places: Places): Result<string, Refusal> {
  if (cwd === null) return ok(places.worktree);
  const filled = interpolate(cwd, places);
  const folder = filled.ok ? resolveWorkdir(places.worktree, filled.value) : filled;
  if (!folder.ok) return err({ outcome: 'error', message: folder.error });
  if ([places.worktree, places.run_dir].some((tree) => isInside(tree, folder.value))) return folder;
  const message = `its folder ${cwd} is neither in the worktree nor in the run's directory`;
  return err({ outcome: 'killed_policy', message });
}

/** Artifacts of this validator in earlier passes. */
function collectedBefore(task: Task, id: string): readonly CollectedArtifact[] {
  return earlierVisits(task)
    .filter(({ kind, step }) => kind === 'validate' && step === task.step)
    .flatMap(({ outputs }) => mapsIn(outputs['validators']))
    .filter((record) => record['id'] === id)
    .flatMap(({ artifacts }) => mapsIn(artifacts)) as readonly unknown[] as readonly CollectedArtifact[];
}

export async function collectValidator(task: Task, validator: Validator, idleMs: number | null): Promise<Outcome> {
  const placed = await placesOf(task);
  if (!placed.ok) return failed('refused', placed.error);
  const places = placed.value;
  const [prepared, run] = [stepOf(task, 'prepare'), stepOf(task, 'run')];
  const folder = folderOf(task.context, run);
  // Searching all leftovers is expensive; whether the shell's process group still exists is cheap to find out.
  const record = readProcess(folder);
  const hasGroup = record.kind === 'written' && tolerate(['ESRCH', 'EPERM'], false, () => process.kill(-record.pid, 0));
  if (hasGroup) await killLeftovers(task.context, run);

  const visit = new VisitFolder(task);
  for (const stream of ['stdout', 'stderr'] as const) {
    visit.linkIfExists(`validation_${stream}`, `${fileName(validator.id)}.${stream}`, stepFile(folder, stream));
  }
  const { command, network, network_reason, cwd } = prepared.outputs as Readonly<Record<string, string>>;
  const patterns = patternsOf(validator.artifacts, cwd ?? places.worktree, places);
  const found = valueOf(task.context, prepared, 'found') as Found;
  const { artifacts, reports, problems } = patterns.ok
    ? await collect(patterns.value, { id: validator.id, places, visit, found })
    : { artifacts: [], reports: [], problems: [] };

  const end = endOf(run, validator, idleMs);
  const invalid = reports.flatMap(({ path, problem, proposedGoldens }) => {
    const breaks = validator.mayProposeGoldens === false && proposedGoldens.length > 0;
    const why = problem ?? (breaks ? 'proposes goldens, and the workflow says may_propose_goldens: false' : null);
    return why === null ? [] : [{ kind: 'output-invalid' as const, message: `${path} ${why}` }];
  });
  const faults = [...problems, ...invalid];
  const kind = end.kind ?? faults[0]?.kind ?? null;
  const message = [end, ...faults].flatMap((fault) => fault.message ?? []).join('; ') || null;
  const validated: ValidatorRecord = {
    id: validator.id,
    kind: validator.kind,
    command: command ?? '',
    outcome: kind === null ? 'completed' : (OUTCOME_OF[kind] ?? 'error'),
    exit_code: end.code,
    message,
    duration_ms: run.startedAt === null || run.endedAt === null ? null : run.endedAt - run.startedAt,
    network: network === 'denied' ? 'denied' : 'open',
    network_reason: network_reason ?? '',
    artifacts,
  };
  const outputs = { record: validated, reports, artifacts: visit.artifacts };
  if (kind === null) return success(outputs);
  return failed(kind, message ?? '', { code: end.code, output: tail(folder), outputs });
}

/** The outcome, without files. `kind`: null if it completed. */
function endOf({ failure }: StepRecord, { timeoutMs }: Validator, idleMs: number | null) {
  if (failure === null) return { kind: null, code: 0, message: null };
  const { kind, code, message } = failure;
  if (kind !== 'timeout' && kind !== 'idle') return { kind, code, message };
  const how =
    kind === 'timeout'
      ? `it took longer than ${formatDuration(timeoutMs ?? 0)}`
      : `it was silent for ${formatDuration(idleMs ?? 0)}`;
  // Names processes that could not be killed.
  const [, left = ''] = /(; .*)$/s.exec(message) ?? [];
  return { kind, code: null, message: `${how}${left}` };
}

export function judgeValidators(task: Task, validators: readonly string[]): Outcome {
  const steps = validators.map((id) => stepOf(task, id));
  const unrecorded = steps.find(({ outputs }) => own(outputs, 'record') === undefined);
  if (unrecorded?.failure) return { kind: 'failure', failure: unrecorded.failure };
  const all = steps.map((step) => ({ ...(step.outputs as unknown as ValidatorOutputs), failure: step.failure }));
  const verdict = verdictOf(all);
  const results = { validators: all.map(({ record }) => record), ...reportsOf(all), witness: null };
  const visit = new VisitFolder(task);
  const outcome = verdict.kind === 'success' ? 'completed' : (OUTCOME_OF[verdict.failure.kind] ?? 'error');
  visit.writeJson('validation_report', 'validation_report.json', { outcome, ...results });
  const artifacts = [...all.flatMap((one) => one.artifacts), ...visit.artifacts];
  return withOutputs(verdict, { ...results, artifacts });
}

type Judged = ValidatorOutputs & Pick<StepRecord, 'failure'>;

/** The first of the worst determines the message (validators/5). */
function verdictOf(all: readonly Judged[]): Outcome {
  const bad = all.filter(({ failure }) => failure !== null);
  const badness = ({ record }: Judged): number => BY_BADNESS.indexOf(record.outcome);
  const worst = bad.toSorted((a, b) => badness(b) - badness(a))[0];
  if (worst === undefined || worst.failure === null) return success({}, { route: 'completed' });
  const said = ({ record }: Judged): string => `${record.id}: ${record.message}`;
  const message =
    bad.length === 1 ? said(worst) : `${bad.length} of ${all.length} validators failed; ${bad.map(said).join('; ')}`;
  return failed(worst.failure.kind, message, { code: worst.record.exit_code, output: worst.failure.output });
}

const BY_BADNESS: readonly Mechanical[] = ['completed', 'error', 'killed_policy', 'killed_idle', 'killed_timeout'];

/** The first valid report is the step's; goldens of all reports count. */
function reportsOf(all: readonly Judged[]) {
  const reports = all.flatMap((one) => one.reports);
  const { path = null, report = null } = reports.find((one) => one.report !== null) ?? {};
  const shown = report && { suite_id: report.suiteId, summary: report.summary, statuses: report.statuses };
  return {
    harness_report: path,
    report_summary: shown,
    proposed_goldens: [...new Set(reports.flatMap(({ proposedGoldens }) => proposedGoldens))],
  };
}
