// `--var`, `--var-json` and `--meta`, checked against the variables that the workflow declares. All problems are reported
// together.

import { resolve } from 'node:path';

import type { Json, JsonMap } from '../base/json.ts';
import { err } from '../base/result.ts';
import { formatMoment } from '../base/time.ts';
import { UsageError } from '../base/usage-error.ts';
import type { ValueType } from '../ir/output.ts';
import { coerce, typeError } from '../ir/output.ts';
import type { Program } from '../ir/program.ts';
import type { Lookup } from '../ir/text.ts';
import { fillValue } from '../ir/text.ts';
import { valueAt } from '../kernel/scope.ts';
import { readText } from './sources.ts';

/** As written on the command line. */
export interface GivenVariables {
  readonly texts: ReadonlyMap<string, string>;
  readonly values: ReadonlyMap<string, Json>;
}

export function readGiven(vars: readonly string[], jsonVars: readonly string[]): GivenVariables {
  const problems: string[] = [];
  const texts = new Map<string, string>();
  const values = new Map<string, Json>();
  for (const text of vars) {
    const pair = split(text);
    if (pair === null) problems.push(unpaired('--var', text));
    else texts.set(...pair);
  }
  for (const text of jsonVars) {
    const pair = split(text);
    if (pair === null) {
      problems.push(unpaired('--var-json', text));
      continue;
    }
    const parsed = coerce(pair[1], 'json');
    if (parsed.ok) values.set(pair[0], parsed.value);
    else problems.push(`--var-json ${pair[0]}: ${parsed.error}`);
  }
  for (const name of values.keys()) {
    if (texts.has(name)) problems.push(`${name} is given by --var and by --var-json`);
  }
  refuse(problems, 'write --var NAME=VALUE, or --var-json NAME=JSON');
  return { texts, values };
}

function unpaired(flag: string, text: string): string {
  return text.startsWith('=') ? `${flag} ${text} has no name before its "="` : `${flag} ${text} has no "="`;
}

export function readMeta(pairs: readonly string[]): Readonly<Record<string, string>> {
  const meta: [string, string][] = [];
  const problems: string[] = [];
  for (const text of pairs) {
    const pair = split(text);
    if (pair === null) problems.push(unpaired('--meta', text));
    else meta.push(pair);
  }
  refuse(problems, 'write --meta NAME=VALUE');
  return Object.fromEntries(meta);
}

export interface RunToBe {
  readonly id: string;
  readonly at: number;
  /** The working directory of the run. */
  readonly cwd: string;
  /** Variables whose value is the path of a file; they get the text of the file. */
  readonly fileVariables: readonly string[];
}

/** The variables of the run, parsed as their declared types, with defaults. */
export function resolveVariables({ texts, values }: GivenVariables, program: Program, run: RunToBe): JsonMap {
  const parameters = program.blocks[program.entry]?.parameters ?? [];
  const typeOf = (name: string): ValueType => parameters.find((one) => one.name === name)?.type ?? 'any';
  const problems: string[] = [];
  const resolved = new Map<string, Json>();
  for (const [name, text] of texts) {
    const read = coerce(text, typeOf(name));
    if (read.ok) resolved.set(name, read.value);
    else problems.push(`--var ${name}: ${read.error}`);
  }
  for (const [name, value] of values) {
    const wrong = typeError(value, typeOf(name));
    if (wrong === null) resolved.set(name, value);
    else problems.push(`--var-json ${name}: ${wrong}`);
  }
  // A default may use earlier variables, so they are resolved in order.
  for (const { name, type, fallback } of problems.length > 0 ? [] : parameters) {
    if (resolved.has(name) || fallback === null) continue;
    const filled = fillValue(fallback, lookupIn(resolved, run));
    const value = filled.ok && typeof filled.value === 'string' ? coerce(filled.value, type) : filled;
    if (value.ok) resolved.set(name, value.value);
    else problems.push(`the default of ${name}: ${value.error}`);
  }
  refuse(problems, `${program.source.name} declares its variables and their types`);
  for (const name of run.fileVariables) {
    const path = resolved.get(name);
    if (typeof path === 'string') resolved.set(name, readText(resolve(run.cwd, path), path));
  }
  return Object.fromEntries(resolved);
}

function lookupIn(resolved: ReadonlyMap<string, Json>, { id, at }: RunToBe): Lookup {
  const moment = formatMoment(at);
  const builtIn: Readonly<Record<string, string>> = {
    workflow_id: id,
    timestamp: moment,
    date: moment.slice(0, 10),
    time: moment.slice(11, 19),
  };
  return ([name = '', ...rest]) => {
    const value = resolved.get(name) ?? (Object.hasOwn(builtIn, name) ? builtIn[name] : undefined);
    return value === undefined ? err(`{{${[name, ...rest].join('.')}}} has no value`) : valueAt(value, rest, name);
  };
}

function refuse(problems: readonly string[], hint: string): void {
  if (problems.length > 0) throw new UsageError(problems.join('\n      '), hint);
}

function split(text: string): [string, string] | null {
  const at = text.indexOf('=');
  return at < 1 ? null : [text.slice(0, at), text.slice(at + 1)];
}
