// Terminals in tmux, over one connection to one server: a private one, or the user's own.
//
// X7  A terminal has a session of its own, with one window of a fixed size, also while nobody is attached and whoever
//     attaches. Its command is started as it is, in just the environment that is asked for: nothing of the server's own
//     comes in, and what is in it stands in no file and on no command line. Only tmux's own words about the terminal are
//     tmux's: TERM, TERM_PROGRAM, TMUX_PANE, TMUX unless it is asked for blank, and SHELL where none is asked for.
// X8  Everything that the pane prints is in the transcript, from its first byte; of what is very much, the beginning and the
//     end (transcript-segments.ts). (Where the last process ends right after it has printed, and the machine is busy, tmux may not have
//     read the last of it.)
// X9  All that is set is set for the session, its window and its pane alone.
// X10 Nothing here throws for what becomes of server, session or connection, and nothing waits for one that is gone.
//
// A session cannot be furnished before it has a window, and a window takes its scrollback and its environment from its
// session when it is made. So a session begins with another window, which is replaced in the same moment.

import { accessSync, closeSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import { quote } from '../../../ir/quote.ts';
import { openPrivate } from '../../../sys/private-file.ts';
import { formatText, timeFormatText } from './command-line.ts';
import type { Command } from './command-line.ts';
import type { TmuxOptions } from './connection.ts';
import { Line } from './client.ts';
import { KEEP_PARTS } from './transcript-segments.ts';
import { IDLE_PROGRAM } from './setting.ts';
import { MARKER_OPTION, Pane, SESSION_OPTION, TRANSCRIPT_OPTION } from './terminal-pane.ts';
import type { TerminalPane } from './terminal-pane.ts';

export interface TerminalRequest {
  /** Of the session; refused where there is one of that name. */
  readonly name: string;
  /** A program and its arguments. */
  readonly command: readonly string[];
  readonly cwd: string;
  /** Complete (X7). */
  readonly environment: Readonly<Record<string, string>>;
  readonly columns: number;
  readonly rows: number;
  /** Lines that are kept above the screen. */
  readonly scrollback: number;
  /** File to which everything is appended that the pane prints (X8). Texts on their way to the pane lie beside it. */
  readonly transcript: string;
  /** By which it is found in a later life; one line. */
  readonly marker: string;
}

export class Tmux {
  readonly #line: Line;

  constructor(options: TmuxOptions) {
    this.#line = new Line(options);
  }

  /** What a command prints, or tmux's words about why not. */
  async run(command: Command): Promise<Result<readonly string[], string>> {
    const answer = await this.#line.ask([command], { start: true });
    return answer.kind === 'done' ? ok(answer.blocks[0] ?? []) : err(answer.error);
  }

  /** An error is a sentence. */
  async open(request: TerminalRequest): Promise<Result<TerminalPane, string>> {
    const { name, transcript } = request;
    const refusal = refusalOf(request);
    if (refusal !== null) return err(refusal);
    const asked = [
      ['show-environment', '-g'],
      ['show-options', '-gwv', 'pane-border-status'],
    ];
    const found = await this.#line.ask(asked, { start: true, repeatable: true });
    if (found.kind !== 'done') return err(found.error);
    const [variables = [], border = []] = found.blocks;
    const reached = await this.#line.reach(true);
    if (!reached.ok) return reached;
    const { server } = reached.value;
    const commands = openingCommands(request, namesIn(variables), border.includes('off') ? 0 : 1);
    const answer = await this.#line.ask(commands, { server, inTurn: true });
    if (answer.kind === 'done') {
      const id = answer.blocks.flat().find((line) => /^%\d+$/.test(line));
      return ok(new Pane(this.#line, { id: present(id, 'tmux told no id of a pane'), server, transcript }));
    }
    if (answer.kind === 'lost') return err(answer.error);
    if (answer.at === 0) {
      return err(answer.error.startsWith('duplicate session') ? `there is a session ${name} already` : answer.error);
    }
    await this.#line.ask([['kill-session', '-t', `=${name}`]], { server, inTurn: true });
    return err(answer.error);
  }

  /** In a later life too: whatever its session is called now. A session of the same name that is not ours is none. */
  async find(marker: string): Promise<TerminalPane | null> {
    const reached = await this.#line.reach(false);
    if (!reached.ok) return null;
    const { server } = reached.value;
    const question = { server, repeatable: true };
    const panes = await this.#line.ask([['list-panes', '-a', '-F', `#{pane_id} #{${MARKER_OPTION}}`]], question);
    const lines = panes.kind === 'done' ? (panes.blocks[0] ?? []) : [];
    const id = lines.find((line) => line.slice(line.indexOf(' ') + 1) === marker)?.split(' ')[0];
    if (id === undefined) return null;
    const told = await this.#line.ask([['show-options', '-p', '-v', '-t', id, TRANSCRIPT_OPTION]], question);
    if (told.kind !== 'done') return null;
    return new Pane(this.#line, { id, server, transcript: (told.blocks[0] ?? []).join('\n') });
  }

  /** Whether there is a session of that name, ours or not. */
  async has(name: string): Promise<boolean> {
    const answer = await this.#line.ask([['has-session', '-t', `=${name}`]], { repeatable: true });
    return answer.kind === 'done';
  }

  /** Sessions live on. */
  close(): void {
    this.#line.close();
  }
}

/** Names that tmux would change, or take for something else than a name. */
const NAME = /^[\p{L}\p{N}_][^\p{C}:.#\\]*$/u;

function refusalOf({ name, command, cwd, environment, transcript, marker }: TerminalRequest): string | null {
  if (!NAME.test(name)) return `${JSON.stringify(name)} cannot be the name of a session`;
  if (command.length === 0 || command[0] === '') return 'there is no command to be started';
  if (marker === '' || /[\n\r]/.test(marker)) return `${JSON.stringify(marker)} cannot be a marker`;
  const odd = Object.keys(environment).find((variable) => variable === '' || variable.includes('='));
  if (odd !== undefined) return `${JSON.stringify(odd)} cannot be the name of an environment variable`;
  try {
    // tmux would start it elsewhere, without a word.
    if (!statSync(cwd).isDirectory()) return `${cwd} is no folder`;
    accessSync(cwd, constants.X_OK);
    closeSync(openPrivate(transcript));
    return null;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return error.message;
    throw error;
  }
}

/**
 * Of one line. The first makes the session, and is the only one that fails for its name. `border`: rows that a new window
 * has for it, until it is told to have none.
 */
function openingCommands(request: TerminalRequest, inherited: readonly string[], border: number): readonly Command[] {
  const { name, command, environment, transcript, marker } = request;
  const columns = String(request.columns);
  const rows = String(request.rows);
  const rowsAtFirst = String(request.rows + border);
  const cwd = formatText(request.cwd);
  const at = ['-t', `=${name}:`];
  const forSession = (option: string, value: string) => ['set-option', ...at, option, value];
  const forWindow = (option: string, value: string) => ['set-option', '-w', ...at, option, value];
  const forPane = (option: string, value: string) => ['set-option', '-p', ...at, option, value];
  const shell = environment['SHELL'];
  const variables = Object.entries(environment)
    .filter(([variable, value]) => isForProgram(variable, value))
    .flatMap(([variable, value]) => ['-e', `${variable}=${value}`]);
  // A single word would be given to a shell as a script.
  const started = command.length > 1 ? command : ['/bin/sh', '-c', 'exec "$0"', ...command];
  return [
    ['new-session', '-d', '-E', '-s', name, '-x', columns, '-y', rowsAtFirst, '-c', cwd, '--', ...IDLE_PROGRAM],
    forSession(SESSION_OPTION, 'yes'),
    forSession('destroy-unattached', 'off'),
    forSession('update-environment', ''),
    forSession('history-limit', String(request.scrollback)),
    ...(shell !== undefined && isShell(shell) ? [forSession('default-shell', shell)] : []),
    ...inherited
      .filter((variable) => !(variable in environment))
      .map((variable) => ['set-environment', ...at, '-r', '--', variable]),
    ['new-window', '-k', '-P', '-F', '#{pane_id}', '-t', `=${name}:^`, '-c', cwd, ...variables, '--', ...started],
    forWindow('remain-on-exit', 'off'),
    forWindow('automatic-rename', 'off'),
    forWindow('allow-rename', 'off'),
    forWindow('pane-border-status', 'off'),
    forWindow('window-size', 'manual'),
    ['resize-window', ...at, '-x', columns, '-y', rows],
    forPane(MARKER_OPTION, marker),
    forPane(TRANSCRIPT_OPTION, transcript),
    ['pipe-pane', ...at, timeFormatText(`exec /bin/sh -c ${shellQuoted(KEEP_PARTS)} sh ${shellQuoted(transcript)}`)],
  ];
}

/** What tmux says itself about the terminal that it is. */
const OF_TMUX = new Set(['TERM', 'TERM_PROGRAM', 'TERM_PROGRAM_VERSION', 'TMUX_PANE']);

function isForProgram(variable: string, value: string): boolean {
  return variable === 'TMUX' ? value === '' : !OF_TMUX.has(variable);
}

/** tmux takes no other for `default-shell`, which it tells as SHELL. */
function isShell(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isAbsolute(path);
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return false;
    throw error;
  }
}

/** Of `show-environment`. A value of several lines seems to hold names too: one too many does no harm. */
function namesIn(lines: readonly string[]): readonly string[] {
  return [...new Set(lines.map((line) => line.slice(0, Math.max(line.indexOf('='), 0))))].filter((name) => name !== '');
}

function shellQuoted(text: string): string {
  const result = quote(text, [{ kind: 'quoted' }]);
  return present(result.ok ? result.value : null, `not quotable: ${text}`);
}
