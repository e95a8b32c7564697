// The verdict on an agent's turn, by what the engine saw itself.
//
// run-agent/1  A policy violation is a failure of kind `policy` and comes before all others, whatever the outcome of
//              the turn and whatever the agent says.
// run-agent/2  A turn over its budget is a failure of kind `budget`.
// run-agent/3  Agents may write to the folder of a visit's files. An agent that blocks it, by a link or by permissions,
//              is judged nevertheless.

import type { Json, JsonMap } from '../../base/json.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { PolicyInspection } from '../../ir/conducted.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import type { Failure, FailureKind } from '../../ir/failure.ts';
import { failure } from '../../ir/failure.ts';
import { overBudget, recordTurn } from './agent-turn.ts';
import { visitFolder } from './artifacts.ts';
import type { Artifact } from './artifacts.ts';
import { stepOf, valueOf } from './context.ts';
import type { StepRecord, Task } from './context.ts';
import { changeSummary, writtenSince } from './inspect-worktree.ts';
import type { After, Before } from './inspect-worktree.ts';
import { checkPolicy, policyRecord } from './policy-check.ts';
import type { Violation } from './policy-check.ts';

export function judgeTurn(task: Task, { agent, policy: { requested, effective } }: PolicyInspection): Outcome {
  const { context } = task;
  const turn = stepOf(task, 'turn');
  const before = valueOf(task, stepOf(task, 'snapshot'), 'before') as Before | null;
  const after = valueOf(task, stepOf(task, 'inspect'), 'after') as After | null;
  const violations = checkPolicy(effective, conductOf(turn, before, after), context.settings.protectedBranches);
  const policy = { requested: requested === null ? null : policyRecord(requested), effective: policyRecord(effective) };
  const summary = {
    ...policy,
    violations,
    // The agent is told; it cannot be enforced here.
    not_enforced: [...(effective.network === 'deny' ? ['network'] : []), ...(after === null ? ['execution'] : [])],
  };
  const recorded = record(task, turn, agent, summary);
  const seen: JsonMap = {
    policy,
    violations: violations.slice(0, VIOLATIONS_MAX),
    run_files: writtenSince(context.runDir, before?.at ?? turn.startedAt ?? 0),
    ...(after === null ? {} : { changes: changeSummary(after.changes), head: after.head, tree: after.tree }),
    artifacts: recorded.artifacts,
  };
  const fault = faultOf(
    turn,
    violations,
    overBudget(turn.failure?.usage ?? turn.usage, agent.limits),
    recorded.problem,
  );
  if (fault !== null) return { kind: 'failure', failure: { ...fault, outputs: { ...fault.outputs, ...seen } } };
  return success({ ...turn.outputs, ...seen, witness: null }, { route: 'completed', kept: turn.kept });
}

const VIOLATIONS_MAX = 200;

/** Null if it completed within its limits. Its cost has already been counted. */
function faultOf(
  { failure: problem }: StepRecord,
  [first, ...more]: readonly Violation[],
  spent: string | null,
  unrecorded: string | null,
): Failure | null {
  const also = unrecorded === null ? '' : `; and ${unrecorded}`;
  if (first !== undefined) {
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
    return failure('policy', `the policy was violated: ${first.message}${others}${also}`);
  }
  if (unrecorded !== null) return failure('refused', unrecorded);
  const wasEnded = problem !== null && ENDED.has(problem.kind);
  if (spent !== null && !wasEnded) return failure('budget', `the budget is spent: ${spent}`);
  return problem === null ? null : { ...problem, usage: null };
}

/** The reason why we ended it matters more than its cost. */
const ENDED: ReadonlySet<FailureKind> = new Set(['stopped', 'timeout', 'idle', 'lost']);

function conductOf({ failure: problem, outputs }: StepRecord, before: Before | null, after: After | null) {
  const denied = problem === null ? outputs['denied'] : 0;
  const nowhere = { head: null, branch: null };
  return {
    changes: after?.changes ?? [],
    before: before ?? nowhere,
    after: after ?? nowhere,
    hidden: after?.hidden ?? [],
    moved: after?.moved ?? [],
    tampered: after?.tampered ?? [],
    denied: typeof denied === 'number' ? denied : 0,
  };
}

interface Recorded {
  readonly artifacts: readonly Artifact[];
  /** Why some files could not be stored: a clause. */
  readonly problem: string | null;
}

function record(task: Task, turn: StepRecord, agent: PolicyInspection['agent'], summary: Json): Recorded {
  try {
    const visit = visitFolder(task);
    recordTurn(task, visit, turn, agent);
    const inspected = stepOf(task, 'inspect');
    const { patch = null } = inspected.outputs;
    if (typeof patch === 'string')
      visit.copy('workspace_diff', 'workspace.patch', task.context.run.files.localPath(patch));
    else if (patch === null && inspected.outputs['after'] !== null)
      visit.write('workspace_diff', 'workspace.patch', '');
    const status = valueOf(task, inspected, 'status');
    if (status !== null) visit.writeJson('workspace_status', 'workspace_status.json', status);
    visit.writeJson('policy_summary', 'policy_summary.json', summary);
    return { artifacts: visit.artifacts, problem: null };
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    return { artifacts: [], problem: `what it does cannot be recorded: ${error.message}` };
  }
}
