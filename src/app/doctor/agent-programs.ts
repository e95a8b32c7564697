// Checks whether each adapter's program is installed and ready for an unattended start. Everything about a program is
// in its adapter; no agent is started, and nothing uses the network.

import { findProgram } from '../../drivers/recording-shell.ts';
import type { Adapter, RequiredProgram } from '../../ir/adapter.ts';
import type { FoundAdapter } from '../adapters.ts';
import type { Check } from './check.ts';
import { compareVersions, missing, ok, warning } from './check.ts';
import { tryCommand } from './trial.ts';

export async function checkAdapters(all: readonly FoundAdapter[], patienceMs: number): Promise<readonly Check[]> {
  const checked = await Promise.all(
    all.map(async ({ name, adapter, problem }) => {
      if (adapter === null) return [warning(name, problem ?? 'has an error', `fix it: meow adapter show ${name}`)];
      return adapter.program === null ? [] : checkProgram(adapter, adapter.program, patienceMs);
    }),
  );
  return checked.flat();
}

async function checkProgram(adapter: Adapter, program: RequiredProgram, patienceMs: number): Promise<readonly Check[]> {
  const { name } = adapter;
  const environment = environmentOf(adapter);
  if (findProgram(program.name, environment['PATH'] ?? '') === null) {
    const cure = program.install === null ? null : `install it: ${program.install}`;
    return [missing(name, `${program.name} is not on PATH`, cure)];
  }
  const attempt = (command: string): ReturnType<typeof tryCommand> => tryCommand(command, environment, patienceMs);
  const checks = [await checkVersion(name, program, attempt)];
  const seconds = Math.round(patienceMs / 1_000);
  const look = async (what: string, command: string, cure: string | null): Promise<void> => {
    const trial = await attempt(command);
    if (trial.kind === 'ended' && trial.status === 0) checks.push(ok(`${name}: ${what}`, 'fine'));
    else if (trial.kind === 'ended') checks.push(warning(`${name}: ${what}`, 'needs you', cure));
    else
      checks.push(warning(`${name}: ${what}`, trial.kind === 'late' ? `no answer in ${seconds}s` : trial.reason, cure));
  };
  if (program.loginCommand !== null) await look('login', program.loginCommand, program.loginCure);
  for (const { name: what, command, cure } of program.checks) await look(what, command, cure);
  return checks;
}

async function checkVersion(
  name: string,
  { versionCommand, tried, install }: RequiredProgram,
  attempt: (command: string) => ReturnType<typeof tryCommand>,
): Promise<Check> {
  if (versionCommand === null) return ok(name, 'is there');
  const trial = await attempt(versionCommand);
  if (trial.kind === 'late')
    return warning(name, `does not answer: ${versionCommand}`, 'start it by hand, and see what it waits for');
  const version = trial.kind === 'ended' ? (/\d+\.\d+(?:\.\d+)?/.exec(trial.output)?.[0] ?? null) : null;
  if (version === null)
    return warning(name, `does not tell its version: ${versionCommand}`, 'start it by hand, and see what it says');
  if (tried.length === 0 || tried.includes(version)) return ok(name, version);
  const known = `tried with ${tried.join(', ')}`;
  const oldest = tried.toSorted(compareVersions)[0] ?? version;
  if (compareVersions(version, oldest) >= 0) return ok(name, `${version}; ${known}`);
  return warning(
    name,
    `${version} is older than what was ${known}`,
    install === null ? null : `install it anew: ${install}`,
  );
}

/** The environment of its agents, except for what only a start knows. */
function environmentOf({ environment }: Adapter): Readonly<Record<string, string | undefined>> {
  const own = Object.entries(environment).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const set = Object.fromEntries(own.filter(([, value]) => value !== ''));
  const unset = new Set(own.filter(([, value]) => value === '').map(([name]) => name));
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !unset.has(name))), ...set };
}
