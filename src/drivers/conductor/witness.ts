// Witnesses: a command that the engine runs itself in the worktree before an outcome counts. The testimony records the
// command, its result, the tree, and whether anybody changed what it depends on.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatDuration } from '../../base/time.ts';
import type { Witness, WitnessInspection } from '../../ir/conducted.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import { visitFolder } from './artifacts.ts';
import { failed, folderOf, stepOf, valueOf } from './context.ts';
import type { StepRecord, Task } from './context.ts';
import { globs } from './globs.ts';
import type { After } from './inspect-worktree.ts';

/** Format of a step's output `witness`. */
export type Testimony = {
  readonly command: string;
  readonly expected_exit_code: number;
  /** Null if it was killed. */
  readonly exit_code: number | null;
  readonly expected_output: string | null;
  /** Null if its output does not matter. */
  readonly output_fits: boolean | null;
  /** Line counts of its output, and matches of the expected pattern. */
  readonly counts: { readonly stdout_lines: number; readonly stderr_lines: number; readonly matches: number | null };
  /** Tree hash when it ran; null without git. */
  readonly tree: string | null;
  readonly depends_on: readonly string[];
  /** Changed files that it depends on. */
  readonly touched: readonly string[];
  readonly holds: boolean;
};

/** For a step that claims to have completed. */
export function judgeWitness(task: Task, { witness, of, run, inspect }: WitnessInspection): Outcome {
  const [claim, command, inspected] = [stepOf(task, of), stepOf(task, run), stepOf(task, inspect)];
  const { result: _, ...seen } = claim.outputs;
  if (inspected.failure !== null) return failed('refused', inspected.failure.message, { outputs: seen });
  const after = valueOf(task, inspected, 'after') as After | null;
  const heard = hear(task, witness, command, after);
  const testimony = testimonyOf(witness, heard);
  const artifacts = withReport(task, claim.outputs, testimony);
  if (testimony.holds) {
    const outputs = { ...claim.outputs, witness: testimony, ...artifacts };
    return success(outputs, { route: 'completed', kept: claim.kept });
  }
  const message = `the witness does not bear it out: ${heard.reasons.join('; ')}`;
  return failed('unproven', message, { outputs: { ...seen, witness: testimony, ...artifacts } });
}

/** The report of a validation contains the testimony as well. */
function withReport(task: Task, { artifacts: before, ...claim }: JsonMap, testimony: Testimony): JsonMap {
  if (!Object.hasOwn(claim, 'validators')) return {};
  const outcome = testimony.holds ? 'completed' : 'error';
  const { validators, harness_report, report_summary, proposed_goldens } = claim as Record<string, Json>;
  const report = { outcome, validators, harness_report, report_summary, proposed_goldens, witness: testimony };
  visitFolder(task).writeJson('validation_report', 'validation_report.json', report);
  return before === undefined ? {} : { artifacts: before };
}

interface Heard {
  readonly code: number | null;
  readonly matches: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tree: string | null;
  readonly touched: readonly string[];
  /** Why it does not confirm the outcome: clauses. */
  readonly reasons: readonly string[];
}

function hear({ context }: Task, witness: Witness, command: StepRecord, after: After | null): Heard {
  const { expect, dependsOn } = witness;
  const { path } = folderOf(context, command);
  const [stdout, stderr] = [endOf(join(path, 'stdout')), endOf(join(path, 'stderr'))];
  const paths = (after?.changes ?? []).flatMap(({ path: to, from }) => (from === null ? [to] : [to, from]));
  const touched = paths.filter(globs(dependsOn));
  const { failure } = command;
  const code = failure === null ? 0 : failure.code;
  const found = expect.output === null ? ok(null) : countMatches(expect.output, `${stdout}\n${stderr}`);
  const matches = found.ok ? found.value : 0;
  const reasons = [
    // A command with an exit code has run, whether or not it matched.
    ...(failure === null || code !== null ? [] : [failure.kind === 'timeout' ? tooLong(witness) : failure.message]),
    ...(code === null || code === expect.exitCode ? [] : [`it exited with status ${code}, not ${expect.exitCode}`]),
    ...(found.ok ? [] : [found.error]),
    ...(found.ok && matches === 0 ? [`its output does not fit ${expect.output}`] : []),
    ...(touched.length === 0 ? [] : [`what it depends on was touched: ${touched.slice(0, NAMED_MAX).join(', ')}`]),
  ];
  return { code, matches, stdout, stderr, tree: after?.tree ?? null, touched, reasons };
}

function testimonyOf({ command, expect, dependsOn }: Witness, heard: Heard): Testimony {
  const { code, matches, stdout, stderr, tree, touched, reasons } = heard;
  return {
    command,
    expected_exit_code: expect.exitCode,
    exit_code: code,
    expected_output: expect.output,
    output_fits: matches === null ? null : matches > 0,
    counts: { stdout_lines: linesIn(stdout), stderr_lines: linesIn(stderr), matches },
    tree,
    depends_on: dependsOn,
    touched: touched.slice(0, TOUCHED_MAX),
    holds: reasons.length === 0,
  };
}

const NAMED_MAX = 5;
const TOUCHED_MAX = 200;
const OUTPUT_BYTES_MAX = 1_000_000;
const MATCHING_MS = 1_000;

/** An author's pattern on arbitrary output may take for ever, so it gets one second. */
function countMatches(pattern: string, text: string): Result<number, string> {
  const script = "let count = 0; for (const _ of text.matchAll(new RegExp(pattern, 'gm'))) count += 1; count";
  try {
    return ok(runInNewContext(script, { text, pattern }, { timeout: MATCHING_MS }) as number);
  } catch (error) {
    // Errors of another context are not instances of this context's Error.
    const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return err(`to compare its output with ${pattern} takes too long`);
    if (name === 'SyntaxError') return err(`${pattern} is not a regular expression`);
    throw error;
  }
}

/** Bytes that are not text cannot match. */
function endOf(path: string): string {
  try {
    const bytes = readFileSync(path);
    return bytes.subarray(Math.max(0, bytes.length - OUTPUT_BYTES_MAX)).toString('utf8');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return '';
    throw error;
  }
}

function linesIn(text: string): number {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

function tooLong({ timeoutMs }: Witness): string {
  return `it took longer than ${formatDuration(timeoutMs ?? 0)}`;
}
