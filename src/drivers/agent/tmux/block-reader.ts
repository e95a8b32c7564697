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

export interface BlockEvents {
  block(block: Block): void;
  exit(reason: string): void;
  /** Minimum number of lines in our next block. */
  linesDue(): number;
}

export class BlockReader {
  readonly #events: BlockEvents;
  #partial = '';
  #open: { readonly numbers: string; readonly own: boolean; readonly lines: string[] } | null = null;

  constructor(events: BlockEvents) {
    this.#events = events;
  }

  read(text: string): void {
    const lines = (this.#partial + text).split('\n');
    this.#partial = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const open = this.#open;
    if (open === null) {
      this.#takeOutside(line);
      return;
    }
    const isEnd = line === `%end ${open.numbers}` || line === `%error ${open.numbers}`;
    if (!isEnd || (open.own && open.lines.length < this.#events.linesDue())) {
      open.lines.push(line);
      return;
    }
    this.#open = null;
    this.#events.block({ own: open.own, failed: line.startsWith('%error'), lines: open.lines });
  }

  #takeOutside(line: string): void {
    const [, numbers = '', flags] = /^%begin (\d+ \d+ (\d+))$/.exec(line) ?? [];
    if (flags !== undefined) this.#open = { numbers, own: flags === '1', lines: [] };
    else if (/^%exit(?: |$)/.test(line)) this.#events.exit(line.slice('%exit '.length));
  }
}
