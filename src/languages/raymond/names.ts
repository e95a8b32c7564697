// Names of states: full names like file names, short names without extension, and step ids; and the first state.

import { freeName } from '../../ir/link.ts';
import { findState } from '../../ir/machine.ts';
import { listed, type Report, START, suggest } from '../report.ts';
import type { YamlScalar } from '../yaml-tree.ts';
import { type StateNames, type StateSyntax } from './syntax.ts';

/** Ids already used in a Program. */
export type TakenIds = Set<string>;

/** `1_START.md` becomes `1_START`; a name that is only an extension stays. */
export function stemOf(name: string): string {
  return name.replace(/(?<=.)\.[^.]*$/, '');
}

/** `prefix`: prefix of the ids. `short`: other spellings of a name. */
export function nameStates(
  names: readonly string[],
  prefix: string,
  taken: TakenIds,
  short: (name: string) => readonly string[],
): StateNames {
  const states = new Map<string, string>();
  const spellings = new Map<string, string[]>();
  const stems = new Map<string, number>();
  for (const name of names) stems.set(stemOf(name), (stems.get(stemOf(name)) ?? 0) + 1);
  for (const name of names) {
    const only = stems.get(stemOf(name)) === 1;
    states.set(name, freeId(`${prefix}${only ? stemOf(name) : name}`, taken));
    for (const spelling of short(name)) spellings.set(spelling, [...(spellings.get(spelling) ?? []), name]);
  }
  // A full name means itself, unless another is equally close.
  for (const [spelling, meant] of spellings) {
    if (states.has(spelling) && !meant.includes(spelling)) meant.unshift(spelling);
  }
  return { states: Object.fromEntries(states), spellings: Object.fromEntries(spellings) };
}

/** For the name of a state that does not exist. */
export function statesHint({ states }: StateNames, wanted: string): string {
  const known = Object.keys(states);
  return suggest(wanted, known, `States are ${listed(known)}.`);
}

/** The full name of a state; null after an error was reported. */
export function stateNamed(report: Report, names: StateNames, { text, place }: YamlScalar): string | null {
  const found = findState(names, text);
  if (found.ok) return found.value.name;
  return report.error('missing-target', place, found.error, statesHint(names, text.trim()));
}

/** Made of valid id characters, and unique. */
export function freeId(wanted: string, taken: TakenIds): string {
  return freeName(wanted.replaceAll(/[^A-Za-z0-9_-]/g, '_') || '_', taken);
}

const START_NAME = /^(?:1_)?START$/;

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
    return report.error('no-start', START, found.ok ? `${wanted} is not a state` : found.error, hint);
  }
  const [first, second] = [...states.values()].filter(({ stem }) => START_NAME.test(stem));
  if (first === undefined) {
    const hint =
      'Call the state that it begins with 1_START.md or START.md, or name the file: meow run FOLDER/FILE.md.';
    return report.error('no-start', START, 'the workflow has no state to begin with', hint);
  }
  if (second === undefined) return first;
  const message = `the workflow may begin with ${first.name} or ${second.name}`;
  const hint = 'Rename one of the two, or name the file that is meant.';
  return second.report.error('two-starts', second.place, message, hint);
}
