// The simulated agent: a long-lived program that takes prompts from its mailbox one by one and follows its script.
// Without a script it reports a suitable value for each requested output.
//
// Its words go to stdout, which is its transcript. It writes what it must remember after a restart (how often it
// followed each rule) before it acts. It exits on request, when its folder is gone, and after an hour without prompts
// and engine: it has no terminal in which a person could find it.

import { existsSync } from 'node:fs';

import { isInterrupt, type PromptMessage } from '../ir/prompt-text.ts';
import { writeJsonFile } from '../sys/files.ts';
import { watchPath } from '../sys/watch.ts';
import { machine } from './child.ts';
import { type Mail, mailboxIn, readMail, tellCost, tellLimit } from './mail.ts';
import { type Memory, readMemory, type SimScript, withPrompt } from './script.ts';
import { followScript, Turn } from './turn.ts';

export interface SimAgentOptions {
  readonly name: string;
  readonly script: SimScript;
  readonly folder: string;
  /** File with the agent's memory; may be absent. */
  readonly memory: string;
  /** The engine's socket: exists while the run has an engine. */
  readonly socket: string | null;
}

const LOOK_MS = 5_000;
/** Poll interval if the system has no file watches left. */
const LOOK_UNWATCHED_MS = 100;
const USELESS_MS = 60 * 60_000;

export class SimAgent {
  readonly #options: SimAgentOptions;
  readonly #queue: { readonly message: PromptMessage; readonly begin: () => void }[] = [];
  /** Interrupts, handled when the agent becomes idle. */
  readonly #interrupts: Mail[] = [];
  #memory: Memory;
  #turn: AbortController | null = null;
  #deaf = false;
  #usefulAt = Date.now();

  constructor(options: SimAgentOptions) {
    this.#options = options;
    this.#memory = readMemory(options.memory);
  }

  open(): void {
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (this.#deaf) return;
        say(`[${signal}]`);
        this.#turn?.abort();
        process.exit(0);
      });
    }
    process.on('SIGINT', () => this.#turn?.abort());
    const watcher = watchPath(mailboxIn(this.#options.folder), () => this.#look());
    setInterval(() => this.#look(), watcher === null ? LOOK_UNWATCHED_MS : LOOK_MS);
    this.#look();
  }

  #look(): void {
    if (this.#deaf) return;
    const { folder, socket } = this.#options;
    const mailbox = mailboxIn(folder);
    if (!existsSync(mailbox)) process.exit(0);
    for (const letter of readMail(mailbox)) this.#receive(letter);
    const isUsed = this.#turn !== null || (socket !== null && existsSync(socket));
    if (isUsed) this.#usefulAt = Date.now();
    else if (Date.now() - this.#usefulAt > USELESS_MS) process.exit(0);
  }

  #receive(letter: Mail): void {
    const { message } = letter;
    this.#usefulAt = Date.now();
    if (message.kind === 'prompt') {
      if (!letter.take()) return;
      this.#queue.push({ message, begin: letter.begin });
      this.#next();
    } else if (isInterrupt(message.key) && this.#turn !== null) {
      if (this.#interrupts.every((other) => other.message.id !== message.id)) this.#interrupts.push(letter);
      this.#turn.abort();
    } else {
      say(`[${message.key}]`);
      letter.take();
    }
  }

  #next(): void {
    if (this.#turn !== null) return;
    const next = this.#queue.shift();
    if (next === undefined) return;
    next.begin();
    const turn = new AbortController();
    this.#turn = turn;
    this.#work(next.message, turn.signal)
      .then(() => {
        if (turn.signal.aborted) say('[interrupted]');
        this.#turn = null;
        for (const letter of this.#interrupts.splice(0)) letter.take();
        this.#next();
      })
      .catch((error: unknown) => {
        // Fails as a program with a bug would.
        process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
        process.exit(70);
      });
  }

  async #work(message: PromptMessage, interrupt: AbortSignal): Promise<void> {
    const { name, script, folder } = this.#options;
    this.#remember(withPrompt(this.#memory));
    say(`> ${message.text.split('\n').join('\n> ')}`);
    const situation = { agent: name, step: message.step, prompt: message.prompt };
    const turn = new Turn({
      world: machine,
      agent: name,
      message,
      number: this.#memory.prompts,
      interrupt,
      say,
      toolBegun: (call) => say(`$ ${call}`),
      toolEnded: (lines) => lines.forEach(say),
      spend: (usage) => tellCost(folder, message.id, usage),
      fail: say,
      goDeaf: () => {
        this.#deaf = true;
      },
      tellLimit: (text, until) => tellLimit(folder, { id: message.id, text, until }),
    });
    await followScript(turn, script, situation, {
      memory: () => this.#memory,
      remember: (memory) => this.#remember(memory),
    });
  }

  #remember(memory: Memory): void {
    this.#memory = memory;
    writeJsonFile(this.#options.memory, memory);
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
