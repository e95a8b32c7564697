// `meow sim-agent FOLDER SCRIPT MEMORY`: the simulated agent as a program. It is started by the driver (sim-host.ts) in
// the folder that it works in, with MEOW_AGENT in its environment. FOLDER has its mailbox; a file `ready` there says
// that it can take prompts.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SimAgent } from './agent.ts';
import { READY } from './mail.ts';
import { readSimScript } from './script.ts';

/** Resolves to an exit status where it cannot begin; else the program stays until it is ended. */
export function main(args: readonly string[]): number {
  const [folder, scriptFile, memory] = args;
  const name = process.env['MEOW_AGENT'];
  if (folder === undefined || scriptFile === undefined || memory === undefined || name === undefined) {
    process.stderr.write('meow sim-agent is started by meow: write adapter = "sim", or run with --adapter sim\n');
    return 2;
  }
  const { script, diagnostics } = readSimScript(readFileSync(scriptFile, 'utf8'), scriptFile);
  if (script === null) {
    for (const { span, message } of diagnostics) {
      process.stderr.write(`${span.file}:${span.line}:${span.column}: ${message}\n`);
    }
    return 2;
  }
  const socket = process.env['MEOW_ORCH_SOCK'] ?? null;
  new SimAgent({ name, script, folder, memory, socket }).open();
  writeFileSync(join(folder, READY), '', { mode: 0o600 });
  return 0;
}
