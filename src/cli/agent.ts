// The commands that steps and agents of a run call. Hooks call some of them at every turn, so they are a program of their
// own that is small and reads little: nothing of the rest of the command line may be imported here.

import { UsageError } from '../base/errors.ts';
import { awaitApproval, awaitEvent, done, event, prime, sessionId, stepStatus } from './commands/in-run.ts';
import { type Given, readFlags } from './flags.ts';
import { AGENT_HELP } from './help.ts';
import { exitOnUncaughtError, report } from './output.ts';

const COMMANDS: Readonly<Record<keyof typeof AGENT_HELP, (given: Given) => number | Promise<number>>> = {
  done,
  prime,
  'session-id': sessionId,
  event,
  'await-event': awaitEvent,
  'step-status': stepStatus,
  'await-approval': awaitApproval,
  mcp: async (given) => (await import('./commands/mcp.ts')).mcp(given),
};

/** `args`: with the command in front. Resolves to the exit status. */
export async function main([name = '', ...args]: readonly string[]): Promise<number> {
  exitOnUncaughtError();
  try {
    if (!isCommand(name)) throw new UsageError(`unknown command ${JSON.stringify(name)}`);
    return await COMMANDS[name](readFlags(name, AGENT_HELP[name], args));
  } catch (error) {
    return report(error);
  }
}

function isCommand(name: string): name is keyof typeof AGENT_HELP {
  return Object.hasOwn(AGENT_HELP, name);
}
