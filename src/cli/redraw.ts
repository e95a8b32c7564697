// Lines on a terminal that are drawn anew in place: at most ten times a second when something changed, once a second while
// something runs (its elapsed time changes), and at no other time. The cursor is hidden meanwhile and given back at the
// end, also when the process is suspended or crashes.

import type { WriteStream } from 'node:tty';

import { widthOf } from '../view/row.ts';
import { print, printNow } from './output.ts';
import { terminalSize } from './terminal.ts';

const INTERVAL_MS = 100;
const TICK_MS = 1_000;

export interface Picture {
  /** What to show; each line fits the width. */
  lines(size: { readonly width: number; readonly height: number }): readonly string[];
  /** Whether it changes by time alone. */
  moves(): boolean;
  /** Whether it may be shown at this moment; where not, it is shown at the next change. */
  settled(): boolean;
}

export class Redraw {
  readonly #picture: Picture;
  readonly #terminal: WriteStream;
  /** As drawn last, without colours. */
  #drawn: readonly string[] = [];
  #drawnAt = 0;
  #timer: NodeJS.Timeout | null = null;
  /** It was time to draw, and the picture was not settled. */
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
    if (this.#late && this.#picture.settled()) this.#show();
    else this.#arm(Math.max(0, this.#drawnAt + INTERVAL_MS - Date.now()));
  }

  /** Draws a last time, without a limit of height, and gives the terminal back. */
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
    // The last row is left free, for the cursor to stand in: to write to its end would scroll. The last column as well:
    // a line that fills its row may count as one with the next, and be joined with it when the terminal grows.
    this.#put(this.#picture.lines({ width: Math.max(10, columns - 1), height: Math.max(3, rows - 1) }));
  }

  #put(lines: readonly string[]): void {
    const up = this.#rowsDrawn();
    const lead = up === 0 ? '\r' : `\r\x1b[${up}A`;
    // Line by line, and what is left below at the end: to erase all from the top is to clear the screen, and terminals like
    // tmux keep what was on it among the lines that have scrolled away.
    print(`${lead}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    this.#drawn = lines.map(withoutColours);
  }

  /** How many rows the last picture takes now: a terminal that became narrower has wrapped its lines. */
  #rowsDrawn(): number {
    const { columns, rows } = terminalSize(this.#terminal);
    const taken = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
    return Math.min(taken, rows - 1);
  }

  readonly #resized = (): void => this.changed();

  readonly #suspended = (): void => {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    // The shell will write below the picture: it stays, and a new one begins.
    this.#drawn = [];
    printNow(SHOW_CURSOR);
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #continued = (): void => {
    print(HIDE_CURSOR);
    this.changed();
  };

  readonly #restore = (): void => printNow(SHOW_CURSOR);
}

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';

function withoutColours(line: string): string {
  // eslint-disable-next-line no-control-regex -- colours are control sequences
  return line.replaceAll(/\x1b\[[0-9;]*m/g, '');
}
