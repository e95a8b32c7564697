// A turn of an agent in the run's worktree, held to a policy.
//
// O1  The worktree is snapshotted before the turn (looks.ts, K1): that is where `pre_step` goes back to.
// O2  Whatever became of the turn, and whatever the agent says, the engine looks at what has changed. What the policy does
//     not allow is a failure of the kind `policy`; that stands before all others.
// O3  A turn that cost more than it may is a failure of the kind `budget`.
// O4  That it completed is believed where the step's witness bears it out.
// O5  What the turn has left running is ended before the step is answered.
//
// A turn that was lost, or stopped together with its run, is answered as it is: it is asked for again.

import { join } from 'node:path';
import { own } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import type { Policy, WorkSpec } from '../../ir/conducted.ts';
import { stepFolder } from '../step-folder.ts';
import { ask, failed, isUnfinished, mechanical, withOutputs } from './asking.ts';
import type { Answered } from './asking.ts';
import { visitFolder } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import type { OpcodeContext, OpenWorkspace, Perform, Performance } from './context.ts';
import { changeSummary, endLeft, lookAfter, lookBefore, writtenSince } from './looks.ts';
import type { After, Before } from './looks.ts';
import { checkPolicy, policyRecord, policyRules } from './policy-check.ts';
import type { Violation } from './policy-check.ts';
import { leaveRunner, overspent, promptOf, sessionOf, turnOf, usageOf } from './prompting.ts';
import type { AgentAsked } from './prompting.ts';
import { judgedThough } from './unkept.ts';
import { testify } from './witness.ts';
import { sentence } from './workspace.ts';

export const performWork: Perform<WorkSpec> = (context, performance) => {
  const { effect, spec } = performance;
  return judgedThough(context, effect, spec.policy.effective, () => perform(context, performance));
};

const perform: Perform<WorkSpec> = async (context, performance) => {
  const { effect } = performance;
  const visit = visitFolder(context, effect);
  const { outcome, stop } = await work(context, performance, visit);
  if (isUnfinished({ outcome, stop })) return outcome;
  visit.writeManifest({ opcode: 'RUN_AGENT', outcome: mechanical(outcome, stop) });
  const answer = withOutputs(outcome, { artifacts: visit.artifacts });
  return answer.kind === 'success' ? { ...answer, route: 'completed' } : answer;
};

async function work(context: OpcodeContext, performance: Performance<WorkSpec>, visit: VisitFolder): Promise<Answered> {
  const { effect, spec } = performance;
  const unbegun = (outcome: Outcome): Answered => ({ outcome, stop: null });
  const opened = await context.workspace.open();
  if (!opened.ok) return unbegun(failed('refused', opened.error));
  const open = opened.value;
  if (open.git === null && spec.policy.effective.access !== 'read_only') return unbegun(failed('refused', NO_GIT));
  const before = open.git === null ? ok(null) : await lookBefore(open.git, context, effect);
  if (!before.ok) return unbegun(failed('refused', sentence(before.error)));

  const asked: AgentAsked = { ...spec, prompt: spec.brief };
  const told = (prompt: string): string => workPrompt(prompt, spec.policy.effective, context, open);
  const prompt = await promptOf(context, effect, asked, { open, visit, told });
  if (!prompt.ok) return unbegun(failed('unresolved', prompt.error));

  const turn = turnOf(effect, asked, { prompt: prompt.value, cwd: open.folder });
  const answered = await ask(context.turn, turn, performance);
  if (isUnfinished(answered)) return answered;
  await endLeft(context.run, turn);
  leaveRunner(visit, context, { effect: turn, asked, outcome: answered.outcome });
  return judge(context, { performance, turn, open, before: before.value, answered, visit });
}

const NO_GIT =
  'the run works in a folder that is in no git repository, and this step may change files; ' +
  'run it in a repository, or give the step a policy with execution: read_only';

interface Work {
  readonly performance: Performance<WorkSpec>;
  readonly turn: Effect;
  readonly open: OpenWorkspace;
  readonly before: Before | null;
  readonly answered: Answered;
  readonly visit: VisitFolder;
}

async function judge(context: OpcodeContext, work: Work): Promise<Answered> {
  const { performance, answered, visit, before } = work;
  const { spec } = performance;
  const after = await seenAfter(context, work);
  if (!after.ok) {
    const costs = { session: sessionOf(answered.outcome), usage: usageOf(answered.outcome) };
    return {
      ...answered,
      outcome: failed('refused', `what the agent has changed cannot be seen: ${after.error}`, costs),
    };
  }

  const violations = violationsIn(context, work, after.value);
  const policy = {
    requested: spec.policy.requested === null ? null : policyRecord(spec.policy.requested),
    effective: policyRecord(spec.policy.effective),
  };
  visit.writeJson('policy_summary', 'policy_summary.json', {
    ...policy,
    violations,
    // An agent is told, and nothing more can be done about it here.
    not_enforced: [
      ...(spec.policy.effective.network === 'deny' ? ['network'] : []),
      ...(after.value === null ? ['execution'] : []),
    ],
  });
  const seen: JsonMap = {
    policy,
    violations: violations.slice(0, VIOLATIONS_MAX),
    run_files: writtenSince(context.runDir, before?.at ?? visit.startedAt),
    ...(after.value === null
      ? {}
      : { changes: changeSummary(after.value.changes), head: after.value.head, tree: after.value.tree }),
  };
  const fault = faultOf(spec, answered.outcome, violations);
  if (fault !== null) return { ...answered, outcome: withOutputs(fault, seen) };
  const { outcome, stop, testimony } = await testified(context, work, after.value);
  return { outcome: withOutputs(outcome, { ...seen, witness: testimony }), stop };
}

