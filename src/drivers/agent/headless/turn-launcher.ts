// Starts the programs of turns: directly as long as they are few. When turns follow each other fast, their starts would
// take most of the engine's only thread, and the spawner starts them and records how they end (drivers/spawner.ts).

import { dirname } from 'node:path';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { shellWord } from '../../../ir/quote.ts';
import { isErrno } from '../../../sys/errors.ts';
import { makeFolder, writePrivate } from '../../../sys/files.ts';
import { type ProcessRequest, startProcess } from '../../../sys/process.ts';
import type { EnvVariables } from '../../environment.ts';
import { findProgram } from '../../recording-shell.ts';
import type { SpawnEvents, SpawnRequest, Spawner } from '../../spawner.ts';
import { REFUSALS, type StepFolder } from '../../step-folder.ts';
import { agentShellText, fillCommand, type HoleValues } from '../render-adapter.ts';
import { commandFor, sessionHoles, type SessionPlan } from './sessions.ts';

/** The file of a turn that contains its prompt. */
export const PROMPT = 'prompt';

export interface ProgramRequest extends Omit<ProcessRequest, 'path' | 'args'> {
  readonly bare: BareCommand;
  /** A shell that runs the command and records its plan and its end. */
  shelled(): Pick<ProcessRequest, 'path' | 'args'>;
  /** Written before it begins. */
  readonly prompt: string;
  /** One line, written when it begins. */
  readonly plan: string;
}

export interface BareCommand {
  /** Absolute path; null: nothing to read. */
  readonly stdin: string | null;
  /** The path of a shell, and a script for it. */
  readonly shell: string;
  readonly text: string;
  /** If the script is nothing but words: the program, and the words. If it cannot be executed, the shell says why. */
  readonly direct: { readonly program: string; readonly words: readonly string[] } | null;
}

export class TurnLauncher {
  readonly #spawner: Spawner;
  /** When the latest were started. */
  readonly #times: number[] = [];

  constructor(spawner: Spawner) {
    this.#spawner = spawner;
  }

  start(request: ProgramRequest, events: SpawnEvents): void {
    if (this.#areMany()) this.#spawner.launch();
    if (this.#takes(request)) this.#spawner.start(spawnRequest(request), events);
    else startProgram(request, events);
  }

  /** Prepares it, and returns a function that lets it begin; null if it must be started as a whole. */
  prepare(request: ProgramRequest, events: SpawnEvents): (() => void) | null {
    return this.#takes(request) ? this.#spawner.prepare(spawnRequest(request), events) : null;
  }

  /** A request goes through a pipe, in fields that end with NUL: a long prompt would take its time. */
  #takes({ prompt }: ProgramRequest): boolean {
    return this.#spawner.ready && prompt.length <= PROMPT_MAX && !prompt.includes('\0');
  }

  #areMany(): boolean {
    const now = performance.now();
    this.#times.push(now);
    if (this.#times.length < MANY) return false;
    return now - (this.#times.shift() ?? now) < WITHIN_MS;
  }
}

/** Without the spawner. Events as of `startProcess`. */
export function startProgram(request: ProgramRequest, events: SpawnEvents): void {
  const path = `${request.prefix}${PROMPT}`;
  try {
    makeFolder(dirname(path));
    writePrivate(path, request.prompt);
  } catch (error) {
    if (!isErrno(error, ...REFUSALS)) throw error;
    setImmediate(() => events.refused(error));
    return;
  }
  startProcess({ ...request, ...request.shelled() }, events);
}

function spawnRequest({ cwd, prefix, environment, bare, prompt, plan }: ProgramRequest): SpawnRequest {
  const { stdin, shell, text, direct } = bare;
  return {
    cwd,
    prefix,
    environment,
    files: { [PROMPT]: prompt },
    stdin: stdin ?? '/dev/null',
    record: plan,
    commands: [...(direct === null ? [] : [[direct.program, ...direct.words] as const]), [shell, 'sh', '-c', text]],
  };
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
  readonly environment: EnvVariables;
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
  { prompt, model, effort, args, holes, environment }: TurnWords,
): Result<Pick<ProgramRequest, 'bare' | 'shelled' | 'prompt' | 'plan'>, string> {
  const { name } = adapter;
  const ways = present(adapter.headless, `the adapter ${name} has no turns`);
  const searchPath = environment['PATH'] ?? '';
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
  // In a subshell, which the last command replaces: the text cannot affect the recording shell. The text may end with a
  // comment; and `command` keeps a parse error from ending that shell.
  const stdin = ways.prompt === 'stdin' ? `${prefix}${PROMPT}` : null;
  const text = command.value.trim();
  const redirected = stdin === null ? text : `exec <${shellWord(stdin)};${text}`;
  const line = JSON.stringify(plan);
  return ok({
    prompt,
    plan: line,
    bare: { stdin, shell, text, direct: directly(text, searchPath) },
    shelled: () => ({
      path: shell,
      args: ['-c', agentShellText(['command', 'eval', `(${redirected}\n)`], prefix, { plan: line }), 'sh'],
    }),
  });
}

/** Plain words for any shell, and the program named by the first; null otherwise. */
function directly(text: string, searchPath: string): BareCommand['direct'] {
  if (!WORDS.test(text)) return null;
  const words = text.split(/ +/);
  const [name = ''] = words;
  const program = name.startsWith('/') ? name : programOn(searchPath, name);
  return program === null || name.includes('=') ? null : { program, words };
}

const WORDS = /^[\w@%+=:,./-]+(?: +[\w@%+=:,./-]+)*$/;

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
