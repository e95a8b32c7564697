// RUN_AGENT: the prompt of an agent's turn, and the verdict on it by what the engine saw itself.
//
// run-agent/1  A policy violation is a failure of kind `policy` and comes before all others, whatever the outcome of
//              the turn and whatever the agent says.
// run-agent/2  A turn over its budget is a failure of kind `budget`.
// run-agent/3  Agents may write to the folder of a visit's files. An agent that blocks it, by a link or by permissions,
//              is judged nevertheless.

import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { err, ok, type Result } from '../../base/errors.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { formatMoment } from '../../base/time.ts';
import type { AgentRequest, Policy, PolicyInspection, PromptInspection, WorkLimits } from '../../ir/conductor.ts';
import { type Outcome, success } from '../../ir/effect.ts';
import { failure, type Failure, type FailureKind } from '../../ir/failure.ts';
import { coerce, type Usage } from '../../ir/output.ts';
import { ABSENT, isErrno, REFUSED } from '../../sys/errors.ts';
import { makeFolder, readFileEnd } from '../../sys/files.ts';
import { PROMPT } from '../agent/headless/turn-launcher.ts';
import { answerText, failed, storedText } from '../outputs.ts';
import { readExit, stepFile } from '../step-folder.ts';
import { copyNew, VisitFolder } from './artifacts.ts';
import type { ConductorContext, OpenWorkspace, StepRecord, Task } from './context.ts';
import { done, earlierVisits, folderOf, outputOf, stepOf, unrecorded, withOutputs } from './context.ts';
import { readFileStart } from './entrypoint.ts';
import { fillPrompt, inputValues } from './inputs.ts';
import { checkPolicy, policyRecord, policyRules, type Violation, VIOLATIONS_MAX } from './policy-check.ts';
import { type After, type Before, changeSummary, sentence, writtenSince } from './workspace.ts';

export function judgeTurn(task: Task, { agent, policy: { requested, effective } }: PolicyInspection): Outcome {
  const { context } = task;
  const turn = stepOf(task, 'turn');
  const before = outputOf(task, 'snapshot', 'before') as Before | null;
  const after = outputOf(task, 'inspect', 'after') as After | null;
  const { denied = 0 } = turn.failure === null ? turn.outputs : {};
  const nowhere = { head: null, branch: null };
  const found = after ?? { changes: [], hidden: [], moved: [], tampered: [], ...nowhere };
  const conduct = {
    ...found,
    before: before ?? nowhere,
    after: found,
    denied: typeof denied === 'number' ? denied : 0,
  };
  const violations = checkPolicy(effective, conduct, context.settings.protectedBranches);
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
  const fault = faultOf(turn, violations, agent.limits, recorded.problem);
  if (fault !== null) return withOutputs({ kind: 'failure', failure: fault }, seen);
  return success({ ...turn.outputs, ...seen, witness: null }, { route: 'completed', kept: turn.kept });
}

/** Null if it completed within its limits. Its cost has already been counted. */
function faultOf(
  { failure: problem, usage }: StepRecord,
  [first, ...more]: readonly Violation[],
  limits: WorkLimits,
  unwritten: string | null,
): Failure | null {
  if (first !== undefined) {
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
    const also = unwritten === null ? '' : `; and ${unwritten}`;
    return failure('policy', `the policy was violated: ${first.message}${others}${also}`);
  }
  if (unwritten !== null) return failure('refused', unwritten);
  const spent = overBudget(problem?.usage ?? usage, limits);
  const wasEnded = problem !== null && ENDED.has(problem.kind);
  if (spent !== null && !wasEnded) return failure('budget', `the budget is spent: ${spent}`);
  return problem === null ? null : { ...problem, usage: null };
}

/** The reason why we ended it matters more than its cost. */
const ENDED: ReadonlySet<FailureKind> = new Set(['stopped', 'timeout', 'idle', 'lost']);

/** `problem`: why some files could not be stored, as a clause. */
function record(task: Task, turn: StepRecord, agent: AgentRequest, summary: Json) {
  try {
    const visit = new VisitFolder(task);
    recordTurn(task, visit, turn, agent);
    const { patch = null, after, unrecorded: problem = null } = stepOf(task, 'inspect').outputs;
    const { files } = task.context.run;
    if (typeof patch === 'string') visit.copy('workspace_diff', 'workspace.patch', files.localPath(patch));
    else if (patch === null && after !== null) visit.write('workspace_diff', 'workspace.patch', '');
    const status = outputOf(task, 'inspect', 'status');
    if (status !== null) visit.writeJson('workspace_status', 'workspace_status.json', status);
    visit.writeJson('policy_summary', 'policy_summary.json', summary);
    return { artifacts: visit.artifacts, problem: typeof problem === 'string' ? problem : null };
  } catch (error) {
    return { artifacts: [], problem: unrecorded(error) };
  }
}

export async function fillAgentPrompt(task: Task, { agent, policy }: PromptInspection): Promise<Outcome> {
  const { context } = task;
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const prompt = await promptOf(task, agent, opened.value);
  if (!prompt.ok) return failed('unresolved', prompt.error);
  return done(task, { prompt: workPrompt(prompt.value, policy, context, opened.value) });
}

