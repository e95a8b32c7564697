// What states are called: in full as files are, in short without an extension, and as ids of steps.

import type { StateNames } from './syntax.ts';

/** Ids that are taken in a Program. */
export type TakenIds = Set<string>;

/** `1_START.md` is `1_START`; a name that is nothing but an extension stays. */
export function stemOf(name: string): string {
  return name.replace(/(?<=.)\.[^.]*$/, '');
}

/** `prefix` goes before the ids; `short`: other ways to write a name. */
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
  // A full name means itself, unless another is as near.
  for (const [spelling, meant] of spellings) {
    if (states.has(spelling) && !meant.includes(spelling)) meant.unshift(spelling);
  }
  return { states: Object.fromEntries(states), spellings: Object.fromEntries(spellings) };
}

/** Made of characters that ids may have, and taken by nobody before. */
export function freeId(wanted: string, taken: TakenIds): string {
  const plain = wanted.replaceAll(/[^A-Za-z0-9_-]/g, '_') || '_';
  let id = plain;
  for (let n = 2; taken.has(id); n++) id = `${plain}_${String(n)}`;
  taken.add(id);
  return id;
}
