// What a block sees of its callers: everything that its caller sees, and what is passed to it. With several callers, a
// name that any of them provides counts as present, so that only errors on every path are reported.

import type { Call, Linked } from './link.ts';
import { stepsOfRound } from './linked-targets.ts';
import { type Around, checkNeeds, type Order } from './needs.ts';
import type { CallerScope, Openness } from './scope.ts';
import type { BlockSyntax, StepSyntax } from './syntax.ts';

/** A possible start of a run: variables given besides the declared ones, and whether others may call it. */
export interface Root {
  readonly block: BlockSyntax;
  readonly given: readonly string[];
  readonly openness: Openness;
}

export interface CallerScopes {
  readonly around: (block: BlockSyntax) => CallerScope;
  readonly orderOf: (block: BlockSyntax) => Order;
}

export function callerScopes(linked: Linked, roots: readonly Root[]): CallerScopes {
  const callsTo = groupBy(linked.calls, ({ to }) => to);
  const views = propagate(linked, roots);
  const orders = new Map<BlockSyntax, Order>();
  const orderOf = (block: BlockSyntax): Order => orders.get(block) ?? { isBefore: () => false };
  /** Steps with that id in calling blocks, the nearest on each path. */
  function* seenFrom(block: BlockSyntax, id: string): Generator<SeenStep> {
    // Iterating a set includes elements added meanwhile.
    const open = new Set([block]);
    for (const inner of open) {
      for (const call of callsTo.get(inner) ?? []) {
        // A condition after a round sees the steps of the round.
        const [inRound] =
          call.target.key === 'until' && id !== 'until' ? (stepsOfRound(linked, call.step, id) ?? []) : [];
        const step = inRound ?? call.from.byId.get(id);
        if (step === undefined) open.add(call.from);
        else yield { step, call, inRound: inRound !== undefined };
      }
    }
  }
  /** The innermost loop on each path to a block. */
  function* loopsAround(block: BlockSyntax): Generator<StepSyntax> {
    const open = new Set([block]);
    for (const inner of open) {
      for (const { from, step, target } of callsTo.get(inner) ?? []) {
        if (target.kind === 'round' || target.kind === 'check') yield step;
        else open.add(from);
      }
    }
  }
  for (const block of linked.blocks) {
    const around = (id: string): Around => {
      const [nearest] = seenFrom(block, id);
      return nearest === undefined ? 'nothing' : nearest.step === nearest.call.step ? 'leads-here' : 'around';
    };
    orders.set(block, checkNeeds(block, linked, around));
  }
  const isFinished = ({ step, call, inRound }: SeenStep): boolean =>
    inRound || step === call.step || orderOf(call.from).isBefore(step.id, call.step);
  return {
    orderOf,
    around: (block) => ({
      ...(views.get(block) ?? NOTHING),
      findStep: (id) => {
        const all = [...seenFrom(block, id)];
        const found = all.find(isFinished) ?? all[0];
        return found === undefined ? null : { step: found.step, isFinished: isFinished(found) };
      },
      findLoops: () => [...new Set(loopsAround(block))],
    }),
  };
}

/** A step, and the call through which it is visible. */
interface SeenStep {
  readonly step: StepSyntax;
  readonly call: Call;
  /** It is in the round that the call's condition follows. */
  readonly inRound: boolean;
}

type View = Omit<CallerScope, 'findStep' | 'findLoops'>;

const NOTHING: View = { names: new Set(), openness: 'closed' };

/** Propagates scopes to called blocks until nothing changes. */
function propagate(linked: Linked, roots: readonly Root[]): ReadonlyMap<BlockSyntax, View> {
  const views = new Map<BlockSyntax, { readonly names: Set<string>; openness: Openness }>();
  const callsFrom = groupBy(linked.calls, ({ from }) => from);
  const open = new Set<BlockSyntax>();
  const bring = (block: BlockSyntax, names: Iterable<string>, openness: Openness): void => {
    const view = views.get(block) ?? { names: new Set<string>(), openness: 'closed' };
    const before = view.names.size;
    for (const name of names) view.names.add(name);
    const isOpened = openness === 'called' && view.openness === 'closed';
    if (isOpened) view.openness = 'called';
    if (!views.has(block) || view.names.size > before || isOpened) open.add(block);
    views.set(block, view);
  };
  for (const { block, given, openness } of roots) bring(block, given, openness);
  // A reference with placeholders may not mean this block, unless the block is certainly entered too.
  const entered = new Set([
    ...roots.map(({ block }) => block),
    ...linked.calls.filter(({ isCertain }) => isCertain).map(({ to }) => to),
  ]);
  for (const block of open) {
    open.delete(block);
    const view = views.get(block) ?? NOTHING;
    const seen = [...view.names, ...block.variables.map(({ name }) => name)];
    for (const { to, target, isCertain } of callsFrom.get(block) ?? []) {
      const names = [...seen, ...target.brings, ...target.variables.map(({ key }) => key)];
      bring(to, names, !isCertain && !entered.has(to) ? 'called' : view.openness);
    }
  }
  return views;
}

export function groupBy<K, V>(values: readonly V[], keyOf: (value: V) => K): ReadonlyMap<K, readonly V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}
