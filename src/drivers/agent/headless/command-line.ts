// The command of one turn: the adapter's command for its session, in a shell that records its exit, with the prompt on
// stdin. The prompt is a private file in the turn's folder, so it appears in no process list, unless the adapter passes
// prompts as arguments.

import { join } from 'node:path';
import { present } from '../../../base/assert.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import { shellWord } from '../../../ir/quote.ts';
import { fillCommand } from '../render-adapter.ts';
import type { HoleValues } from '../render-adapter.ts';
import { agentShellText } from '../agent-shell.ts';
import { findProgram, findShell } from '../../recording-shell.ts';
import type { Shell } from '../../recording-shell.ts';
import { commandFor, sessionHoles } from './session-plan.ts';
import { PROMPT } from './turn-launcher.ts';
import type { BareCommand, ProgramRequest } from './turn-launcher.ts';
import type { SessionPlan } from './session-plan.ts';

export type TurnCommand = Pick<ProgramRequest, 'bare' | 'shelled'>;

export interface TurnWords {
  readonly prompt: string;
  readonly model: string | null;
  readonly effort: string | null;
  /** Shell text appended to the adapter's command. */
  readonly args: string | null;
}

/** `folder`: absolute folder of the turn. The error is a sentence. */
export function turnCommand(
  folder: string,
  adapter: Adapter,
  ways: HeadlessProfile,
  plan: SessionPlan,
  words: TurnWords,
  holes: HoleValues,
  searchPath: string,
): Result<TurnCommand, string> {
  const shell = shellOn(searchPath);
  if (shell === null) return err('there is no shell sh on PATH');
  const { model, effort, args, prompt } = words;
  if (model !== null && ways.modelArgs === null) return err(`the adapter ${adapter.name} has no way to choose a model`);
  if (effort !== null && ways.effortArgs === null)
    return err(`the adapter ${adapter.name} has no way to choose an effort`);
  const command = fillCommand(
    [
      present(commandFor(plan, ways), 'a plan that the adapter has no command for'),
      model === null ? null : ways.modelArgs,
      effort === null ? null : ways.effortArgs,
      args,
    ],
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
  const stdin = ways.prompt === 'stdin' ? join(folder, PROMPT) : null;
  const text = command.value.trim();
  const redirected = stdin === null ? text : `exec <${shellWord(stdin)};${text}`;
  return ok({
    bare: { stdin, shell: shell.path, text, direct: directly(text, searchPath) },
    shelled: () => ({
      path: shell.path,
      args: ['-c', agentShellText(['command', 'eval', `(${redirected}\n)`], folder), shell.name],
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
const SHELLS = new Map<string, Shell>();
const PROGRAMS = new Map<string, string>();

function shellOn(searchPath: string): Shell | null {
  const shell = SHELLS.get(searchPath) ?? findShell('sh', `${searchPath}:/bin:/usr/bin`);
  if (shell !== null) SHELLS.set(searchPath, shell);
  return shell;
}

/** Null if it is relative to the working directory, or does not exist. */
function programOn(searchPath: string, name: string): string | null {
  if (name.includes('/')) return null;
  const key = `${searchPath}\0${name}`;
  const program = PROGRAMS.get(key) ?? findProgram(name, searchPath);
  if (program !== null) PROGRAMS.set(key, program);
  return program;
}
