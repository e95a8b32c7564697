// States and transitions of Raymond workflows with their positions: what a policy allows, or the text shows.

import { placeIn, type WrittenRoute, type WrittenStep } from '../outline.ts';
import { exitsOf } from './exits.ts';
import type { LinkedWorkflow } from './link.ts';
import type { StateSyntax } from './syntax.ts';

export function outlineOf(workflows: readonly LinkedWorkflow[]): readonly WrittenStep[] {
  return workflows.flatMap((workflow) =>
    [...workflow.states.values()].map((state) => ({
      block: state.id,
      step: state.id,
      name: state.stem,
      place: placeIn(state.report.source, state.place),
      routes: routesOf(workflow, state),
    })),
  );
}

function routesOf(workflow: LinkedWorkflow, state: StateSyntax): readonly WrittenRoute[] {
  return exitsOf(workflow, state).edges.map(({ tag, label, to, back, isInstead, place }) => ({
    label,
    place: placeIn(state.report.source, place),
    taken: isInstead ? { kind: 'instead', block: to ?? '' } : { kind: 'transition', tag, to, back },
  }));
}
