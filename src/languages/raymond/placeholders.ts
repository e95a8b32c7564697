// `{{name}}` in a prompt. Only text that looks like a name is a placeholder; other braces are plain text, because
// prompts may contain code. `{{{{` is a literal pair of braces.

import { LANE_VARIABLES } from '../../ir/answer-transitions.ts';
import type { Part, Text } from '../../ir/text.ts';

export interface Placeholder {
  readonly path: readonly string[];
  /** Offsets in the text, including the braces. */
  readonly from: number;
  readonly to: number;
}

/** Names that every state can use. Others are variables of the run, its metadata, and attributes of forks. */
export const BUILT_IN: readonly string[] = [
  'input',
  'result',
  'workflow_id',
  'agent_id',
  'task_folder',
  'ask_id',
  'state',
  'visit',
  'step_id',
  'timestamp',
  'date',
  'time',
];

/** The identity of an agent, which no variable may replace, by the names of the kernel. */
const IDENTITY: ReadonlyMap<string, string> = new Map([
  ['workflow_id', '@workflow_id'],
  ['agent_id', '@agent_id'],
  ['task_folder', '@lane_folder'],
  ['visit', '@visit'],
  ['step_id', '@step_id'],
]);

export function builtInName(name: string): string {
  return IDENTITY.get(name) ?? name;
}

const BRACES = /\{\{\{\{|\{\{[ \t]*([\w-]+(?:\.[\w-]+)*)[ \t]*\}\}/g;

/** Texts and placeholders, alternating. */
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

/** `state`: value of `{{state}}`. The input of a state has two names for one value. */
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
