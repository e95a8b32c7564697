// Validators: how each runs, its result, and the result of all.
//
// validators/1  A validator that must not or cannot run is recorded and not started.
// validators/2  Its command and the files that match its globs are recorded before it starts. Later steps rely on that,
//               and never remove what the validator wrote.
// validators/3  When it has ended, so have its children, except those in sessions of their own.
// validators/4  Its output and files are stored whatever its outcome. A missing declared artifact or an invalid harness
//               report turns a success into an error; nothing else does.
// validators/5  The worst outcome is that of the validation, with its message and kind of failure.

import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isJsonMap, own } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { isErrno } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatDuration } from '../../base/time.ts';
import { shellWord } from '../../ir/quote.ts';
import type { FailureKind } from '../../ir/failure.ts';
import { OUTCOME_OF } from '../../ir/conducted.ts';
import type {
  CollectInspection,
  Mechanical,
  PrepareInspection,
  ReportInspection,
  ScriptValidator,
  Validator,
} from '../../ir/conducted.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { tail } from '../capture-outputs.ts';
import { fileName, readProcess } from '../step-folder.ts';
import type { StepFolder } from '../step-folder.ts';
import { resolveWorkdir } from '../resolve-workdir.ts';
import { visitFolder } from './artifacts.ts';
import type { Artifact } from './artifacts.ts';
import { collect, foundBefore, patternsOf } from './collect.ts';
import type { Collected, CollectedArtifact, CollectedReport, Found } from './collect.ts';
import { done, earlierVisits, failed, folderOf, stepOf, valueOf } from './context.ts';
import type { ConductorContext, StepRecord, Task, Visit } from './context.ts';
import { findEntrypoint, isWithin } from './entrypoint.ts';
import type { Refusal } from './entrypoint.ts';
import { interpolate } from './interpolate.ts';
import type { Places } from './interpolate.ts';
import { killLeftovers } from './inspect-worktree.ts';
import { networkDenial, withoutNetwork } from './network.ts';

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

/** Outputs of a validator. */
type ValidatorOutputs = {
  readonly record: ValidatorRecord;
  readonly reports: readonly CollectedReport[];
  readonly artifacts: readonly Artifact[];
};

/** How it is run. */
interface Command {
  readonly command: string;
  readonly script: string;
  readonly network: ValidatorRecord['network'];
  readonly network_reason: string;
}

export async function prepareValidator(task: Task, { validator }: PrepareInspection): Promise<Outcome> {
  const placed = await placesOf(task);
  if (!placed.ok) return failed('refused', placed.error);
  const places = placed.value;
  const cwd = cwdOf(validator, places);
  if (!cwd.ok) return refused(validator, cwd.error);
  const patterns = patternsOf(validator.artifacts, cwd.value, places);
  if (!patterns.ok) return refused(validator, { outcome: 'error', message: patterns.error });
  const command =
    validator.kind === 'builtin' ? ok(plainCommand(validator.command)) : await scriptCommand(task, validator, places);
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
  return failed(outcome === 'killed_policy' ? 'policy' : 'not-started', message, { outputs: asJson(outputs) });
}

