// A tool as a model knows it: what it is for, and what it must be given. What it is given is held to that here, so that the
// tool itself need not look again.

import type { JsonMap } from '../../base/json.ts';
import { isJsonMap, own } from '../../base/json.ts';
import type { Result } from '../../base/result.ts';

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly fields: Readonly<Record<string, Field>>;
  /** Hints for whoever must decide whether it may be called. */
  readonly annotations: Readonly<Record<string, boolean>>;
  /** `input` has what the fields say. Both results are for the model to read. */
  perform(input: JsonMap, gone: AbortSignal): Promise<Result<string, string>>;
}

export interface Field {
  readonly type: 'string' | 'object';
  readonly required: boolean;
  readonly description: string;
}

/** As JSON Schema. */
export function inputSchema({ fields }: Tool): JsonMap {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, { type, description }]) => [
        name,
        { type, description, ...(type === 'object' ? { additionalProperties: true } : {}) },
      ]),
    ),
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
    additionalProperties: false,
  };
}

/** A sentence; null where it is what the fields say. */
export function inputProblem({ fields }: Tool, input: JsonMap): string | null {
  const known = Object.keys(fields);
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown !== undefined) return `there is no argument ${JSON.stringify(unknown)}: there are ${known.join(', ')}`;
  for (const [name, { type, required }] of Object.entries(fields)) {
    // Some clients say null for what is left out.
    const value = own(input, name) ?? null;
    if (value === null && required) return `the argument ${name} is missing`;
    if (value === null) continue;
    const fits = type === 'object' ? isJsonMap(value) : typeof value === 'string';
    if (!fits) return `the argument ${name} must be ${type === 'object' ? 'an object' : 'a string'}`;
  }
  return null;
}
