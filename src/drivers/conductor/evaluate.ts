// A judgement of what a run has come to, by an agent or by a command.
//
// J1  All that it is shown is one document, which is kept with the visit, as is all that it is told.
// J2  Its answer is held to its form (planner-answer.ts), and means nothing beyond it. An agent is told what is wrong with
//     it and asked again in the same session; a command would say the same again.
// J3  What has happened in the run stands above what it says (escalation.ts). Both are recorded.
// J4  It only judges: if something has changed in the worktree, that is a violation like any other, and forces `unsafe`.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatDuration } from '../../base/time.ts';
import { success } from '../../ir/effect.ts';
import type { Effect, Outcome, Success } from '../../ir/effect.ts';
import type { EvaluateSpec } from '../../ir/conducted.ts';
import { shellWord } from '../../ir/quote.ts';
import { stepFolder } from '../step-folder.ts';
import { visitFolder } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { ask, earlierVisits, failed, isUnfinished, mechanical, withOutputs } from './asking.ts';
import type { Answered } from './asking.ts';
import type { OpcodeContext, OpenWorkspace, Perform, Performance, Visit } from './context.ts';
import { escalate, openViolations, partialsInARow, pendingGoldens } from './escalation.ts';
import { contradictionsTo, evidenceOf, plannerPrompt } from './evidence.ts';
import type { Evidence } from './evidence.ts';
import { reportOf } from './inputs.ts';
import { Limits } from './limits.ts';
import { changeSummary, endLeft, lookAfter, lookBefore } from './looks.ts';
import type { Before } from './looks.ts';
import { checkPolicy, LOOK_ONLY } from './policy-check.ts';
import type { Violation } from './policy-check.ts';
import { readAnswer } from './planner-answer.ts';
import type { PlannerAnswer } from './planner-answer.ts';
import { leaveRunner, overspent, promptOf, reportIn, responseOf, sessionOf, turnOf, usageOf } from './prompting.ts';
import { judgedThough } from './unkept.ts';
import { sentence, snapshotName } from './workspace.ts';

export const performEvaluate: Perform<EvaluateSpec> = (context, performance) =>
  judgedThough(context, performance.effect, LOOK_ONLY, () => perform(context, performance));

const perform: Perform<EvaluateSpec> = async (context, performance) => {
  const visit = visitFolder(context, performance.effect);
  const { outcome, stop } = await evaluate(context, performance, visit);
  if (isUnfinished({ outcome, stop })) return outcome;
  const status = outcome.kind === 'success' ? (outcome.route as PlannerAnswer['status']) : mechanical(outcome, stop);
  visit.writeManifest({ opcode: 'EVALUATE', outcome: status });
  return withOutputs(outcome, { artifacts: visit.artifacts });
};

async function evaluate(
  context: OpcodeContext,
  performance: Performance<EvaluateSpec>,
  visit: VisitFolder,
): Promise<Answered> {
  const { effect, spec } = performance;
  const unbegun = (outcome: Outcome): Answered => ({ outcome, stop: null });
  const opened = await context.workspace.open();
  if (!opened.ok) return unbegun(failed('refused', opened.error));
  const open = opened.value;
  const before = open.git === null ? ok(null) : await lookBefore(open.git, context, effect);
  if (!before.ok) return unbegun(failed('refused', sentence(before.error)));
  const history = earlierVisits(context, effect);
  const evidence = await gather(context, performance, open, history);
  if (!evidence.ok) return unbegun(failed('refused', evidence.error));
  const shown = visit.writeJson('runner_metadata', EVIDENCE, evidence.value);

  const judging: Judging = { context, performance, visit, open, evidence: evidence.value, shown: shown.path };
  const { evaluator } = spec;
  const asked = await (evaluator.kind === 'agent' ? askAgent(judging, evaluator) : askCommand(judging, evaluator));
  if (!asked.ok) return unbegun(failed('unresolved', asked.error));
  if (isUnfinished(asked.value)) return asked.value;
  const seen = await seenAfter(judging, before.value);
  if (!seen.ok) return { ...asked.value, outcome: failed('refused', seen.error) };
  const { violations, head } = seen.value;
  const outcome = judge(judging, asked.value.outcome, { history, violations });
  const outputs = { violations: violations.slice(0, VIOLATIONS_MAX), head };
  return { ...asked.value, outcome: withOutputs(outcome, outputs) };
}

