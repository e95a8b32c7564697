// `meow mcp`: an MCP server on stdin and stdout, for agents whose sandbox keeps their commands from reaching the run. It lives
// as long as the agent that started it, and prints nothing but the protocol. The server and its SDK are a bundle of their
// own (src/mcp), so that no other command loads them.

import { Writable } from 'node:stream';

import { requireRunContext } from '../../app/run-context.ts';
import type { Given } from '../flags.ts';
import { EXIT, printNow } from '../output.ts';

declare const MEOW_VERSION: string;

/** Flags, for clients that do not pass their environment on to their servers. */
const VARIABLES = { agent: 'MEOW_AGENT', workflow: 'MEOW_WORKFLOW', socket: 'MEOW_ORCH_SOCK', inbox: 'MEOW_INBOX' };

export async function mcp(given: Given): Promise<number> {
  for (const [flag, variable] of Object.entries(VARIABLES)) {
    const value = given.last(flag);
    if (value !== null) process.env[variable] = value;
  }
  const context = requireRunContext('mcp');
  const end = (): void => {
    // A second signal ends the program at once.
    process.off('SIGINT', end).off('SIGTERM', end);
    process.stdin.destroy();
  };
  process.on('SIGINT', end).on('SIGTERM', end);
  const output = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      printNow(text);
      done();
    },
  });
  const { serveTools } = await import('../../mcp/tools.ts');
  await serveTools(context, { version: MEOW_VERSION, input: process.stdin, output });
  return EXIT.done;
}
