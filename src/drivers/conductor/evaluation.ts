// The evaluation of a run, by an agent or by a command.
//
// evaluation/1  Everything that the evaluator is shown is one document, which is stored with the visit.
// evaluation/2  Its answer must have the required form (evidence.ts), and means nothing beyond it. An agent is
//               told what is wrong and asked again in the same session; a command would only repeat itself.
// evaluation/3  The history of the run overrides its answer (escalation.ts). Both are recorded.
// evaluation/4  An evaluator must not change anything: a change in the worktree is a violation, and forces `unsafe`.

import { join } from 'node:path';

import { err, ok } from '../../base/errors.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import type { DecisionInspection, EvidenceInspection } from '../../ir/conductor.ts';
import { type Outcome, success } from '../../ir/effect.ts';
import { failed } from '../outputs.ts';
import { stepFile } from '../step-folder.ts';
import { VisitFolder } from './artifacts.ts';
import { done, earlierVisits, folderOf, outputOf, stepOf, type Task, unrecorded, withOutputs } from './context.ts';
import { escalate, openViolations, partialsInARow, pendingGoldens } from './escalation.ts';
import { contradictionsTo, evidenceOf, type PlannerAnswer, plannerPrompt, readAnswer } from './evidence.ts';
import { reportOf } from './inputs.ts';
import { type After, type Before, changeSummary } from './inspect-worktree.ts';
import { checkPolicy, READ_ONLY, type Violation, VIOLATIONS_MAX } from './policy-check.ts';
import { overBudget, promptOf, recordTurn, reportIn, responseOf } from './run-agent.ts';
import { sentence } from './workspace.ts';

export async function gatherEvidence(task: Task, { agent, allowedNext, hints }: EvidenceInspection): Promise<Outcome> {
  const { context } = task;
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const { git, start } = opened.value;
  let diff: JsonMap | null = null;
  if (git !== null) {
    const changes = await git.changes(start, outputOf(task, 'snapshot', 'before') as Before);
    if (!changes.ok) return failed('refused', sentence(changes.error));
    diff = { base: git.base, ...changeSummary(changes.value) };
  }
  const history = earlierVisits(task);
  const path = reportOf(history);
  const report = path === null ? ok(null) : reportIn(context, path);
  const evidence = evidenceOf({
    runId: context.run.runId,
    visit: task.visit,
    allowedNext,
    hints,
    history,
    diff,
    report: report.ok ? report.value : { unreadable: report.error },
  });
  const visit = new VisitFolder(task);
  const shown = visit.writeJson('runner_metadata', 'evidence.json', evidence);
  const { contradictions } = evidence;
  const outputs = { file: join(context.runDir, shown.path), evidence: shown.path, contradictions };
  if (agent === null) return done(task, { ...outputs, artifacts: visit.artifacts });
  const prompt = await promptOf(task, agent, opened.value);
  if (!prompt.ok) return failed('unresolved', prompt.error);
  const whole = plannerPrompt(prompt.value, JSON.stringify(evidence, null, 2), allowedNext);
  return done(task, { ...outputs, prompt: whole, artifacts: visit.artifacts });
}

export function decide(task: Task, spec: DecisionInspection): Outcome {
  const before = outputOf(task, 'snapshot', 'before') as Before;
  const after = outputOf(task, 'inspect', 'after') as After | null;
  const { protectedBranches } = task.context.settings;
  const violations =
    after === null ? [] : checkPolicy(READ_ONLY, { ...after, before, after, denied: 0 }, protectedBranches);
  const outputs = { violations: violations.slice(0, VIOLATIONS_MAX), head: after?.head ?? null };
  const gathered = stepOf(task, 'gather').outputs['artifacts'] as readonly Json[];
  try {
    const visit = new VisitFolder(task);
    recordAnswer(task, visit, spec);
    const outcome = judge(task, spec, visit, violations);
    return withOutputs(outcome, { ...outputs, artifacts: [...gathered, ...visit.artifacts] });
  } catch (error) {
    const problem = unrecorded(error);
    const [first] = violations;
    if (first === undefined) return failed('refused', problem, { outputs });
    return failed('policy', `the policy was violated: ${first.message}; and ${problem}`, { outputs });
  }
}

function recordAnswer(task: Task, visit: VisitFolder, { agent }: DecisionInspection): void {
  const evaluator = stepOf(task, 'ask');
  if (agent !== null) return recordTurn(task, visit, evaluator, agent);
  const folder = folderOf(task.context, evaluator);
  for (const name of ['stdout', 'stderr']) {
    visit.copyIfExists('runner_transcript', `${name}.log`, stepFile(folder, name));
  }
}

/** `violations`: changes made by the evaluator itself. */
function judge(task: Task, spec: DecisionInspection, visit: VisitFolder, violations: readonly Violation[]): Outcome {
  const { agent, allowedNext, partialMax } = spec;
  const evaluator = stepOf(task, 'ask');
  const text = responseOf(task, evaluator);
  const answer = text.ok ? readAnswer(text.value, allowedNext) : err({ message: text.error, reprompt: null });
  const [violation] = violations;
  if (violation !== undefined && !answer.ok) {
    return failed('policy', `an evaluator only judges: ${violation.message}`);
  }
  // Its cost has already been counted.
  if (evaluator.failure !== null) return { kind: 'failure', failure: { ...evaluator.failure, usage: null } };
  const spent = agent === null ? null : overBudget(evaluator.usage, agent.limits);
  if (spent !== null) return failed('budget', `the budget is spent: ${spent}`);
  if (!answer.ok) {
    const { message, reprompt } = answer.error;
    const output = text.ok ? text.value.slice(-SHOWN_MAX).trim() : '';
    return failed('protocol', message, { reprompt: agent === null ? null : reprompt, output: output || null });
  }
  const outputs = decisionBy(task, answer.value, partialMax, violations.length > 0);
  const { evidence = null } = stepOf(task, 'gather').outputs;
  const record = { ...outputs, answer: answer.value, violations, evidence };
  visit.writeJson('planner_decision', 'planner_decision.json', record);
  return success(outputs, { route: outputs.status });
}

const SHOWN_MAX = 4_096;

/** The planner's answer, corrected by the history of the run. */
function decisionBy(task: Task, answer: PlannerAnswer, partialMax: number, isViolated: boolean) {
  const { status: planned, ...others } = answer;
  const history = earlierVisits(task);
  const { status, escalations } = escalate(planned, {
    violations: [...openViolations(history).map(({ id }) => id), ...(isViolated ? [task.visit] : [])],
    goldens: pendingGoldens(history),
    partials: partialsInARow(history, task.step),
    partialMax,
  });
  const found = stepOf(task, 'gather').outputs['contradictions'] as readonly string[];
  const contradictions = [...found, ...contradictionsTo(planned, history)];
  return { status, planner_status: planned, ...others, escalations, contradictions };
}
