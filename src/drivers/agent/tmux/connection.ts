// One connection to a tmux server: a client in control mode behind pipes.
//
// It starts a process, but not on behalf of a workflow: the client is our end of the connection and holds no agent.
//
// tmux/1   Answers arrive in the order of commands, one block for each. A command line whose connection is lost is
//          reported as lost: whether tmux ran it is unknown.
// tmux/2   The client is attached to its own session, which ends with it; it ends with the engine, however the engine
//          ends. Agent sessions survive, unless the socket of a private server is gone: then nobody can reach them, and
//          the server exits.
// tmux/3   It sizes no window and receives no pane output.
// tmux/4   It keeps Node alive only while an answer is pending.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

import { err, ok, type Result } from '../../../base/errors.ts';
import { within } from '../../../sys/clock.ts';
import { isErrno, tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { outputOf, startHelper } from '../../../sys/process.ts';
import { findProgram } from '../../recording-shell.ts';
import { type Command, commandLine } from './command-line.ts';
import { clientEnvironment, CONTROL_PROGRAM, pasteFlags, privateSettings, tooOld } from './setting.ts';

export interface TmuxOptions {
  readonly program: string;
  /** Socket of a private server; null: the server that plain `tmux` reaches from the user's environment. */
  readonly socket: string | null;
  readonly environment: Readonly<Record<string, string>>;
}

/** One server process, from start to exit. */
export interface ServerLife {
  /** Distinguishes it from other servers on the same socket. */
  readonly id: string;
  /** Flags for its `paste-buffer`. */
  readonly pasteFlags: string;
}

export type Answer =
  | { readonly kind: 'done'; readonly blocks: readonly (readonly string[])[] }
  /** tmux's message; earlier commands were run, later ones were not. */
  | { readonly kind: 'refused'; readonly at: number; readonly error: string }
  /** Also if no server is running or reachable. A sentence. */
  | { readonly kind: 'lost'; readonly error: string };

const LOST = 'there is no connection to tmux';

/** Computes, from the output of the first command, the minimum number of lines of the last. */
export type LinesDue = (first: readonly string[]) => number;

interface Waiting {
  readonly commands: number;
  readonly blocks: (readonly string[])[];
  readonly linesDue: LinesDue | null;
  readonly tell: (answer: Answer) => void;
}

/** A server that is exiting accepts no connection, but its successor does. */
const TRIES = 3;

/** `start`: start a server if none is running. */
export async function connect(options: TmuxOptions, start: boolean): Promise<Result<Readonly<Connection>, string>> {
  const { socket, environment } = options;
  const program = findProgram(options.program, environment['PATH'] ?? '');
  if (program === null) return err(`there is no program ${options.program}`);
  // tmux would delete any file there. If we cannot look, tmux cannot either, and its message is better.
  const isFree = socket === null || tolerate(UNUSABLE, true, () => lstatSync(socket).isSocket());
  if (!isFree) return err(`${socket} exists and is not a socket`);
  const settings = socket === null ? [] : privateSettings(environment);
  for (let tries = 1; ; tries += 1) {
    const session = `meow-control-${process.pid}-${randomBytes(3).toString('hex')}`;
    const client = await startClient({ ...options, program }, start, session);
    if (!client.ok) return client;
    const connection = new Connection(client.value, session);
    const refusal = await connection.greet(settings);
    if (refusal === null) return ok(connection);
    await connection.close();
    if (!start && refusal !== LOST) return err(refusal);
    if (tries < TRIES) continue;
    const version = outputOf(program, ['-V'])?.trim() ?? '';
    return err(tooOld(version) ? `${version} is too old: there must be tmux 3.2 or newer` : refusal);
  }
}

/**
 * A client exits with its input, but not while it has unread output: then it stays forever, and its server with it. So
 * a shell beside it waits for our exit and kills what is left.
 *
 * Not at once: some servers crash if a client leaves before it has introduced itself. And not by `destroy-unattached`,
 * which crashes some servers if a client leaves slowly. A background command of a shell reads nothing unless
 * redirected.
 *
 * The shell gets the server's pid as soon as we know it. After the socket was removed with the run's folder, only the
 * pid reaches the server; its command line proves that it is the right one.
 */
const GUARD = `socket=$1 session=$2
shift 2
exec 4<&0
"$@" <&4 3<&- 4<&- &
client=$!
exec </dev/null >/dev/null 2>&1 4<&-
read -r server <&3
read -r line <&3
sleep 1
kill -9 $client
if [ -n "$socket" ]; then set -- "$1" -S "$socket"; else set -- "$1"; fi
"$@" -N kill-session -t "=$session"
if [ -z "$socket" ] || [ -z "$server" ] || [ -S "$socket" ]; then exit; fi
case $(tr '\\0' ' ' <"/proc/$server/cmdline" || ps -o args= -p "$server") in
*"$socket"*) kill "$server" ;;
esac`;

/** A hanging server lets no client go: longer than the guard takes. */
const CLOSING_MAX_MS = 2_000;

/** File descriptor of the guard's pipe. */
const GUARDED = 3;

type Client = ChildProcessByStdio<Writable, Readable, Readable>;

async function startClient(options: TmuxOptions, start: boolean, session: string): Promise<Result<Client, string>> {
  const { program, socket, environment } = options;
  const where = socket === null ? [] : ['-S', socket, '-f', '/dev/null'];
  const flags = ['-u', '-C', ...(start ? [] : ['-N']), ...where];
  const make = ['new-session', '-E', '-s', session, '-f', 'ignore-size,no-output', '-x', '80', '-y', '24'];
  const client = [program, ...flags, ...make, '--', ...CONTROL_PROGRAM, ...CONTROL_SETTINGS];
  const args = ['-c', GUARD, 'sh', socket ?? '', session, ...client];
  const stdio: ['pipe', 'pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe', 'pipe'];
  try {
    // A server started by it keeps this working directory.
    const env = clientEnvironment(environment, socket !== null);
    return ok(await startHelper(() => spawn('/bin/sh', args, { cwd: '/', env, detached: true, stdio })));
  } catch (error) {
    if (isErrno(error, 'E2BIG', ...UNUSABLE)) return err(error.message);
    throw error;
  }
}

/** Overrides the user's settings: see GUARD; and the client must not end up in another session. */
const CONTROL_SETTINGS =
  '; set-option destroy-unattached off ; set-option detach-on-destroy on ; set-option -w remain-on-exit off'.split(' ');

export class Connection {
  server: ServerLife = { id: '', pasteFlags: '' };
  isOver = false;
  readonly #client: Client;
  readonly #session: string;
  readonly #waiting: Waiting[] = [];
  readonly #gone: Promise<void>;
  #lastWords = '';

  constructor(client: Client, session: string) {
    this.#client = client;
    this.#session = session;
    client.once('error', (error) => this.#end(error.message));
    const { stdin, stdout, stderr } = client;
    const read = blockReader({
      block: (block) => this.#take(block),
      exit: (reason) => {
        this.#lastWords ||= reason;
      },
      linesDue: () => this.#linesDue(),
    });
    stdout.setEncoding('utf8').on('data', read);
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#lastWords ||= text.trim();
    });
    // A client that reads nothing is exiting; its last output follows. The guard may have been killed.
    stdin.on('error', () => undefined);
    this.#guarded?.on('error', () => undefined);
    const closed = [stdout, stderr].map((pipe) => new Promise((resolve) => void pipe.once('close', resolve)));
    this.#gone = Promise.all(closed).then(() => this.#end(''));
    this.#hold(false);
  }

  /** Null, or why the connection is unusable. */
  async greet(settings: readonly Command[]): Promise<string | null> {
    const answer = await this.ask([
      ['display-message', '-p', '#{pid} #{start_time}'],
      ['list-commands', 'paste-buffer'],
      ...settings,
    ]);
    if (answer.kind !== 'done') return answer.error;
    const [server = [], usage = []] = answer.blocks;
    this.server = { id: server.join(''), pasteFlags: pasteFlags(usage) };
    this.#guarded?.write(`${this.server.id.split(' ')[0] ?? ''}\n`);
    return null;
  }

  async ask(commands: readonly Command[], linesDue: LinesDue | null = null): Promise<Answer> {
    const line = commandLine(commands);
    if (!line.ok) return { kind: 'refused', at: 0, error: line.error };
    if (this.isOver) return { kind: 'lost', error: this.#reason() };
    return new Promise((tell) => {
      if (this.#waiting.length === 0) this.#hold(true);
      this.#waiting.push({ commands: commands.length, blocks: [], linesDue, tell });
      this.#client.stdin.write(`${line.value}\n`);
    });
  }

  /** Resolves when its own session is gone; agent sessions stay. Keeps the process alive until then. */
  async close(): Promise<void> {
    this.#end('it was closed');
    await within(this.#gone, { timeoutMs: CLOSING_MAX_MS });
  }

  #take({ own, failed, lines }: Block): void {
    if (!own) {
      if (failed) this.#lastWords ||= lines.join('\n');
      return;
    }
    const [first] = this.#waiting;
    if (first === undefined) return;
    const { commands, blocks, tell } = first;
    if (!failed) blocks.push(lines);
    if (!failed && blocks.length < commands) return;
    this.#waiting.shift();
    if (this.#waiting.length === 0) this.#hold(false);
    if (failed) tell({ kind: 'refused', at: blocks.length, error: lines.join('\n') });
    else tell({ kind: 'done', blocks });
  }

  #linesDue(): number {
    const [first] = this.#waiting;
    if (first === undefined || first.linesDue === null || first.blocks.length < first.commands - 1) return 0;
    return first.linesDue(first.blocks[0] ?? []);
  }

  #end(reason: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#lastWords ||= reason;
    this.#hold(false);
    // Other streams are read to their end.
    this.#client.stdin.end(`kill-session -t =${this.#session}\n`);
    this.#guarded?.destroy();
    for (const { tell } of this.#waiting.splice(0)) tell({ kind: 'lost', error: this.#reason() });
  }

  #reason(): string {
    return this.#lastWords === '' ? LOST : `${LOST}: ${this.#lastWords}`;
  }

  get #guarded(): Writable | null {
    return (this.#client.stdio[GUARDED] ?? null) as Writable | null;
  }

  #hold(held: boolean): void {
    for (const part of [this.#client, ...this.#client.stdio]) {
      // Pipes are sockets here, but the declared types lack `unref`.
      const handle = part as { ref?(): void; unref?(): void } | null;
      if (held) handle?.ref?.();
      else handle?.unref?.();
    }
  }
}

// Parser of tmux control mode: blocks, each the answer to a command, and notifications between them. Only one
// notification matters: `%exit`, the last.
//
// A block ends with a line that repeats the numbers of its first line. Output of a pane may look like that too: if the
// number of lines is known, no earlier line counts as the end.

export interface Block {
  /** Answers a command of ours; other blocks belong to hooks and to the client's command line. */
  readonly own: boolean;
  readonly failed: boolean;
  readonly lines: readonly string[];
}

interface BlockEvents {
  block(block: Block): void;
  exit(reason: string): void;
  /** Minimum number of lines in our next block. */
  linesDue(): number;
}

/** Returns a function that takes more output. */
export function blockReader(events: BlockEvents): (text: string) => void {
  let partial = '';
  let open: { readonly numbers: string; readonly own: boolean; readonly lines: string[] } | null = null;
  const take = (line: string): void => {
    if (open === null) {
      const [, numbers = '', flags] = /^%begin (\d+ \d+ (\d+))$/.exec(line) ?? [];
      if (flags !== undefined) open = { numbers, own: flags === '1', lines: [] };
      else if (/^%exit(?: |$)/.test(line)) events.exit(line.slice('%exit '.length));
      return;
    }
    const { numbers, own, lines } = open;
    const isEnd = line === `%end ${numbers}` || line === `%error ${numbers}`;
    if (!isEnd || (own && lines.length < events.linesDue())) {
      lines.push(line);
      return;
    }
    open = null;
    events.block({ own, failed: line.startsWith('%error'), lines });
  };
  return (text) => {
    const lines = (partial + text).split('\n');
    partial = lines.pop() ?? '';
    for (const line of lines) take(line);
  };
}