/** With all inputs. */
export async function promptOf(task: Task, agent: AgentRequest, open: OpenWorkspace): Promise<Result<string, string>> {
  const { context } = task;
  const visit = new VisitFolder(task);
  const values = await inputValues(agent.prompt, agent.inputs, {
    runId: context.run.runId,
    runDir: context.runDir,
    worktree: open.folder,
    step: task.step,
    hints: agent.hints,
    history: earlierVisits(task),
    diff: () => diffOf(open, visit, stepFile(task.folder, DIFF)),
    report: (report) => reportIn(context, report),
    transcript: (transcript) => reading(join(context.runDir, transcript), (name) => readFileEnd(name, SHOWN_BYTES_MAX)),
    kept: (file) => storedText(file, context.run.files),
  });
  return fillPrompt(agent.prompt, agent.inputs, values);
}

function workPrompt(prompt: string, policy: Policy, context: ConductorContext, { folder, git }: OpenWorkspace): string {
  const rules = policyRules(policy, git === null ? [] : context.settings.protectedBranches);
  return [
    prompt.trimEnd(),
    '',
    '---',
    '',
    `Your working directory is ${folder}, ${git === null ? 'the folder of this run' : 'a git worktree of this run'}.`,
    `Put harnesses, reports and notes into ${context.runDir} (also in the variable MEOW_RUN_DIR).`,
    '',
    ...(policy.text.trim() === '' ? [] : [policy.text.trim(), '']),
    ...rules.map((rule) => `- ${rule}`),
    '',
  ].join('\n');
}

/** Reads JSON. `path` is relative to the run directory. */
export function reportIn({ runDir }: ConductorContext, path: string): Result<Json, string> {
  const file = join(runDir, path);
  const text = reading(file, (name) => readFileStart(name, REPORT_BYTES_MAX));
  const value = text.ok ? coerce(text.value, 'json') : text;
  if (value.ok) return value;
  const isCut = text.ok && statSync(file).size > REPORT_BYTES_MAX;
  return err(`the harness report ${file} cannot be shown: ${isCut ? 'it has more than 1 MB' : value.error}`);
}

/** Why the turn exceeds its budget: a sentence; null if it does not or its cost is unknown. */
export function overBudget(usage: Usage | null, { tokensMax, usdMax }: WorkLimits): string | null {
  const { tokens = null, usd = null } = usage ?? {};
  if (tokens !== null && tokensMax !== null && tokens > tokensMax) {
    return `it used ${tokens} tokens, and may use ${tokensMax}`;
  }
  return usd !== null && usdMax !== null && usd > usdMax ? `it cost ${usd} USD, and may cost ${usdMax}` : null;
}

/** The text of the answer; the error is a sentence. */
export function responseOf({ context }: Task, step: StepRecord): Result<string, string> {
  return step.failure === null ? answerText(step, context.run.files) : err(step.failure.message);
}

export function recordTurn(task: Task, visit: VisitFolder, turn: StepRecord, agent: AgentRequest): void {
  const folder = folderOf(task.context, turn);
  visit.copyIfExists('runner_transcript', 'transcript.log', stepFile(folder, 'stdout'));
  visit.copyIfExists('runner_transcript', 'stderr.log', stepFile(folder, 'stderr'));
  visit.copyIfExists('runner_transcript', 'prompt.md', stepFile(folder, PROMPT));
  const response = responseOf(task, turn);
  if (response.ok) visit.write('runner_final_response', 'final_response.md', response.value);
  const { adapter, model, prompt, inputs, limits } = agent;
  const { failure, usage, session, outputs, startedAt, endedAt } = turn;
  visit.writeJson('runner_metadata', 'runner_metadata.json', {
    adapter,
    model,
    prompt: { id: prompt.id, version: prompt.version, path: prompt.path },
    inputs,
    attempt: turn.attempt,
    session,
    usage: failure?.usage ?? usage,
    limits: { idle_ms: limits.idleMs, max_tokens: limits.tokensMax, max_cost_usd: limits.usdMax },
    exit_code: readExit(folder),
    denied: failure === null ? (outputs['denied'] ?? 0) : null,
    error: failure === null ? null : { kind: failure.kind, message: failure.message },
    started_at: startedAt === null ? null : formatMoment(startedAt),
    ended_at: endedAt === null ? null : formatMoment(endedAt),
  });
}

const SHOWN_BYTES_MAX = 200_000;
const REPORT_BYTES_MAX = 1_000_000;

/** Written where no agent can plant a link (artifacts/3), then linked beside the other files of the visit. */
async function diffOf(
  { git, start }: OpenWorkspace,
  visit: VisitFolder,
  file: string,
): Promise<Result<string, string>> {
  if (git === null) return err('the run works without git, so there is no diff');
  makeFolder(dirname(file));
  const written = await git.diff({ against: start, to: file });
  if (!written.ok) return err(sentence(written.error));
  const shown = visit.place(DIFF);
  copyNew(file, shown);
  const text = readFileStart(file, SHOWN_BYTES_MAX);
  const isCut = statSync(file).size > SHOWN_BYTES_MAX;
  return ok(isCut ? `${text}\n… (cut off here: the whole diff is in ${shown})\n` : text);
}

const DIFF = 'input_diff.patch';

function reading(path: string, read: (path: string) => string): Result<string, string> {
  try {
    return ok(read(path));
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return err(`${path} cannot be read (${error.code})`);
    throw error;
  }
}
