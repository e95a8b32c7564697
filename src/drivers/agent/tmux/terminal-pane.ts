// A pane, addressed by the id that it keeps for the life of its server, whatever happens to its session's name and
// place.
//
// tmux/5   Input reaches the program exactly once. Modes that a person left the pane in are ended in the same command:
//          they would take the keys, and hide that the program wants bracketed paste. After a lost connection, a mark
//          on the pane shows whether the input arrived; if not, it is repeated. If the input is meant for a captured
//          screen, tmux compares in the same command and puts nothing in if cursor, mode or the amount of text differ.
//          (A spinner may turn. Output that tmux has not read yet is not seen.)
// tmux/6   A pane of another server process is another pane, even with the same id.
//
// A pane that cannot be queried because tmux cannot start counts as gone.

import { randomBytes } from 'node:crypto';
import { closeSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { openPrivate } from '../../../sys/files.ts';
import { type TmuxClient, type TmuxRequest, TRIES } from './client.ts';
import { type Command, formatText } from './command-line.ts';
import type { Answer, ServerLife } from './connection.ts';

/** Unless `done`, nothing was put in. `changed`: the screen is another, or tmux cannot represent the input. */
export type InputResult = 'done' | 'changed' | 'gone';

export interface PaneCapture {
  /** One for each row, without trailing blanks. */
  readonly lines: readonly string[];
  /** From 0, in screen columns: a character may take two. */
  readonly cursor: { readonly row: number; readonly column: number };
  /** A person scrolls back, or has something else open. */
  readonly inMode: boolean;
  readonly title: string;
  readonly alternate: boolean;
  readonly columns: number;
  readonly rows: number;
  /** Fingerprint by which tmux recognizes the screen. */
  readonly print: string;
}

/** Options of the pane: its marker, its transcript, the last input, and the screen at that time. */
export const MARKER_OPTION = '@meow_marker';
export const TRANSCRIPT_OPTION = '@meow_transcript';
const INPUT_OPTION = '@meow_input';
const PRINT_OPTION = '@meow_print';
/** Option of the session that was made for the pane. */
export const SESSION_OPTION = '@meow_session';

const KEYS_PER_COMMAND = 256;

/** Same as PaneCapture.print, once the screen is in the latest buffer. */
const PRINT = '#{cursor_x} #{cursor_y} #{pane_in_mode} #{alternate_on} #{buffer_size}';

export class TerminalPane {
  /** tmux's id, such as `%7`. */
  readonly id: string;
  readonly #client: TmuxClient;
  readonly #server: ServerLife;
  readonly #transcript: string;

  constructor(client: TmuxClient, id: string, server: ServerLife, transcript: string) {
    this.id = id;
    this.#client = client;
    this.#server = server;
    this.#transcript = transcript;
  }

  /** Null if it is gone. All values are from the same moment. */
  async capture(): Promise<PaneCapture | null> {
    const read = await this.#read(
      '#{pane_height} #{pane_width} #{cursor_y} #{cursor_x} #{pane_in_mode} #{alternate_on} #{pane_title}',
      ['capture-pane', '-p', '-t', this.id],
      (text) => Number.parseInt(text, 10),
    );
    if (read === null) return null;
    const [rows, columns, row, column, modes, alternate, ...title] = read.text.split(' ');
    const bytes = Buffer.byteLength(read.printed.join('\n')) + 1;
    return {
      lines: read.printed.map(withoutBlanks),
      cursor: { row: Number(row), column: Number(column) },
      inMode: modes !== '0',
      title: title.join(' '),
      alternate: alternate === '1',
      columns: Number(columns),
      rows: Number(rows),
      print: [column, row, modes, alternate, bytes].join(' '),
    };
  }

  /** As one paste, byte for byte, bracketed if the program asked for it. */
  async paste(text: Buffer, seen?: PaneCapture): Promise<InputResult> {
    if (text.length === 0) return (await this.#value('')) === null ? 'gone' : 'done';
    const name = `meow-${randomBytes(8).toString('hex')}`;
    const file = join(dirname(this.#transcript), name);
    try {
      if (!isWritten(file, text)) return 'changed';
      const put = await this.#put([['paste-buffer', this.#server.pasteFlags, '-b', name, '-t', this.id]], seen, [
        ['load-buffer', '-b', name, formatText(file)],
      ]);
      if (put !== 'done') await this.#ask([['delete-buffer', '-b', name]]);
      return put;
    } finally {
      rmSync(file, { force: true });
    }
  }

  /** Keys by tmux's names. */
  press(keys: readonly string[], seen?: PaneCapture): Promise<InputResult> {
    return this.#put([['send-keys', '-t', this.id, '--', ...keys]], seen);
  }

  type(text: string, seen?: PaneCapture): Promise<InputResult> {
    // NUL can be sent only by the name of its key.
    const [first = [], ...more] = text.split('\0').map((part) => ['send-keys', '-l', '-t', this.id, '--', part]);
    return this.#put([first, ...more.flatMap((part) => [['send-keys', '-t', this.id, 'C-Space'], part])], seen);
  }

  /** Bytes as a terminal sends them for keys. */
  keys(bytes: Uint8Array): Promise<InputResult> {
    const codes = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
    const commands: Command[] = [];
    for (let at = 0; at < codes.length; at += KEYS_PER_COMMAND)
      commands.push(['send-keys', '-H', '-t', this.id, '--', ...codes.slice(at, at + KEYS_PER_COMMAND)]);
    return this.#put(commands);
  }

  async leaveMode(): Promise<void> {
    await this.#ask([['copy-mode', '-q', '-t', this.id]]);
  }

  /** Applies to programs that are started in its session afterwards. */
  async setEnvironment(name: string, value: string): Promise<void> {
    await this.#ask([['set-environment', '-t', this.id, '--', name, value]]);
  }

  /** Together with its original session, if it is still there. */
  async kill(): Promise<void> {
    const [session = '', isOurs = ''] = (await this.#value(`#{session_id} #{${SESSION_OPTION}}`))?.split(' ') ?? [];
    // Before its pane, and not on one line: some servers crash if a session goes whose window has just changed.
    if (isOurs !== '') await this.#ask([['kill-session', '-t', session]], { exclusive: true });
    // Its window may be linked to other sessions.
    await this.#ask([['kill-pane', '-t', this.id]], { exclusive: true });
  }

  /** `before`: commands that may take time. */
  async #put(commands: readonly Command[], seen?: PaneCapture, before: readonly Command[] = []): Promise<InputResult> {
    const mark = randomBytes(8).toString('hex');
    const line = [
      ...before,
      ...(seen === undefined ? [] : this.#guard(seen)),
      ['copy-mode', '-q', '-t', this.id],
      ...commands,
      ['set-option', '-p', '-t', this.id, INPUT_OPTION, mark],
    ];
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const answer = await this.#ask(line);
      if (answer.kind === 'done') return 'done';
      const last = await this.#value(`#{${INPUT_OPTION}}`);
      if (last === null) return 'gone';
      if (answer.kind === 'refused') return 'changed';
      if (last === mark) return 'done';
    }
    return 'gone';
  }

  /** The last command fails if the screen differs. */
  #guard({ print }: PaneCapture): readonly Command[] {
    return [
      ['capture-pane', '-t', this.id],
      ['set-option', '-F', '-p', '-t', this.id, PRINT_OPTION, PRINT],
      // Deletes the buffer just made.
      ['delete-buffer'],
      // Not a tmux command: it is looked up only if the condition holds, and then fails.
      ['if-shell', '-F', '-t', this.id, `#{!=:#{${PRINT_OPTION}},${print}}`, 'screen-has-changed'],
    ];
  }

  /** Value of a format; null if the pane is gone. */
  async #value(format: string): Promise<string | null> {
    return (await this.#read(format))?.text ?? null;
  }

  /** Value of a format, and the output of a command at the same moment. `linesDue`: minimum lines, by that value. */
  async #read(format: string, command: Command | null = null, linesDue: (text: string) => number = () => 0) {
    // `display-message` does not fail for a missing pane: it reports another one.
    const ownText = (lines: readonly string[] = []): string | null => {
      const text = lines.join('\n');
      return text.startsWith(`${this.id} `) ? text.slice(this.id.length + 1) : null;
    };
    const first = ['display-message', '-p', '-t', this.id, `#{pane_id} ${format}`];
    const answer = await this.#ask(command === null ? [first] : [first, command], {
      repeatable: true,
      linesDue: (lines) => {
        const text = ownText(lines);
        return text === null ? 0 : linesDue(text);
      },
    });
    if (answer.kind !== 'done') return null;
    const text = ownText(answer.blocks[0]);
    return text === null ? null : { text, printed: answer.blocks[1] ?? [] };
  }

  #ask(commands: readonly Command[], request: TmuxRequest = {}): Promise<Answer> {
    return this.#client.ask(commands, { ...request, server: this.#server });
  }
}

function isWritten(path: string, text: Buffer): boolean {
  return tolerate(UNUSABLE, false, () => {
    const file = openPrivate(path);
    try {
      writeFileSync(file, text);
      return true;
    } finally {
      closeSync(file);
    }
  });
}

function withoutBlanks(line: string): string {
  return line.replace(/ +$/, '');
}
