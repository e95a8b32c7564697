// Wraps a driver of turns or commands whose answers name the next state: reads the transition from each answer, by the policy
// that the effect names (ir/answer-transitions.ts). An answer without a valid transition is a failure that says what to
// answer instead.

import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { present } from '../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { own } from '../base/json.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Answer, Driver, RunFiles } from '../engine/ports.ts';
import type { Effect, Outcome, Success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Program } from '../ir/program.ts';
import { refuseAnswer } from '../ir/reminder.ts';
import { laneContextOf, readTransitions } from '../ir/answer-transitions.ts';
import type { FilledText } from '../ir/text.ts';
import { readFileEnd } from '../sys/read-file-end.ts';
import { stepFolder } from './step-folder.ts';
import { resolveText } from './resolve-text.ts';
import { resolveWorkdir } from './resolve-workdir.ts';

export interface TransitionContext {
  readonly program: Pick<Program, 'machines' | 'steerings'>;
  readonly files: RunFiles;
  /** Base of relative folders in answers. Absolute. */
  readonly cwd: string;
  /** The folder that must contain them; null: any. Absolute. */
  readonly within: string | null;
}

export function steered(driver: Driver, place: TransitionContext): Driver {
  const reading = (effect: Effect, answer: Answer): Answer => {
    const key = steeringOf(effect);
    return key === null ? answer : (outcome) => answer(followed(effect, key, outcome, place));
  };
  return {
    start: (effect, answer, note) => {
      const problem = strayed(effect, place);
      if (problem === null) driver.start(effect, reading(effect, answer), note);
      else setImmediate(() => answer({ kind: 'failure', failure: failure('not-started', problem) }));
    },
    find: (effect, answer, note) => driver.find(effect, reading(effect, answer), note),
    stop: (effectId, how) => driver.stop(effectId, how),
    prepare: (effect) => {
      if (strayed(effect, place) === null) driver.prepare?.(effect);
    },
  };
}

function steeringOf({ spec }: Effect): string | null {
  return spec.kind === 'turn' || spec.kind === 'command' ? spec.steering : null;
}

function followed(effect: Effect, key: string, outcome: Outcome, place: TransitionContext): Outcome {
  if (outcome.kind === 'failure') return explained(effect, outcome);
  const { machines, steerings } = place.program;
  const steering = present(own(steerings, key), `the program has no steering ${key}`);
  const machine = present(own(machines, steering.machine), `the program has no machine ${steering.machine}`);
  const text = answerOf(effect, outcome, place.files);
  if (!text.ok) return refused(effect, outcome, text.error, null, '');
  const read = readTransitions(steering, machine, laneContextOf(effect), text.value);
  if (read.kind === 'refused') return refused(effect, outcome, read.message, read.reminder, text.value);
  for (const folder of read.folders) {
    const problem = folderProblem(folder, place);
    if (problem === null) continue;
    const { message, reminder } = refuseAnswer(steering, machine, problem);
    return refused(effect, outcome, message, reminder, text.value);
  }
  return { ...outcome, follows: read.follows, printed: read.printed };
}

/** Names the variable that is too long: the system only says that the environment is. */
function explained({ spec }: Effect, outcome: Extract<Outcome, { kind: 'failure' }>): Outcome {
  if (spec.kind !== 'command' || outcome.failure.kind !== 'not-started') return outcome;
  // A value too large for the journal is in a file.
  const isLong = (text: FilledText): boolean => typeof text !== 'string' || Buffer.byteLength(text) > HANDED_BYTES_MAX;
  const [name] = Object.entries(spec.env).find(([, text]) => isLong(text)) ?? [];
  if (name === undefined) return outcome;
  const message =
    `the script could not be started: what it is handed as ${name} has more than ${HANDED_BYTES_MAX / 1_000} KB, ` +
    'too much for an environment; put it into a file, and pass the name of the file';
  return { kind: 'failure', failure: { ...outcome.failure, message } };
}

/** Linux takes 128 KiB for one variable, with its name. */
const HANDED_BYTES_MAX = 100_000;

function refused(
  { spec }: Effect,
  { outputs, kept, session, usage }: Success,
  message: string,
  reminder: string | null,
  text: string,
): Outcome {
  // A script would answer the same again.
  const reprompt = spec.kind === 'turn' ? reminder : null;
  const said = text.slice(-OUTPUT_MAX).trim();
  const more = { outputs, kept, session, usage, reprompt, output: said === '' ? null : said };
  return { kind: 'failure', failure: failure('protocol', message, more) };
}

const OUTPUT_MAX = 4_096;
/** Tags are at the end of an answer, or near it. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** An error is a sentence. */
function answerOf(effect: Effect, { outputs, kept }: Success, files: RunFiles): Result<string, string> {
  if (effect.spec.kind === 'command') {
    return lastOf(join(stepFolder(files, effect.step, effect.attempt).path, 'stdout'));
  }
  const result = outputs['result'];
  if (typeof result !== 'string') return ok('');
  return kept.includes('result') ? resolveText([{ file: result, quote: [] }], files) : ok(result);
}

function lastOf(path: string): Result<string, string> {
  try {
    return ok(readFileEnd(path, ANSWER_BYTES_MAX));
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return err(`its output cannot be read: ${error.message}`);
    throw error;
  }
}

/** A sentence why the folder may not be the working directory; null if it may. */
function folderProblem(folder: string, { cwd, within }: TransitionContext): string | null {
  const found = resolveWorkdir(cwd, folder);
  if (!found.ok) return `cd: ${found.error}`;
  if (within === null) return null;
  const inside = relative(realpathSync(within), realpathSync(found.value));
  const isOut = inside === '..' || inside.startsWith('../');
  return isOut ? `cd: ${folder} is outside of the project, and the run was started without --allow-outside` : null;
}

/** Checks again before the start: a link on the path may have changed since the answer. */
function strayed(effect: Effect, place: TransitionContext): string | null {
  const { spec } = effect;
  if (steeringOf(effect) === null || (spec.kind !== 'turn' && spec.kind !== 'command')) return null;
  const folder = resolveText(spec.cwd ?? '', place.files);
  // The user chose the run's own folder.
  return !folder.ok || folder.value === '' ? null : folderProblem(folder.value, place);
}
