// `[program]`: what must be installed, and how `meow doctor` finds out about it. Its commands have no holes: they are run
// apart from any run.

import type { ProgramCheck, ProgramNeed } from '../../ir/adapter.ts';
import type { Report } from '../report.ts';
import { checkKeys, tableAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import { filledAt, neededAt, tablesAt, textsAt } from './fields.ts';

const KEYS = ['name', 'version_command', 'tried', 'install', 'login_command', 'login_cure', 'checks'];

export function readProgram(report: Report, root: TomlTable): ProgramNeed | null {
  const table = tableAt(report, root, 'program', 'Write [program] and below it name = "PROGRAM".');
  if (table === null) return null;
  checkKeys(report, table, KEYS, '[program]', 'warning');
  const name = neededAt(report, table, '[program]', 'name', 'Name what is started: name = "my-agent".');
  if (name !== null && /[\s/]/.test(name.value)) {
    const hint = 'It is looked for on PATH by its name alone.';
    report.error('invalid-name', name.place, `${JSON.stringify(name.value)} is no name of a program`, hint);
  }
  const text = (key: string): string | null => filledAt(report, table, key)?.value ?? null;
  return {
    name: name?.value ?? '',
    versionCommand: text('version_command'),
    tried: (textsAt(report, table, 'tried') ?? []).map(({ value }) => value),
    install: text('install'),
    loginCommand: text('login_command'),
    loginCure: text('login_cure'),
    checks: tablesAt(report, table, 'checks', 'program.checks').map((check) => readCheck(report, check)),
  };
}

function readCheck(report: Report, table: TomlTable): ProgramCheck {
  const section = '[[program.checks]]';
  checkKeys(report, table, ['name', 'command', 'cure'], section, 'warning');
  const text = (key: string, hint: string): string => neededAt(report, table, section, key, hint)?.value ?? '';
  return {
    name: text('name', 'Say in a word or two what is looked at: name = "first start".'),
    command: text('command', 'Write a command that succeeds where all is well.'),
    cure: text('cure', 'Say what is to be done where it does not.'),
  };
}
