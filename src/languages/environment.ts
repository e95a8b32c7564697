// A table of environment variables.

import type { Text } from '../ir/text.ts';
import type { Report } from './report.ts';
import type { TomlString, TomlTable } from './toml-tree.ts';
import { describeToml } from './toml-tree.ts';

export function readEnvironment(
  report: Report,
  table: TomlTable | null,
  lower: (string: TomlString) => Text,
): Readonly<Record<string, Text>> {
  const env: [string, Text][] = [];
  for (const { key, keyPlace, value } of table?.entries.values() ?? []) {
    if (!isVariableName(key)) {
      const hint = 'It is made of letters, digits and _, and does not begin with a digit.';
      report.error('invalid-name', keyPlace, `"${key}" is not a valid name for an environment variable`, hint);
    } else if (key.startsWith('MEOW_')) {
      const message = `"${key}" is reserved for meow itself: this value is left out`;
      report.warning('reserved-name', keyPlace, message, 'Choose a name that does not begin with MEOW_.');
      continue;
    }
    if (value.kind === 'string') env.push([key, lower(value)]);
    else if (value.kind === 'list' || value.kind === 'table') {
      const message = `"${key}" must be a string, got ${describeToml(value)}`;
      report.error('wrong-type', value.place, message, 'Environment variables are strings; write JSON in quotes.');
    } else env.push([key, String(value.value)]);
  }
  return Object.fromEntries(env);
}

export function isVariableName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}
