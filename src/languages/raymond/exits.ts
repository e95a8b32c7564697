// Exits of a state, as far as its text and policy show: those that the policy fixes, and those that the text mentions
// within it. A state without either may go anywhere.

import type { Place } from '../../base/source.ts';
import { own } from '../../base/json.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import type { LinkedWorkflow } from './link.ts';
import type { AllowedSyntax, Named, MentionedTag, StateSyntax, Visits } from './syntax.ts';

export interface Exit {
  readonly tag: TransitionTag;
  /** For people: `goto REVIEW.md`. */
  readonly label: string;
  /** Content of the tag. */
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

export function exitsOf(workflow: LinkedWorkflow, state: StateSyntax): StateExits {
  const { policy, mentionedTags } = state;
  const kept =
    policy === null ? mentionedTags : mentionedTags.filter((each) => isAllowed(workflow, policy.allowed, each));
  const edges = [
    ...kept.map((each) => exitOf(workflow, each, namesOfSaid(each))),
    ...(policy?.allowed ?? []).filter(namesTarget).map((each) => exitOf(workflow, each, namesOfAllowed(each))),
    ...(state.visits === null ? [] : [visitsExit(workflow, state, state.visits)]),
  ].filter((edge) => edge !== null);
  const madeUp = kept
    .flatMap(({ target, return: back, next, timeoutNext }) => [target, back, next, timeoutNext])
    .some((named) => named !== null && isReportedElsewhere(workflow, named));
  const gone = policy?.allowed.some((each) => leadsNowhere(workflow, each)) ?? false;
  const untold =
    policy === null
      ? mentionedTags.length === 0
      : policy.allowed.length === 0 ||
        policy.allowed.some((each) => !namesTarget(each) && !kept.some(({ tag }) => tag === each.tag));
  return { edges: unique(edges), isOpen: madeUp || gone || untold };
}

/** Whether the policy allows the mentioned tag, as far as known. Two paths may mean the same block. */
export function isAllowed(workflow: LinkedWorkflow, allowed: readonly AllowedSyntax[], said: MentionedTag): boolean {
  const { otherWorkflows } = workflow;
  const agrees = (name: string | null, named: Named | null): boolean => {
    if (name === null || named === null || isReportedElsewhere(workflow, named)) return true;
    if (named.kind === 'workflow') return otherWorkflows.get(named.path) === otherWorkflows.get(name);
    return named.kind === 'state' && named.name === name;
  };
  return allowed.some(
    (each) =>
      each.tag === said.tag &&
      agrees(each.target, said.target) &&
      agrees(each.return, said.return) &&
      agrees(each.next, said.next) &&
      agrees(each.timeoutNext, said.timeoutNext),
  );
}

/** An unknown name is reported elsewhere. */
function isReportedElsewhere({ unknownPaths }: LinkedWorkflow, named: Named): boolean {
  switch (named.kind) {
    case 'state':
      return false;
    case 'workflow':
      return unknownPaths.has(named.path);
    case 'open':
    case 'missing':
      return true;
  }
}

function leadsNowhere({ unknownPaths }: LinkedWorkflow, { tag, target }: AllowedSyntax): boolean {
  return TAG_RULES[tag].target === 'workflow' && target !== null && unknownPaths.has(target);
}

/** Whether it names its target. */
function namesTarget({ tag, target, next }: AllowedSyntax): boolean {
  const { target: leadsTo, requiredAttribute: wants } = TAG_RULES[tag];
  return leadsTo === 'back' ? wants === null || next !== null : target !== null;
}

type Parts = Readonly<Record<'target' | 'return' | 'next' | 'timeoutNext', string | null>>;

function namesOfSaid({ target, return: back, next, timeoutNext }: MentionedTag): Parts {
  const nameOf = (named: Named | null): string | null =>
    named?.kind === 'state' ? named.name : named?.kind === 'workflow' ? named.path : null;
  return { target: nameOf(target), return: nameOf(back), next: nameOf(next), timeoutNext: nameOf(timeoutNext) };
}

function namesOfAllowed({ target, return: back, next, timeoutNext }: AllowedSyntax): Parts {
  return { target, return: back, next, timeoutNext };
}

/** Null if its target does not exist. */
function exitOf(
  { names, otherWorkflows }: LinkedWorkflow,
  { tag, place }: { readonly tag: TransitionTag; readonly place: Place },
  parts: Parts,
): Exit | null {
  const { target: leadsTo } = TAG_RULES[tag];
  const blockOf = (name: string | null): string | null => (name === null ? null : (own(names.states, name) ?? null));
  const to = leadsTo === 'workflow' ? (otherWorkflows.get(parts.target ?? '') ?? null) : blockOf(parts.target);
  if (to === null && leadsTo !== 'back') return null;
  const written = parts.target ?? parts.next ?? '';
  return {
    tag,
    label: `${tag} ${written}`.trim(),
    written,
    to,
    back: blockOf(parts.return),
    next: blockOf(parts.next),
    late: blockOf(parts.timeoutNext),
    isInstead: false,
    place,
  };
}

/** After the limit of visits another state is entered instead. */
function visitsExit(workflow: LinkedWorkflow, { place }: StateSyntax, { max, instead }: Visits): Exit | null {
  const parts = { target: instead, return: null, next: null, timeoutNext: null };
  const edge = exitOf(workflow, { tag: 'goto', place }, parts);
  return edge === null ? null : { ...edge, label: `after ${String(max)} visits`, isInstead: true };
}

function unique(edges: readonly Exit[]): readonly Exit[] {
  const keyOf = ({ tag, to, back, next, late }: Exit): string => JSON.stringify([tag, to, back, next, late]);
  const seen = new Map<string, Exit>();
  for (const edge of edges) if (!seen.has(keyOf(edge))) seen.set(keyOf(edge), edge);
  return [...seen.values()];
}
