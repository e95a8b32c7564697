// A state machine as the tags of answers see it: the names they may use, what each state allows, and the blocks behind
// them. Plain data in a Program; answer-transitions.ts uses it to read answers.

import { err, ok, type Result } from '../base/errors.ts';
import { own } from '../base/json.ts';
import type { TransitionTag } from './tags.ts';
import type { Text } from './text.ts';

export interface TagRule {
  /** Content of the tag: a state, the path of a workflow, or a text for the caller. */
  readonly target: 'state' | 'workflow' | 'back';
  readonly session: 'resume' | 'fork' | 'fresh';
  /** The attribute that names the state to continue at. */
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
  /** By full name: `REVIEW.md`. */
  readonly states: Readonly<Record<string, string>>;
  /** Short names such as `REVIEW`, with the full names they may mean. Ambiguous if there are several. */
  readonly spellings: Readonly<Record<string, readonly string[]>>;
  /** Entry blocks of other workflows, by path relative to this one. */
  readonly workflows: Readonly<Record<string, string>>;
  /** Blocks that require a certain adapter. */
  readonly adapters: Readonly<Record<string, string>>;
  /** Whether a reset keeps pending returns. */
  readonly keepsCallers: boolean;
  readonly asks: AskBlocks;
  /** Folder that paths of other workflows are relative to. Absolute; absent in runs of earlier versions. */
  readonly home?: string;
}

/** Blocks that ask a person: without a timeout, with a timeout, and with a timeout that has a route of its own. */
export type AskBlocks = Readonly<{ open: string; timed: string; routed: string }>;

/** How the answers of one state are read. */
export interface TransitionPolicy {
  readonly machine: string;
  /** Returned text of a script is kept byte for byte; from an agent's, one line end is removed at either end. */
  readonly speaker: 'agent' | 'script';
  /** Null allows everything. */
  readonly allowed: readonly AllowedTransition[] | null;
  /** Take the only allowed transition, whatever the answer says. */
  readonly forced: boolean;
}

/** An allowed transition; null fields match anything. State names are full names. */
export interface AllowedTransition {
  readonly tag: TransitionTag;
  /** A state, or the path of a workflow. */
  readonly target: string | null;
  readonly return: string | null;
  readonly next: string | null;
  readonly payload: string | null;
  /** Defaults for what the answer leaves out. */
  readonly input: Text | null;
  readonly timeout: string | null;
  readonly timeoutNext: string | null;
  readonly approver?: string | null;
}

/** The transition taken if the answer has no tag: the only one allowed, with all parts fixed. */
export function implicitTransition(allowed: readonly AllowedTransition[] | null): AllowedTransition | null {
  const [only, second] = allowed ?? [];
  return only !== undefined && second === undefined && isFixed(only) ? only : null;
}

function isFixed(allowed: AllowedTransition): boolean {
  const { target, requiredAttribute } = TAG_RULES[allowed.tag];
  const inside = target === 'back' ? allowed.payload : allowed.target;
  return inside !== null && (requiredAttribute === null || allowed[requiredAttribute] !== null);
}

export type FoundState = Readonly<{ name: string; block: string }>;

/** Resolves the name of a state as written in a tag, or says why that fails. */
export function findState(machine: Pick<Machine, 'states' | 'spellings'>, written: string): Result<FoundState, string> {
  const { states, spellings } = machine;
  const wanted = written.trim();
  if (wanted === '') return err('it does not name a state');
  if (/[\\/]/.test(wanted)) return err(`${quoted(wanted)} is a path; write the name of the state without its folder`);
  if (wanted === '.' || wanted === '..') return err(`${quoted(wanted)} is not a state`);
  const [first = wanted, second] = own(spellings, wanted) ?? [];
  if (second !== undefined) return err(`${quoted(wanted)} may mean ${first} or ${second}; write the full name`);
  const name = own(states, wanted) === undefined ? first : wanted;
  const block = own(states, name);
  return block === undefined ? err(`there is no state ${quoted(wanted)}`) : ok({ name, block });
}

/** Removes `.`, `..` and double slashes where possible. */
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

export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
