// Pseudo-random numbers from a seed (mulberry32): the same seed gives the same run, on every machine.

export interface Random {
  /** From 0 up to, not including, 1. */
  (): number;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function oneOf<T>(random: Random, choices: readonly T[]): T {
  const chosen = choices[below(random, choices.length)];
  if (chosen === undefined) throw new Error('nothing to choose from');
  return chosen;
}

/**
 * A number that depends only on the text: the answers of the simulated world must not depend on the order of events.
 */
export function hash(text: string): number {
  let sum = 7;
  for (const character of text) sum = (Math.imul(sum, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return Math.floor(randomFrom(sum)() * 1_000_000);
}
