// One turn of a simulated agent: follows its script, or does what the prompt asks. It reaches everything outside of the agent
// through a `SimWorld`: the processes and files of this machine (child.ts), or the world of a test.

import type { Json, JsonMap } from '../base/json.ts';
import { parseDuration } from '../base/time.ts';
import type { Expectation, Usage } from '../ir/output.ts';
import type { PromptMessage } from '../ir/prompt-text.ts';
import { plainText } from '../ir/text.ts';
import type { Action } from './script-action.ts';
import { filled, type Memory, ruleFor, type SimScript, type Situation, withRule } from './script.ts';

export interface SimWorld {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after the time, or when the signal aborts. Null: only then. */
  wait(ms: number | null, signal: AbortSignal): Promise<void>;
  /** Writes a file, relative to the agent's folder. Creates its folders. */
  write(path: string, text: string): void;
  /** Runs a command of `meow` on behalf of the step. The signal kills it. */
  meow(call: MeowCall, step: string, signal: AbortSignal): Promise<ProgramEnd>;
  /** Runs a shell command in the agent's folder. The signal kills it. */
  shell(command: string, step: string, signal: AbortSignal): Promise<ProgramEnd>;
  /** Ends the agent with an exit status, or by a signal. */
  crash(how: number | NodeJS.Signals): Promise<never>;
}

export type MeowCall =
  | { readonly kind: 'done'; readonly outputs: JsonMap; readonly notes: string | null }
  | { readonly kind: 'event'; readonly event: string; readonly data: JsonMap }
  | { readonly kind: 'await-approval'; readonly gate: string; readonly prompt: string }
  | { readonly kind: 'prime' };

export interface ProgramEnd {
  /** 128 + N after signal N; 127 if it could not start. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command line of a call, without `meow`. */
export function meowArguments(call: MeowCall): readonly string[] {
  switch (call.kind) {
    case 'done': {
      const values = Object.keys(call.outputs).length === 0 ? [] : ['--json', JSON.stringify(call.outputs)];
      return ['done', ...values, ...(call.notes === null ? [] : ['--notes', call.notes])];
    }
    case 'event': {
      const data = Object.entries(call.data).flatMap(([key, value]) => ['--data', `${key}=${plainText(value)}`]);
      return ['event', call.event, ...data];
    }
    case 'await-approval':
      return ['await-approval', call.gate, `--prompt=${call.prompt}`];
    case 'prime':
      return ['prime', '--format', 'prompt'];
  }
}

export interface TurnRequest {
  readonly world: SimWorld;
  readonly agent: string;
  readonly message: PromptMessage;
  /** Number of the prompt, from 1. */
  readonly number: number;
  /** Interrupt: ends the current action and drops the rest. */
  readonly interrupt: AbortSignal;
  readonly say: (line: string) => void;
  /** A program is called, and has answered. */
  readonly toolBegun: (call: string) => void;
  readonly toolEnded: (lines: readonly string[]) => void;
  readonly spend: (usage: Usage) => void;
  /** Ends the turn with an error of the agent. */
  readonly fail: (text: string) => void;
  /** Ignores interrupts and requests to exit from now on. */
  readonly goDeaf: () => void;
  /** Reports a usage limit to the host, with its end if known. */
  readonly tellLimit: (text: string, until: number | null) => void;
}

/** `stopped`: at its prompt without a report; the stop hook is next. `quiet`: idle, and no hook fires. */
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

  /** Nobody waits for a report of this turn. */
  get isUnreported(): boolean {
    return this.#request.message.mode === 'fire-forget';
  }

