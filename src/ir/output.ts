// Outputs of steps: named values, their sources and types.

import type { Json } from '../base/json.ts';
import { readJsonText } from '../base/json-text.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';

export type ValueType = 'any' | 'string' | 'integer' | 'number' | 'boolean' | 'json';

export type Outputs = Readonly<Record<string, Json>>;

/** Placeholder value for an output stored in a file. */
export function storedOutputValue(file: string, bytes: number): Json {
  return { $file: file, bytes };
}

/** One output of a command. `T` is the form of its texts: with placeholders in a Program, filled in an effect. */
export interface Capture<T> {
  readonly name: string;
  readonly from:
    | { readonly kind: 'stdout' }
    | { readonly kind: 'stderr' }
    | { readonly kind: 'exit-code' }
    | { readonly kind: 'file'; readonly path: T };
  readonly type: ValueType;
  /** If true, an absent file fails the step. */
  readonly required: boolean;
}

/** One output expected from an agent. */
export interface Expectation {
  readonly name: string;
  /** `file_path`: an existing file, relative to the agent's start folder. */
  readonly type: 'string' | 'number' | 'boolean' | 'json' | 'file_path';
  readonly required: boolean;
  /** Shown to the agent. */
  readonly description: string | null;
}

/** Parses text as a type. `any` keeps the text. */
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

/** Checks a value against a type; null if it is valid, otherwise the error. */
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
