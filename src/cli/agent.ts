// The commands that steps and agents of a run call. Hooks call some of them at every turn, so they are a program of their
// own that is small and reads little: nothing of the rest of the command line may be imported here.

import { UsageError } from '../base/errors.ts';
import { awaitApproval, awaitEvent, done, event, prime, sessionId, stepStatus } from './commands/in-run.ts';
import { type FlagList, type Given, readFlags } from './flags.ts';
import { exitOnUncaughtError, report } from './output.ts';

interface AgentCommand extends FlagList {
  perform(given: Given): number | Promise<number>;
}

export const AGENT_COMMANDS: Readonly<Record<string, AgentCommand>> = {
  done: { arguments: [], values: ['output', 'json', 'output-json', 'notes'], switches: [], perform: done },
  prime: { arguments: [], values: ['format'], switches: [], perform: prime },
  'session-id': { arguments: [], values: ['agent'], switches: [], perform: sessionId },
  event: { arguments: ['TYPE'], values: ['data'], switches: [], perform: event },
  'await-event': { arguments: ['TYPE'], values: ['filter', 'timeout'], switches: ['json'], perform: awaitEvent },
  'step-status': { arguments: ['STEP'], values: ['is', 'is-not'], switches: [], perform: stepStatus },
  'await-approval': {
    arguments: ['GATE'],
    values: ['timeout', 'prompt', 'approver'],
    switches: [],
    perform: awaitApproval,
  },
  mcp: {
    arguments: [],
    values: ['agent', 'workflow', 'socket', 'inbox'],
    switches: [],
    perform: async (given) => (await import('./commands/mcp.ts')).mcp(given),
  },
};

/** `args`: with the command in front. Resolves to the exit status. */
export async function main([name = '', ...args]: readonly string[]): Promise<number> {
  exitOnUncaughtError();
  try {
    const command = AGENT_COMMANDS[name];
    if (command === undefined) throw new UsageError(`unknown command ${JSON.stringify(name)}`);
    return await command.perform(readFlags(name, command, args));
  } catch (error) {
    return report(error);
  }
}
