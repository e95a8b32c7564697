// What script validators see: of the user's environment only what they need, and what the settings allow; nothing by which
// the run can be talked to. The marker stays, by which their processes are known.

import { tmpdir } from 'node:os';
import type { Driver, RunFiles } from '../../engine/ports.ts';
import { commandDriver } from '../command/command-driver.ts';
import { makeFolder } from '../../sys/private-file.ts';
import type { OpcodeContext } from './context.ts';

type Knows = Pick<OpcodeContext, 'run' | 'runDir' | 'settings'>;

/** A driver of commands with that environment. `graceMs`: between TERM and KILL. */
export function scriptDriver(context: Knows, graceMs?: number): Driver {
  const { run } = context;
  const grace = graceMs === undefined ? {} : { graceMs };
  return commandDriver({ ...run, ...grace, binFolder: null, environment: scriptEnvironment(context) });
}

function scriptEnvironment({ run, runDir, settings }: Knows): Readonly<Record<string, string>> {
  const seen = [...PLAIN, ...settings.envAllow].flatMap((name) => {
    const value = Object.hasOwn(run.environment, name) ? run.environment[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return { HOME: scratchFolder(run.files), TMPDIR: tmpdir(), ...Object.fromEntries(seen), MEOW_RUN_DIR: runDir };
}

const PLAIN = ['PATH', 'LANG', 'TMPDIR'];

/** What the driver of commands adds for those who may talk to the run. In front of a script. */
export const WITHOUT_RUN = 'unset MEOW_WORKFLOW MEOW_STEP MEOW_ATTEMPT MEOW_ORCH_SOCK MEOW_INBOX;';

export function makeScratchFolder({ files }: OpcodeContext['run']): void {
  makeFolder(scratchFolder(files));
}

function scratchFolder(files: RunFiles): string {
  return files.localPath('scratch');
}
