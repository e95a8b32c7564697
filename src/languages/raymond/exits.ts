// Exits of a state, as far as its text and policy show: those that the policy fixes, and those that the text mentions
// within it. A state without either may go anywhere.

import { own } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import type { LinkedWorkflow } from './link.ts';
import type { AllowedSyntax, MentionedTag, Named, StateSyntax } from './syntax.ts';

export interface Exit {
  readonly tag: TransitionTag;
  /** For people: `goto REVIEW.md`. */
  readonly label: string;
  readonly written: string;
  /** Blocks; null for a return, or if nothing is given. */
  readonly to: string | null;
  readonly back: string | null;
  readonly next: string | null;
  readonly late: string | null;
  /** Taken instead of the state once its visit limit is reached. */
  readonly isInstead: boolean;
  readonly place: Place;
}

export interface StateExits {
  readonly edges: readonly Exit[];
  /** It may have further, unknown targets. */
  readonly isOpen: boolean;
}

/** The parts of a tag that name a state or a workflow. */
export const PARTS = ['target', 'return', 'next', 'timeoutNext'] as const;

export function exitsOf(workflow: LinkedWorkflow, state: StateSyntax): StateExits {
  const { policy, mentionedTags } = state;
  const allowed = policy?.allowed ?? [];
  const mentions = policy === null ? mentionedTags : mentionedTags.filter((each) => isAllowed(workflow, allowed, each));
  const edges = [
    ...[...mentions, ...allowed.filter(namesTarget)].map((each) => exitOf(workflow, each)),
    visitsExit(workflow, state),
  ].filter((edge) => edge !== null);
  const hasUnknownName = mentions.some((each) => PARTS.some((part) => isReportedElsewhere(workflow, each[part])));
  const hasUnknownPath = allowed.some(
    ({ tag, target }) => TAG_RULES[tag].target === 'workflow' && target !== null && workflow.unknownPaths.has(target),
  );
  const vague = allowed.filter((each) => !namesTarget(each));
  const leavesOpen =
    policy === null
      ? mentionedTags.length === 0
      : allowed.length === 0 || vague.some(({ tag }) => !mentions.some((mention) => mention.tag === tag));
  return { edges: unique(edges), isOpen: hasUnknownName || hasUnknownPath || leavesOpen };
}

/** Whether the policy allows the mentioned tag, as far as known. Two paths may mean the same block. */
export function isAllowed(workflow: LinkedWorkflow, allowed: readonly AllowedSyntax[], mention: MentionedTag): boolean {
  const { otherWorkflows } = workflow;
  const agrees = (name: string | null, named: Named | null): boolean => {
    if (name === null || named === null || isReportedElsewhere(workflow, named)) return true;
    if (named.kind === 'workflow') return otherWorkflows.get(named.path) === otherWorkflows.get(name);
    return named.kind === 'state' && named.name === name;
  };
  return allowed.some((each) => each.tag === mention.tag && PARTS.every((part) => agrees(each[part], mention[part])));
}

/** An unknown name is reported elsewhere. */
function isReportedElsewhere({ unknownPaths }: LinkedWorkflow, named: Named | null): boolean {
  if (named?.kind === 'workflow') return unknownPaths.has(named.path);
  return named?.kind === 'open' || named?.kind === 'missing';
}

function namesTarget({ tag, target, next }: AllowedSyntax): boolean {
  const { target: leadsTo, requiredAttribute: wants } = TAG_RULES[tag];
  return leadsTo === 'back' ? wants === null || next !== null : target !== null;
}

type Written = Pick<MentionedTag, 'tag' | 'place'> & Readonly<Record<(typeof PARTS)[number], Named | string | null>>;

/** Null if its target does not exist. */
function exitOf({ names, otherWorkflows }: LinkedWorkflow, written: Written): Exit | null {
  const { tag, place } = written;
  const { target: leadsTo } = TAG_RULES[tag];
  const target = nameOf(written.target);
  const blockOf = (named: Named | string | null): string | null => own(names.states, nameOf(named) ?? '') ?? null;
  const to = leadsTo === 'workflow' ? (otherWorkflows.get(target ?? '') ?? null) : blockOf(target);
  if (to === null && leadsTo !== 'back') return null;
  const content = target ?? nameOf(written.next) ?? '';
  return {
    tag,
    label: `${tag} ${content}`.trim(),
    written: content,
    to,
    back: blockOf(written.return),
    next: blockOf(written.next),
    late: blockOf(written.timeoutNext),
    isInstead: false,
    place,
  };
}

function nameOf(named: Named | string | null): string | null {
  if (named === null || typeof named === 'string') return named;
  return named.kind === 'state' ? named.name : named.kind === 'workflow' ? named.path : null;
}

/** After the limit of visits another state is entered instead. */
function visitsExit(workflow: LinkedWorkflow, { place, visits }: StateSyntax): Exit | null {
  if (visits === null) return null;
  const nothing = { return: null, next: null, timeoutNext: null };
  const edge = exitOf(workflow, { tag: 'goto', place, target: visits.instead, ...nothing });
  return edge === null ? null : { ...edge, label: `after ${String(visits.max)} visits`, isInstead: true };
}

function unique(edges: readonly Exit[]): readonly Exit[] {
  const keyOf = ({ tag, to, back, next, late }: Exit): string => JSON.stringify([tag, to, back, next, late]);
  const seen = new Map<string, Exit>();
  for (const edge of edges) if (!seen.has(keyOf(edge))) seen.set(keyOf(edge), edge);
  return [...seen.values()];
}