async function placesOf({ context, visit }: Task): Promise<Result<Places, string>> {
  const opened = await context.workspace.open();
  if (!opened.ok) return opened;
  const step = visit.replace(/#\d+$/, '');
  return ok({ run_id: context.run.runId, run_dir: context.runDir, worktree: opened.value.folder, step_id: step });
}

function plainCommand(command: string): Command {
  const network_reason = "a project's own command is run as its user would";
  return { command, script: command, network: 'open', network_reason };
}

async function scriptCommand(
  { context }: Task,
  { entrypoint, args }: ScriptValidator,
  places: Places,
): Promise<Result<Command, Refusal>> {
  const texts: string[] = [];
  for (const text of [entrypoint, ...args]) {
    const filled = interpolate(text, places);
    if (!filled.ok) return err({ outcome: 'error', message: filled.error });
    texts.push(filled.value);
  }
  const [program = '', ...rest] = texts;
  const { runDir, runDirName, run, settings } = context;
  const allowed = settings.allowedEntrypoints;
  const words = findEntrypoint({ entrypoint: program, worktree: places.worktree, runDir, runDirName, allowed });
  if (!words.ok) return words;
  makeFolder(homeOf(context));
  const denial = await networkDenial(run.environment);
  const whole = withoutNetwork(denial, [...words.value, ...rest], run.files.localPath(''));
  return ok({
    command: texts.map(shellWord).join(' '),
    script: `${WITHOUT_RUN}${whole.map(shellWord).join(' ')}`,
    network: denial.kind,
    network_reason: denial.kind === 'denied' ? denial.how : denial.why,
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
  const real = realpathSync.native(folder.value);
  const trees = [places.worktree, places.run_dir].map((tree) => realpathSync.native(tree));
  if (trees.some((tree) => real === tree || isWithin(tree, real))) return folder;
  const message = `its folder ${cwd} is neither in the worktree nor in the run's directory`;
  return err({ outcome: 'killed_policy', message });
}

/** Artifacts of this validator in earlier passes. */
function collectedBefore(task: Task, id: string): readonly CollectedArtifact[] {
  const [step = ''] = task.visit.split(/#\d+$/);
  const isPass = (visit: Visit): boolean => visit.kind === 'validate' && visit.id.replace(/#\d+$/, '') === step;
  return earlierVisits(task)
    .filter(isPass)
    .flatMap(({ outputs }) => listIn(outputs, 'validators'))
    .filter((record) => record['id'] === id)
    .flatMap((record) => listIn(record, 'artifacts')) as readonly unknown[] as readonly CollectedArtifact[];
}

function listIn(map: JsonMap, key: string): readonly JsonMap[] {
  const list = own(map, key);
  return Array.isArray(list) ? (list as readonly Json[]).filter((one) => isJsonMap(one)) : [];
}

export async function collectValidator(task: Task, { validator, idleMs }: CollectInspection): Promise<Outcome> {
  const placed = await placesOf(task);
  if (!placed.ok) return failed('refused', placed.error);
  const places = placed.value;
  const [prepared, run] = [stepOf(task, 'prepare'), stepOf(task, 'run')];
  const folder = folderOf(task.context, run);
  if (hasGroup(folder)) await killLeftovers(task.context, run);

  const visit = visitFolder(task);
  for (const stream of ['stdout', 'stderr'] as const) {
    const file = join(folder.path, stream);
    if (existsSync(file)) visit.link(`validation_${stream}`, `${fileName(validator.id)}.${stream}`, file);
  }
  const { command, network, network_reason, cwd } = prepared.outputs as Readonly<Record<string, string>>;
  const patterns = patternsOf(validator.artifacts, cwd ?? places.worktree, places);
  const found = valueOf(task, prepared, 'found') as Found;
  const nothing: Collected = { artifacts: [], reports: [], problems: [] };
  const { artifacts, reports, problems } = patterns.ok
    ? await collect(patterns.value, found, { id: validator.id, places, visit })
    : nothing;

  const end = endOf(run, validator, idleMs);
  const invalid = reports.flatMap(({ path, problem }) => (problem === null ? [] : [`${path} ${problem}`]));
  const kind = end.kind ?? problems[0]?.kind ?? (invalid.length > 0 ? 'output-invalid' : null);
  const sentences = [
    ...(end.message === null ? [] : [end.message]),
    ...problems.map(({ message }) => message),
    ...invalid,
  ];
  const message = sentences.length === 0 ? null : sentences.join('; ');
  const record: ValidatorRecord = {
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
  const outputs = asJson({ record, reports, artifacts: visit.artifacts });
  if (kind === null) return success(outputs);
  return failed(kind, message ?? '', { code: end.code, output: tail(folder), outputs });
}

/** Whether the shell's process group still exists. This check is cheap; searching all leftovers is not. */
function hasGroup(folder: StepFolder): boolean {
  const record = readProcess(folder);
  if (record.kind !== 'written') return false;
  try {
    process.kill(-record.pid, 0);
    return true;
  } catch (error) {
    if (isErrno(error, 'ESRCH', 'EPERM')) return false;
    throw error;
  }
}

/** The outcome, without files. */
interface End {
  /** Null if it completed. */
  readonly kind: FailureKind | null;
  readonly code: number | null;
  readonly message: string | null;
}

function endOf({ failure }: StepRecord, { timeoutMs }: Validator, idleMs: number | null): End {
  if (failure === null) return { kind: null, code: 0, message: null };
  const { kind, code, message } = failure;
  if (kind === 'timeout')
    return { kind, code: null, message: `it took longer than ${formatDuration(timeoutMs ?? 0)}${leftIn(message)}` };
  if (kind === 'idle')
    return { kind, code: null, message: `it was silent for ${formatDuration(idleMs ?? 0)}${leftIn(message)}` };
  return { kind, code, message };
}

/** Names processes that could not be killed. */
function leftIn(message: string): string {
  const at = message.indexOf('; ');
  return at === -1 ? '' : message.slice(at);
}

export function judgeValidators(task: Task, { validators }: ReportInspection): Outcome {
  const steps = validators.map((id) => stepOf(task, id));
  const unrecorded = steps.find(({ outputs }) => own(outputs, 'record') === undefined);
  if (unrecorded?.failure) return { kind: 'failure', failure: unrecorded.failure };
  const all = steps.map((step) => ({ ...(step.outputs as unknown as ValidatorOutputs), failure: step.failure }));
  const verdict = verdictOf(all);
  const results = { validators: all.map(({ record }) => record), ...reportsOf(all), witness: null };
  const visit = visitFolder(task);
  const outcome = verdict.kind === 'success' ? 'completed' : (OUTCOME_OF[verdict.failure.kind] ?? 'error');
  visit.writeJson('validation_report', 'validation_report.json', { outcome, ...results });
  const artifacts = [...all.flatMap((one) => one.artifacts), ...visit.artifacts];
  const outputs = asJson({ ...results, artifacts });
  if (verdict.kind === 'success') return { ...verdict, outputs };
  return { kind: 'failure', failure: { ...verdict.failure, outputs } };
}

type Judged = ValidatorOutputs & Pick<StepRecord, 'failure'>;

/** The first of the worst determines the message (validators/5). */
function verdictOf(all: readonly Judged[]): Outcome {
  const bad = all.filter(({ failure }) => failure !== null);
  const worst = bad.toSorted((a, b) => badness(b) - badness(a))[0];
  if (worst === undefined || worst.failure === null) return success({}, { route: 'completed' });
  const said = ({ record }: Judged): string => `${record.id}: ${record.message}`;
  const message =
    bad.length === 1 ? said(worst) : `${bad.length} of ${all.length} validators failed; ${bad.map(said).join('; ')}`;
  return failed(worst.failure.kind, message, { code: worst.record.exit_code, output: worst.failure.output });
}

function badness({ record }: Judged): number {
  return BY_BADNESS.indexOf(record.outcome);
}

const BY_BADNESS: readonly Mechanical[] = ['completed', 'error', 'killed_policy', 'killed_idle', 'killed_timeout'];

/** The first valid report is the step's; goldens of all reports count. */
function reportsOf(all: readonly Judged[]): {
  readonly harness_report: string | null;
  readonly report_summary: Json;
  readonly proposed_goldens: readonly string[];
} {
  const reports = all.flatMap((one) => one.reports);
  const first = reports.find(({ report }) => report !== null);
  return {
    harness_report: first?.path ?? null,
    report_summary:
      first === undefined || first.report === null
        ? null
        : { suite_id: first.report.suiteId, summary: first.report.summary, statuses: first.report.statuses },
    proposed_goldens: [...new Set(reports.flatMap(({ proposedGoldens }) => proposedGoldens))],
  };
}

function asJson(value: object): JsonMap {
  return value as unknown as JsonMap;
}
