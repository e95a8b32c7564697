// The whole terminal as a screen of lines, with keys: for commands that a person leaves open.
//
//   screen/1  Only changed lines are written, at most ten times a second, and nothing if nothing changes.
//   screen/2  However the program ends or stops, the terminal is as it was: its text, cursor, modes and stty.
//   screen/3  While another program has the terminal (`lend`), nothing is read from it and nothing is written.

import type { ReadStream, WriteStream } from 'node:tty';

import { constants } from 'node:os';
import { printNow } from './output.ts';
import { type Key, KeyReader } from './keys.ts';
import { terminalSize } from './terminal.ts';

export interface ScreenSize {
  readonly width: number;
  readonly height: number;
}

export interface ScreenView {
  /** The lines to show, at most `height`; each fits the width. */
  lines(size: ScreenSize): readonly string[];
  /** Whether it changes with time alone. */
  moves(): boolean;
  pressed(key: Key): void;
}

const INTERVAL_MS = 100;
const TICK_MS = 1_000;
/** An escape that nothing follows for so long is the key of that name. */
const ESCAPE_MS = 50;

// The alternate screen, without a cursor and without wrapping; pastes are marked as such.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[H\x1b[2J';
const LEAVE = '\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l';
// Terminals that know it show what is between as one picture.
const BEGIN_PICTURE = '\x1b[?2026h';
const END_PICTURE = '\x1b[?2026l';

export class Screen {
  readonly #view: ScreenView;
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #keys = new KeyReader();
  #drawn: readonly string[] = [];
  #drawnAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #escape: NodeJS.Timeout | null = null;
  /** Whether the terminal is ours now. */
  #has = false;
  #closed = false;
  #close: () => void = () => {};
  /** Resolves when it is closed. */
  readonly closed: Promise<void>;

  constructor(view: ScreenView, input: ReadStream, output: WriteStream) {
    this.#view = view;
    this.#input = input;
    this.#output = output;
    this.closed = new Promise((resolve) => {
      this.#close = resolve;
    });
    input.setEncoding('utf8');
    input.on('data', this.#read);
    // The terminal is gone.
    input.on('end', this.#hungUp);
    input.on('error', this.#hungUp);
    output.on('resize', this.#resized);
    for (const signal of ENDING) process.on(signal, this.#ended);
    process.on('SIGCONT', this.#continued);
    process.on('exit', this.#leave);
    this.#take();
  }

  changed(): void {
    if (!this.#has) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#draw(), Math.max(0, this.#drawnAt + INTERVAL_MS - Date.now()));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#leave();
    this.#input.off('data', this.#read);
    this.#input.off('end', this.#hungUp);
    this.#input.off('error', this.#hungUp);
    this.#output.off('resize', this.#resized);
    for (const signal of ENDING) process.off(signal, this.#ended);
    process.off('SIGCONT', this.#continued);
    process.off('exit', this.#leave);
    this.#input.pause();
    this.#close();
  }

  /** Gives the terminal to `use`, and takes it back afterwards. */
  async lend(use: () => Promise<void>): Promise<void> {
    this.#leave();
    this.#input.pause();
    process.off('SIGCONT', this.#continued);
    try {
      await use();
    } finally {
      if (!this.#closed) {
        process.on('SIGCONT', this.#continued);
        this.#take();
      }
    }
  }

  #take(): void {
    this.#has = true;
    process.on('SIGTSTP', this.#suspended);
    this.#input.setRawMode(true);
    this.#input.resume();
    printNow(ENTER);
    this.#drawn = [];
    this.changed();
  }

  readonly #leave = (): void => {
    if (!this.#has) return;
    this.#has = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#escape !== null) clearTimeout(this.#escape);
    process.off('SIGTSTP', this.#suspended);
    this.#input.setRawMode(false);
    printNow(LEAVE);
  };

  #draw(): void {
    this.#timer = null;
    this.#drawnAt = Date.now();
    const { columns, rows } = terminalSize(this.#output);
    const lines = this.#view.lines({ width: columns, height: rows }).slice(0, rows);
    const changes: string[] = [];
    for (let at = 0; at < Math.max(lines.length, this.#drawn.length); at++) {
      const line = lines[at] ?? '';
      // Erased first: after a line of full width the cursor is on its last character, which erasing would remove.
      if (line !== (this.#drawn[at] ?? '')) changes.push(`\x1b[${at + 1};1H\x1b[K${line}`);
    }
    this.#drawn = lines;
    if (changes.length > 0) printNow(`${BEGIN_PICTURE}${changes.join('')}${END_PICTURE}`);
    if (this.#view.moves()) this.#timer = setTimeout(() => this.#draw(), TICK_MS);
  }

  readonly #read = (piece: string): void => {
    if (this.#escape !== null) clearTimeout(this.#escape);
    for (const key of this.#keys.read(piece)) this.#press(key);
    if (!this.#keys.isPending || !this.#has) return;
    this.#escape = setTimeout(() => {
      for (const key of this.#keys.flush()) this.#press(key);
    }, ESCAPE_MS);
  };

  #press(key: Key): void {
    if (!this.#has) return;
    if (key.kind !== 'key') this.#view.pressed(key);
    else if (key.name === 'ctrl-c') this.#ended('SIGINT');
    // The whole group stops, as if the terminal had sent the signal; it reaches `#suspended`.
    else if (key.name === 'ctrl-z') process.kill(0, 'SIGTSTP');
    else if (key.name === 'ctrl-l') this.#repaint();
    else this.#view.pressed(key);
  }

  readonly #resized = (): void => {
    if (this.#has) this.#repaint();
  };

  #repaint(): void {
    printNow('\x1b[H\x1b[2J');
    this.#drawn = [];
    this.changed();
  }

  readonly #suspended = (): void => {
    this.#leave();
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #continued = (): void => {
    if (!this.#has && !this.#closed) this.#take();
  };

  readonly #hungUp = (): void => this.#ended('SIGHUP');

  readonly #ended = (signal: NodeJS.Signals): void => {
    // The program that has the terminal receives it too, and ends or continues.
    if (!this.#has && signal === 'SIGINT') return;
    this.close();
    process.exit(128 + constants.signals[signal]);
  };
}

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
