// Witnesses: a command that the engine runs itself, in the worktree, before an outcome is believed. Its testimony says what
// was run, what it came to, on which tree, and whether somebody has touched what it depends on.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatDuration } from '../../base/time.ts';
import type { ConductedSpec, Witness } from '../../ir/conducted.ts';
import { stepFolder } from '../step-folder.ts';
import type { StepFolder } from '../step-folder.ts';
import { ask } from './asking.ts';
import { beganAt } from './artifacts.ts';
import type { OpcodeContext, OpenWorkspace, Performance } from './context.ts';
import { globs } from './globs.ts';
import { innerCommand, swiftToFind } from './inner.ts';
import { Limits } from './limits.ts';
import { PRE_RUN, sentence } from './workspace.ts';

/** As the output `witness` of a step has it. */
export type Testimony = {
  readonly command: string;
  readonly expected_exit_code: number;
  /** Null where it was ended before it had one. */
  readonly exit_code: number | null;
  readonly expected_output: string | null;
  /** Null where its output does not matter. */
  readonly output_fits: boolean | null;
  /** Of what it said; and how often what was expected of it is found there. */
  readonly counts: { readonly stdout_lines: number; readonly stderr_lines: number; readonly matches: number | null };
  /** What the tree was hashed to when it was run; null without git. */
  readonly tree: string | null;
  readonly depends_on: readonly string[];
  /** Of what it depends on. */
  readonly touched: readonly string[];
  readonly holds: boolean;
};

export type Unproven =
  | { readonly kind: 'unproven'; readonly message: string; readonly testimony: Testimony }
  /** There is no testimony: it is asked for again, nobody waits for it, or it cannot be had. */
  | { readonly kind: 'lost' | 'stopped' | 'refused'; readonly message: string };

/** `touched`: paths that whoever is to be believed has written to, seen from the worktree. */
export async function testify(
  context: OpcodeContext,
  performance: Performance<ConductedSpec>,
  witness: Witness,
  touched: readonly string[],
): Promise<Result<Testimony, Unproven>> {
  const opened = await context.workspace.open();
  if (!opened.ok) return err({ kind: 'refused', message: opened.error });
  const { folder: worktree, git } = opened.value;
  const snapshot = git === null ? null : await git.snapshot(SNAPSHOT);
  if (snapshot !== null && !snapshot.ok) return err({ kind: 'refused', message: sentence(snapshot.error) });

  const effect = innerCommand(performance.effect, INNER, { script: witness.command, cwd: worktree });
  const folder = stepFolder(context.run.files, effect.step, effect.attempt);
  const driver = swiftToFind(context.command, context.run);
  let late = false;
  const answer = ask(driver, effect, performance);
  const begunAt = beganAt(join(folder.path, 'status')) ?? Date.now();
  const limits = new Limits({
    timeMs: witness.timeoutMs === null ? null : Math.max(0, witness.timeoutMs - (Date.now() - begunAt)),
    idleMs: null,
    files: [],
    reached() {
      late = true;
      driver.stop(effect.id, { force: false, why: 'timeout' });
    },
  });
  const { outcome, stop } = await answer;
  limits.close();
  const { kind } = outcome.kind === 'success' ? { kind: null } : outcome.failure;
  if ((kind === 'lost' || kind === 'stopped') && !late && stop?.why !== 'timeout')
    return err({ kind, message: 'the witness did not come to an end' });
  const failure = outcome.kind === 'failure' ? outcome.failure : null;
  return judge(witness, {
    code: failure === null ? 0 : failure.code,
    // One that has a status may have missed what was expected, or hit it; it has run either way.
    unrun: failure === null || failure.code !== null ? null : late ? tooLong(witness) : failure.message,
    folder,
    tree: snapshot?.value.tree ?? null,
    touched: touched.filter(globs(witness.dependsOn)),
  });
}

/** All paths that are not as they were before the run. */
export async function touchedInRun({ git }: OpenWorkspace): Promise<Result<readonly string[], string>> {
  if (git === null) return ok([]);
  const taken = await git.snapshot(SNAPSHOT);
  if (!taken.ok) return err(sentence(taken.error));
  const changes = await git.changes({ kind: 'snapshot', name: PRE_RUN }, SNAPSHOT);
  if (!changes.ok) return err(sentence(changes.error));
  return ok(changes.value.flatMap(({ path, from }) => (from === null ? [path] : [path, from])));
}

const SNAPSHOT = 'witness';
/** No validator is called so. */
const INNER = '.witness';

interface Heard {
  readonly code: number | null;
  /** Why it has no status. */
  readonly unrun: string | null;
  readonly folder: StepFolder;
  readonly tree: string | null;
  readonly touched: readonly string[];
}

function judge(witness: Witness, heard: Heard): Result<Testimony, Unproven> {
  const { expect, dependsOn, command } = witness;
  const { code, folder, tree, touched } = heard;
  const [stdout, stderr] = [endOf(join(folder.path, 'stdout')), endOf(join(folder.path, 'stderr'))];
  const found = expect.output === null ? ok(null) : countMatches(expect.output, `${stdout}\n${stderr}`);
  const matches = found.ok ? found.value : 0;
  const reasons = [
    ...(heard.unrun === null ? [] : [heard.unrun]),
    ...(code === null || code === expect.exitCode ? [] : [`it exited with status ${code}, not ${expect.exitCode}`]),
    ...(found.ok ? [] : [found.error]),
    ...(found.ok && matches === 0 ? [`its output does not fit ${expect.output}`] : []),
    ...(touched.length === 0 ? [] : [`what it depends on was touched: ${touched.slice(0, NAMED_MAX).join(', ')}`]),
  ];
  const testimony = {
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
  if (testimony.holds) return ok(testimony);
  return err({ kind: 'unproven', message: `the witness does not bear it out: ${reasons.join('; ')}`, testimony });
}

const NAMED_MAX = 5;
const TOUCHED_MAX = 200;
const OUTPUT_BYTES_MAX = 1_000_000;
const MATCHING_MS = 1_000;

/** An author's expression, and an output that is anybody's: together they may take for ever, and get a second. */
function countMatches(pattern: string, text: string): Result<number, string> {
  const script = "let count = 0; for (const _ of text.matchAll(new RegExp(pattern, 'gm'))) count += 1; count";
  try {
    return ok(runInNewContext(script, { text, pattern }, { timeout: MATCHING_MS }) as number);
  } catch (error) {
    // Errors of another context are no Error of this one.
    const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return err(`to compare its output with ${pattern} takes too long`);
    if (name === 'SyntaxError') return err(`${pattern} is no regular expression`);
    throw error;
  }
}

/** Bytes that are no text are none that an expression can look for. */
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
