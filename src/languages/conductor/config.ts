// The configuration sections `[conductor]`, `[policy.NAME]` and `[validators.NAME]`.

import { OPERATIONS, type Policy } from '../../ir/conductor.ts';
import { NO_RESTRICTIONS } from '../../ir/policy.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, missing, type Report } from '../report.ts';
import { booleanAt, durationAt, listAt, stringAt, tableAt, word, wordAt, wrongType } from '../toml-fields.ts';
import { type TomlEntry, type TomlString, type TomlTable } from '../toml-tree.ts';
import { ACCESS, ALLOW, CONDUCTOR_SECTION, ON_PROMPT, POLICY, REGISTERED_VALIDATOR } from './config-keys.ts';
import { checkPath, isId, tidyPath } from './fields.ts';

export interface ConductorConfig {
  /** Programs that validators may start outside the run directory: paths or globs, relative to the worktree. */
  readonly allowedEntrypoints: readonly string[];
  /** Variables that validators may see. */
  readonly envAllow: readonly string[];
  readonly allowLockfiles: boolean;
  /** Names or globs of branches that are never restored. */
  readonly protectedBranches: readonly string[];
  readonly policies: Readonly<Record<string, Policy>>;
  readonly validators: Readonly<Record<string, RegisteredValidator>>;
}

export interface RegisteredValidator {
  readonly command: string;
  readonly cwd: string | null;
  readonly timeoutMs: number | null;
  readonly artifacts: readonly string[];
}

export const DEFAULT_CONDUCTOR: ConductorConfig = {
  allowedEntrypoints: [],
  envAllow: [],
  allowLockfiles: false,
  protectedBranches: ['main', 'master', 'release/*'],
  policies: {},
  validators: {},
};

export function readConductorConfig(report: Report, root: TomlTable, base: ConductorConfig): ConductorConfig {
  const table = tableAt(report, root, 'conductor', 'Write [conductor] and one line for each key.');
  if (table !== null) checkKeys(report, table, namesOf(CONDUCTOR_SECTION.keys), '[conductor]', 'warning');
  const values = (key: string): readonly string[] | null =>
    table === null ? null : (stringsAt(report, table, key)?.map(({ value }) => value) ?? null);
  return {
    allowedEntrypoints: values('allowed_entrypoints') ?? base.allowedEntrypoints,
    envAllow: values('env_allow') ?? base.envAllow,
    allowLockfiles: (table === null ? null : booleanAt(report, table, 'allow_lockfiles')) ?? base.allowLockfiles,
    protectedBranches: values('protected_branches') ?? base.protectedBranches,
    policies: { ...base.policies, ...named(report, root, 'policy', readPolicy) },
    validators: { ...base.validators, ...named(report, root, 'validators', readValidator) },
  };
}

type ReadEntry<T> = (report: Report, name: TomlEntry, table: TomlTable) => T;

/** Every `[SECTION.NAME]`. */
function named<T>(report: Report, root: TomlTable, section: string, read: ReadEntry<T>): Readonly<Record<string, T>> {
  const hint = `Write [${section}.NAME] and one line for each key.`;
  const table = tableAt(report, root, section, hint);
  if (table === null) return {};
  const entries = [...table.entries.values()].flatMap((entry) => {
    const inner = tableAt(report, table, entry.key, hint);
    return inner === null ? [] : [[entry.key, read(report, entry, inner)] as const];
  });
  return Object.fromEntries(entries);
}

/** A misspelt key would forbid nothing, so it is an error. */
function readPolicy(report: Report, { key: name }: TomlEntry, table: TomlTable): Policy {
  checkKeys(report, table, namesOf(POLICY.keys), `[policy.${name}]`, 'error');
  const operations = stringsAt(report, table, 'forbidden_operations') ?? [];
  return {
    name,
    text: stringAt(report, table, 'text')?.value.trim() ?? '',
    allowedPaths: globsAt(report, table, 'allowed_paths'),
    forbiddenPaths: globsAt(report, table, 'forbidden_paths') ?? [],
    forbiddenOperations: operations.flatMap((each) => word(report, 'forbidden_operations', each, OPERATIONS) ?? []),
    network: wordAt(report, table, 'network', ALLOW) ?? NO_RESTRICTIONS.network,
    access: wordAt(report, table, 'execution', ACCESS) ?? NO_RESTRICTIONS.access,
    onPrompt: wordAt(report, table, 'on_prompt', ON_PROMPT) ?? NO_RESTRICTIONS.onPrompt,
    lockfiles: wordAt(report, table, 'lockfiles', ALLOW) ?? NO_RESTRICTIONS.lockfiles,
  };
}

function readValidator(report: Report, { key, keyPlace }: TomlEntry, table: TomlTable): RegisteredValidator {
  const what = `[validators.${key}]`;
  checkKeys(report, table, namesOf(REGISTERED_VALIDATOR.keys), what, 'error');
  if (!isId(key)) {
    const hint = 'Names begin with a letter, and have letters, digits, _ and - in them.';
    report.error('invalid-id', keyPlace, `${JSON.stringify(key)} is not a valid name for a validator`, hint);
  }
  const command = stringAt(report, table, 'command');
  if (!table.entries.has('command')) missing(report, keyPlace, what, 'command', 'For example command = "npm test".');
  if (command?.value.trim() === '') {
    report.error('invalid-value', command.place, '"command" is empty', 'For example command = "npm test".');
  }
  const cwd = stringAt(report, table, 'cwd');
  if (cwd !== null) checkPath(report, 'cwd', cwd.value, cwd.place);
  return {
    command: command?.value ?? '',
    cwd: cwd?.value ?? null,
    timeoutMs: durationAt(report, table, 'timeout'),
    artifacts: globsAt(report, table, 'artifacts') ?? [],
  };
}

function globsAt(report: Report, table: TomlTable, key: string): readonly string[] | null {
  const items = stringsAt(report, table, key);
  for (const { value, place } of items ?? []) checkPath(report, key, value, place);
  return items?.map(({ value }) => tidyPath(value)) ?? null;
}

function stringsAt(report: Report, table: TomlTable, key: string): readonly TomlString[] | null {
  const example = `For example ${key} = ["one", "another"].`;
  const items = listAt(report, table, key, example)?.items.flatMap((item) => {
    return item.kind === 'string' ? [item] : (wrongType(report, item, `"${key}" is a list of strings`, example) ?? []);
  });
  return items ?? null;
}
