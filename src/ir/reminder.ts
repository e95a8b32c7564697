// Reminders for answers that cannot be followed: all allowed tags, each as it must be written.

import { type AllowedTransition, type Machine, TAG_RULES, type TransitionPolicy } from './machine.ts';
import { TRANSITION_TAGS } from './tags.ts';

export interface RefusedAnswer {
  readonly kind: 'refused';
  /** A sentence for people. */
  readonly message: string;
  /** Text for the agent, with all allowed tags. */
  readonly reminder: string;
}

/** `message`: the reason; drivers may have reasons of their own. */
export function refuseAnswer({ allowed }: TransitionPolicy, machine: Machine, message: string): RefusedAnswer {
  const forms = formsOf(allowed, machine);
  const several = forms.some((form) => form.startsWith('<fork'))
    ? ['', 'Several forks may stand together if they have the same next.']
    : [];
  const reminder = [
    `Your last answer could not be followed: ${message}.`,
    '',
    forms.length === 1
      ? 'End your answer with this tag, exactly as it is written here:'
      : 'End your answer with exactly one of these tags, exactly as they are written here:',
    '',
    ...forms,
    ...legendOf(forms, machine),
    ...several,
  ].join('\n');
  return { kind: 'refused', message, reminder };
}

const ANY_TEXT = '…';
const STATE = 'STATE';
const WORKFLOW = 'WORKFLOW';

/** All allowed tags, each as it must be written. */
export function formsOf(allowed: readonly AllowedTransition[] | null, { workflows }: Machine): readonly string[] {
  const elsewhere = Object.keys(workflows).length > 0;
  const all = TRANSITION_TAGS.filter((tag) => elsewhere || TAG_RULES[tag].target !== 'workflow');
  return (allowed ?? all.map((tag) => ({ tag }))).map(formOf);
}

function formOf(allowed: Pick<AllowedTransition, 'tag'> & Partial<AllowedTransition>): string {
  const { tag, target, payload, timeout, timeoutNext, approver } = allowed;
  const { target: content, requiredAttribute } = TAG_RULES[tag];
  const required = requiredAttribute === null ? {} : { [requiredAttribute]: allowed[requiredAttribute] ?? STATE };
  const attributes = Object.entries({ ...required, timeout, timeout_next: timeoutNext, approver }).flatMap(
    ([key, value]) => (value === null || value === undefined ? [] : [` ${key}="${value}"`]),
  );
  const inside = content === 'back' ? (payload ?? ANY_TEXT) : (target ?? (content === 'workflow' ? WORKFLOW : STATE));
  return `<${tag}${attributes.join('')}>${inside}</${tag}>`;
}

function legendOf(forms: readonly string[], { states, workflows }: Machine): readonly string[] {
  const uses = (word: string): boolean =>
    forms.some((form) => form.includes(`"${word}"`) || form.includes(`>${word}<`));
  const lines = [
    ...(uses(STATE) ? [`${STATE} is one of: ${Object.keys(states).join(', ')}`] : []),
    ...(uses(WORKFLOW) ? [`${WORKFLOW} is one of: ${Object.keys(workflows).join(', ')}`] : []),
    ...(forms.some((form) => form.includes(`>${ANY_TEXT}<`)) ? [`${ANY_TEXT} is whatever you have to say.`] : []),
  ];
  return lines.length === 0 ? [] : ['', ...lines];
}
