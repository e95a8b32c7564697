// Steps and routes of a Conductor workflow with their positions.

import type { Source } from '../../base/source.ts';
import { placeIn, type WrittenStep } from '../outline.ts';
import type { StepSyntax } from './syntax.ts';

export function outlineOf(source: Source, steps: Iterable<StepSyntax>): readonly WrittenStep[] {
  return [...steps].map(({ id, place, map, routes }) => {
    const written = map.entries.get('routes')?.value;
    const isWritten = (key: string): boolean => written?.kind === 'map' && written.entries.has(key);
    return {
      block: id,
      step: id,
      name: id,
      place: placeIn(source, place),
      routes: routes
        .filter(({ key }) => isWritten(key))
        .map(({ key, keyPlace }) => ({
          label: key,
          place: placeIn(source, keyPlace),
          taken: { kind: 'outcome', words: [key] },
        })),
    };
  });
}
