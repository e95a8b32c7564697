// Redraws lines on a terminal in place: at most ten times a second after changes, and once a second while something
// runs. The cursor is hidden meanwhile and restored at the end, also if the process is suspended or crashes.

import type { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';

import { cut, widthOf } from '../view/row.ts';
import { print, printNow } from './output.ts';
import { terminalSize } from './terminal.ts';

const INTERVAL_MS = 100;
const TICK_MS = 1_000;
/** The size often changes several times in a row, and tmux reports it late. A picture drawn meanwhile would be misplaced. */
const RESIZE_MS = 300;

export interface Picture {
  /** The lines to show; each fits the width. */
  lines(size: { readonly width: number; readonly height: number }): readonly string[];
  /** Whether it changes with time alone. */
  moves(): boolean;
  /** Whether it may be shown now; otherwise it is shown at the next change. */
  settled(): boolean;
}

export class Redraw {
  readonly #picture: Picture;
  readonly #terminal: WriteStream;
  /** The last drawn lines, without colours. */
  #drawn: readonly string[] = [];
  /**
   * Lines of earlier pictures that scrolled away when the terminal became smaller, without colours. A larger one shows
   * them again, wrapped to its width.
   */
  #hidden: readonly string[] = [];
  #drawnAt = 0;
  #resizedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  /** A redraw was due, but the picture was not settled. */
  #late = false;
  #open = true;

  constructor(picture: Picture, terminal: WriteStream) {
    this.#picture = picture;
    this.#terminal = terminal;
    print(HIDE_CURSOR);
    terminal.on('resize', this.#resized);
    process.on('SIGTSTP', this.#suspended);
    process.on('SIGCONT', this.#continued);
    process.on('exit', this.#restore);
  }

  changed(): void {
    if (!this.#open) return;
    const resizing = this.#resizedAt + RESIZE_MS - Date.now();
    if (this.#late && this.#picture.settled() && resizing <= 0) this.#show();
    else this.#arm(Math.max(0, this.#drawnAt + INTERVAL_MS - Date.now(), resizing));
  }

  /** Draws a last time, without a height limit, and restores the terminal. */
  close(last: readonly string[] | null): void {
    if (!this.#open) return;
    this.#open = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#terminal.off('resize', this.#resized);
    process.off('SIGTSTP', this.#suspended);
    process.off('SIGCONT', this.#continued);
    process.off('exit', this.#restore);
    if (last !== null) this.#put(last);
    print(SHOW_CURSOR);
  }

  #arm(wait: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#late = !this.#picture.settled();
      if (!this.#late) this.#show();
    }, wait);
  }

  #show(): void {
    this.#late = false;
    this.#draw();
    if (this.#picture.moves()) this.#arm(TICK_MS);
  }

  #draw(): void {
    this.#drawnAt = Date.now();
    const { columns, rows } = terminalSize(this.#terminal);
    // The last row stays free for the cursor, since writing to its end would scroll. The last column stays free as
    // well: a full row may be joined with the next when the terminal grows.
    this.#put(this.#picture.lines({ width: Math.max(10, columns - 1), height: Math.max(3, rows - 1) }));
  }

  #put(lines: readonly string[]): void {
    const { columns, rows } = terminalSize(this.#terminal);
    const before = [...this.#hidden, ...this.#drawn];
    // A narrower terminal has wrapped the lines.
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(widthOf(line) / columns));
    const taken = before.reduce((sum, line) => sum + rowsOf(line), 0);
    const up = Math.min(taken, rows - 1);
    this.#hidden = firstRows(before, taken - up, columns, rowsOf);
    const lead = up === 0 ? '\r' : `\r\x1b[${up}A`;
    // Line by line, and the rest below at the end: erasing from the top clears the screen, and terminals like tmux keep
    // the cleared lines in their scrollback.
    // At once: after another change of the size it would be in the wrong place.
    printNow(`${lead}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    this.#drawn = lines.map((line) => stripVTControlCharacters(line));
  }

  readonly #resized = (): void => {
    this.#resizedAt = Date.now();
    this.changed();
  };

  readonly #suspended = (): void => {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    // The shell writes below the picture, so a new picture starts.
    this.#drawn = [];
    this.#hidden = [];
    printNow(SHOW_CURSOR);
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #continued = (): void => {
    print(HIDE_CURSOR);
    this.changed();
  };

  readonly #restore = (): void => printNow(SHOW_CURSOR);
}

/** The lines in the first rows. The last one may be a part of a wrapped line. */
function firstRows(
  lines: readonly string[],
  rows: number,
  columns: number,
  rowsOf: (line: string) => number,
): readonly string[] {
  const first: string[] = [];
  let left = rows;
  for (const line of lines) {
    if (left <= 0) break;
    first.push(rowsOf(line) <= left ? line : cut(line, left * columns, ''));
    left -= rowsOf(line);
  }
  return first;
}

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