const VIOLATIONS_MAX = 200;

/** Null where it has completed and kept within its bounds. */
function faultOf(spec: WorkSpec, outcome: Outcome, violations: readonly Violation[]): Outcome | null {
  const costs = { session: sessionOf(outcome), usage: usageOf(outcome) };
  const [first] = violations;
  if (first !== undefined) {
    const more = violations.length - 1;
    const others = more === 0 ? '' : ` (and ${more} more)`;
    return failed('policy', `the policy was violated: ${first.message}${others}`, costs);
  }
  const wasEnded = outcome.kind === 'failure' && ENDED.has(outcome.failure.kind);
  const spent = wasEnded ? null : overspent(costs.usage, spec.limits);
  if (spent !== null) return failed('budget', `the budget is spent: ${spent}`, costs);
  return outcome.kind === 'failure' ? outcome : null;
}

/** Why we ended it says more than what it cost. */
const ENDED: ReadonlySet<string> = new Set(['stopped', 'idle', 'lost']);

async function seenAfter(context: OpcodeContext, work: Work): Promise<Result<After | null, string>> {
  const { open, turn, before, visit } = work;
  const { git } = open;
  if (git === null || before === null) return ok(null);
  const after = await lookAfter(git, context, turn, before);
  if (!after.ok) return err(sentence(after.error));
  if (after.value.changes.length === 0) {
    visit.write('workspace_diff', DIFF, '');
  } else {
    // Where no agent can have laid a link (artifacts.ts, A3).
    const file = join(stepFolder(context.run.files, turn.step, turn.attempt).path, DIFF);
    const diff = await git.diff({ against: before.commit, to: file });
    if (!diff.ok) return err(sentence(diff.error));
    visit.copy('workspace_diff', DIFF, file);
  }
  const status = await git.status();
  if (!status.ok) return err(sentence(status.error));
  visit.writeJson('workspace_status', 'workspace_status.json', status.value);
  return after;
}

const DIFF = 'workspace.patch';

function violationsIn(context: OpcodeContext, work: Work, after: After | null): readonly Violation[] {
  const { performance, before, answered } = work;
  const { outcome } = answered;
  const denied = outcome.kind === 'success' ? outcome.outputs['denied'] : 0;
  const nowhere = { head: null, branch: null };
  const conduct = {
    changes: after?.changes ?? [],
    before: before ?? nowhere,
    after: after ?? nowhere,
    hidden: after?.hidden ?? [],
    moved: after?.moved ?? [],
    tampered: after?.tampered ?? [],
    denied: typeof denied === 'number' ? denied : 0,
  };
  return checkPolicy(performance.spec.policy.effective, conduct, context.settings.protectedBranches);
}

function workPrompt(prompt: string, policy: Policy, context: OpcodeContext, { folder, git }: OpenWorkspace): string {
  const rules = policyRules(policy, git === null ? [] : context.settings.protectedBranches);
  return [
    prompt.trimEnd(),
    '',
    '---',
    '',
    `You work in ${folder}, which is ${git === null ? 'the folder of this run' : 'a git worktree of this run'}. What the step`,
    `leaves beside its work (harnesses, reports, notes) goes to ${context.runDir}, which MEOW_RUN_DIR names as well.`,
    '',
    ...(policy.text.trim() === '' ? [] : [policy.text.trim(), '']),
    ...rules.map((rule) => `- ${rule}`),
    '',
  ].join('\n');
}

/** That it completed is a claim until the witness has spoken, where one is demanded (O4). */
async function testified(
  context: OpcodeContext,
  { performance, answered }: Work,
  after: After | null,
): Promise<Answered & { readonly testimony: Json }> {
  const witness = own(performance.spec.witnesses, 'completed');
  if (witness === undefined) return { ...answered, testimony: null };
  const touched = (after?.changes ?? []).flatMap(({ path, from }) => (from === null ? [path] : [path, from]));
  const heard = await testify(context, performance, witness, touched);
  if (heard.ok) return { ...answered, testimony: heard.value };
  const { kind, message } = heard.error;
  const { outcome } = answered;
  const doubted = failed(kind, message, { session: sessionOf(outcome), usage: usageOf(outcome) });
  const stop = kind === 'stopped' ? await performance.asked.stopped : answered.stop;
  return { outcome: doubted, stop, testimony: kind === 'unproven' ? heard.error.testimony : null };
}
