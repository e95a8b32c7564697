// Starts the programs of turns: directly as long as they are few. When turns follow each other fast, their starts would
// take most of the engine's only thread, and the spawner starts them and records how they end (drivers/spawner.ts).

import { err, ok, present, type Result } from '../../../base/errors.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { shellWord } from '../../../ir/quote.ts';
import { isErrno, UNUSABLE } from '../../../sys/errors.ts';
import { type Environment, type ProcessRequest, startProcess } from '../../../sys/process.ts';
import type { Secrets } from '../../../sys/secrets.ts';
import { findProgram } from '../../recording-shell.ts';
import type { SpawnEvents, SpawnRequest, Spawner } from '../../spawner.ts';
import { prepareStepFolder, type StepFolder, writeStepFile } from '../../step-folder.ts';
import { agentShellText, fillCommand, type HoleValues } from '../render-adapter.ts';
import { commandFor, sessionHoles, type SessionPlan } from './sessions.ts';

/** The file of a turn that contains its prompt. */
export const PROMPT = 'prompt';

export interface ProgramRequest
  extends Omit<ProcessRequest, 'path' | 'args'>,
    Pick<SpawnRequest, 'stdin' | 'commands'> {
  /** A shell that runs the command and records its plan and its end. */
  shelled(): Pick<ProcessRequest, 'path' | 'args'>;
  /** Written before it begins. */
  readonly prompt: string;
  /** One line, written when it begins. */
  readonly plan: string;
}

export class TurnLauncher {
  readonly #spawner: Spawner;
  /** When the latest were started. */
  readonly #times: number[] = [];

  constructor(spawner: Spawner) {
    this.#spawner = spawner;
  }

  start(request: ProgramRequest, events: SpawnEvents): void {
    const now = performance.now();
    this.#times.push(now);
    const areMany = this.#times.length >= MANY && now - (this.#times.shift() ?? now) < WITHIN_MS;
    if (areMany) this.#spawner.launch();
    const { cwd, prefix, environment, stdin, commands, prompt, plan } = request;
    // A request goes through a pipe, in fields that end with NUL: a long prompt would take its time.
    const fits = prompt.length <= PROMPT_MAX && !prompt.includes('\0');
    if (!this.#spawner.ready || !fits) return startProgram(request, events);
    if (!unlessRefusedTo(events, () => prepareStepFolder(request))) return;
    const files = { [PROMPT]: prompt };
    this.#spawner.start({ cwd, prefix, environment, files, stdin, record: plan, commands }, events);
  }
}

/** Without the spawner. Events as of `startProcess`. */
export function startProgram(request: ProgramRequest, events: SpawnEvents): void {
  const isWritten = unlessRefusedTo(events, () => writeStepFile(request, PROMPT, request.prompt));
  if (isWritten) startProcess({ ...request, ...request.shelled() }, events);
}

/** Whether the system has done it; otherwise the process is refused. */
function unlessRefusedTo(events: SpawnEvents, act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if (!isErrno(error, ...UNUSABLE)) throw error;
    setImmediate(() => events.refused(error));
    return false;
  }
}

/** Launching the spawner takes some milliseconds, and some memory. */
const MANY = 8;
const WITHIN_MS = 10_000;
const PROMPT_MAX = 64 * 1024;

export interface TurnWords {
  readonly prompt: string;
  readonly model: string | null;
  readonly effort: string | null;
  /** Shell text appended to the adapter's command. */
  readonly args: string | null;
  readonly holes: HoleValues;
  /** Complete except for the marker and the hooks of this turn. */
  readonly environment: Environment;
}

/**
 * The command of one turn: the adapter's command for its session, in a shell that records its exit, with the prompt on
 * stdin. The prompt is a private file of the turn, so it appears in no process list, unless the adapter passes prompts as
 * arguments. The error is a sentence.
 */