const EVIDENCE = 'evidence.json';
const VIOLATIONS_MAX = 200;

interface Judging {
  readonly context: OpcodeContext;
  readonly performance: Performance<EvaluateSpec>;
  readonly visit: VisitFolder;
  readonly open: OpenWorkspace;
  readonly evidence: Evidence;
  /** The file that has it, seen from the run's directory. */
  readonly shown: string;
}

type Evaluator = EvaluateSpec['evaluator'];

async function gather(
  context: OpcodeContext,
  { effect, spec }: Performance<EvaluateSpec>,
  { git }: OpenWorkspace,
  history: readonly Visit[],
): Promise<Result<Evidence, string>> {
  let diff: JsonMap | null = null;
  if (git !== null) {
    const changes = await git.changes({ kind: 'commit', commit: git.base }, snapshotName(effect.step));
    if (!changes.ok) return err(sentence(changes.error));
    diff = { base: git.base, ...changeSummary(changes.value) };
  }
  const path = reportOf(history);
  const report = path === null ? ok(null) : reportIn(context, path);
  return ok(
    evidenceOf({
      runId: context.run.runId,
      visit: effect.step,
      allowedNext: spec.allowedNext,
      hints: spec.hints,
      history,
      diff,
      report: report.ok ? report.value : { unreadable: report.error },
    }),
  );
}

async function askAgent(
  { context, performance, visit, open, evidence }: Judging,
  evaluator: Extract<Evaluator, { kind: 'agent' }>,
): Promise<Result<Answered, string>> {
  const { effect, spec } = performance;
  const { allowedNext, reprompt } = spec;
  const asked = { ...evaluator, hints: spec.hints };
  const told = (prompt: string): string => {
    const whole = plannerPrompt(prompt, JSON.stringify(evidence, null, 2), allowedNext);
    if (reprompt === null) return whole;
    // The session of the attempt before knows the rest, where there is one.
    return effect.session.kind === 'resume' ? reprompt : `${whole}\n\n${reprompt}`;
  };
  const prompt = await promptOf(context, effect, asked, { open, visit, told });
  if (!prompt.ok) return prompt;
  const turn = turnOf(effect, asked, { prompt: prompt.value, cwd: open.folder });
  const answered = await ask(context.turn, turn, performance);
  if (isUnfinished(answered)) return ok(answered);
  await endLeft(context.run, turn);
  leaveRunner(visit, context, { effect: turn, asked, outcome: answered.outcome });
  return ok(answered);
}

async function askCommand(
  { context, performance, visit, open, shown }: Judging,
  { command: asked, idleMs }: Extract<Evaluator, { kind: 'command' }>,
): Promise<Result<Answered, string>> {
  const { effect } = performance;
  const file = join(context.runDir, shown);
  const command: Effect = {
    ...effect,
    spec: {
      kind: 'command',
      script: `sh -c ${shellWord(asked)} < ${shellWord(file)}`,
      cwd: open.folder,
      env: { MEOW_EVIDENCE: file },
      captures: [{ name: 'result', from: { kind: 'stdout' }, type: 'string', required: true }],
      verdict: 'success',
      errors: [],
      steering: null,
    },
  };
  const { path } = stepFolder(context.run.files, effect.step, effect.attempt);
  let isSilent = false;
  const answer = ask(context.command, command, performance);
  const limits = new Limits({
    timeMs: null,
    idleMs,
    files: [join(path, 'stdout'), join(path, 'stderr')],
    reached() {
      isSilent = true;
      context.command.stop(command.id, { force: false, why: 'timeout' });
    },
  });
  const { outcome, stop } = await answer;
  limits.close();
  await endLeft(context.run, command);
  for (const name of ['stdout', 'stderr']) {
    if (existsSync(join(path, name))) visit.copy('runner_transcript', `${name}.log`, join(path, name));
  }
  if (outcome.kind === 'success' || outcome.failure.kind !== 'stopped' || stop !== null) return ok({ outcome, stop });
  if (isSilent)
    return ok({ outcome: failed('idle', `the evaluator was silent for ${formatDuration(idleMs ?? 0)}`), stop });
  // We ended it in an earlier life of the engine, and did not come to say so.
  return ok({ outcome: failed('lost', outcome.failure.message), stop });
}

