// Validators, one after the other. None is left out, whatever the ones before came to; the worst outcome is that of the
// step, with its message and its kind of failure. What all of them came to is in the outputs either way.
//
// A validator that was lost together with an engine makes the step `lost`: all of them are run again, as another attempt.

import { isJsonMap, own } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { ok } from '../../base/result.ts';
import type { Driver } from '../../engine/ports.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import { OUTCOME_OF } from '../../ir/conducted.ts';
import type { Mechanical, ValidateSpec } from '../../ir/conducted.ts';
import type { Outputs } from '../../ir/output.ts';
import { visitFolder, visitOf } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { failed } from './asking.ts';
import type { CollectedArtifact } from './collect.ts';
import type { OpcodeContext, OpenWorkspace, Performance, Visit } from './context.ts';
import { swiftToFind } from './inner.ts';
import { runValidator } from './validator.ts';
import type { Around, Validated } from './validator.ts';
import { testify, touchedInRun } from './witness.ts';

/** `scripts`: a driver of commands that see nothing of the user's (script-environment.ts). */
export async function performValidate(
  context: OpcodeContext,
  performance: Performance<ValidateSpec>,
  scripts: Driver,
): Promise<Outcome> {
  const { effect, spec, asked } = performance;
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const { step } = visitOf(effect);
  const around: Around = {
    context,
    performance,
    places: { run_id: context.run.runId, run_dir: context.runDir, worktree: opened.value.folder, step_id: step },
    visit: visitFolder(context, effect),
    drivers: { builtin: swiftToFind(context.command, context.run), script: swiftToFind(scripts, context.run) },
  };
  const earlier = context.history().filter((visit) => visit.kind === 'validate' && visit.step === step);
  const all: Validated[] = [];
  for (const validator of spec.validators) {
    if (asked.isStopped) break;
    const one = await runValidator(around, validator, collectedBy(earlier, validator.id));
    if (one === 'lost') return failed('lost', `the validator ${validator.id} is gone without leaving its status`);
    if (one === 'stopped') return failed('stopped', `the validator ${validator.id} was stopped`);
    all.push(one);
  }
  const left = spec.validators.slice(all.length);
  const [{ id: unrun } = { id: null }] = left;
  // Stopped between two of them: as if the next had been.
  const cut = unrun === null ? null : (await asked.stopped).why;
  if (cut === 'run-ending') return failed('stopped', `it was stopped before the validator ${unrun}`);
  const verdict = cut === null ? verdictOf(all) : failed('timeout', `its time was up before the validator ${unrun}`);
  return answer(context, performance, opened.value, { visit: around.visit, all, verdict });
}

interface Done {
  readonly visit: VisitFolder;
  readonly all: readonly Validated[];
  readonly verdict: Outcome;
}

/** With a witness to it, where one is demanded, and with all that people and planners want to see. */
async function answer(
  context: OpcodeContext,
  performance: Performance<ValidateSpec>,
  open: OpenWorkspace,
  { visit, all, verdict }: Done,
): Promise<Outcome> {
  const claimed = mechanical(verdict);
  const found = { validators: all.map(({ record }) => record), ...reportsOf(all) };
  const witness = own(performance.spec.witnesses, claimed);
  const touched = witness === undefined ? ok([]) : await touchedInRun(open);
  // Goldens that were proposed stay so, though nobody can say whether the rest is true.
  if (!touched.ok) return withOutputs(failed('refused', touched.error), found);
  const testimony = witness === undefined ? null : await testify(context, performance, witness, touched.value);
  const doubt = testimony === null || testimony.ok ? null : testimony.error;
  if (doubt !== null && doubt.kind !== 'unproven') return withOutputs(failed(doubt.kind, doubt.message), found);
  const outcome = doubt === null ? verdict : failed('unproven', doubt.message);

  const results = { ...found, witness: doubt?.testimony ?? (testimony?.ok === true ? testimony.value : null) };
  visit.writeJson('validation_report', 'validation_report.json', { outcome: mechanical(outcome), ...results });
  visit.writeManifest({ opcode: 'RUN_VALIDATION', outcome: mechanical(outcome) });
  return withOutputs(outcome, { ...results, artifacts: visit.artifacts });
}

/** The first of the worst speaks for the step. */
function verdictOf(all: readonly Validated[]): Outcome {
  const bad = all.filter(({ kind }) => kind !== null);
  const worst = bad.toSorted((a, b) => badness(b) - badness(a))[0];
  if (worst === undefined || worst.kind === null) return success({}, { route: 'completed' });
  const said = (one: Validated): string => `${one.record.id}: ${one.record.message}`;
  const message =
    bad.length === 1 ? said(worst) : `${bad.length} of ${all.length} validators failed; ${bad.map(said).join('; ')}`;
  return failed(worst.kind, message, { code: worst.record.exit_code, output: worst.output });
}

function badness({ record }: Validated): number {
  return BY_BADNESS.indexOf(record.outcome);
}

const BY_BADNESS: readonly Mechanical[] = ['completed', 'error', 'killed_policy', 'killed_idle', 'killed_timeout'];

function mechanical(outcome: Outcome): Mechanical {
  return outcome.kind === 'success' ? 'completed' : (OUTCOME_OF[outcome.failure.kind] ?? 'error');
}

/** The first that has its form is the step's; goldens that any of them proposes count. */
function reportsOf(all: readonly Validated[]): {
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

/** By this validator, in passes before. */
function collectedBy(earlier: readonly Visit[], id: string): readonly CollectedArtifact[] {
  return earlier
    .flatMap(({ outputs }) => listIn(outputs, 'validators'))
    .filter((record) => record['id'] === id)
    .flatMap((record) => listIn(record, 'artifacts')) as readonly unknown[] as readonly CollectedArtifact[];
}

function listIn(map: JsonMap, key: string): readonly JsonMap[] {
  const list = own(map, key);
  return Array.isArray(list) ? (list as readonly Json[]).filter((one) => isJsonMap(one)) : [];
}

function withOutputs(outcome: Outcome, outputs: Outputs): Outcome {
  if (outcome.kind === 'success') return { ...outcome, outputs };
  return { kind: 'failure', failure: { ...outcome.failure, outputs } };
}
