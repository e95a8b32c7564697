// Random Programs of every shape that the kernel knows: graphs with needs and wildcards, expansions, branches,
// iterations, loops, steps that a block performs, recoveries, gates, agents that are started and stopped, and state machines
// with calls and returns. They end, whatever the world answers.

import type { Json } from '../../src/base/json.ts';
import type { EffectSpec } from '../../src/ir/effect.ts';
import type { Act, Block, Loop, OnError, Program, Step } from '../../src/ir/program.ts';
import { canGrow, DEFAULT_LIMITS, NO_RETRY } from '../../src/ir/program.ts';
import type { Text, ValueTemplate } from '../../src/ir/text.ts';
import { targetOf, type Transition } from '../../src/ir/transition.ts';
import { below, oneOf, type Random } from '../../src/base/random.ts';

const DEPTH_MAX = 3;
const SAID = [{ name: 'said', type: 'string', required: true, description: null }] as const;

/** `calls`: some commands are a call of `meow` that waits for a gate or an event, or emits one. */
export interface Shape {
  /** Most steps of the entry block. */
  readonly steps: number;
  readonly depth: number;
  readonly calls: boolean;
}

const LARGE: Shape = { steps: 7, depth: DEPTH_MAX, calls: false };

export function randomProgram(random: Random, shape = LARGE): Program {
  const maker = new Maker(random, shape);
  const machine = random() < 0.3;
  const entry = machine ? maker.machine(0) : maker.graph(0);
  const cleanup = (): Program['cleanup']['stop'] =>
    random() < 0.2 ? { ...command('clean up'), verdict: 'success' } : null;
  return {
    format: 2,
    source: { language: 'meow', name: 'random' },
    entry,
    blocks: maker.blocks,
    cleanup: { success: cleanup(), failure: cleanup(), stop: cleanup() },
    limits: DEFAULT_LIMITS,
    drainMs: oneOf(random, [0, 50, 100_000]),
    onFailure: machine && random() < 0.5 ? 'isolate' : 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
}

class Maker {
  readonly blocks: Record<string, Block> = {};
  readonly #random: Random;
  readonly #shape: Shape;
  #count = 0;

  constructor(random: Random, shape: Shape) {
    this.#random = random;
    this.#shape = shape;
  }

  graph(depth: number): string {
    const name = this.#name('graph');
    const size = depth === 0 ? 1 + below(this.#random, this.#shape.steps) : below(this.#random, 4);
    const steps: Step[] = [];
    for (let index = 0; index < size; index++) steps.push(this.#graphStep(`s${index}`, steps, depth));
    this.blocks[name] = { name, parameters: [], naming: 'path', steps, visits: null };
    return name;
  }

  /**
   * A chain of states, each of which may call another chain, fork a third, or continue: never backwards, so it ends.
   */
  machine(depth: number): string {
    const length = 1 + below(this.#random, 4);
    const names = Array.from({ length }, () => this.#name('state'));
    for (const [index, name] of names.entries()) {
      const next = names[index + 1];
      const step = { ...this.#plain(name), act: turn(name), routes: { done: this.#move(next, depth) } };
      this.blocks[name] = { name, parameters: [], naming: 'visit-first', steps: [step], visits: null };
    }
    return names[0] ?? '';
  }

  /** A block with its own agent: it is started, gets work, mostly one step at a time, and may be stopped. */
  crew(): string {
    const random = this.#random;
    const name = this.#name('crew');
    const agent: Text = { parts: ['w', { path: ['__step_prefix__'], quote: [] }] };
    const step = (id: string, needs: readonly string[], effect: EffectSpec<Text>, waits: boolean): Step => ({
      ...this.#plain(id),
      needs,
      act: { kind: 'effect', effect },
      timeout: null,
      agent: waits ? agent : null,
    });
    const spawn = {
      agent,
      adapter: 'sim',
      cwd: null,
      env: {},
      channel: null,
      resumeSession: null,
      forks: false,
      args: null,
    };
    const work = Array.from({ length: 1 + below(random, 3) }, (_, index): Step => {
      const mode = random() < 0.2 ? 'fire-forget' : oneOf(random, ['autonomous', 'interactive'] as const);
      const prompt = { kind: 'prompt', agent, prompt: `do ${index}`, mode, expects: SAID } as const;
      return step(`p${index}`, ['spawn'], prompt, mode !== 'fire-forget');
    });
    // Alone with its agent: the results of other steps would depend on when the agent dies.
    const [only] = work;
    if (work.length === 1 && only !== undefined && only.agent !== null && random() < 0.2)
      work[0] = { ...only, id: 'deadly' };
    const steps = [step('spawn', [], { kind: 'spawn', ...spawn }, false), ...work];
    if (random() < 0.6) {
      const needs = work.map(({ id }) => id);
      steps.push(step('kill', needs, { kind: 'kill', agent, graceful: true, graceMs: 10 }, false));
    }
    this.blocks[name] = { name, parameters: [], naming: 'path', steps, visits: null };
    return name;
  }

  #move(next: string | undefined, depth: number): Transition {
    if (next === undefined) return { kind: 'return', value: { kind: 'literal', value: 'over' } };
    const roll = this.#random();
    if (depth < this.#shape.depth && roll < 0.25) {
      const callee = this.#random() < 0.3 ? this.graph(depth + 1) : this.machine(depth + 1);
      return { kind: 'call', target: to(callee), returnTo: to(next), session: oneOf(this.#random, ['fork', 'fresh']) };
    }
    const session = oneOf(this.#random, ['resume', 'fresh'] as const);
    return { kind: 'goto', target: to(next), session, dropCallers: false };
  }

  #graphStep(id: string, earlier: readonly Step[], depth: number): Step {
    const random = this.#random;
    const plain = { ...this.#plain(id), needs: this.#needs(earlier) };
    const roll = random();
    if (this.#shape.calls && roll < 0.15)
      return { ...plain, act: { kind: 'effect', effect: command(oneOf(random, CALLS)) } };
    if (depth >= this.#shape.depth || roll < 0.55) return plain;
    if (roll < 0.62) {
      return {
        ...plain,
        act: { kind: 'pass' },
        routes: { done: expand(this.#block(depth), 'inline') },
        retry: NO_RETRY,
      };
    }
    if (roll < 0.67) return { ...plain, act: { kind: 'block', target: to(this.#block(depth)) } };
    if (roll < 0.76) {
      const branch: Act = { kind: 'effect', effect: { ...command(id), verdict: 'condition' } };
      const routes = { true: expand(this.#block(depth), 'wait'), false: expand(this.graph(depth + 1), 'wait') };
      return { ...plain, act: branch, routes };
    }
    if (roll < 0.88) {
      const act: Act = {
        kind: 'each',
        items:
          random() < 0.3
            ? { kind: 'file', path: 'items.json' }
            : { kind: 'value', value: literal(Array.from({ length: below(random, 4) }, (_, index) => index)) },
        target: to(this.#block(depth)),
        itemName: 'item',
        indexName: 'index',
        key: random() < 0.3 ? { parts: ['k', { path: ['item'], quote: [] }] } : null,
        parallel: literal(random() < 0.9),
        width: oneOf(random, [null, literal(1), literal(2)]),
        join: random() < 0.8,
      };
      return { ...plain, act, retry: NO_RETRY };
    }
    if (roll < 0.95) return { ...plain, act: this.#loop(depth), retry: NO_RETRY };
    const gate: EffectSpec<Text> = {
      kind: 'gate',
      gate: { parts: [{ path: ['step_id'], quote: [] }] },
      prompt: '',
      blocks: true,
      approvers: null,
    };
    return { ...plain, act: { kind: 'effect', effect: gate }, retry: NO_RETRY, timeout: null };
  }

  #loop(depth: number): Act {
    const random = this.#random;
    const when = oneOf(random, ['before', 'after', null] as const);
    return {
      kind: 'loop',
      target: to(this.#block(depth)),
      check:
        when === null
          ? { kind: 'output', step: 's0', path: ['said'] }
          : { kind: 'block', when, target: to(this.#check(when === 'before' ? 'while' : 'until')) },
      roundsMax: literal(1 + below(random, 3)),
      delayMs: random() < 0.5 ? 0 : below(random, 40),
      exhausted: oneOf<Loop['exhausted']>(random, [
        { kind: 'fail' },
        { kind: 'end' },
        { kind: 'expand', target: to(this.graph(depth + 1)) },
      ]),
    };
  }

  #check(id: string): string {
    const name = this.#name('check');
    const step: Step = {
      ...this.#plain(id),
      act: { kind: 'effect', effect: { ...command(id), verdict: 'condition' } },
    };
    this.blocks[name] = { name, parameters: [], naming: 'path', steps: [step], visits: null };
    return name;
  }

  #block(depth: number): string {
    const roll = this.#random();
    return roll < 0.2 ? this.machine(depth + 1) : roll < 0.45 ? this.crew() : this.graph(depth + 1);
  }

  #plain(id: string): Step {
    const random = this.#random;
    return {
      id,
      executor: 'shell',
      needs: [],
      act: { kind: 'effect', effect: command(id) },
      routes: {},
      unrouted: 'done',
      repromptsMax: 0,
      onError: this.#onError(),
      retry:
        random() < 0.3
          ? {
              attemptsMax: 2 + below(random, 2),
              delayMs: below(random, 30),
              backoff: 'linear',
              jitter: random() < 0.3 ? 0.5 : 0,
            }
          : NO_RETRY,
      timeout: random() < 0.5 ? '300ms' : null,
      agent: random() < 0.15 ? oneOf(random, ['ann', 'bob']) : null,
    };
  }

  #onError(): OnError {
    const roll = this.#random();
    if (roll < 0.6) return { kind: 'fail' };
    if (roll < 0.9 || this.#count > 12) return { kind: 'continue' };
    return { kind: 'recover', target: to(this.graph(this.#shape.depth)) };
  }

  #needs(earlier: readonly Step[]): string[] {
    const random = this.#random;
    const needs = earlier.filter(() => random() < 0.3).map(({ id }) => id);
    const growing = earlier.filter(canGrow);
    if (growing.length > 0 && random() < 0.3)
      needs.push(`${oneOf(random, growing).id}.${oneOf(random, ['*', '*.*', '*.s0', '2.s0'])}`);
    return needs;
  }

  #name(kind: string): string {
    this.#count += 1;
    return `${kind}${this.#count}`;
  }
}

/** Without a limit a wait may last forever. */
const CALLS = [
  'meow event ready',
  'meow await-event ready --timeout 1h',
  'meow await-event ready',
  'meow await-approval release',
  'meow await-approval release --timeout 1h',
] as const;

const to = targetOf;

function literal(value: Json): ValueTemplate {
  return { kind: 'literal', value };
}

function expand(block: string, join: 'wait' | 'inline'): Transition {
  return { kind: 'expand', target: to(block), join };
}

function command(script: string): Extract<EffectSpec<Text>, { kind: 'command' }> {
  return { kind: 'command', script, cwd: null, env: {}, captures: [], verdict: 'success', errors: [], steering: null };
}

function turn(prompt: string): Act {
  const settings = { cwd: null, model: null, effort: null, idleMs: null, steering: null };
  return { kind: 'effect', effect: { kind: 'turn', adapter: 'sim', prompt, ...settings } };
}
