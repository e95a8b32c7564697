// Unknown keys of workflows and steps. One that is similar to a known key is a mistake: the step would run without what
// its author wrote. So is a habit from another tool. Any other is a warning, so that files may contain notes.

import { nearest } from '../../base/names.ts';
import { own } from '../../base/json.ts';
import { listed, type Report } from '../report.ts';
import type { TomlEntry, TomlTable } from '../toml-tree.ts';

/** `habits`: hints for keys of other tools. */
export function checkOwnKeys(
  report: Report,
  table: TomlTable,
  known: readonly string[],
  what: string,
  habits: Readonly<Record<string, string>> = {},
): void {
  for (const entry of table.entries.values()) {
    if (known.includes(entry.key)) continue;
    const message = `${what} has no key "${entry.key}"`;
    const habit = own(habits, plain(entry.key));
    if (habit !== undefined) report.error('unknown-key', entry.keyPlace, message, habit);
    else reportUnknownKey(report, entry, known, message, `Known here: ${listed(known)}.`);
  }
}

/** `otherwise`: the hint if no known key is similar. */
export function reportUnknownKey(
  report: Report,
  { key, keyPlace }: TomlEntry,
  known: readonly string[],
  message: string,
  otherwise: string,
): void {
  const plainNames = new Map(known.map((name) => [plain(name), name]));
  const similar = plainNames.get(nearest(plain(key), plainNames.keys(), key.length <= 4 ? 1 : 2) ?? '');
  if (similar === undefined) report.warning('unknown-key', keyPlace, message, otherwise);
  else report.error('unknown-key', keyPlace, message, `Did you mean "${similar}"?`);
}

/** Case and separators do not make another name. */
function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[-_]/g, '');
}
