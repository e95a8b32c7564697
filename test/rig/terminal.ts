// A real terminal: a shell in tmux, on its own socket. Tests read the screen as a user would see it.

import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { MEOW, type Rig, until } from './rig.ts';

export class Terminal implements Disposable {
  readonly #socket: string;
  readonly #rig: Rig;

  constructor(rig: Rig, size: { readonly columns: number; readonly rows: number }) {
    this.#rig = rig;
    this.#socket = join(rig.home, 'tmux');
    const { columns, rows } = size;
    this.#tmux('new-session', '-d', '-s', 'main', '-x', String(columns), '-y', String(rows), 'sh');
    this.type(`PATH=${dirname(MEOW)}:$PATH; PS1='$ '; clear`);
    this.#wait(/^\$ *$/, () => this.screen());
  }

  /** A line, and Enter. */
  type(line: string): void {
    this.#tmux('send-keys', '-t', 'main', '-l', line);
    this.#tmux('send-keys', '-t', 'main', 'Enter');
  }

  /** All bytes that programs print from now on go to a file, too. */
  record(path: string): void {
    this.#tmux('pipe-pane', '-t', 'main', `cat > '${path}'`);
  }

  /** In tmux notation: `C-c`. */
  press(key: string): void {
    this.#tmux('send-keys', '-t', 'main', key);
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-t', 'main', '-x', String(columns), '-y', String(rows));
  }

  /** The screen, without blanks at the ends. */
  screen(): string {
    return this.#tmux('capture-pane', '-p', '-t', 'main').replaceAll(/ +$/gm, '').trimEnd();
  }

  /** The same with its colours. */
  colours(): string {
    return this.#tmux('capture-pane', '-p', '-e', '-t', 'main');
  }

  cursorIsShown(): boolean {
    return this.#tmux('display-message', '-p', '-t', 'main', '#{cursor_flag}').trim() === '1';
  }

  /** Whether a program shows the alternate screen, which hides the text of the shell. */
  isAlternate(): boolean {
    return this.#tmux('display-message', '-p', '-t', 'main', '#{alternate_on}').trim() === '1';
  }

  /** Text as if it came from the clipboard: the terminal marks it, if the program asked for that. */
  paste(text: string): void {
    this.#tmux('set-buffer', text);
    this.#tmux('paste-buffer', '-p', '-t', 'main');
  }

  /** Waits until the screen matches, and returns it. */
  async shows(pattern: RegExp): Promise<string> {
    let seen = '';
    try {
      await until(() => {
        seen = this.screen();
        return pattern.test(seen);
      }, `${pattern} on the screen`);
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}:\n${seen}`, { cause: error });
    }
    return seen;
  }

  [Symbol.dispose](): void {
    this.#tmux('kill-server');
  }

  #wait(pattern: RegExp, read: () => string): void {
    const deadline = Date.now() + 120_000;
    while (!pattern.test(read())) {
      if (Date.now() > deadline) throw new Error(`the terminal did not come up:\n${read()}`);
    }
  }

  #tmux(...args: readonly string[]): string {
    const { TMUX: _, ...environment } = this.#rig.environment;
    return execFileSync('tmux', ['-u', '-S', this.#socket, '-f', '/dev/null', ...args], {
      cwd: this.#rig.folder,
      env: environment,
      encoding: 'utf8',
    });
  }
}
