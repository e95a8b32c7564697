// `{{name}}` in a prompt. Only what looks like a name is a placeholder: other braces are text, as prompts may speak of
// programs that have braces of their own. `{{{{` is a pair that stands for itself.

import { LANE_VARIABLES } from '../../ir/answer-transitions.ts';
import type { Part, Text } from '../../ir/text.ts';

export interface Placeholder {
  readonly path: readonly string[];
  /** Offsets in the text, braces included. */
  readonly from: number;
  readonly to: number;
}

/** What every state can name. The others are variables of the run, its metadata, and attributes of forks. */
export const BUILT_IN: readonly string[] = [
  'input',
  'result',
  'workflow_id',
  'agent_id',
  'state',
  'visit',
  'step_id',
  'timestamp',
  'date',
  'time',
];

/** Who an agent is, and where: no variable takes their place. */
const IDENTITY = new Set(['workflow_id', 'agent_id', 'visit', 'step_id']);

export function builtInName(name: string): string {
  return IDENTITY.has(name) ? `@${name}` : name;
}

const BRACES = /\{\{\{\{|\{\{[ \t]*([\w-]+(?:\.[\w-]+)*)[ \t]*\}\}/g;

/** Texts and placeholders in turn. */
function splitPlaceholders(text: string): readonly (string | Placeholder)[] {
  const parts: (string | Placeholder)[] = [];
  let plain = '';
  let past = 0;
  for (const { 0: whole, 1: name, index } of text.matchAll(BRACES)) {
    plain += text.slice(past, index);
    past = index + whole.length;
    if (name === undefined) {
      plain += '{{';
      continue;
    }
    if (plain !== '') parts.push(plain);
    plain = '';
    parts.push({ path: name.split('.'), from: index, to: past });
  }
  plain += text.slice(past);
  if (plain !== '') parts.push(plain);
  return parts;
}

export function placeholdersIn(text: string): readonly Placeholder[] {
  return splitPlaceholders(text).filter((part) => typeof part !== 'string');
}

/** `state`: what `{{state}}` is. What a state was handed has two names, and is one value. */
export function lowerText(text: string, state: string): Text {
  const parts = splitPlaceholders(text).map((part): Part => {
    if (typeof part === 'string') return part;
    const [head = '', ...rest] = part.path;
    if (head === 'state' && rest.length === 0) return state;
    const name = head === 'result' ? LANE_VARIABLES.input : builtInName(head);
    return { path: [name, ...rest], quote: [] };
  });
  return parts.every((part) => typeof part === 'string') ? parts.join('') : { parts };
}