async function seenAfter(
  { context, performance, open }: Judging,
  before: Before | null,
): Promise<Result<{ readonly violations: readonly Violation[]; readonly head: string | null }, string>> {
  if (open.git === null || before === null) return ok({ violations: [], head: null });
  const after = await lookAfter(open.git, context, performance.effect, before);
  if (!after.ok) return err(`what the evaluator has changed cannot be seen: ${sentence(after.error)}`);
  const { head } = after.value;
  const conduct = { ...after.value, before, after: after.value, denied: 0 };
  return ok({ violations: checkPolicy(LOOK_ONLY, conduct, context.settings.protectedBranches), head });
}

interface Known {
  readonly history: readonly Visit[];
  /** What the evaluator itself has done. */
  readonly violations: readonly Violation[];
}

function judge(judging: Judging, outcome: Outcome, known: Known): Outcome {
  const { context, performance } = judging;
  const { evaluator, allowedNext } = performance.spec;
  const costs = { session: sessionOf(outcome), usage: usageOf(outcome) };
  const text = responseOf(outcome, context.run.files);
  const answer = text.ok ? readAnswer(text.value, allowedNext) : err({ message: text.error, reprompt: null });
  const [violation] = known.violations;
  if (violation !== undefined && !answer.ok) {
    return failed('policy', `an evaluator only judges: ${violation.message}`, costs);
  }
  if (outcome.kind === 'failure') return outcome;
  const spent = evaluator.kind === 'agent' ? overspent(outcome.usage, evaluator.limits) : null;
  if (spent !== null) return failed('budget', `the budget is spent: ${spent}`, costs);
  if (answer.ok) return decided(judging, answer.value, known, costs);
  const { message, reprompt } = answer.error;
  const said = text.ok ? text.value.slice(-SAID_MAX).trim() : '';
  const told = evaluator.kind === 'agent' ? reprompt : null;
  return failed('protocol', message, { ...costs, reprompt: told, output: said === '' ? null : said });
}

const SAID_MAX = 4_096;

function decided(
  { performance, visit, evidence, shown }: Judging,
  answer: PlannerAnswer,
  { history, violations }: Known,
  costs: Pick<Success, 'session' | 'usage'>,
): Outcome {
  const { effect, spec } = performance;
  const own = violations.length > 0 ? [effect.step] : [];
  const { status, escalations } = escalate(answer.status, {
    violations: [...openViolations(history).map(({ id }) => id), ...own],
    goldens: pendingGoldens(history),
    partials: partialsInARow(history, visit.step),
    partialMax: spec.partialMax,
  });
  const contradictions = [...evidence.contradictions, ...contradictionsTo(answer.status, history)];
  const { status: planned, ...said } = answer;
  const outputs = { status, planner_status: planned, ...said, escalations, contradictions };
  visit.writeJson('planner_decision', 'planner_decision.json', {
    ...outputs,
    answer,
    violations,
    evidence: shown,
  });
  return success(outputs, { route: status, ...costs });
}
