// The evaluation of a run, by an agent or by a command.
//
// evaluation/1  Everything that the evaluator is shown is one document, which is stored with the visit.
// evaluation/2  Its answer must have the required form (planner-answer.ts), and means nothing beyond it. An agent is
//               told what is wrong and asked again in the same session; a command would only repeat itself.
// evaluation/3  The history of the run overrides its answer (escalation.ts). Both are recorded.
// evaluation/4  An evaluator must not change anything: a change in the worktree is a violation, and forces `unsafe`.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Json, JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { DecisionInspection, EvidenceInspection } from '../../ir/conducted.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import { overBudget, promptOf, recordTurn, reportIn, responseOf } from './agent-turn.ts';
import { visitFolder } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { done, earlierVisits, failed, folderOf, stepOf, valueOf, withOutputs } from './context.ts';
import type { StepRecord, Task, Visit } from './context.ts';
import { escalate, openViolations, partialsInARow, pendingGoldens } from './escalation.ts';
import { contradictionsTo, evidenceOf, plannerPrompt } from './evidence.ts';
import { reportOf } from './inputs.ts';
import { changeSummary } from './inspect-worktree.ts';
import type { After, Before } from './inspect-worktree.ts';
import { checkPolicy, READ_ONLY } from './policy-check.ts';
import type { Violation } from './policy-check.ts';
import { readAnswer } from './planner-answer.ts';
import type { PlannerAnswer } from './planner-answer.ts';
import { sentence, snapshotName } from './workspace.ts';

export async function gatherEvidence(task: Task, { agent, allowedNext, hints }: EvidenceInspection): Promise<Outcome> {
  const { context } = task;
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const { git } = opened.value;
  let diff: JsonMap | null = null;
  if (git !== null) {
    const changes = await git.changes({ kind: 'commit', commit: git.base }, snapshotName(task.visit));
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
  const visit = visitFolder(task);
  const shown = visit.writeJson('runner_metadata', 'evidence.json', evidence);
  const outputs = {
    file: join(context.runDir, shown.path),
    evidence: shown.path,
    contradictions: evidence.contradictions,
  };
  if (agent === null) return done(task, { ...outputs, artifacts: visit.artifacts });
  const prompt = await promptOf(task, agent, opened.value);
  if (!prompt.ok) return failed('unresolved', prompt.error);
  const whole = plannerPrompt(prompt.value, JSON.stringify(evidence, null, 2), allowedNext);
  return done(task, { ...outputs, prompt: whole, artifacts: visit.artifacts });
}

export function decide(task: Task, spec: DecisionInspection): Outcome {
  const [before, asked] = [stepOf(task, 'snapshot'), stepOf(task, 'ask')];
  const after = valueOf(task, stepOf(task, 'inspect'), 'after') as After | null;
  const violations =
    after === null ? [] : violationsIn(task, valueOf(task, before, 'before') as unknown as Before, after);
  const outputs = { violations: violations.slice(0, VIOLATIONS_MAX), head: after?.head ?? null };
  const gathered = stepOf(task, 'gather').outputs['artifacts'] as readonly Json[];
  try {
    const visit = visitFolder(task);
    recordAnswer(task, visit, asked, spec);
    const outcome = judge(task, spec, { visit, asked, violations });
    return withOutputs(outcome, { ...outputs, artifacts: [...gathered, ...visit.artifacts] });
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    const problem = `what it does cannot be recorded: ${error.message}`;
    const [first] = violations;
    if (first === undefined) return failed('refused', problem, { outputs });
    return failed('policy', `the policy was violated: ${first.message}; and ${problem}`, { outputs });
  }
}

const VIOLATIONS_MAX = 200;

function violationsIn({ context }: Task, before: Before, after: After): readonly Violation[] {
  return checkPolicy(READ_ONLY, { ...after, before, after, denied: 0 }, context.settings.protectedBranches);
}

function recordAnswer(task: Task, visit: VisitFolder, asked: StepRecord, { agent }: DecisionInspection): void {
  if (agent !== null) return recordTurn(task, visit, asked, agent);
  const { path } = folderOf(task.context, asked);
  for (const name of ['stdout', 'stderr']) {
    if (existsSync(join(path, name))) visit.copy('runner_transcript', `${name}.log`, join(path, name));
  }
}

interface Judging {
  readonly visit: VisitFolder;
  readonly asked: StepRecord;
  /** Changes made by the evaluator itself. */
  readonly violations: readonly Violation[];
}

function judge(task: Task, spec: DecisionInspection, judging: Judging): Outcome {
  const { agent, allowedNext } = spec;
  const { asked, violations } = judging;
  const text = responseOf(task, asked);
  const answer = text.ok ? readAnswer(text.value, allowedNext) : err({ message: text.error, reprompt: null });
  const [violation] = violations;
  if (violation !== undefined && !answer.ok) {
    return failed('policy', `an evaluator only judges: ${violation.message}`);
  }
  // Its cost has already been counted.
  if (asked.failure !== null) return { kind: 'failure', failure: { ...asked.failure, usage: null } };
  const spent = agent === null ? null : overBudget(asked.usage, agent.limits);
  if (spent !== null) return failed('budget', `the budget is spent: ${spent}`);
  if (answer.ok) return decided(task, spec, judging, answer.value);
  const { message, reprompt } = answer.error;
  const said = text.ok ? text.value.slice(-SAID_MAX).trim() : '';
  return failed('protocol', message, { reprompt: agent === null ? null : reprompt, output: said === '' ? null : said });
}

const SAID_MAX = 4_096;

function decided(task: Task, spec: DecisionInspection, { visit, violations }: Judging, answer: PlannerAnswer): Outcome {
  const history: readonly Visit[] = earlierVisits(task);
  const own = violations.length > 0 ? [task.visit] : [];
  const { status, escalations } = escalate(answer.status, {
    violations: [...openViolations(history).map(({ id }) => id), ...own],
    goldens: pendingGoldens(history),
    partials: partialsInARow(history, visit.step),
    partialMax: spec.partialMax,
  });
  const { evidence = null, contradictions: found } = stepOf(task, 'gather').outputs;
  const contradictions = [...(found as readonly string[]), ...contradictionsTo(answer.status, history)];
  const { status: planned, ...said } = answer;
  const outputs = { status, planner_status: planned, ...said, escalations, contradictions };
  visit.writeJson('planner_decision', 'planner_decision.json', { ...outputs, answer, violations, evidence });
  return success(outputs, { route: status });
}