  async follow(actions: readonly Action[]): Promise<TurnEnd> {
    for (const action of actions) {
      const end = await this.#perform(action);
      if (this.#request.interrupt.aborted) return 'quiet';
      if (end !== 'goes-on') return end;
    }
    return this.#reported ? 'reported' : 'stopped';
  }

  /** Reports what is requested; once more if that is rejected. Fire-and-forget prompts need no report. */
  async oblige(): Promise<TurnEnd> {
    if (this.isUnreported) return 'quiet';
    for (let attempt = 0; attempt < 2 && !this.#reported; attempt += 1) {
      if (this.#request.interrupt.aborted) return 'quiet';
      await this.#done(null, null);
    }
    return this.#reported ? 'reported' : 'quiet';
  }

  /** The stop hook: whether the agent is told to continue. */
  async prime(): Promise<boolean> {
    const { status, stdout } = await this.#meow({ kind: 'prime' });
    return status === 0 && stdout.trim() !== '';
  }

  async #perform(action: Action): Promise<TurnEnd | 'goes-on'> {
    const { say, interrupt, world } = this.#request;
    switch (action.kind) {
      case 'say':
        say(this.#fill(action.text));
        return 'goes-on';
      case 'wait':
        await world.wait(action.ms, interrupt);
        return 'goes-on';
      case 'write':
        world.write(this.#fill(action.path), this.#fill(action.text));
        return 'goes-on';
      case 'run':
        await this.#shell(this.#fill(action.command));
        return 'goes-on';
      case 'event': {
        const [event, data] = [this.#fill(action.event), filled(action.data, this.#words)];
        await this.#meow({ kind: 'event', event, data });
        return 'goes-on';
      }
      case 'ask': {
        say(this.#fill(action.question));
        if (action.gate === null) return 'stopped';
        const [gate, prompt] = [this.#fill(action.gate), this.#fill(action.question)];
        const { status } = await this.#meow({ kind: 'await-approval', gate, prompt });
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
        return world.crash(action.how);
      case 'hang':
        say('hangs');
        if (action.hard) this.#request.goDeaf();
        await world.wait(null, interrupt);
        return 'quiet';
      case 'ignore':
        return 'quiet';
      case 'stop':
        return 'stopped';
      case 'cost':
        this.#request.spend(action.usage);
        return 'goes-on';
      case 'fail':
        this.#request.fail(this.#fill(action.text));
        return 'quiet';
      case 'limit': {
        const text = this.#fill(action.text);
        const ms = parseDuration(text);
        const told = ms === null ? text : `ends in ${text}`;
        say(`usage limit reached, ${told}`);
        this.#request.tellLimit(told, ms === null ? null : world.now() + ms);
        return 'quiet';
      }
    }
  }

  /** `outputs` null: a suitable value for each requested output. */
  async #done(outputs: JsonMap | null, notes: string | null): Promise<void> {
    const { agent, message } = this.#request;
    const answer = outputs === null ? answerTo(message.expects, agent) : { outputs, files: [] };
    for (const { path, text } of answer.files) this.#request.world.write(path, text);
    const { status } = await this.#report(answer.outputs, notes);
    if (status === 0) this.#reported = true;
  }

  #report(outputs: JsonMap, notes: string | null): Promise<ProgramEnd> {
    const told = notes === null ? null : this.#fill(notes);
    return this.#meow({ kind: 'done', outputs: filled(outputs, this.#words), notes: told });
  }

  #meow(call: MeowCall): Promise<ProgramEnd> {
    const { world, message, interrupt } = this.#request;
    return this.#called(`meow ${meowArguments(call).join(' ')}`, world.meow(call, message.step, interrupt));
  }

  #shell(command: string): Promise<ProgramEnd> {
    const { world, message, interrupt } = this.#request;
    return this.#called(`sh -c ${command}`, world.shell(command, message.step, interrupt));
  }

  async #called(call: string, ending: Promise<ProgramEnd>): Promise<ProgramEnd> {
    const { toolBegun, toolEnded } = this.#request;
    toolBegun(call);
    const end = await ending;
    const output = [end.stdout, end.stderr].filter((text) => text.trim() !== '').map((text) => text.trimEnd());
    toolEnded(end.status === 0 ? output : [...output, `(status ${end.status})`]);
    return end;
  }

  #fill(text: string): string {
    return filled(text, this.#words);
  }
}

/** Works on a prompt: rule after rule, until one ends with a report or the stop hook has nothing more to say. */
export async function followScript(
  turn: Turn,
  { rules }: SimScript,
  situation: Situation,
  { memory, remember }: { readonly memory: () => Memory; readonly remember: (memory: Memory) => void },
): Promise<void> {
  for (let from = 0; ; ) {
    const found = ruleFor(rules, situation, memory(), from);
    if (found === null) {
      await turn.oblige();
      return;
    }
    remember(withRule(memory(), found.number));
    const end = await turn.follow(found.rule.actions);
    if (end !== 'stopped' || turn.isUnreported || !(await turn.prime())) return;
    from = found.number + 1;
  }
}

// Answers of a simulated agent without a script: a value of the right type for each requested output, so that the
// workflow continues and ends. Outputs that ask for more work (`has_more`, `retry`, `issues_found`) are false.

/** `files` must exist when the outputs are reported; relative to the agent's folder. */
export function answerTo(expects: readonly Expectation[], agent: string) {
  const files: { path: string; text: string }[] = [];
  const outputs = expects.map((expected): [string, Json] => {
    if (expected.type !== 'file_path') return [expected.name, valueFor(expected)];
    const path = `sim-${plain(agent)}-${plain(expected.name)}.txt`;
    files.push({ path, text: `${expected.description ?? expected.name}, as the simulated agent ${agent} wrote it\n` });
    return [expected.name, path];
  });
  return { outputs: Object.fromEntries(outputs), files };
}

function valueFor({ name, type, description }: Expectation): Json {
  switch (type) {
    case 'string':
    case 'file_path':
      return `sim-${name}`;
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return !asksForMore(name);
    case 'json':
      return jsonFor(name, description ?? '');
  }
}

const MORE =
  /^(more|continue|again|retry|rerun|repeat|left|remaining|unfinished|issues?|problems?|errors?|bugs?|fail(s|ed|ure|ures|ing)?|broken|blocked|stuck|conflicts?|missing|needs?|changes)$/;

function asksForMore(name: string): boolean {
  const words = name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).map((word) => word.toLowerCase());
  const denied = words.some((word) => word === 'no' || word === 'not' || word === 'without');
  return !denied && words.some((word) => MORE.test(word));
}

/** Maps have the keys shown in the description. Lists have one item, so that loops run once. */
function jsonFor(name: string, description: string): Json {
  const shown = /\{([^{}]*)\}/.exec(description)?.[1]?.match(/[A-Za-z_]\w*/g) ?? [];
  const map = (keys: readonly string[]): Json => Object.fromEntries(keys.map((key) => [key, `sim-${key}`]));
  const isList = /\b(lists?|arrays?|tasks|items)\b|\[/i.test(`${name.replaceAll('_', ' ')} ${description}`);
  return isList ? [map(['id', 'name', 'title', 'description', ...shown])] : map(shown);
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 80);
}
