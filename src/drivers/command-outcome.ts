// The outcome of a command, from its exit status and its captured outputs.

import { success } from '../ir/effect.ts';
import type { CommandSpec, Outcome } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { FailureKind } from '../ir/failure.ts';
import type { FilledText } from '../ir/text.ts';
import { capture, tail } from './capture-outputs.ts';
import type { Left } from './capture-outputs.ts';
import { SIGNAL_NAMES } from '../sys/process.ts';

/** For a command that exited. */
export async function commandOutcome(spec: CommandSpec<FilledText>, left: Left): Promise<Outcome> {
  const captured = await capture(spec.captures, left);
  const outputs = { exit_code: left.status, outcome: left.status === 0 ? 'true' : 'false', ...captured.outputs };
  const fail = (kind: FailureKind, message: string): Outcome => ({
    kind: 'failure',
    failure: failure(kind, message, {
      code: left.status,
      output: tail(left.folder),
      outputs,
      kept: captured.kept,
    }),
  });

  const broken = brokenBy(left.status, spec);
  if (broken !== null) return fail(broken, `the command ${endedWith(left.status)}`);
  const [problem] = captured.problems;
  if (problem !== undefined) return fail(problem.kind, captured.problems.map(({ message }) => message).join('; '));
  const route = spec.verdict === 'condition' ? (left.status === 0 ? 'true' : 'false') : null;
  return success(outputs, { kept: captured.kept, route });
}

/** For a command that was stopped or lost: it has no status, but may have output. */
export async function unfinishedOutcome(
  kind: FailureKind,
  message: string,
  spec: CommandSpec<FilledText>,
  left: Omit<Left, 'status'>,
): Promise<Outcome> {
  const captures = spec.captures.filter(({ from }) => from.kind !== 'exit-code');
  const { outputs, kept } = await capture(captures, { ...left, status: 0 });
  return { kind: 'failure', failure: failure(kind, message, { output: tail(left.folder), outputs, kept }) };
}

function brokenBy(status: number, { verdict: asked, errors }: CommandSpec<FilledText>): FailureKind | null {
  if (status === 0) return null;
  const bySignal = signalOf(status) !== null;
  if (asked === 'success') return bySignal ? 'signal' : 'exit-nonzero';
  return bySignal || status === 126 || status === 127 || errors.includes(status) ? 'condition-error' : null;
}

export function endedWith(status: number): string {
  const signal = signalOf(status);
  if (signal !== null) return `ended with status ${status}, as one killed by ${signal} does`;
  if (status === 127) return 'exited with status 127: a program was not found';
  if (status === 126) return 'exited with status 126: a program could not be executed';
  return `exited with status ${status}`;
}

/** A shell exits with 128 + N if its command was killed by signal N. */
function signalOf(status: number): string | null {
  return status > 128 ? (SIGNAL_NAMES.get(status - 128) ?? null) : null;
}
