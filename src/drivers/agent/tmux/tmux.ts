// Terminals in tmux, over one connection to one server: a private one, or the user's own.
//
// tmux/7   A terminal has its own session with one window of fixed size, even if somebody attaches. Its command starts verbatim
//          in exactly the requested environment: nothing of the server's leaks in, and its values are in no file and on
//          no command line. Only TERM, TERM_PROGRAM, TMUX_PANE, TMUX (unless requested blank) and SHELL (unless
//          requested) are tmux's.
// tmux/8   The transcript contains all output of the pane from its first byte; of very much output, the beginning and
//          the end (transcript-segments.ts). (If the last process exits right after printing on a busy machine, tmux
//          may miss the last bytes.)
// tmux/9   All settings apply to the session, its window and its pane only.
// tmux/10  Nothing here throws because of the state of server, session or connection, and nothing waits for one that is
//          gone.
//
// A session cannot be configured before it has a window, and a window takes scrollback and environment from its session
// when it is created. So a session starts with another window, which is replaced in the same command.

import { accessSync, closeSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import { quote } from '../../../ir/quote.ts';
import { ABSENT, isErrno, REFUSED, tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { openPrivate } from '../../../sys/files.ts';
import { TmuxClient } from './client.ts';
import { type Command, formatText, timeFormatText } from './command-line.ts';
import type { TmuxOptions } from './connection.ts';
import { IDLE_PROGRAM } from './setting.ts';
import { MARKER_OPTION, SESSION_OPTION, TerminalPane, TRANSCRIPT_OPTION } from './terminal-pane.ts';
import { KEEP_SEGMENTS } from './transcript-segments.ts';

export interface TerminalRequest {
  /** Name of the session; an existing name is an error. */
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd: string;
  /** Complete (tmux/7). */
  readonly environment: Readonly<Record<string, string>>;
  readonly columns: number;
  readonly rows: number;
  /** Lines kept above the screen. */
  readonly scrollback: number;
  /** File that receives all output of the pane (tmux/8). Texts to be pasted are stored beside it. */
  readonly transcript: string;
  /** Identifies the terminal for later engines; one line. */
  readonly marker: string;
}

export class Tmux {
  readonly #client: TmuxClient;

  constructor(options: TmuxOptions) {
    this.#client = new TmuxClient(options);
  }

  /** Output of a command, or tmux's error message. */
  async run(command: Command): Promise<Result<readonly string[], string>> {
    const answer = await this.#client.ask([command], { start: true });
    return answer.kind === 'done' ? ok(answer.blocks[0] ?? []) : err(answer.error);
  }

  async open(request: TerminalRequest): Promise<Result<TerminalPane, string>> {
    const { name, transcript } = request;
    const refusal = refusalOf(request);
    if (refusal !== null) return err(refusal);
    const queries = [
      ['show-environment', '-g'],
      ['show-options', '-gwv', 'pane-border-status'],
    ];
    const found = await this.#client.ask(queries, { start: true, repeatable: true });
    if (found.kind !== 'done') return err(found.error);
    const [variables = [], border = []] = found.blocks;
    const reached = await this.#client.reach(true);
    if (!reached.ok) return reached;
    const { server } = reached.value;
    const commands = openingCommands(request, namesIn(variables), border.includes('off') ? 0 : 1);
    const answer = await this.#client.ask(commands, { server, exclusive: true });
    if (answer.kind === 'done') {
      const id = answer.blocks.flat().find((line) => /^%\d+$/.test(line));
      return ok(new TerminalPane(this.#client, present(id, 'tmux told no id of a pane'), server, transcript));
    }
    if (answer.kind === 'lost') return err(answer.error);
    if (answer.at === 0) {
      return err(answer.error.startsWith('duplicate session') ? `session ${name} already exists` : answer.error);
    }
    await this.#client.ask([['kill-session', '-t', `=${name}`]], { server, exclusive: true });
    return err(answer.error);
  }

  /** Also for later engines, whatever the session is called now. Another session of the same name does not count. */
  async find(marker: string): Promise<TerminalPane | null> {
    const reached = await this.#client.reach(false);
    if (!reached.ok) return null;
    const { server } = reached.value;
    const request = { server, repeatable: true };
    const panes = await this.#client.ask([['list-panes', '-a', '-F', `#{pane_id} #{${MARKER_OPTION}}`]], request);
    const lines = panes.kind === 'done' ? (panes.blocks[0] ?? []) : [];
    const id = lines.find((line) => line.slice(line.indexOf(' ') + 1) === marker)?.split(' ')[0];
    if (id === undefined) return null;
    const shown = await this.#client.ask([['show-options', '-p', '-v', '-t', id, TRANSCRIPT_OPTION]], request);
    if (shown.kind !== 'done') return null;
    return new TerminalPane(this.#client, id, server, (shown.blocks[0] ?? []).join('\n'));
  }

  /** Sessions stay. */
  close(): void {
    this.#client.close();
  }
}

/** Names that tmux neither changes nor misreads. */
const NAME = /^[\p{L}\p{N}_][^\p{C}:.#\\]*$/u;

function refusalOf({ name, command, cwd, environment, transcript, marker }: TerminalRequest): string | null {
  if (!NAME.test(name)) return `${JSON.stringify(name)} cannot be the name of a session`;
  if (command.length === 0 || command[0] === '') return 'there is no command to be started';
  if (marker === '' || /[\n\r]/.test(marker)) return `${JSON.stringify(marker)} cannot be a marker`;
  const odd = Object.keys(environment).find((variable) => variable === '' || variable.includes('='));
  if (odd !== undefined) return `${JSON.stringify(odd)} cannot be the name of an environment variable`;
  try {
    // tmux would silently use another folder.
    if (!statSync(cwd).isDirectory()) return `${cwd} is not a folder`;
    accessSync(cwd, constants.X_OK);
    closeSync(openPrivate(transcript));
    return null;
  } catch (error) {
    if (isErrno(error, ...UNUSABLE)) return error.message;
    throw error;
  }
}

/**
 * On one line. The first creates the session, and only it fails because of the name. `border`: rows that a new window
 * reserves for its border until it is turned off.
 */
function openingCommands(request: TerminalRequest, inherited: readonly string[], border: number): readonly Command[] {
  const { name, command, environment, transcript, marker } = request;
  const columns = String(request.columns);
  const rowsAtFirst = String(request.rows + border);
  const cwd = formatText(request.cwd);
  const at = ['-t', `=${name}:`];
  const forSession = (option: string, value: string) => ['set-option', ...at, option, value];
  const forWindow = (option: string, value: string) => ['set-option', '-w', ...at, option, value];
  const forPane = (option: string, value: string) => ['set-option', '-p', ...at, option, value];
  const { SHELL: shell = '' } = environment;
  // tmux accepts nothing else as `default-shell`, which it exports as SHELL.
  const isShell =
    isAbsolute(shell) && tolerate([...ABSENT, ...REFUSED], false, () => accessSync(shell, constants.X_OK)) !== false;
  const variables = Object.entries(environment)
    .filter(([variable, value]) => (variable === 'TMUX' ? value === '' : !OF_TMUX.has(variable)))
    .flatMap(([variable, value]) => ['-e', `${variable}=${value}`]);
  // tmux would pass a single word to a shell as a script.
  const started = command.length > 1 ? command : ['/bin/sh', '-c', 'exec "$0"', ...command];
  return [
    ['new-session', '-d', '-E', '-s', name, '-x', columns, '-y', rowsAtFirst, '-c', cwd, '--', ...IDLE_PROGRAM],
    forSession(SESSION_OPTION, 'yes'),
    forSession('destroy-unattached', 'off'),
    forSession('update-environment', ''),
    forSession('history-limit', String(request.scrollback)),
    ...(isShell ? [forSession('default-shell', shell)] : []),
    ...inherited
      .filter((variable) => !(variable in environment))
      .map((variable) => ['set-environment', ...at, '-r', '--', variable]),
    ['new-window', '-k', '-P', '-F', '#{pane_id}', '-t', `=${name}:^`, '-c', cwd, ...variables, '--', ...started],
    forWindow('remain-on-exit', 'off'),
    forWindow('automatic-rename', 'off'),
    forWindow('allow-rename', 'off'),
    forWindow('pane-border-status', 'off'),
    forWindow('window-size', 'manual'),
    ['resize-window', ...at, '-x', columns, '-y', String(request.rows)],
    forPane(MARKER_OPTION, marker),
    forPane(TRANSCRIPT_OPTION, transcript),
    ['pipe-pane', ...at, timeFormatText(`exec /bin/sh -c ${shellQuoted(KEEP_SEGMENTS)} sh ${shellQuoted(transcript)}`)],
  ];
}

/** Variables that tmux sets itself. */
const OF_TMUX = new Set(['TERM', 'TERM_PROGRAM', 'TERM_PROGRAM_VERSION', 'TMUX_PANE']);

/** Parses `show-environment`. A value of several lines may look like more names; extra names do no harm. */
function namesIn(lines: readonly string[]): readonly string[] {
  return [...new Set(lines.map((line) => line.slice(0, Math.max(line.indexOf('='), 0))))].filter((name) => name !== '');
}

function shellQuoted(text: string): string {
  const result = quote(text, [{ kind: 'quoted' }]);
  return present(result.ok ? result.value : null, `not quotable: ${text}`);
}
