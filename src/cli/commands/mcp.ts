// `meow mcp`: a server of the Model Context Protocol on stdin and stdout, for agents whose commands reach no run from the
// sandbox that they are in. It lives as long as the agent that started it. Nothing but the protocol is printed.

import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { McpServer } from '../mcp/server.ts';
import { INSTRUCTIONS, toolsFor } from '../mcp/tools.ts';
import { printNow } from '../output.ts';
import { requireRunContext } from '../../app/run-context.ts';

declare const MEOW_VERSION: string;

/** Not everybody passes its environment on to its servers. */
const VARIABLES = { agent: 'MEOW_AGENT', workflow: 'MEOW_WORKFLOW', socket: 'MEOW_ORCH_SOCK', inbox: 'MEOW_INBOX' };

export async function mcp(given: Given): Promise<number> {
  for (const [flag, variable] of Object.entries(VARIABLES)) {
    const value = given.last(flag);
    if (value !== null) process.env[variable] = value;
  }
  const server = new McpServer({
    version: MEOW_VERSION,
    instructions: INSTRUCTIONS,
    tools: toolsFor(requireRunContext('mcp')),
    send: printNow,
  });
  const end = (): void => {
    // Whoever does not want to wait for what is just being said sends another.
    process.off('SIGINT', end).off('SIGTERM', end);
    process.stdin.destroy();
  };
  process.on('SIGINT', end).on('SIGTERM', end);
  await server.serve(process.stdin);
  return EXIT.done;
}
