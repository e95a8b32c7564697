// An agent's request for leave to use a tool: what a person is shown of it, and which of its options an adapter's rule or a
// person's decision comes to.
//
// No two requests of an agent have the same text: a decision about one is never taken for a decision about another.

import type { Json, JsonMap } from '../../../base/json.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';
import type { RpcRequest } from './rpc.ts';

/** The name of the run's own server of tools: to talk to the run is nothing that a person has to allow. */
export const OWN_SERVER = 'meow';

export function isOwnTool({ params }: RpcRequest): boolean {
  const { title, kind } = toolIn(params);
  // What a shell is to run may have any title, but is of another kind.
  return kind === 'other' && typeof title === 'string' && new RegExp(`^mcp__${OWN_SERVER}__\\w+$`).test(title);
}

export function permissionDialog({ id, params }: RpcRequest): Dialog {
  const { title, kind, rawInput } = toolIn(params);
  const lines = [
    shortened(typeof title === 'string' && title !== '' ? title : 'a tool without a title'),
    ...(typeof kind === 'string' ? [`kind: ${kind}`] : []),
    ...(rawInput === undefined ? [] : [`input: ${shortened(JSON.stringify(rawInput))}`]),
    `options: ${optionsOf(params).map(described).join(', ')}`,
    `request: ${JSON.stringify(id)}`,
  ];
  return { name: 'permission', text: lines.join('\n') };
}

function toolIn({ toolCall }: JsonMap): JsonMap {
  return isJsonMap(toolCall) ? toolCall : {};
}

/** What an option is answered with; null is none, and the tool is not used. */
export function selected(option: PermissionOption | null): JsonMap {
  if (option === null) return CANCELLED;
  return { outcome: { outcome: 'selected', optionId: option.optionId } };
}

export const CANCELLED: JsonMap = { outcome: { outcome: 'cancelled' } };

/** Once, rather than for ever. */
export function byRule({ params }: RpcRequest, rule: 'allow' | 'deny'): PermissionOption | null {
  const options = optionsOf(params);
  for (const kind of rule === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']) {
    const option = options.find((each) => each.kind === kind);
    if (option !== undefined) return option;
  }
  return null;
}

/** An answer names an option by its id or its name; one that names none is no more than yes or no. */
export function byVerdict(request: RpcRequest, { approved, answer }: DialogVerdict): PermissionOption | null {
  const words = answer?.trim().toLowerCase();
  const named = optionsOf(request.params).find(({ optionId, name }) =>
    [optionId, name].some((text) => text.trim().toLowerCase() === words),
  );
  return named ?? byRule(request, approved ? 'allow' : 'deny');
}

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: string;
}

function optionsOf(params: JsonMap): readonly PermissionOption[] {
  const options = params['options'];
  return (Array.isArray(options) ? (options as readonly Json[]) : []).flatMap((option) => {
    if (!isJsonMap(option) || typeof option['optionId'] !== 'string') return [];
    const { optionId, name, kind } = option;
    return [{ optionId, name: typeof name === 'string' ? name : optionId, kind: typeof kind === 'string' ? kind : '' }];
  });
}

function described({ optionId, name }: PermissionOption): string {
  return name === optionId ? name : `${name} (${optionId})`;
}

const SHOWN_MAX = 2_000;

function shortened(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
