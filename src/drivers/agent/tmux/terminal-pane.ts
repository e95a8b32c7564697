// A pane, by the id that it keeps for as long as its server lives, whatever becomes of its session's name and place.
//
// X5  What is put in reaches the program once. Modes that a person has left the pane in are ended in the same moment: they
//     would take keys for themselves, and hide that the program wants pastes bracketed. Where the connection is lost on
//     the way, a mark on the pane tells whether it came before that; if not, it is put in again. Where it is meant for the
//     screen of a look, tmux compares in the same moment, and puts nothing in where cursor, mode or the amount of text is
//     another. (A spinner may turn meanwhile. What the program has printed and tmux has not yet read is not seen.)
// X6  A pane of another life of the server is another pane, though it has the same id.
//
// A pane that cannot be asked, because tmux cannot be started, is taken for one that is gone.

import { randomBytes } from 'node:crypto';
import { closeSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { openPrivate } from '../../../sys/private-file.ts';
import { formatText } from './command-line.ts';
import type { Command } from './command-line.ts';
import type { Answer, ServerLife } from './connection.ts';
import type { Line, Question } from './client.ts';

export interface TerminalPane {
  /** tmux's own: `%7`. */
  readonly id: string;
  /** Null once it is gone. All of one moment. */
  capture(): Promise<PaneCapture | null>;
  /** The last so many lines of what is on the screen and of what has left it at its top, without blank ones at the end. */
  history(lines: number): Promise<readonly string[]>;
  /** As one paste, byte for byte, bracketed where the program has asked for it. */
  paste(text: Buffer, seen?: PaneCapture): Promise<InputResult>;
  /** Keys by tmux's names. */
  press(keys: readonly string[], seen?: PaneCapture): Promise<InputResult>;
  /** Text as keys. */
  type(text: string, seen?: PaneCapture): Promise<InputResult>;
  /** Ends copy mode, and any other mode that a person has left it in. */
  leaveMode(): Promise<void>;
  /** For what is started in its session from now on. */
  setEnvironment(name: string, value: string): Promise<void>;
  sessionName(): Promise<string | null>;
  /** Together with the session that it was opened in, where it still is in that. */
  kill(): Promise<void>;
}

/** Nothing was put in where it is `gone`, nor where the screen has `changed`; nor, told as that, where tmux cannot have it. */
export type InputResult = 'done' | 'changed' | 'gone';

export interface PaneCapture {
  /** As many as there are rows, each without blanks at its end. */
  readonly lines: readonly string[];
  /** From 0; columns are those of the screen, of which a character may take two. */
  readonly cursor: { readonly row: number; readonly column: number };
  /** A person reads back in it, or has something else open in it. */
  readonly inMode: boolean;
  readonly title: string;
  readonly alternate: boolean;
  readonly columns: number;
  readonly rows: number;
  /** By which tmux knows the screen again. */
  readonly print: string;
}

/** Of the pane: by what it is found in a later life, where its transcript is, what was put in last, how it looked then. */
export const MARKER_OPTION = '@meow_marker';
export const TRANSCRIPT_OPTION = '@meow_transcript';
const INPUT_OPTION = '@meow_input';
const PRINT_OPTION = '@meow_print';
/** Of the session that was made for the pane. */
export const SESSION_OPTION = '@meow_session';

export interface PaneIdentity {
  readonly id: string;
  readonly server: ServerLife;
  readonly transcript: string;
}

/** As in Look.print, once the screen is in the latest buffer. */
const PRINT = '#{cursor_x} #{cursor_y} #{pane_in_mode} #{alternate_on} #{buffer_size}';

/** A connection that is lost this often is lost by what is said. */
const TRIES = 3;

export class Pane implements TerminalPane {
  readonly id: string;
  readonly #line: Line;
  readonly #identity: PaneIdentity;

  constructor(line: Line, identity: PaneIdentity) {
    this.id = identity.id;
    this.#line = line;
    this.#identity = identity;
  }

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

  async history(lines: number): Promise<readonly string[]> {
    const read = await this.#read(
      '#{pane_height} #{history_size}',
      ['capture-pane', '-p', '-t', this.id, '-S', `-${lines}`],
      (text) => {
        const [rows = 0, above = 0] = text.split(' ').map(Number);
        return rows + Math.min(above, lines);
      },
    );
    const printed = (read?.printed ?? []).map(withoutBlanks);
    return printed.slice(0, printed.findLastIndex((line) => line !== '') + 1).slice(-lines);
  }

  async paste(text: Buffer, seen?: PaneCapture): Promise<InputResult> {
    if (text.length === 0) return (await this.#tell('')) === null ? 'gone' : 'done';
    const { server, transcript } = this.#identity;
    const name = `meow-${randomBytes(8).toString('hex')}`;
    const file = join(dirname(transcript), name);
    try {
      if (!isWritten(file, text)) return 'changed';
      const put = await this.#put([['paste-buffer', server.pasteFlags, '-b', name, '-t', this.id]], seen, [
        ['load-buffer', '-b', name, formatText(file)],
      ]);
      if (put !== 'done') await this.#ask([['delete-buffer', '-b', name]]);
      return put;
    } finally {
      rmSync(file, { force: true });
    }
  }

  press(keys: readonly string[], seen?: PaneCapture): Promise<InputResult> {
    return this.#put([['send-keys', '-t', this.id, '--', ...keys]], seen);
  }

  type(text: string, seen?: PaneCapture): Promise<InputResult> {
    // NUL cannot be said to tmux, but by the name of its key.
    const [first = [], ...more] = text.split('\0').map((part) => ['send-keys', '-l', '-t', this.id, '--', part]);
    return this.#put([first, ...more.flatMap((part) => [['send-keys', '-t', this.id, 'C-Space'], part])], seen);
  }

  async leaveMode(): Promise<void> {
    await this.#ask([['copy-mode', '-q', '-t', this.id]]);
  }

  async setEnvironment(name: string, value: string): Promise<void> {
    await this.#ask([['set-environment', '-t', this.id, '--', name, value]]);
  }

  sessionName(): Promise<string | null> {
    return this.#tell('#{session_name}');
  }

  async kill(): Promise<void> {
    const [session = '', isOurs = ''] = (await this.#tell(`#{session_id} #{${SESSION_OPTION}}`))?.split(' ') ?? [];
    // Before its pane, and not in one line: some servers fall when a session goes whose window has just changed.
    if (isOurs !== '') await this.#ask([['kill-session', '-t', session]], { inTurn: true });
    // Its window may be in other sessions too.
    await this.#ask([['kill-pane', '-t', this.id]], { inTurn: true });
  }

  /** `before`: what may take its time. */
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
      const last = await this.#tell(`#{${INPUT_OPTION}}`);
      if (last === null) return 'gone';
      if (answer.kind === 'refused') return 'changed';
      if (last === mark) return 'done';
    }
    return 'gone';
  }

  /** The last of these fails where the screen is another. */
  #guard({ print }: PaneCapture): readonly Command[] {
    return [
      ['capture-pane', '-t', this.id],
      ['set-option', '-F', '-p', '-t', this.id, PRINT_OPTION, PRINT],
      // The one that was just made.
      ['delete-buffer'],
      // No such command: it is looked for only where the condition holds.
      ['if-shell', '-F', '-t', this.id, `#{!=:#{${PRINT_OPTION}},${print}}`, 'screen-has-changed'],
    ];
  }

  /** The value of a format; null where the pane is gone. */
  async #tell(format: string): Promise<string | null> {
    const read = await this.#read(format);
    return read === null ? null : read.text;
  }

  /** The value of a format, and what a command prints in the same moment. `linesDue`: how much, by that value. */
  async #read(format: string, command: Command | null = null, linesDue: (text: string) => number = () => 0) {
    // A pane that is not there is no error to `display-message`: it tells of another.
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

  #ask(commands: readonly Command[], question: Question = {}): Promise<Answer> {
    return this.#line.ask(commands, { ...question, server: this.#identity.server });
  }
}

/** Whether the machine let us. */
function isWritten(path: string, text: Buffer): boolean {
  try {
    const file = openPrivate(path);
    try {
      writeFileSync(file, text);
    } finally {
      closeSync(file);
    }
    return true;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return false;
    throw error;
  }
}

function withoutBlanks(line: string): string {
  return line.replace(/ +$/, '');
}
