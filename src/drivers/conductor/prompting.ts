// A turn of an agent on behalf of a step: what it is told, with all that it is given, and what it leaves for people. Its
// attempt is that of the step, under the same name, so that its output is found where the output of a step is.

import type { RunFiles } from '../../engine/ports.ts';
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ABSENT, isErrno, REFUSED } from '../../sys/errno.ts';
import type { Json } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatMoment } from '../../base/time.ts';
import type { Effect, Outcome, TurnSpec } from '../../ir/effect.ts';
import type { Hints, PromptText, WorkLimits } from '../../ir/conducted.ts';
import { coerce } from '../../ir/output.ts';
import type { FilledText } from '../../ir/text.ts';
import type { Usage } from '../../ir/usage.ts';
import { readFileEnd } from '../../sys/read-file-end.ts';
import { readExit, readProcess, stepFolder } from '../step-folder.ts';
import { PROMPT } from '../agent/headless/turn-launcher.ts';
import { resolveText } from '../resolve-text.ts';
import { copyNew } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { earlierVisits } from './asking.ts';
import type { OpcodeContext, OpenWorkspace } from './context.ts';
import { fillPrompt, inputValues } from './inputs.ts';
import { sentence } from './workspace.ts';

export interface AgentAsked {
  readonly adapter: string;
  readonly model: string | null;
  readonly prompt: PromptText;
  readonly inputs: readonly string[];
  readonly limits: WorkLimits;
  readonly hints: Hints;
}

/** The effect for the driver of turns. */
export function turnOf(
  effect: Effect,
  asked: AgentAsked,
  told: { readonly prompt: string; readonly cwd: string },
): Effect {
  const { adapter, model, limits } = asked;
  const words = { adapter, model, ...told, effort: null, idleMs: limits.idleMs };
  const spec: TurnSpec<FilledText> = { kind: 'turn', ...words, steering: null };
  return { ...effect, spec };
}

/**
 * The prompt with all that it is given, as `told` completes it. What has been begun in an earlier life of the engine was told
 * what it was told. An error is a sentence.
 */
export async function promptOf(
  context: OpcodeContext,
  effect: Effect,
  asked: AgentAsked,
  around: { readonly open: OpenWorkspace; readonly visit: VisitFolder; readonly told: (prompt: string) => string },
): Promise<Result<string, string>> {
  const { path } = stepFolder(context.run.files, effect.step, effect.attempt);
  const file = join(path, PROMPT);
  const hasBegun = readProcess({ path, inRun: '' }).kind !== 'absent';
  if (hasBegun && existsSync(file)) return ok(readFileSync(file, 'utf8'));
  const { open, visit, told } = around;
  const values = await inputValues(asked.prompt, asked.inputs, {
    runId: context.run.runId,
    runDir: context.runDir,
    worktree: open.folder,
    step: visit.step,
    hints: asked.hints,
    history: earlierVisits(context, effect),
    diff: () => diffOf(open, visit, dirname(path)),
    report: (report) => reportIn(context, report),
    transcript: (transcript) => reading(join(context.runDir, transcript), (name) => readFileEnd(name, SHOWN_BYTES_MAX)),
    kept: (name) => resolveText([{ file: name, quote: [] }], context.run.files),
  });
  const filled = fillPrompt(asked.prompt, asked.inputs, values);
  return filled.ok ? ok(told(filled.value)) : filled;
}

/** As JSON. `path`: seen from the run's directory. */
export function reportIn({ runDir }: OpcodeContext, path: string): Result<Json, string> {
  const file = join(runDir, path);
  const text = reading(file, (name) => beginningOf(name, REPORT_BYTES_MAX));
  const value = text.ok ? coerce(text.value, 'json') : text;
  if (value.ok) return value;
  const isCut = text.ok && statSync(file).size > REPORT_BYTES_MAX;
  return err(`the harness report ${file} cannot be shown: ${isCut ? 'it has more than 1 MB' : value.error}`);
}

/** Of an agent, or of what stands in its place. */
export function usageOf(outcome: Outcome): Usage | null {
  return outcome.kind === 'success' ? outcome.usage : outcome.failure.usage;
}

export function sessionOf(outcome: Outcome): string | null {
  return outcome.kind === 'success' ? outcome.session : outcome.failure.session;
}

/** Why it has cost more than it may: a sentence; null where it has not, or does not tell. */
export function overspent(usage: Usage | null, { tokensMax, usdMax }: WorkLimits): string | null {
  const { tokens = null, usd = null } = usage ?? {};
  if (tokens !== null && tokensMax !== null && tokens > tokensMax) {
    return `it used ${tokens} tokens, and may use ${tokensMax}`;
  }
  return usd !== null && usdMax !== null && usd > usdMax ? `it cost ${usd} USD, and may cost ${usdMax}` : null;
}

/** The text of its answer; an error is a sentence. */
export function responseOf(outcome: Outcome, files: RunFiles): Result<string, string> {
  if (outcome.kind === 'failure') return err(outcome.failure.message);
  const { result } = outcome.outputs;
  if (!outcome.kept.includes('result')) return ok(typeof result === 'string' ? result : '');
  const file = typeof result === 'object' && result !== null && '$file' in result ? result['$file'] : null;
  return typeof file === 'string' ? resolveText([{ file, quote: [] }], files) : err('its answer was not kept');
}

/** Prompt, output, answer and what is known of the program, of which nothing is left running. */
export function leaveRunner(
  visit: VisitFolder,
  context: OpcodeContext,
  turn: { readonly effect: Effect; readonly asked: AgentAsked; readonly outcome: Outcome },
): void {
  const { effect, asked, outcome } = turn;
  const folder = stepFolder(context.run.files, effect.step, effect.attempt);
  const leave = (name: string, from: string): void => {
    if (existsSync(join(folder.path, from))) visit.copy('runner_transcript', name, join(folder.path, from));
  };
  leave('transcript.log', 'stdout');
  leave('stderr.log', 'stderr');
  leave('prompt.md', PROMPT);
  const response = responseOf(outcome, context.run.files);
  if (response.ok) visit.write('runner_final_response', 'final_response.md', response.value);
  const { adapter, model, prompt, inputs, limits } = asked;
  visit.writeJson('runner_metadata', 'runner_metadata.json', {
    adapter,
    model,
    prompt: { id: prompt.id, version: prompt.version, path: prompt.path },
    inputs,
    attempt: effect.attempt,
    session: sessionOf(outcome),
    usage: usageOf(outcome),
    limits: { idle_ms: limits.idleMs, max_tokens: limits.tokensMax, max_cost_usd: limits.usdMax },
    exit_code: readExit(folder),
    denied: outcome.kind === 'success' ? (outcome.outputs['denied'] ?? 0) : null,
    error: outcome.kind === 'success' ? null : { kind: outcome.failure.kind, message: outcome.failure.message },
    started_at: formatMoment(visit.startedAt),
    ended_at: formatMoment(Date.now()),
  });
}

const SHOWN_BYTES_MAX = 200_000;
const REPORT_BYTES_MAX = 1_000_000;

/** Written where no agent can have laid a link (artifacts.ts, A3), then shown beside what else the visit leaves. */
async function diffOf({ git }: OpenWorkspace, visit: VisitFolder, folder: string): Promise<Result<string, string>> {
  if (git === null) return err('the run works without git, so there is no diff');
  const file = join(folder, DIFF);
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
