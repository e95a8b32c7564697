// What a step hands on: named values, where they come from, and the types they are held to.

import type { Json } from '../base/json.ts';
import { readJsonText } from '../base/json-text.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';

export type ValueType = 'any' | 'string' | 'integer' | 'number' | 'boolean' | 'json';

export type Outputs = Readonly<Record<string, Json>>;

/** How an output that is kept in a file is written among the others. */
export function storedOutputValue(file: string, bytes: number): Json {
  return { $file: file, bytes };
}

/** One output of a command. `T` is the text's form: with holes in a Program, filled in an effect. */
export interface Capture<T> {
  readonly name: string;
  readonly from:
    | { readonly kind: 'stdout' }
    | { readonly kind: 'stderr' }
    | { readonly kind: 'exit-code' }
    | { readonly kind: 'file'; readonly path: T };
  readonly type: ValueType;
  /** A file that is absent fails the step, unless this is false. */
  readonly required: boolean;
}

/** One output that an agent is asked for. */
export interface Expectation {
  readonly name: string;
  /** `file_path` names a file that exists, seen from the folder that the agent was started in. */
  readonly type: 'string' | 'number' | 'boolean' | 'json' | 'file_path';
  readonly required: boolean;
  /** Shown to the agent. */
  readonly description: string | null;
}

/** Text from outside, read as a type. `any` keeps the text. */
export function coerce(text: string, type: ValueType): Result<Json, string> {
  const got = (): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  switch (type) {
    case 'any':
    case 'string':
      return ok(text);
    case 'integer':
      return /^\s*[+-]?\d+\s*$/.test(text) && Number.isSafeInteger(Number(text))
        ? ok(Number(text))
        : err(`expected an integer, got ${got()}`);
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text))
        ? ok(Number(text))
        : err(`expected a number, got ${got()}`);
    case 'boolean': {
      const word = text.trim();
      if (word === 'true' || word === 'false') return ok(word === 'true');
      return err(`expected true or false, got ${got()}`);
    }
    case 'json': {
      const read = readJsonText(text);
      return read.ok ? read : err(`expected JSON, got ${got()} (${read.error})`);
    }
  }
}

/** A value that is already data, held to a type; null where it fits, else what is wrong with it. */
export function typeError(value: Json, type: ValueType): string | null {
  const is = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  switch (type) {
    case 'any':
    case 'json':
      return null;
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type ? null : `expected a ${type}, got ${is}`;
    case 'integer':
      return Number.isSafeInteger(value) ? null : `expected an integer, got ${is}`;
  }
}
