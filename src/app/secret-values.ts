// Which variables of an environment are secrets: those whose names match, unless their values are short or name a file.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

import { SECRET_LENGTH_MIN } from '../sys/secret-forms.ts';

/** `cwd`: what relative paths are relative to. */
export function secretValues(
  environment: Readonly<Record<string, string>>,
  names: readonly string[],
  cwd: string,
): ReadonlyMap<string, string> {
  const isSecret = namePattern(names);
  const found = Object.entries(environment).filter(([name, value]) => isSecret.test(name) && isSearchable(value, cwd));
  return new Map(found);
}

/** Whether a value is searched for in texts. */
export function isSearchable(value: string, cwd: string): boolean {
  if (value.length < SECRET_LENGTH_MIN || value.trim().length < SECRET_LENGTH_MIN) return false;
  return value.length > PATH_LENGTH_MAX || value.includes('\0') || !existsSync(resolve(cwd, value));
}

const PATH_LENGTH_MAX = 4_096;

function namePattern(names: readonly string[]): RegExp {
  const patterns = names.map((name) =>
    name
      .split('*')
      .map((part) => part.replaceAll(/[^A-Za-z0-9_]/g, String.raw`\$&`))
      .join('.*'),
  );
  return new RegExp(`^(?:${patterns.join('|')})$`);
}
