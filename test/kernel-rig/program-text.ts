// Small Programs as text, for traces. Options first, then blocks; one line per step, its words in any order:
//
//   drain 0s                          isolate
//   block main                        block REVIEW visit-first
//   a
//   b needs a,x.* retry 3 delay 10s backoff linear timeout 1m on_error continue|recover:fix
//   c pass route done=inline:child    d gate deploy for ann,bob     n note review (a non-blocking gate)
//   o by body (the block `body` performs it)
//   e turn     f agent w1
//   g each [1,2,3] child width 2      h each [1] child join false     i each file:items.json child key {{item}}
//   l loop round max 3 until check delay 10s exhausted continue       (or: while check, output a.done; exhausted child)
//   a gives NAME (an output)
//   s spawn w1      p prompt w1 wants n      q prompt w1 forget       k kill w1       b asks (a condition)
//
// Routes: KEY=end | expand:B | inline:B | goto:B | reset:B | call:B>R | return:TEXT | fork:B | stop:done|failed | reject

import { assert, present } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { parseDuration } from '../../src/base/time.ts';
import type { CommandSpec, SpawnSpec, TurnSpec } from '../../src/ir/effect.ts';
import type { Act, Block, LoopCheck, OnError, Program, Step } from '../../src/ir/program.ts';
import { DEFAULT_LIMITS, NO_RETRY } from '../../src/ir/program.ts';
import type { Text, ValueTemplate } from '../../src/ir/text.ts';
import { type Target, targetOf, type Transition } from '../../src/ir/transition.ts';

