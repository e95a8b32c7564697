// Finds the first state of a workflow.

import { findState } from '../../ir/machine.ts';
import type { Report } from '../report.ts';
import { listed } from '../report.ts';
import type { StateNames, StateSyntax } from './syntax.ts';
import { WHOLE } from './syntax.ts';

const START = /^(?:1_)?START$/;

/** The requested state, else START. Null is reported. */
export function findStart(
  report: Report,
  wanted: string | null,
  states: ReadonlyMap<string, StateSyntax>,
  names: StateNames,
): StateSyntax | null {
  if (wanted !== null) {
    const found = findState(names, wanted);
    const state = found.ok ? states.get(found.value.name) : undefined;
    if (state !== undefined) return state;
    const hint = `States are ${listed(states.keys())}.`;
    report.error('no-start', WHOLE, found.ok ? `${wanted} is not a state` : found.error, hint);
    return null;
  }
  const [first, second] = [...states.values()].filter(({ stem }) => START.test(stem));
  if (first === undefined) {
    const hint =
      'Call the state that it begins with 1_START.md or START.md, or name the file: meow run FOLDER/FILE.md.';
    report.error('no-start', WHOLE, 'the workflow has no state to begin with', hint);
    return null;
  }
  if (second === undefined) return first;
  const message = `the workflow may begin with ${first.name} or ${second.name}`;
  second.report.error('two-starts', second.place, message, 'Rename one of the two, or name the file that is meant.');
  return null;
}
