// A machine of states, as the tags of answers see it: which names they may use, what each state allows, and which blocks
// that means. Plain data, kept once in a Program; answer-transitions.ts reads answers by it.

import { own } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import type { TransitionTag } from './tags.ts';
import type { Text } from './text.ts';

/** Where each tag leads, in which session, and what it must say beside that. */
export interface TagRule {
  /** What stands between its ends: a state, the path of a workflow, or words for whoever waits for them. */
  readonly target: 'state' | 'workflow' | 'back';
  readonly session: 'resume' | 'fork' | 'fresh';
  /** The attribute that names the state to go on at. */
  readonly requiredAttribute: 'return' | 'next' | null;
}

export const TAG_RULES: Readonly<Record<TransitionTag, TagRule>> = {
  goto: { target: 'state', session: 'resume', requiredAttribute: null },
  reset: { target: 'state', session: 'fresh', requiredAttribute: null },
  call: { target: 'state', session: 'fork', requiredAttribute: 'return' },
  function: { target: 'state', session: 'fresh', requiredAttribute: 'return' },
  fork: { target: 'state', session: 'fresh', requiredAttribute: 'next' },
  result: { target: 'back', session: 'resume', requiredAttribute: null },
  ask: { target: 'back', session: 'resume', requiredAttribute: 'next' },
  'reset-workflow': { target: 'workflow', session: 'fresh', requiredAttribute: null },
  'call-workflow': { target: 'workflow', session: 'fork', requiredAttribute: 'return' },
  'function-workflow': { target: 'workflow', session: 'fresh', requiredAttribute: 'return' },
  'fork-workflow': { target: 'workflow', session: 'fresh', requiredAttribute: 'next' },
};

/** The states that tags of one workflow may name. */
export interface Machine {
  /** By their names in full: `REVIEW.md`. */
  readonly states: Readonly<Record<string, string>>;
  /** Other ways to write a name, and what it then may mean: `REVIEW`. More than one: it is not clear. */
  readonly spellings: Readonly<Record<string, readonly string[]>>;
  /** Paths of other workflows, seen from this one, and the blocks that they begin with. */
  readonly workflows: Readonly<Record<string, string>>;
  /** Blocks that say which adapter they want. */
  readonly adapters: Readonly<Record<string, string>>;
  /** Whether a reset leaves the pending returns as they are. */
  readonly keepsCallers: boolean;
  readonly asks: AskBlocks;
}

/** Blocks that ask a person: for as long as it takes, until a moment, and until a moment with a way to go on from there. */
export interface AskBlocks {
  readonly open: string;
  readonly timed: string;
  readonly routed: string;
}

/** How the answers of one state are read. */
export interface TransitionPolicy {
  /** The name of its machine in the Program. */
  readonly machine: string;
  /** What a script hands back is kept byte for byte; of what an agent does, one line end on either side goes. */
  readonly speaker: 'agent' | 'script';
  /** Null is anything. */
  readonly allowed: readonly AllowedTransition[] | null;
  /** Whatever the answer says, the only transition that is allowed follows. */
  readonly forced: boolean;
}

/** A transition that is allowed; null is any. Names of states are in full. */
export interface AllowedTransition {
  readonly tag: TransitionTag;
  /** A state, or the path of a workflow. */
  readonly target: string | null;
  readonly return: string | null;
  readonly next: string | null;
  readonly payload: string | null;
  /** These stand for what the answer leaves out. */
  readonly input: Text | null;
  readonly timeout: string | null;
  readonly timeoutNext: string | null;
}

/** The transition that follows without being said: the only one allowed, with all its parts fixed. */
export function implicitTransition(allowed: readonly AllowedTransition[] | null): AllowedTransition | null {
  const [only, second] = allowed ?? [];
  return only !== undefined && second === undefined && isFixed(only) ? only : null;
}

function isFixed({ tag, target, return: back, next, payload }: AllowedTransition): boolean {
  const { target: content, requiredAttribute } = TAG_RULES[tag];
  const inside = content === 'back' ? payload : target;
  return inside !== null && (requiredAttribute === null || (requiredAttribute === 'return' ? back : next) !== null);
}

/** The full name of a state and its block, or why a tag that is written so leads nowhere. */
export function findState(
  { states, spellings }: Pick<Machine, 'states' | 'spellings'>,
  written: string,
): Result<{ readonly name: string; readonly block: string }, string> {
  const wanted = written.trim();
  if (wanted === '') return err('it names no state');
  if (/[\\/]/.test(wanted)) return err(`${quoted(wanted)} is a path, and a state is named without its folder`);
  if (wanted === '.' || wanted === '..') return err(`${quoted(wanted)} is no state`);
  const [first = wanted, second] = own(spellings, wanted) ?? [];
  if (second !== undefined) return err(`${quoted(wanted)} may be ${first} or ${second}: write it in full`);
  const name = own(states, wanted) === undefined ? first : wanted;
  const block = own(states, name);
  return block === undefined ? err(`there is no state ${quoted(wanted)}`) : ok({ name, block });
}

/** A path without `.`, `..` and doubled slashes, as far as it can do without. */
export function plainPath(path: string): string {
  const rooted = path.startsWith('/');
  const kept: string[] = [];
  for (const part of path.replaceAll('\\', '/').split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!rooted) kept.push('..');
  }
  return `${rooted ? '/' : ''}${kept.join('/')}`;
}

/** For messages. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/** What every Program must fulfil whose steps are steered; sentences for us, as those of `checkProgram` are. */
export function checkTransitionPolicies(program: {
  readonly blocks: Readonly<Record<string, unknown>>;
  readonly machines: Readonly<Record<string, Machine>>;
  readonly steerings: Readonly<Record<string, TransitionPolicy>>;
}): readonly string[] {
  const { blocks, machines, steerings } = program;
  const problems: string[] = [];
  for (const [name, { states, spellings, workflows, asks }] of Object.entries(machines)) {
    const entered = [...Object.values(states), ...Object.values(workflows), ...Object.values(asks)];
    for (const block of entered) {
      if (own(blocks, block) === undefined) problems.push(`machine ${name}: there is no block ${block}`);
    }
    for (const full of Object.values(spellings).flat()) {
      if (own(states, full) === undefined) problems.push(`machine ${name}: there is no state ${full}`);
    }
  }
  for (const [key, { machine, allowed, forced }] of Object.entries(steerings)) {
    const known = own(machines, machine);
    if (known === undefined) problems.push(`steering ${key}: there is no machine ${machine}`);
    if (forced && implicitTransition(allowed) === null) problems.push(`steering ${key}: nothing is left to be forced`);
    for (const { tag, target, return: back, next, timeoutNext } of allowed ?? []) {
      const states = [TAG_RULES[tag].target === 'workflow' ? null : target, back, next, timeoutNext];
      for (const state of states) {
        if (state !== null && own(known?.states ?? {}, state) === undefined)
          problems.push(`steering ${key}: there is no state ${state}`);
      }
      if (TAG_RULES[tag].target === 'workflow' && target !== null && own(known?.workflows ?? {}, target) === undefined)
        problems.push(`steering ${key}: there is no workflow ${target}`);
    }
  }
  return problems;
}
