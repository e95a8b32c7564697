// Steps and routes of MEOW workflows with their positions.

import { placeIn, type RouteTaken, type WrittenRoute, type WrittenStep } from '../outline.ts';
import { type BlockSyntax, isPlaceholder, type StepSyntax, type TargetSyntax } from './syntax.ts';

export function outlineOf(blocks: readonly BlockSyntax[]): readonly WrittenStep[] {
  return blocks.flatMap((block) =>
    block.steps.flatMap((step) =>
      isPlaceholder(step.id)
        ? []
        : [
            {
              block: block.name,
              step: step.id,
              name: step.id,
              place: placeIn(block.report.source, step.place),
              routes: routesOf(block, step),
            },
          ],
    ),
  );
}

function routesOf(block: BlockSyntax, step: StepSyntax): readonly WrittenRoute[] {
  const { source } = block.report;
  const placeOf = (key: string) => placeIn(source, step.table.entries.get(key)?.keyPlace ?? step.place);
  const routes = step.targets.flatMap((target) => {
    const taken = takenBy(step, target);
    return taken === null ? [] : [{ label: target.key, place: placeOf(target.key), taken }];
  });
  if (step.executor !== 'loop') return routes;
  const end = { kind: 'outcome', words: ['true'] } as const;
  const exhaustion = { kind: 'outcome', words: ['exhausted', 'rounds-exhausted'] } as const;
  return [
    ...routes,
    { label: 'end of the loop', place: placeOf('id'), taken: end },
    { label: 'exhaustion of the loop', place: placeOf('on_exhausted'), taken: exhaustion },
  ];
}

function takenBy({ targets }: StepSyntax, { kind, key }: TargetSyntax): RouteTaken | null {
  if (kind === 'recover') return { kind: 'recovery' };
  if (kind !== 'branch') return null;
  // A timeout without a route of its own takes that of false.
  const hasTimeout = targets.some((target) => target.key === 'on_timeout');
  const word = key.replace(/^on_/, '');
  return { kind: 'outcome', words: word === 'false' && !hasTimeout ? ['false', 'timeout'] : [word] };
}
