// A step whose executor is unknown: what can be checked of it all the same. Its texts may refer only to what there is,
// and its scripts must be able to hold what they refer to.

import type { TomlTable, TomlValue } from '../toml-tree.ts';
import type { Scope } from './scope.ts';
import { lowerScript, lowerText } from './text.ts';

/** Keys whose text a shell reads. */
const SCRIPTS: readonly string[] = ['command', 'condition'];
/** Keys that name a variable for what is below the step. */
const NAMING: readonly string[] = ['item_var', 'index_var'];
/** What agents leave behind is described, and not filled in. */
const DESCRIPTIONS: readonly string[] = ['outputs'];

/** `common`: the keys of every step, which are checked elsewhere. */
export function checkWithoutExecutor(scope: Scope, step: TomlTable, common: readonly string[]): void {
  const named = NAMING.map((key) => step.entries.get(key)?.value).flatMap((value) =>
    value?.kind === 'string' ? [value.value] : [],
  );
  const inside: Scope = { ...scope, variables: new Set([...scope.variables, ...named]) };
  for (const { key, value } of step.entries.values()) {
    if (common.includes(key) || DESCRIPTIONS.includes(key)) continue;
    if (value.kind === 'string' && SCRIPTS.includes(key)) lowerScript(scope, value);
    else checkTexts(inside, value);
  }
}

/** Lists are left alone: they hold steps with a scope of their own. */
function checkTexts(scope: Scope, value: TomlValue): void {
  if (value.kind === 'string') lowerText(scope, value);
  else if (value.kind === 'table') for (const entry of value.entries.values()) checkTexts(scope, entry.value);
}
