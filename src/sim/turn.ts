// One turn of a simulated agent: what its script, or its own good will, makes it do about a prompt.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { unreachable } from '../base/assert.ts';
import type { JsonMap } from '../base/json.ts';
import { parseDuration } from '../base/time.ts';
import type { PromptMessage } from '../ir/prompt-text.ts';
import { plainText } from '../ir/text.ts';
import { answerTo } from './answers.ts';
import type { ChildEnd } from './child.ts';
import { runChild } from './child.ts';
import { filled } from './script.ts';
import type { Action } from './script-action.ts';

export interface TurnRequest {
  readonly agent: string;
  readonly message: PromptMessage;
  /** Which prompt of the agent this is, from 1. */
  readonly number: number;
  /** An interrupt: what is under way ends, and the rest is dropped. */
  readonly interrupt: AbortSignal;
  readonly say: (line: string) => void;
  /** It calls a program, and has its answer. */
  readonly toolBegun: (call: string) => void;
  readonly toolEnded: (lines: readonly string[]) => void;
  /** Null: that is not told. */
  readonly spend: (usd: number | null, tokens: number | null) => void;
  /** It ends its turn with an error of its own. */
  readonly fail: (text: string) => void;
  /** From now on neither interrupts nor requests to end are heard. */
  readonly goDeaf: () => void;
  /** Its host is told that it may not work any more, and until when, where that is known. */
  readonly tellLimit: (text: string, until: number | null) => void;
}

/** `stopped`: at its prompt, without having reported; the stop hook is next. `quiet`: idle, and no hook fires. */
export type TurnEnd = 'reported' | 'stopped' | 'quiet';

export class Turn {
  readonly #request: TurnRequest;
  readonly #words: Readonly<Record<string, string>>;
  #reported = false;

  constructor(request: TurnRequest) {
    const { agent, message, number } = request;
    this.#request = request;
    this.#words = { agent, step: message.step, n: String(number) };
  }

  async follow(actions: readonly Action[]): Promise<TurnEnd> {
    for (const action of actions) {
      const end = await this.#perform(action);
      if (this.#request.interrupt.aborted) return 'quiet';
      if (end !== 'goes-on') return end;
    }
    return this.#reported ? 'reported' : 'stopped';
  }

  /** What is asked for; once more where that is refused. Nobody waits for a report on what is fired and forgotten. */
  async oblige(): Promise<TurnEnd> {
    if (this.#request.message.mode === 'fire-forget') return 'quiet';
    for (let attempt = 0; attempt < 2 && !this.#reported; attempt += 1) {
      if (this.#request.interrupt.aborted) return 'quiet';
      await this.#done(null, null);
    }
    return this.#reported ? 'reported' : 'quiet';
  }

  /** The stop hook: whether the agent is told to go on. */
  async prime(): Promise<boolean> {
    const { status, stdout } = await this.#meow('prime', '--format', 'prompt');
    return status === 0 && stdout.trim() !== '';
  }

  async #perform(action: Action): Promise<TurnEnd | 'goes-on'> {
    const { say, interrupt } = this.#request;
    switch (action.kind) {
      case 'say':
        say(this.#fill(action.text));
        return 'goes-on';
      case 'wait':
        await asLongAs(interrupt, action.ms);
        return 'goes-on';
      case 'write':
        writeInto(this.#fill(action.path), this.#fill(action.text));
        return 'goes-on';
      case 'run':
        await this.#run('sh', ['-c', this.#fill(action.command)]);
        return 'goes-on';
      case 'event': {
        const data = Object.entries(filled(action.data, this.#words));
        const fields = data.flatMap(([key, value]) => ['--data', `${key}=${plainText(value)}`]);
        await this.#meow('event', this.#fill(action.event), ...fields);
        return 'goes-on';
      }
      case 'ask': {
        say(this.#fill(action.question));
        if (action.gate === null) return 'stopped';
        const { status } = await this.#meow(
          'await-approval',
          this.#fill(action.gate),
          `--prompt=${this.#fill(action.question)}`,
        );
        return status === 0 ? 'goes-on' : 'stopped';
      }
      case 'done':
        for (let times = action.twice ? 2 : 1; times > 0; times -= 1) await this.#done(action.outputs, action.notes);
        return 'goes-on';
      case 'prime':
        return (await this.prime()) ? 'goes-on' : 'quiet';
      case 'wrong':
        await this.#report(action.outputs ?? {}, null);
        return 'goes-on';
      case 'crash':
        return crash(action.how);
      case 'hang':
        say('hangs');
        if (action.hard) this.#request.goDeaf();
        await asLongAs(interrupt, null);
        return 'quiet';
      case 'ignore':
        return 'quiet';
      case 'stop':
        return 'stopped';
      case 'cost':
        this.#request.spend(action.usd, action.tokens);
        return 'goes-on';
      case 'fail':
        this.#request.fail(this.#fill(action.text));
        return 'quiet';
      case 'limit': {
        const text = this.#fill(action.text);
        const ms = parseDuration(text);
        const told = ms === null ? text : `ends in ${text}`;
        say(`usage limit reached, ${told}`);
        this.#request.tellLimit(told, ms === null ? null : Date.now() + ms);
        return 'quiet';
      }
      default:
        return unreachable(action);
    }
  }

  /** Outputs null: a fitting value for each that is asked for. */
  async #done(outputs: JsonMap | null, notes: string | null): Promise<void> {
    const { agent, message } = this.#request;
    const answer = outputs === null ? answerTo(message.expects, agent) : { outputs, files: [] };
    for (const { path, text } of answer.files) writeInto(path, text);
    const { status } = await this.#report(answer.outputs, notes);
    if (status === 0) this.#reported = true;
  }

  #report(outputs: JsonMap, notes: string | null): Promise<ChildEnd> {
    const values = Object.keys(outputs).length === 0 ? [] : ['--json', JSON.stringify(filled(outputs, this.#words))];
    return this.#meow('done', ...values, ...(notes === null ? [] : ['--notes', this.#fill(notes)]));
  }

  #meow(...args: readonly string[]): Promise<ChildEnd> {
    return this.#run('meow', args);
  }

  async #run(program: string, args: readonly string[]): Promise<ChildEnd> {
    const { message, interrupt, toolBegun, toolEnded } = this.#request;
    toolBegun([program, ...args].join(' '));
    const end = await runChild({ program, args, step: message.step, signal: interrupt });
    const said = [end.stdout, end.stderr].filter((text) => text.trim() !== '').map((text) => text.trimEnd());
    toolEnded(end.status === 0 ? said : [...said, `(status ${end.status})`]);
    return end;
  }

  #fill(text: string): string {
    return filled(text, this.#words);
  }
}

/** Null: until the interrupt. */
async function asLongAs(interrupt: AbortSignal, ms: number | null): Promise<void> {
  try {
    for (let left = ms ?? Infinity; left > 0 && !interrupt.aborted; left -= WAIT_MAX_MS) {
      await pause(Math.min(left, WAIT_MAX_MS), undefined, { signal: interrupt });
    }
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
  }
}

/** The longest that a timer can count. */
const WAIT_MAX_MS = 2 ** 31 - 1;

function writeInto(path: string, text: string): void {
  const target = resolve(path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

async function crash(how: number | NodeJS.Signals): Promise<never> {
  if (typeof how === 'number') process.exit(how);
  // What we catch would not end us.
  process.removeAllListeners(how);
  process.kill(process.pid, how);
  return new Promise<never>(() => undefined);
}