export function turnCommand(
  { prefix }: StepFolder,
  adapter: Adapter,
  plan: SessionPlan,
  { prompt, model, effort, args, holes, environment, secrets }: TurnWords & { readonly secrets?: Secrets | undefined },
): Result<Pick<ProgramRequest, 'stdin' | 'commands' | 'shelled' | 'prompt' | 'plan'>, string> {
  const { name } = adapter;
  const ways = present(adapter.headless, `the adapter ${name} has no headless turns`);
  const searchPath = environment.own['PATH'] ?? environment.base['PATH'] ?? '';
  const shell = programOn(`${searchPath}:/bin:/usr/bin`, 'sh');
  if (shell === null) return err('there is no shell sh on PATH');
  if (model !== null && ways.modelArgs === null) return err(`the adapter ${name} has no way to choose a model`);
  if (effort !== null && ways.effortArgs === null) return err(`the adapter ${name} has no way to choose an effort`);
  const inSession = commandFor(plan.kind, name, ways);
  if (!inSession.ok) return inSession;
  const command = fillCommand(
    [inSession.value, model === null ? null : ways.modelArgs, effort === null ? null : ways.effortArgs, args],
    {
      ...holes,
      ...sessionHoles(plan),
      ...(model === null ? {} : { model }),
      ...(effort === null ? {} : { effort }),
      ...(ways.prompt === 'argument' ? { prompt } : {}),
    },
  );
  if (!command.ok) return command;
  if (command.value.includes('\0')) return err('its command contains a NUL byte, which no shell can read');
  if (secrets?.isIn(command.value) === true) {
    const what = ways.prompt === 'argument' && secrets.isIn(prompt) ? 'its prompt' : 'its command';
    return err(`${what} contains a secret, and would be in the list of processes: let it read an environment variable`);
  }
  // In a subshell, which the last command replaces: the text cannot affect the recording shell. The text may end with a
  // comment; and `command` keeps a parse error from ending that shell.
  const stdin = ways.prompt === 'stdin' ? `${prefix}${PROMPT}` : '/dev/null';
  const text = command.value.trim();
  const redirected = ways.prompt === 'stdin' ? `exec <${shellWord(stdin)};${text}` : text;
  const line = JSON.stringify(plan);
  return ok({
    prompt,
    plan: line,
    stdin,
    commands: [...directly(text, searchPath), [shell, 'sh', '-c', text]],
    shelled: () => ({
      path: shell,
      args: ['-c', agentShellText(['command', 'eval', `(${redirected}\n)`], prefix, { plan: line }), 'sh'],
    }),
  });
}

/** The command without a shell, if it is nothing but words. If it cannot be executed, the shell says why. */
function directly(text: string, searchPath: string): SpawnRequest['commands'] {
  const words = plainWords(text);
  const [name = ''] = words ?? [];
  if (words === null || name === '' || name.includes('=')) return [];
  const program = name.startsWith('/') ? name : programOn(searchPath, name);
  return program === null ? [] : [[program, ...words]];
}

/** The words as a shell would split them. Null if it would expand, redirect or interpret anything. */
export function plainWords(text: string): readonly string[] | null {
  if (!WORDS.test(text)) return null;
  return text.match(WORD)?.map((word) => word.replace(QUOTED, '$1$2')) ?? null;
}

const PART = String.raw`(?:[\w@%+=:,./-]|'[^']*'|"[^"$\x60\\!]*")`;
const BLANK = String.raw`(?: |\t|\\\n)`;
const WORDS = new RegExp(`^${BLANK}*${PART}+(?:${BLANK}+${PART}+)*${BLANK}*$`);
const WORD = new RegExp(`${PART}+`, 'g');
const QUOTED = /'([^']*)'|"([^"]*)"/g;

/** Cached by search path: searching takes longer than everything else here. */
const PROGRAMS = new Map<string, string>();

/** Null if it is relative to the working directory, or does not exist. */
function programOn(searchPath: string, name: string): string | null {
  if (name.includes('/')) return null;
  const key = `${searchPath}\0${name}`;
  const program = PROGRAMS.get(key) ?? findProgram(name, searchPath);
  if (program !== null) PROGRAMS.set(key, program);
  return program;
}
