// The tags that a text speaks of: what a prompt tells its agent to say, or a script prints. It is what will probably
// follow, and no more than that.

import { own } from '../../base/json.ts';
import { findState, plainPath, WAYS } from '../../ir/machine.ts';
import { everyTag } from '../../ir/tags.ts';
import type { Named, PlaceOf, Said, StateNames } from './syntax.ts';

export function tagsSaid(text: string, names: StateNames, placeOf: PlaceOf): readonly Said[] {
  return everyTag(text).flatMap(({ name, attributes, content, from, to, fault }): readonly Said[] => {
    if (name === 'print') return [];
    const { leadsTo } = WAYS[name];
    const stateAt = (key: string): Named | null => {
      const written = own(attributes, key);
      return written === undefined ? null : namedState(names, written);
    };
    return [
      {
        tag: name,
        place: placeOf(from, to),
        target:
          leadsTo === 'back' ? null : leadsTo === 'workflow' ? namedWorkflow(content) : namedState(names, content),
        return: stateAt('return'),
        next: stateAt('next'),
        timeoutNext: stateAt('timeout_next'),
        attributes: Object.keys(attributes),
        fault,
      },
    ];
  });
}

/** In a script, quotes within quotes are escaped, and what begins with $ is made up when it runs. */
export function scriptSaid(text: string, names: StateNames, placeOf: PlaceOf): readonly Said[] {
  return tagsSaid(text.replaceAll(/\\(["'])/g, ' $1'), names, placeOf);
}

function namedState(names: StateNames, written: string): Named {
  const found = findState(names, written);
  if (found.ok) return { kind: 'state', name: found.value.name };
  return isMadeUp(written) ? { kind: 'open' } : { kind: 'missing', written: written.trim(), message: found.error };
}

function namedWorkflow(written: string): Named {
  const path = written.trim();
  return isMadeUp(path) ? { kind: 'open' } : { kind: 'workflow', path: plainPath(path) };
}

/** `{{next}}`, `$NEXT`, `...`: no name that anything could have. */
function isMadeUp(written: string): boolean {
  return !/^[\w./\\-]+$/.test(written.trim()) || /^\.{3,}$/.test(written.trim());
}
