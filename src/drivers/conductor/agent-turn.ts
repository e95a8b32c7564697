// An agent's turn for a step: its prompt with all inputs, and the files that it leaves for people.

import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, isErrno, REFUSED } from '../../sys/errno.ts';
import type { Json } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatMoment } from '../../base/time.ts';
import type { AgentRequest, Policy, PromptInspection, WorkLimits } from '../../ir/conducted.ts';
import type { Outcome } from '../../ir/effect.ts';
import { coerce } from '../../ir/output.ts';
import type { Usage } from '../../ir/usage.ts';
import { readFileEnd } from '../../sys/read-file-end.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readExit } from '../step-folder.ts';
import { PROMPT } from '../agent/headless/turn-launcher.ts';
import { resolveText } from '../resolve-text.ts';
import { copyNew, visitFolder } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { done, earlierVisits, failed, folderOf, ownFolder } from './context.ts';
import type { ConductorContext, OpenWorkspace, StepRecord, Task } from './context.ts';
import { fillPrompt, inputValues } from './inputs.ts';
import { policyRules } from './policy-check.ts';
import { sentence } from './workspace.ts';

export async function fillAgentPrompt(task: Task, { agent, policy }: PromptInspection): Promise<Outcome> {
  const { context } = task;
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const prompt = await promptOf(task, agent, opened.value);
  if (!prompt.ok) return failed('unresolved', prompt.error);
  return done(task, { prompt: workPrompt(prompt.value, policy, context, opened.value) });
}

/** With all inputs. The error is a sentence. */
export async function promptOf(task: Task, agent: AgentRequest, open: OpenWorkspace): Promise<Result<string, string>> {
  const { context } = task;
  const visit = visitFolder(task);
  const values = await inputValues(agent.prompt, agent.inputs, {
    runId: context.run.runId,
    runDir: context.runDir,
    worktree: open.folder,
    step: visit.step,
    hints: agent.hints,
    history: earlierVisits(task),
    diff: () => diffOf(open, visit, ownFolder(task).path),
    report: (report) => reportIn(context, report),
    transcript: (transcript) => reading(join(context.runDir, transcript), (name) => readFileEnd(name, SHOWN_BYTES_MAX)),
    kept: (name) => resolveText([{ file: name, quote: [] }], context.run.files),
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
  const text = reading(file, (name) => beginningOf(name, REPORT_BYTES_MAX));
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
export function responseOf({ context }: Task, { failure, outputs, kept }: StepRecord): Result<string, string> {
  if (failure !== null) return err(failure.message);
  const { result } = outputs;
  if (!kept.includes('result')) return ok(typeof result === 'string' ? result : '');
  const file = typeof result === 'object' && result !== null && '$file' in result ? result['$file'] : null;
  return typeof file === 'string'
    ? resolveText([{ file, quote: [] }], context.run.files)
    : err('its answer was not kept');
}

/** Prompt, output, answer and details of the program. */
export function recordTurn(task: Task, visit: VisitFolder, turn: StepRecord, agent: AgentRequest): void {
  const folder = folderOf(task.context, turn);
  const leave = (name: string, from: string): void => {
    if (existsSync(join(folder.path, from))) visit.copy('runner_transcript', name, join(folder.path, from));
  };
  leave('transcript.log', 'stdout');
  leave('stderr.log', 'stderr');
  leave('prompt.md', PROMPT);
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
async function diffOf({ git }: OpenWorkspace, visit: VisitFolder, folder: string): Promise<Result<string, string>> {
  if (git === null) return err('the run works without git, so there is no diff');
  const file = join(folder, DIFF);
  makeFolder(folder);
  const written = await git.diff({ against: git.base, to: file });
  if (!written.ok) return err(sentence(written.error));
  const shown = visit.place(DIFF);
  copyNew(file, shown);
  const text = beginningOf(file, SHOWN_BYTES_MAX);
  return ok(
    statSync(file).size <= SHOWN_BYTES_MAX ? text : `${text}\n… (cut off here: the whole diff is in ${shown})\n`,
  );
}

const DIFF = 'input_diff.patch';

function beginningOf(path: string, bytesMax: number): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.min(statSync(path).size, bytesMax));
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}

function reading(path: string, read: (path: string) => string): Result<string, string> {
  try {
    return ok(read(path));
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return err(`${path} cannot be read (${error.code})`);
    throw error;
  }
}
