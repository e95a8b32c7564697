// Names of states: full names like file names, short names without extension, and step ids.

import type { StateNames } from './syntax.ts';

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

/** Made of valid id characters, and unique. */
export function freeId(wanted: string, taken: TakenIds): string {
  const plain = wanted.replaceAll(/[^A-Za-z0-9_-]/g, '_') || '_';
  let id = plain;
  for (let n = 2; taken.has(id); n++) id = `${plain}_${String(n)}`;
  taken.add(id);
  return id;
}
