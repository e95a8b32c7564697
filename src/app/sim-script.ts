// The script that simulated agents act from: it lies beside the workflow (`deploy.sim.toml` beside `deploy.meow.toml`),
// is checked before the run begins, and is kept with the run, so that whoever resumes it has the same agents.

import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

import type { Diagnostic } from '../base/diagnostic.ts';
import { isErrno } from '../sys/errno.ts';
import { readSimScript } from '../sim/script.ts';

export interface ScriptBeside {
  /** Null where there is none. */
  readonly text: string | null;
  readonly diagnostics: readonly Diagnostic[];
}

/** `workflow`: the absolute path of the workflow; `cwd`: what messages name the script from. */
export function readScriptBeside(workflow: string, cwd: string): ScriptBeside {
  const name = `${basename(workflow).replace(/(?:\.meow\.toml|\.toml|\.ya?ml|\.md)$/, '')}.sim.toml`;
  const path = join(dirname(workflow), name);
  try {
    const text = readFileSync(path, 'utf8');
    return { text, diagnostics: readSimScript(text, relative(cwd, path)).diagnostics };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return { text: null, diagnostics: [] };
    throw error;
  }
}
