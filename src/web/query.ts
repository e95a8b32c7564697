// The query of a request, checked: a wrong one is refused with status 400.

import { RequestRefused } from './reply.ts';

export class Query {
  readonly #parameters: URLSearchParams;

  constructor(text: string) {
    this.#parameters = new URLSearchParams(text);
  }

  text(name: string): string {
    const value = this.optional(name);
    if (value !== null) return value;
    throw new RequestRefused(400, `the query has no ${name}`);
  }

  optional(name: string): string | null {
    return this.#parameters.get(name);
  }

  /** A whole number of at least `min`; `otherwise` if it is absent. */
  count<T>(name: string, otherwise: T, min = 1): number | T {
    const value = this.optional(name);
    if (value === null) return otherwise;
    if (/^-?\d{1,15}$/.test(value) && Number(value) >= min) return Number(value);
    throw new RequestRefused(400, `${name} of the query is not a whole number${min > -1 ? ` of at least ${min}` : ''}`);
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T {
    const value = this.text(name);
    const found = values.find((each) => each === value);
    if (found !== undefined) return found;
    throw new RequestRefused(400, `${name} of the query must be ${values.join(', ')}`);
  }
}
