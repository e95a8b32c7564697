// Permission requests of an agent for a tool call: the dialog that a person sees, and the option that an adapter's rule or a
// person's decision selects.
//
// No two requests of an agent have the same text, so a decision about one is never applied to another.

import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk/unstable';
import type { Json } from '../../../base/json.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';
import type { RpcRequest, Unchecked } from './rpc.ts';

/** Name of the run's own MCP server. Its tools need no permission. */
export const OWN_SERVER = 'meow';

export function isOwnTool({ params }: RpcRequest): boolean {
  const { title, kind } = toolCallIn(params);
  // A shell command may have any title, but is of another kind.
  return kind === 'other' && typeof title === 'string' && new RegExp(`^mcp__${OWN_SERVER}__\\w+$`).test(title);
}

export function permissionDialog({ id, params }: RpcRequest): Dialog {
  const { title, kind, rawInput } = toolCallIn(params);
  const lines = [
    shortened(typeof title === 'string' && title !== '' ? title : 'a tool without a title'),
    ...(typeof kind === 'string' ? [`kind: ${kind}`] : []),
    ...(rawInput === undefined ? [] : [`input: ${shortened(JSON.stringify(rawInput))}`]),
    `options: ${optionsIn(params).map(described).join(', ')}`,
    `request: ${JSON.stringify(id)}`,
  ];
  return { name: 'permission', text: lines.join('\n') };
}

function toolCallIn({ toolCall }: Unchecked<RequestPermissionRequest>): Unchecked<ToolCallUpdate> {
  return isJsonMap(toolCall) ? toolCall : {};
}

/** Null cancels: the tool is not used. */
export function selected(option: Option | null): RequestPermissionResponse {
  if (option === null) return CANCELLED;
  return { outcome: { outcome: 'selected', optionId: option.optionId } };
}

export const CANCELLED: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } };

/** Prefers an option for this call to one for all calls. */
export function byRule({ params }: RpcRequest, rule: 'allow' | 'deny'): Option | null {
  const options = optionsIn(params);
  const kinds: readonly PermissionOption['kind'][] =
    rule === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  for (const kind of kinds) {
    const option = options.find((each) => each.kind === kind);
    if (option !== undefined) return option;
  }
  return null;
}

/** An answer that is the id or the name of an option selects it; any other answer counts as yes or no only. */
export function byVerdict(request: RpcRequest, { approved, answer }: DialogVerdict): Option | null {
  const words = answer?.trim().toLowerCase();
  const named = optionsIn(request.params).find(({ optionId, name }) =>
    [optionId, name].some((text) => text.trim().toLowerCase() === words),
  );
  return named ?? byRule(request, approved ? 'allow' : 'deny');
}

/** Of a kind that may be unknown here. */
type Option = Readonly<Pick<PermissionOption, 'optionId' | 'name'>> & { readonly kind: string };

function optionsIn({ options }: Unchecked<RequestPermissionRequest>): readonly Option[] {
  return (Array.isArray(options) ? (options as readonly Json[]) : []).flatMap((option) => {
    if (!isJsonMap(option)) return [];
    const { optionId, name, kind }: Unchecked<PermissionOption> = option;
    if (typeof optionId !== 'string') return [];
    return [{ optionId, name: typeof name === 'string' ? name : optionId, kind: typeof kind === 'string' ? kind : '' }];
  });
}

function described({ optionId, name }: Option): string {
  return name === optionId ? name : `${name} (${optionId})`;
}

const SHOWN_MAX = 2_000;

function shortened(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
