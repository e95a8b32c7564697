// What tmux says in control mode: blocks, each the answer to a command, and between them notifications. Of those only the
// last matters: `%exit`, after which nothing follows.
//
// A block ends with the line that repeats the numbers of its beginning. What a command prints may look like that too, for
// a pane can print anything: where it is known how many lines there must be, no earlier line is taken for the end.

export interface Block {
  /** It answers a command of ours; others are those of hooks, and of the client's command line. */
  readonly own: boolean;
  readonly failed: boolean;
  readonly lines: readonly string[];
}

export interface BlockEvents {
  block(block: Block): void;
  exit(reason: string): void;
  /** How many lines the next block of ours has at least. */
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
