// The answer of a simulated agent that has no script to the prompt of a state: a transition that can be taken, so that
// the workflow goes on and ends. The last one that the prompt writes out counts, since prompts name the way out last;
// then one of the policy; then a result. A state that is visited again and again takes its other transitions in turn, so
// that loops end.

import { type LaneContext, readTransitions } from './answer-transitions.ts';
import type { Machine, TransitionPolicy } from './machine.ts';
import { formsOf } from './reminder.ts';
import { allTags } from './tags.ts';

/** After so many visits a state takes the next of its transitions. */
const VISITS_MAX = 10;
/** It is passed in an environment variable. */
const ANSWER_MAX = 10_000;

/** `visit`: number of this visit of the state, from 1. */
export function simulatedAnswer(
  policy: TransitionPolicy,
  machine: Machine,
  lane: LaneContext,
  { prompt, visit }: { readonly prompt: string; readonly visit: number },
): string {
  const isValid = (answer: string): boolean =>
    answer.length <= ANSWER_MAX && readTransitions(policy, machine, lane, answer).kind === 'follows';
  const tags = allTags(prompt).filter(({ name }) => name !== 'print');
  const written = tags.map(({ from, to }) => prompt.slice(from, to)).toReversed();
  const allowed = policy.allowed === null ? [] : formsOf(policy.allowed, machine).toReversed();
  const valid = [...new Set([...written, ...allowed])].filter(isValid);
  if (valid.length > 0) return valid[Math.floor((visit - 1) / VISITS_MAX) % valid.length] ?? RESULT;
  const [state = ''] = Object.keys(machine.states);
  const chosen = allowed.map((form) => form.replaceAll(/(?<=[">])STATE(?=["<])/g, state));
  return [RESULT, ...chosen].find(isValid) ?? RESULT;
}

const RESULT = '<result>done</result>';