export function parseProgram(lines: readonly string[]): Program {
  const blocks: Record<string, Block> = {};
  let program: Omit<Program, 'blocks' | 'entry'> = {
    format: 2,
    source: { language: 'meow', name: 'trace' },
    cleanup: { success: null, failure: null, stop: null },
    limits: DEFAULT_LIMITS,
    drainMs: 600_000,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
  let now: { name: string; naming: Block['naming']; steps: Step[] } | null = null;
  const open = (name: string, naming: Block['naming']): void => {
    now = { name, naming, steps: [] };
    blocks[name] = { name, parameters: [], naming, steps: now.steps, visits: null };
  };
  for (const line of lines) {
    const [word = '', value = '', naming = 'path'] = line.trim().split(' ');
    if (word === 'drain') program = { ...program, drainMs: duration(value) };
    else if (word === 'isolate') program = { ...program, onFailure: 'isolate' };
    else if (word === 'limit') program = { ...program, limits: { ...program.limits, [value]: Number(naming) } };
    else if (word === 'cleanup')
      program = { ...program, cleanup: { ...program.cleanup, [value]: command(`cleanup on ${value}`) } };
    else if (word === 'visits') visits(blocks, now, Number(value), naming);
    else if (word === 'block') open(value, naming as Block['naming']);
    else {
      if (now === null) open('main', 'path');
      present(now as { steps: Step[] } | null, 'a step outside a block').steps.push(parseStep(line.trim()));
    }
  }
  return { ...program, blocks, entry: present(Object.keys(blocks)[0], 'a program without a block') };
}

/** `visits 2 LATE`: the block is entered at most twice, and then LATE instead. */
function visits(blocks: Record<string, Block>, now: { name: string } | null, max: number, instead: string): void {
  const { name } = present(now, 'visits outside a block');
  const block = present(blocks[name], `no block ${name}`);
  blocks[name] = { ...block, visits: { max, instead: target(instead) } };
}

export function parseFollow(text: string): Transition {
  const [kind, rest] = split(text, ':');
  switch (kind) {
    case 'end':
      return { kind: 'end' };
    case 'expand':
      return { kind: 'expand', target: target(rest), join: 'wait' };
    case 'inline':
      return { kind: 'expand', target: target(rest), join: 'inline' };
    case 'goto':
      return { kind: 'goto', target: target(rest), session: 'resume', dropCallers: false };
    case 'reset':
      return { kind: 'goto', target: target(rest), session: 'fresh', dropCallers: true };
    case 'call':
    case 'function': {
      const [callee, back] = split(rest, '>');
      return {
        kind: 'call',
        target: target(callee),
        returnTo: target(back),
        session: kind === 'call' ? 'fork' : 'fresh',
      };
    }
    case 'return':
      return { kind: 'return', value: { kind: 'text', text: template(rest) } };
    case 'fork':
      return { kind: 'fork', target: target(rest), name: split(rest, '(')[0].toLowerCase() };
    case 'reject':
      return { kind: 'reject' };
    case 'stop':
      return { kind: 'stop', verdict: rest === 'done' ? 'done' : 'failed', reason: null };
    default:
      throw new Error(`no such follow: ${text}`);
  }
}

function parseStep(line: string): Step {
  const [id = '', ...words] = line.split(' ');
  let step: Step = {
    id,
    executor: 'shell',
    needs: [],
    act: { kind: 'effect', effect: command(id) },
    routes: {},
    unrouted: 'done',
    repromptsMax: 0,
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    timeout: null,
    agent: null,
  };
  const act = (value: Act): void => {
    step = { ...step, act: value };
  };
  while (words.length > 0) {
    const word = words.shift() ?? '';
    const next = (): string => present(words.shift(), `${word} wants a value`);
    if (word === 'needs') step = { ...step, needs: next().split(',') };
    else if (word === 'retry') step = { ...step, retry: { ...step.retry, attemptsMax: Number(next()) } };
    else if (word === 'reprompts') step = { ...step, repromptsMax: Number(next()) };
    else if (word === 'loop') act(loop(next()));
    else if (word === 'max' && step.act.kind === 'loop') act({ ...step.act, roundsMax: value(next()) });
    else if (word === 'until' && step.act.kind === 'loop') act({ ...step.act, check: check('after', next()) });
    else if (word === 'while' && step.act.kind === 'loop') act({ ...step.act, check: check('before', next()) });
    else if (word === 'output' && step.act.kind === 'loop') {
      const [id, output] = split(next(), '.');
      act({ ...step.act, check: { kind: 'output', step: id, path: [output] } });
    } else if (word === 'exhausted' && step.act.kind === 'loop') {
      const name = next();
      act({ ...step.act, exhausted: name === 'continue' ? { kind: 'end' } : { kind: 'expand', target: target(name) } });
    } else if (word === 'delay' && step.act.kind === 'loop') act({ ...step.act, delayMs: duration(next()) });
    else if (word === 'delay') step = { ...step, retry: { ...step.retry, delayMs: duration(next()) } };
    else if (word === 'backoff') step = { ...step, retry: { ...step.retry, backoff: next() as 'linear' } };
    else if (word === 'timeout') step = { ...step, timeout: next() };
    else if (word === 'on_error') step = { ...step, onError: onError(next()) };
    else if (word === 'agent') step = { ...step, agent: next() };
    else if (word === 'gives' && step.act.kind === 'effect' && step.act.effect.kind === 'command') {
      const captures = [{ name: next(), from: { kind: 'stdout' }, type: 'any', required: true }] as const;
      act({ ...step.act, effect: { ...step.act.effect, captures } });
    } else if (word === 'strict') step = { ...step, unrouted: 'fail' };
    else if (word === 'pass') act({ kind: 'pass' });
    else if (word === 'by') act({ kind: 'block', target: target(next()) });
    else if (word === 'says') act({ kind: 'effect', effect: command(template(next())) });
    else if (word === 'turn') act({ kind: 'effect', effect: turn(template(next())) });
    else if (word === 'spawn') act({ kind: 'effect', effect: spawn(next()) });
    else if (word === 'kill')
      act({ kind: 'effect', effect: { kind: 'kill', agent: next(), graceful: true, graceMs: 1 } });
    else if (word === 'prompt') {
      const agent = next();
      act({ kind: 'effect', effect: { kind: 'prompt', agent, prompt: `do ${id}`, mode: 'autonomous', expects: [] } });
      step = { ...step, agent };
    } else if (word === 'wants' && step.act.kind === 'effect' && step.act.effect.kind === 'prompt') {
      const expects = [{ name: next(), type: 'number', required: true, description: null } as const];
      act({ ...step.act, effect: { ...step.act.effect, expects } });
    } else if (word === 'forget' && step.act.kind === 'effect' && step.act.effect.kind === 'prompt') {
      act({ ...step.act, effect: { ...step.act.effect, mode: 'fire-forget' } });
      step = { ...step, agent: null };
    } else if (word === 'asks' && step.act.kind === 'effect' && step.act.effect.kind === 'command')
      act({ ...step.act, effect: { ...step.act.effect, verdict: 'condition' } });
    else if (word === 'gate' || word === 'note')
      act({
        kind: 'effect',
        effect: { kind: 'gate', gate: next(), prompt: '', blocks: word === 'gate', approvers: null },
      });
    else if (word === 'for' && step.act.kind === 'effect' && step.act.effect.kind === 'gate')
      act({ ...step.act, effect: { ...step.act.effect, approvers: next().split(',') } });
    else if (word === 'each') act(each(next(), next()));
    else if (word === 'width' && step.act.kind === 'each') act({ ...step.act, width: literal(Number(next())) });
    else if (word === 'key' && step.act.kind === 'each') act({ ...step.act, key: template(next()) });
    else if (word === 'join' && step.act.kind === 'each') act({ ...step.act, join: next() !== 'false' });
    else if (word === 'route') {
      const [key, follow] = split(next(), '=');
      step = { ...step, routes: { ...step.routes, [key]: parseFollow(follow) } };
    } else throw new Error(`no such word in a step: ${word}`);
  }
  return step;
}

function each(items: string, block: string): Act {
  const value: ValueTemplate = items.startsWith('[')
    ? literal(JSON.parse(items) as Json)
    : { kind: 'text', text: template(items) };
  return {
    kind: 'each',
    items: items.startsWith('file:') ? { kind: 'file', path: template(items.slice(5)) } : { kind: 'value', value },
    target: target(block),
    itemName: 'item',
    indexName: 'index',
    key: null,
    parallel: literal(true),
    width: null,
    join: true,
  };
}

function loop(block: string): Act {
  const never: LoopCheck = { kind: 'output', step: 'never', path: ['true'] };
  return {
    kind: 'loop',
    target: target(block),
    check: never,
    roundsMax: literal(1),
    delayMs: 0,
    exhausted: { kind: 'fail' },
  };
}

function check(when: 'before' | 'after', block: string): LoopCheck {
  return { kind: 'block', when, target: target(block) };
}

function value(text: string): ValueTemplate {
  return /^\d+$/.test(text) ? literal(Number(text)) : { kind: 'text', text: template(text) };
}

function onError(text: string): OnError {
  const [kind, block] = split(text, ':');
  if (kind === 'recover') return { kind: 'recover', target: target(block) };
  assert(kind === 'fail' || kind === 'continue', `no such on_error: ${text}`);
  return { kind };
}

/** `B(x=1,y={{a}})` */
function target(text: string): Target {
  const [block, rest] = split(text.replace(/\)$/, ''), '(');
  const pairs = rest === '' ? [] : rest.split(',').map((pair) => split(pair, '='));
  const variables = Object.fromEntries(
    pairs.map(([name, value]) => [name, { kind: 'text', text: template(value) } as const]),
  );
  const named = template(block);
  return typeof named === 'string' ? targetOf(named, variables) : { block: named, names: NAMES, variables };
}

/** Names that a target with placeholders may have in traces. */
const NAMES = { '.child': 'child', child: 'child' };

function literal(value: Json): ValueTemplate {
  return { kind: 'literal', value };
}

function turn(prompt: Text): TurnSpec<Text> {
  return { kind: 'turn', adapter: 'sim', prompt, cwd: null, model: null, effort: null, idleMs: null, steering: null };
}

function spawn(agent: string): SpawnSpec<Text> {
  const plain = { cwd: null, env: {}, channel: null, resumeSession: null, forks: false, args: null };
  return { kind: 'spawn', agent, adapter: 'sim', ...plain };
}

function command(script: Text): CommandSpec<Text> {
  return { kind: 'command', script, cwd: null, env: {}, captures: [], verdict: 'success', errors: [], steering: null };
}

function template(text: string): Text {
  const parts = text.split(/(\{\{[^}]+\}\})/).filter((part) => part !== '');
  if (!parts.some((part) => part.startsWith('{{'))) return text;
  return {
    parts: parts.map((part) => (part.startsWith('{{') ? { path: part.slice(2, -2).split('.'), quote: [] } : part)),
  };
}

function split(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + by.length)];
}

function duration(text: string): number {
  return present(parseDuration(text), `no duration: ${text}`);
}
