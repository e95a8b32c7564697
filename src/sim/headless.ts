// One headless turn of a simulated agent, in any world: it follows the first rule for its prompt, or reports the requested
// outputs, or gives the answer that it was started with.

import type { Expectation } from '../ir/output.ts';
import type { PromptMessage } from '../ir/prompt-text.ts';
import { type Memory, ruleFor, type SimScript, withPrompt, withRule } from './script.ts';
import { type SimWorld, Turn } from './turn.ts';

export interface HeadlessTurn {
  readonly world: SimWorld;
  readonly agent: string;
  readonly step: string;
  readonly script: SimScript;
  /** The whole prompt. */
  readonly text: string;
  /** If no rule matches and no report is requested; null: a short text. */
  readonly answer: string | null;
  readonly interrupt: AbortSignal;
  readonly memory: Memory;
  remember(memory: Memory): void;
  say(line: string): void;
  tool(state: 'begun' | 'ended', text: string): void;
  goDeaf(): void;
}

export interface HeadlessEnd {
  readonly ok: boolean;
  /** Everything it said, or the error. */
  readonly text: string;
  readonly limit?: { readonly until: number | null };
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly input?: number;
  readonly cached?: number;
  readonly output?: number;
}

export async function workHeadless(given: HeadlessTurn): Promise<HeadlessEnd> {
  const { agent, step, text, interrupt } = given;
  const { prompt, expects, reports } = askedOutputs(text);
  const memory = withPrompt(given.memory);
  const found = ruleFor(given.script.rules, { agent, step, prompt }, memory, 0);
  given.remember(found === null ? memory : withRule(memory, found.number));

  const said: string[] = [];
  let problem: Pick<HeadlessEnd, 'text' | 'limit'> | null = null;
  let cost: Pick<HeadlessEnd, 'usd' | 'tokens' | 'input' | 'cached' | 'output'> = { usd: 0, tokens: 0 };
  const mode = reports ? 'autonomous' : 'fire-forget';
  const message: PromptMessage = { kind: 'prompt', id: step, step, prompt, text, mode, expects };
  const turn = new Turn({
    world: given.world,
    agent,
    message,
    number: memory.prompts,
    interrupt,
    say: (line) => {
      said.push(line);
      given.say(line);
    },
    toolBegun: (call) => given.tool('begun', call),
    toolEnded: (lines) => given.tool('ended', lines.join('\n')),
    spend: ({ usd, tokens, parts }) => {
      cost = { usd, tokens, ...parts };
    },
    fail: (why) => {
      problem = { text: why };
    },
    goDeaf: () => given.goDeaf(),
    tellLimit: (why, until) => {
      problem = { text: `usage limit reached, ${why}`, limit: { until } };
    },
  });
  const end = found === null ? await turn.oblige() : await turn.follow(found.rule.actions);
  if (interrupt.aborted) return { ok: false, text: 'interrupted', ...cost };
  if (problem !== null) return { ok: false, ...(problem as Pick<HeadlessEnd, 'text' | 'limit'>), ...cost };
  if (found === null) said.push(end === 'reported' ? 'Reported.' : (given.answer ?? unscripted(prompt)));
  return { ok: true, text: said.join('\n'), ...cost };
}

/** A planner's verdict if the prompt asks for one. */
function unscripted(prompt: string): string {
  if (/\nAnswer with exactly one JSON object .*\n\n {2}"status" +one of "success"/.test(prompt)) {
    return '{"status":"success","next_step":null,"fix_instructions":null,"blockers":[],"risk_flags":[]}';
  }
  const [first = ''] = prompt.trim().split('\n');
  return `An answer to: ${first.slice(0, 80)}`;
}

// Parses the requests in a prompt, as an agent would read them: the inverse of `promptText`.

export interface AskedOutputs {
  /** The workflow's text without the instructions about outputs and reports. */
  readonly prompt: string;
  /** A report is requested. */
  readonly reports: boolean;
  readonly expects: readonly Expectation[];
}

export function askedOutputs(text: string): AskedOutputs {
  const asked = REQUESTS.exec(text);
  if (asked === null) return { prompt: text, reports: false, expects: [] };
  const expects = (asked[1] ?? '').split('\n').flatMap((line) => expectationIn(line) ?? []);
  return { prompt: text.slice(0, asked.index), reports: true, expects };
}

const REQUESTS = /(?:^|\n)(?:\nExpected outputs:\n((?: {2}.*\n)+))?\n?Report when .*:\n {2}meow done(?: .*)?\s*$/;

function expectationIn(line: string): Expectation | null {
  const fields = /^ {2}(.+?) \((string|number|boolean|json|file_path), (required|optional)\)(?:: (.*))?$/.exec(line);
  if (fields === null) return null;
  const [, name = '', type, need, description] = fields;
  return { name, type: type as Expectation['type'], required: need === 'required', description: description ?? null };
}
