// `meow sim-agent FOLDER SCRIPT MEMORY`: the simulated agent as a program. The driver (sim-host.ts) starts it in its
// working directory, with MEOW_AGENT set. FOLDER contains the mailbox; a file `ready` there means that it can take
// prompts. Also `meow sim-turn`: a single headless turn (turn-program.ts).

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SimAgent } from './agent.ts';
import { READY } from './mail.ts';
import { readSimScript, type SimScript } from './script.ts';
import { takeTurn, parseTurnArguments } from './turn-program.ts';

/** Returns an exit code if it cannot start; otherwise the program runs until it is stopped. */
export function main(args: readonly string[]): number {
  const [folder, scriptFile, memory] = args;
  const name = process.env['MEOW_AGENT'];
  if (folder === undefined || scriptFile === undefined || memory === undefined || name === undefined) {
    process.stderr.write('meow sim-agent is started by meow: write adapter = "sim", or run with --adapter sim\n');
    return 2;
  }
  const script = scriptIn(scriptFile);
  if (script === null) return 2;
  const socket = process.env['MEOW_ORCH_SOCK'] ?? null;
  new SimAgent({ name, script, folder, memory, socket }).open();
  writeFileSync(join(folder, READY), '', { mode: 0o600 });
  return 0;
}

/** One turn with the prompt on stdin. Resolves to the exit code. */
export async function mainOfTurn(args: readonly string[]): Promise<number> {
  const given = parseTurnArguments(args, process.env);
  if (!given.ok) {
    process.stderr.write(`meow sim-turn: ${given.error}\n`);
    return 2;
  }
  const script = existsSync(given.value.script) ? scriptIn(given.value.script) : { rules: [] };
  return script === null ? 2 : takeTurn(given.value, script, readFileSync(0, 'utf8'));
}

/** Null if the script is invalid; the errors have been printed. */
function scriptIn(file: string): SimScript | null {
  const { script, diagnostics } = readSimScript(readFileSync(file, 'utf8'), file);
  if (script !== null) return script;
  for (const { span, message } of diagnostics) {
    process.stderr.write(`${span.file}:${span.line}:${span.column}: ${message}\n`);
  }
  return null;
}
