// `{{name}}` in a prompt. Only text that looks like a name is a placeholder; other braces are plain text, because
// prompts may contain code. `{{{{` is a literal pair of braces.

import { LANE_VARIABLES } from '../../ir/answer-transitions.ts';
import type { Part, Text } from '../../ir/text.ts';
import { type Hole, parseTemplate } from '../template.ts';

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

const BRACES = /\{\{\{\{|\{\{([ \t]*[\w-]+(?:\.[\w-]+)*[ \t]*)\}\}/g;

export function placeholdersIn(text: string): readonly Hole[] {
  return parseTemplate(text, BRACES).parts.filter((part) => typeof part !== 'string');
}

/** `state`: value of `{{state}}`. The input of a state has two names for one value. */
export function lowerText(text: string, state: string): Text {
  const parts = parseTemplate(text, BRACES).parts.map((part): Part => {
    if (typeof part === 'string') return part;
    const [head = '', ...rest] = part.path;
    if (head === 'state' && rest.length === 0) return state;
    const name = head === 'result' ? LANE_VARIABLES.input : builtInName(head);
    return { path: [name, ...rest], quote: [] };
  });
  return parts.every((part) => typeof part === 'string') ? parts.join('') : { parts };
}
