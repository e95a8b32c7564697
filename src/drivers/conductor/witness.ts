// Witnesses: a command that the engine runs itself in the worktree before an outcome counts. The testimony records the
// command, its result, the tree, and whether anybody changed what it depends on.

import { runInNewContext } from 'node:vm';

import { err, ok, type Result } from '../../base/errors.ts';
import { formatDuration } from '../../base/time.ts';
import type { Witness, WitnessInspection } from '../../ir/conductor.ts';
import { type Outcome, success } from '../../ir/effect.ts';
import { ABSENT, REFUSED, tolerate } from '../../sys/errors.ts';
import { readFileEnd } from '../../sys/files.ts';
import { failed } from '../outputs.ts';
import { stepFile } from '../step-folder.ts';
import { VisitFolder } from './artifacts.ts';
import { folderOf, stepOf, type StepRecord, type Task, valueOf } from './context.ts';
import { globs } from './globs.ts';
import type { After } from './workspace.ts';

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
  const after = valueOf(task.context, inspected, 'after') as After | null;
  const { testimony, reasons } = examine(task, witness, command, after);
  const { validators, harness_report, report_summary, proposed_goldens } = claim.outputs;
  // The report of a validation contains the testimony as well.
  if (validators !== undefined) {
    const outcome = testimony.holds ? 'completed' : 'error';
    const report = { outcome, validators, harness_report, report_summary, proposed_goldens, witness: testimony };
    new VisitFolder(task).writeJson('validation_report', 'validation_report.json', report);
  }
  if (testimony.holds) {
    return success({ ...claim.outputs, witness: testimony }, { route: 'completed', kept: claim.kept });
  }
  const message = `the witness does not bear it out: ${reasons.join('; ')}`;
  return failed('unproven', message, { outputs: { ...seen, witness: testimony } });
}

/** `reasons`: why it does not confirm the outcome, as clauses. */
function examine({ context }: Task, witness: Witness, command: StepRecord, after: After | null) {
  const { expect, dependsOn } = witness;
  const { failure } = command;
  const folder = folderOf(context, command);
  const [stdout = '', stderr = ''] = ['stdout', 'stderr'].map((name) =>
    tolerate([...ABSENT, ...REFUSED], '', () => readFileEnd(stepFile(folder, name), OUTPUT_BYTES_MAX)),
  );
  const paths = (after?.changes ?? []).flatMap(({ path: to, from }) => (from === null ? [to] : [to, from]));
  const touched = paths.filter(globs(dependsOn));
  const code = failure === null ? 0 : failure.code;
  const found = expect.output === null ? ok(null) : countMatches(expect.output, `${stdout}\n${stderr}`);
  const matches = found.ok ? found.value : 0;
  const tooLong = `it took longer than ${formatDuration(witness.timeoutMs ?? 0)}`;
  const reasons = [
    // A command with an exit code has run, whether or not it matched.
    ...(failure === null || code !== null ? [] : [failure.kind === 'timeout' ? tooLong : failure.message]),
    ...(code === null || code === expect.exitCode ? [] : [`it exited with status ${code}, not ${expect.exitCode}`]),
    ...(found.ok ? [] : [found.error]),
    ...(found.ok && matches === 0 ? [`its output does not fit ${expect.output}`] : []),
    ...(touched.length === 0 ? [] : [`what it depends on was touched: ${touched.slice(0, NAMED_MAX).join(', ')}`]),
  ];
  const testimony: Testimony = {
    command: witness.command,
    expected_exit_code: expect.exitCode,
    exit_code: code,
    expected_output: expect.output,
    output_fits: matches === null ? null : matches > 0,
    counts: { stdout_lines: linesIn(stdout), stderr_lines: linesIn(stderr), matches },
    tree: after?.tree ?? null,
    depends_on: dependsOn,
    touched: touched.slice(0, TOUCHED_MAX),
    holds: reasons.length === 0,
  };
  return { testimony, reasons };
}

const NAMED_MAX = 5;
const TOUCHED_MAX = 200;
const OUTPUT_BYTES_MAX = 1_000_000;
const MATCHING_MS = 1_000;

/** An author's pattern on arbitrary output may take forever, so it gets one second. */
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

function linesIn(text: string): number {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}
