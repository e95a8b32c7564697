// Outputs of steps: named values, their sources, types and costs.

import { err, ok, type Result } from '../base/errors.ts';
import { isJsonMap, type Json, readJsonText } from '../base/json.ts';

export type ValueType = 'any' | 'string' | 'integer' | 'number' | 'boolean' | 'json';

export type Outputs = Readonly<Record<string, Json>>;

/** An output in a file of the run. */
export interface StoredFile {
  /** Relative to the run's folder. */
  readonly file: string;
  /** Of its contents, in hexadecimal digits. Absent in runs of earlier versions. */
  readonly sha256?: string;
}

/** Placeholder value for an output stored in a file. */
export function storedOutputValue({ file, sha256 }: Required<StoredFile>, bytes: number): Json {
  return { $file: file, bytes, sha256 };
}

/** The file of such a placeholder; null if the value is none. Data may look like one: ask only about stored outputs. */
export function storedFileOf(value: Json): StoredFile | null {
  if (!isJsonMap(value)) return null;
  const { $file: file, bytes, sha256, ...others } = value;
  if (typeof file !== 'string' || typeof bytes !== 'number' || Object.keys(others).length > 0) return null;
  return typeof sha256 === 'string' ? { file, sha256 } : { file };
}

/** One output of a command. `T` is the form of its texts: with placeholders in a Program, filled in an effect. */
export interface Capture<T> {
  readonly name: string;
  readonly from: Readonly<{ kind: 'stdout' | 'stderr' | 'exit-code' } | { kind: 'file'; path: T }>;
  readonly type: ValueType;
  /** If true, an absent file fails the step. */
  readonly required: boolean;
  /** Whether a text is trimmed at both ends. Absent: standard output and error are, a file is not. */
  readonly trim?: boolean;
}

export interface Expectation {
  readonly name: string;
  /** `file_path`: an existing file, relative to the agent's start folder. */
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'json' | 'file_path';
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
      if (/^\s*[+-]?\d+\s*$/.test(text) && Number.isSafeInteger(Number(text))) return ok(Number(text));
      return err(`expected an integer, got ${got()}`);
    case 'number':
      if (text.trim() !== '' && Number.isFinite(Number(text))) return ok(Number(text));
      return err(`expected a number, got ${got()}`);
    case 'boolean':
      if (/^(?:true|false)$/.test(text.trim())) return ok(text.trim() === 'true');
      return err(`expected true or false, got ${got()}`);
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

/** Parses text as a type. Any other value must have the type. */
export function asType(value: Json, type: ValueType): Result<Json, string> {
  if (typeof value === 'string') return coerce(value, type);
  const problem = typeError(value, type);
  return problem === null ? ok(value) : err(problem);
}

/** Cost of an effect; null if not reported. */
export interface Usage {
  readonly usd: number | null;
  readonly tokens: number | null;
  /** The kinds of its tokens; absent if not reported. */
  readonly parts?: TokenParts;
  /** The model as its program names it; absent if not reported. */
  readonly model?: string;
  /** In dollars, from the prices of the configuration, if the program reported none. */
  readonly computedUsd?: number;
}

export interface TokenParts {
  /** Input that is not cached. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** As reported, or else as computed; null if unknown. */
export function priceOf({ usd, computedUsd }: Usage): number | null {
  return usd ?? computedUsd ?? null;
}
