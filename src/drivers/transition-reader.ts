// Wraps a driver of turns or commands whose answers name the next state: reads the transition from each answer, by the policy
// that the effect names (ir/answer-transitions.ts). An answer without a valid transition is a failure that says what to
// answer instead.

import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';

import { err, ok, present, type Result } from '../base/errors.ts';
import { own } from '../base/json.ts';
import type { Answer, Driver, Note, RunFiles } from '../engine/ports.ts';
import { laneContextOf, printedTexts, readTransitions } from '../ir/answer-transitions.ts';
import type { CommandSpec, Effect, Outcome, Success, TurnSpec } from '../ir/effect.ts';
import type { Program } from '../ir/program.ts';
import { refuseAnswer } from '../ir/reminder.ts';
import { simulatedAnswer } from '../ir/simulated-answer.ts';
import type { FilledText } from '../ir/text.ts';
import { crash } from '../sys/errors.ts';
import { makeFolder, readFileEnd } from '../sys/files.ts';
import { Output } from './agent/headless/output.ts';
import { resolveWorkdir } from './environment.ts';
import { answerText, failed, resolveText } from './outputs.ts';
import { stepFile, stepFolder, type StepFolder, unlessRefused } from './step-folder.ts';

export interface TransitionContext {
  readonly program: Pick<Program, 'machines' | 'steerings'>;
  readonly files: RunFiles;
  /** Base of relative folders in answers. Absolute. */
  readonly cwd: string;
  /** The folder that must contain them; null: any. Absolute. */
  readonly within: string | null;
}

export function steered(driver: Driver, place: TransitionContext): Driver {
  const reading = (effect: Effect, answer: Answer, note: Note | undefined): Answer => {
    const key = steeredSpec(effect)?.steering ?? null;
    if (key === null) return answer;
    if (effect.spec.kind !== 'command') return (outcome) => answer(followed(effect, key, outcome, place));
    const output = new PrintedLines(stepFolder(place.files, effect.step, effect.attempt), note);
    return (outcome) => {
      const end = async (): Promise<void> => {
        const printed = await output.end();
        const whole = outcome.kind === 'success' ? { ...outcome, printed } : outcome;
        answer(followed(effect, key, whole, place));
      };
      end().catch(crash);
    };
  };
  return {
    start: (effect, answer, note) => {
      const problem = strayed(effect, place) ?? taskFolderProblem(effect, place);
      if (problem === null) driver.start(effect, reading(effect, answer, note), note);
      else setImmediate(() => answer(failed('not-started', problem)));
    },
    find: (effect, answer, note) => {
      taskFolderProblem(effect, place);
      driver.find(effect, reading(effect, answer, note), note);
    },
    stop: (effectId, how) => driver.stop(effectId, how),
    prepare: (effect) => {
      if (strayed(effect, place) === null) driver.prepare?.(effect);
    },
  };
}

/** Texts that the output of a script shows to the user, each noted when its line is there. */
class PrintedLines {
  readonly #output: Output;
  #printed: readonly string[] = [];

  constructor(folder: StepFolder, note: Note | undefined) {
    const line = (text: string): void => {
      this.#printed = [...this.#printed, ...printedTexts(text)];
    };
    let noted = 0;
    const grown = (): void => {
      if (this.#printed.length > noted) void note?.({ printed: this.#printed });
      noted = this.#printed.length;
    };
    const reader = { essential: ['<print'], line, longLine: () => undefined };
    this.#output = new Output({ path: stepFile(folder, 'stdout'), reader, grown, background: true });
  }

  async end(): Promise<readonly string[]> {
    await this.#output.end();
    return this.#printed;
  }
}

/** Makes the folder of the lane if the effect uses it. A sentence why that is not possible; null if it is. */
function taskFolderProblem(effect: Effect, { files }: TransitionContext): string | null {
  const spec = steeredSpec(effect);
  const folder = files.localPath(join('tasks', effect.lane));
  const uses = spec?.kind === 'command' || (spec?.kind === 'turn' && JSON.stringify(spec.prompt).includes(folder));
  if (!uses) return null;
  const made = unlessRefused(() => ok(makeFolder(folder)));
  return made.ok ? null : `its task folder cannot be made: ${made.error}`;
}

/** Null if its answer names no transitions. */
function steeredSpec({ spec }: Effect): TurnSpec<FilledText> | CommandSpec<FilledText> | null {
  return (spec.kind === 'turn' || spec.kind === 'command') && spec.steering !== null ? spec : null;
}

/** Of a simulated agent that has no script; null if its answer names no transitions. */
export function unscriptedAnswer(
  effect: Effect,
  question: { readonly prompt: string; readonly visit: number },
  program: TransitionContext['program'],
): string | null {
  const key = steeredSpec(effect)?.steering ?? null;
  if (key === null) return null;
  const { steering, machine } = steeringNamed(key, program);
  return simulatedAnswer(steering, machine, laneContextOf(effect), question);
}

function steeringNamed(key: string, { machines, steerings }: TransitionContext['program']) {
  const steering = present(own(steerings, key), `the program has no steering ${key}`);
  const machine = present(own(machines, steering.machine), `the program has no machine ${steering.machine}`);
  return { steering, machine };
}

function followed(effect: Effect, key: string, outcome: Outcome, place: TransitionContext): Outcome {
  if (outcome.kind === 'failure') return explained(effect, outcome);
  const { steering, machine } = steeringNamed(key, place.program);
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
  // The answer may be told apart from the messages.
  const more = read.printed.filter((each) => !outcome.printed.includes(each));
  return { ...outcome, follows: read.follows, printed: [...outcome.printed, ...more] };
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
  return { ...outcome, failure: { ...outcome.failure, message } };
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
  const output = text.slice(-OUTPUT_MAX).trim();
  const more = { outputs, kept, session, usage, reprompt, output: output === '' ? null : output };
  return failed('protocol', message, more);
}

const OUTPUT_MAX = 4_096;
/** Tags are at the end of an answer, or near it. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** An error is a sentence. */
function answerOf(effect: Effect, outcome: Success, files: RunFiles): Result<string, string> {
  if (effect.spec.kind !== 'command') return answerText(outcome, files);
  const path = stepFile(stepFolder(files, effect.step, effect.attempt), 'stdout');
  const read = unlessRefused(() => ok(readFileEnd(path, ANSWER_BYTES_MAX)));
  return read.ok ? read : err(`its output cannot be read: ${read.error}`);
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
  const spec = steeredSpec(effect);
  if (spec === null) return null;
  const folder = resolveText(spec.cwd ?? '', place.files);
  // The user chose the run's own folder.
  return !folder.ok || folder.value === '' ? null : folderProblem(folder.value, place);
}
