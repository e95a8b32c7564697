// Names of steps and validators, and the reserved one.

/** Ends a run; a route may name it without a step. */
export const STOP = 'STOP';

export const ID_HINT = 'Ids begin with a letter, and have letters, digits, _ and - in them.';

export function isId(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(text);
}
