// How much of a sweep, or of random attempts, a test tries. `npm test` tries a sample, so that it stays short. With
// MEOW_SWEEP=whole, as in `.ci/run`, it tries everything.

export const IS_WHOLE = process.env['MEOW_SWEEP'] === 'whole';

/** A sample is a quarter of the attempts. */
const PART = 4;

/** Number of random attempts. */
export function attempts(whole: number): number {
  return IS_WHOLE ? whole : Math.ceil(whole / PART);
}

/** Every fourth of the cases, beginning with one of the first: `first` lets several sweeps try different ones. */
export function sample<T>(cases: readonly T[], first = 0): readonly T[] {
  return IS_WHOLE ? cases : cases.filter((_, index) => index % PART === first % PART);
}
