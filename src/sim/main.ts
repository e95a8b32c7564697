// `meow sim-agent FOLDER SCRIPT MEMORY`: the simulated agent as a program. It is started by the driver (sim-host.ts) in
// the folder that it works in, with MEOW_AGENT in its environment. FOLDER has its mailbox; a file `ready` there says
// that it can take prompts. And `meow sim-turn`: one that does not stay (turn-program.ts).

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SimAgent } from './agent.ts';
import { READY } from './mail.ts';
import type { SimScript } from './script.ts';
import { readSimScript } from './script.ts';
import { takeTurn, turnWish } from './turn-program.ts';

/** Resolves to an exit status where it cannot begin; else the program stays until it is ended. */
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

/** One turn, with the prompt on stdin. Resolves to the exit status. */
export async function mainOfTurn(args: readonly string[]): Promise<number> {
  const wish = turnWish(args, process.env);
  if (!wish.ok) {
    process.stderr.write(`meow sim-turn: ${wish.error}\n`);
    return 2;
  }
  const script = existsSync(wish.value.script) ? scriptIn(wish.value.script) : { rules: [] };
  return script === null ? 2 : takeTurn(wish.value, script, readFileSync(0, 'utf8'));
}

/** Null where it is none, which has been said then. */
function scriptIn(file: string): SimScript | null {
  const { script, diagnostics } = readSimScript(readFileSync(file, 'utf8'), file);
  if (script !== null) return script;
  for (const { span, message } of diagnostics) {
    process.stderr.write(`${span.file}:${span.line}:${span.column}: ${message}\n`);
  }
  return null;
}
