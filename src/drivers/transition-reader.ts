// Wraps a driver of turns or commands whose answers name the next state: reads the transition from each answer, by the policy
// that the effect names (ir/answer-transitions.ts). An answer without a valid transition is a failure that says what to
// answer instead.

import { chmodSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { err, ok, present, type Result } from '../base/errors.ts';
import { own } from '../base/json.ts';
import type { Answer, Driver, Note, RunFiles } from '../engine/ports.ts';
import { type EnterWorkflow, laneContextOf, printedTexts, readTransitions } from '../ir/answer-transitions.ts';
import type { CommandSpec, Effect, Outcome, Success, TurnSpec } from '../ir/effect.ts';
import { keptFilesOf, type Program, type ProgramPart } from '../ir/program.ts';
import { refuseAnswer } from '../ir/reminder.ts';
import { simulatedAnswer } from '../ir/simulated-answer.ts';
import type { FilledText } from '../ir/text.ts';
import { crash } from '../sys/errors.ts';
import { makeFolder, makeFolderBelow, readFileEnd, replacePrivate } from '../sys/files.ts';
import { Output } from './agent/headless/output.ts';
import { resolveWorkdir } from './environment.ts';
import { answerText, failed, resolveText } from './outputs.ts';
import { stepFile, stepFolder, type StepFolder, unlessRefused } from './step-folder.ts';

export interface TransitionContext {
  readonly program: Pick<Program, 'machines' | 'steerings' | 'attachments'>;
  /** Compiles a workflow that a state of a machine names by its path; absent: only known workflows can be entered. */
  readonly enter?: (machine: string, path: string) => Result<ProgramPart, string>;
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
    const ended = followPrinted(stepFolder(place.files, effect.step, effect.attempt), note);
    return (outcome) => {
      const end = async (): Promise<void> => {
        const printed = await ended();
        const whole = outcome.kind === 'success' ? { ...outcome, printed } : outcome;
        answer(followed(effect, key, whole, place));
      };
      end().catch(crash);
    };
  };
  const writeKept = keptFilesWriter(place);
  return {
    start: (effect, answer, note) => {
      const problem =
        strayed(effect, place) ??
        taskFolderProblem(effect, place) ??
        (effect.spec.kind === 'command' ? writeKept() : null);
      if (problem === null) driver.start(effect, reading(effect, answer, note), note);
      else setImmediate(() => answer(failed('not-started', problem)));
    },
    find: (effect, answer, note) => {
      taskFolderProblem(effect, place);
      driver.find(effect, reading(effect, answer, note), note);
    },
    stop: (effectId, how) => driver.stop(effectId, how),
  };
}

/** Notes the texts that the output of a script shows to the user. The returned function is for its end: all texts. */
function followPrinted(folder: StepFolder, note: Note | undefined): () => Promise<readonly string[]> {
  let printed: readonly string[] = [];
  let noted = 0;
  const line = (text: string): void => {
    printed = [...printed, ...printedTexts(text)];
  };
  const grown = (): void => {
    if (printed.length > noted) void note?.({ printed });
    noted = printed.length;
  };
  const reader = { essential: ['<print'], line, longLine: () => undefined };
  const output = new Output({ path: stepFile(folder, 'stdout'), reader, grown, background: true });
  return async () => {
    await output.end();
    return printed;
  };
}

/** Makes the folder of the lane if the effect uses it. A sentence why that is not possible; null if it is. */
function taskFolderProblem(effect: Effect, { files }: TransitionContext): string | null {
  const spec = steeredSpec(effect);
  const folder = files.localPath(join('tasks', effect.lane));
  const uses = spec?.kind === 'command' || (spec?.kind === 'turn' && JSON.stringify(spec.prompt).includes(folder));
  if (!uses) return null;
  const made = unlessRefused(() => ok(makeFolder(folder)));
  return made.ok ? null : `cannot create its task folder: ${made.error}`;
}

/**
 * Writes the files that the run keeps to its folder, once in the life of an engine: scripts of an archive. The returned
 * function gives a sentence why that is not possible; null if it is.
 */
function keptFilesWriter({ program, files }: TransitionContext): () => string | null {
  let isWritten = false;
  return () => {
    if (isWritten) return null;
    const written = unlessRefused(() => {
      for (const { path, base64, isExecutable } of keptFilesOf(program)) {
        const target = files.localPath(path);
        makeFolderBelow(files.localPath(''), dirname(target));
        // An earlier engine may have started it: a new file does not disturb a running script.
        replacePrivate(target, Buffer.from(base64, 'base64'));
        if (isExecutable) chmodSync(target, 0o700);
      }
      return ok(undefined);
    });
    isWritten = written.ok;
    return written.ok ? null : `the scripts of its archive cannot be written: ${written.error}`;
  };
}

/** Null if its answer names no transitions. */
function steeredSpec({ spec }: Effect): TurnSpec<FilledText> | CommandSpec<FilledText> | null {
  return (spec.kind === 'turn' || spec.kind === 'command') && spec.steering !== null ? spec : null;
}

/** Answer of a simulated agent that has no script. Null if its answers name no transitions. */
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
  const grown: ProgramPart[] = [];
  const enter: EnterWorkflow = (path) => {
    const entered = place.enter?.(steering.machine, path) ?? err(`${path} was not known when the run started`);
    if (!entered.ok) return entered;
    grown.push(entered.value);
    return ok(entered.value.entry);
  };
  const read = readTransitions(steering, machine, laneContextOf(effect), text.value, enter);
  if (read.kind === 'refused') return refused(effect, outcome, read.message, read.reminder, text.value);
  for (const folder of read.folders) {
    const problem = folderProblem(folder, place);
    if (problem === null) continue;
    const { message, reminder } = refuseAnswer(steering, machine, problem);
    return refused(effect, outcome, message, reminder, text.value);
  }
  // The answer may be told apart from the messages.
  const more = read.printed.filter((each) => !outcome.printed.includes(each));
  const added = grown.length === 0 ? {} : { grown: grown.map((part) => JSON.stringify(part)) };
  return { ...outcome, ...added, follows: read.follows, printed: [...outcome.printed, ...more] };
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
