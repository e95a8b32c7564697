// The configuration sections `[conductor]`, `[policy.NAME]` and `[validators.NAME]`.

import type { Operation, Policy } from '../../ir/conducted.ts';
import { OPERATIONS } from '../../ir/conducted.ts';
import { NO_RESTRICTIONS } from '../../ir/policy.ts';
import type { Report } from '../report.ts';
import { booleanAt, checkKeys, durationAt, listAt, missing, stringAt, tableAt, word, wordAt } from '../toml-fields.ts';
import type { TomlEntry, TomlString, TomlTable } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';
import { pathProblem, tidyPath } from './path-problem.ts';
import { POLICY_KEYS } from './policy-keys.ts';
import { isId } from './ids.ts';

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

/** The sections that are read here. */
export const CONDUCTOR_SECTIONS = ['conductor', 'policy', 'validators'];

export function readConductorConfig(report: Report, root: TomlTable, base: ConductorConfig): ConductorConfig {
  return {
    ...readSection(report, root, base),
    policies: { ...base.policies, ...named(report, root, 'policy', readPolicy) },
    validators: { ...base.validators, ...named(report, root, 'validators', readValidator) },
  };
}

function readSection(report: Report, root: TomlTable, base: ConductorConfig): ConductorConfig {
  const table = tableAt(report, root, 'conductor', 'Write [conductor] and one line for each key.');
  if (table === null) return base;
  const known = ['allowed_entrypoints', 'env_allow', 'allow_lockfiles', 'protected_branches'];
  checkKeys(report, table, known, '[conductor]', 'warning');
  return {
    ...base,
    allowedEntrypoints: valuesAt(report, table, 'allowed_entrypoints') ?? base.allowedEntrypoints,
    envAllow: valuesAt(report, table, 'env_allow') ?? base.envAllow,
    allowLockfiles: booleanAt(report, table, 'allow_lockfiles') ?? base.allowLockfiles,
    protectedBranches: valuesAt(report, table, 'protected_branches') ?? base.protectedBranches,
  };
}

/** Every `[SECTION.NAME]`. */
function named<T>(
  report: Report,
  root: TomlTable,
  section: string,
  read: (report: Report, name: TomlEntry, table: TomlTable) => T | null,
): Readonly<Record<string, T>> {
  const hint = `Write [${section}.NAME] and one line for each key.`;
  const table = tableAt(report, root, section, hint);
  const entries = [...(table?.entries.values() ?? [])].flatMap((entry) => {
    const inner = table === null ? null : tableAt(report, table, entry.key, hint);
    const value = inner === null ? null : read(report, entry, inner);
    return value === null ? [] : [[entry.key, value] as const];
  });
  return Object.fromEntries(entries);
}

/** A misspelt key would forbid nothing, so it is an error. */
function readPolicy(report: Report, { key: name }: TomlEntry, table: TomlTable): Policy {
  checkKeys(report, table, ['text', ...POLICY_KEYS], `[policy.${name}]`, 'error');
  return {
    name,
    text: stringAt(report, table, 'text')?.value.trim() ?? '',
    allowedPaths: globsAt(report, table, 'allowed_paths'),
    forbiddenPaths: globsAt(report, table, 'forbidden_paths') ?? [],
    forbiddenOperations: operationsAt(report, table),
    network: wordAt(report, table, 'network', ['allow', 'deny'] as const) ?? NO_RESTRICTIONS.network,
    access: wordAt(report, table, 'execution', ['read_only', 'workspace_write'] as const) ?? NO_RESTRICTIONS.access,
    onPrompt: wordAt(report, table, 'on_prompt', ['fail', 'deny'] as const) ?? NO_RESTRICTIONS.onPrompt,
    lockfiles: wordAt(report, table, 'lockfiles', ['allow', 'deny'] as const) ?? NO_RESTRICTIONS.lockfiles,
  };
}

function operationsAt(report: Report, table: TomlTable): readonly Operation[] {
  const items = stringsAt(report, table, 'forbidden_operations') ?? [];
  return items.flatMap((item) => word(report, 'forbidden_operations', item, OPERATIONS) ?? []);
}

function readValidator(report: Report, { key, keyPlace }: TomlEntry, table: TomlTable): RegisteredValidator | null {
  const what = `[validators.${key}]`;
  checkKeys(report, table, ['command', 'cwd', 'timeout', 'artifacts'], what, 'error');
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
  if (cwd !== null) checkPath(report, 'cwd', cwd);
  return {
    command: command?.value ?? '',
    cwd: cwd?.value ?? null,
    timeoutMs: durationAt(report, table, 'timeout'),
    artifacts: globsAt(report, table, 'artifacts') ?? [],
  };
}

function globsAt(report: Report, table: TomlTable, key: string): readonly string[] | null {
  const items = stringsAt(report, table, key);
  for (const item of items ?? []) checkPath(report, key, item);
  return items?.map(({ value }) => tidyPath(value)) ?? null;
}

function checkPath(report: Report, key: string, { value, place }: TomlString): void {
  const problem = pathProblem(value);
  if (problem !== null) report.error('invalid-path', place, `"${key}": ${problem.message}`, problem.hint);
}

function valuesAt(report: Report, table: TomlTable, key: string): readonly string[] | null {
  return stringsAt(report, table, key)?.map(({ value }) => value) ?? null;
}

function stringsAt(report: Report, table: TomlTable, key: string): readonly TomlString[] | null {
  const example = `For example ${key} = ["one", "another"].`;
  const list = listAt(report, table, key, example);
  if (list === null) return null;
  return list.items.flatMap((item) => {
    if (item.kind === 'string') return [item];
    report.error('wrong-type', item.place, `"${key}" is a list of strings, got ${describeToml(item)}`, example);
    return [];
  });
}
