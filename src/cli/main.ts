// The entry point. It prints the version itself, because that must be instant, and loads everything else on demand. The
// commands for agents are a small bundle of their own. This file must import nothing that the fast path does not need.

import type * as Agent from './agent.ts';
import type * as Cli from './cli.ts';

declare const MEOW_VERSION: string;

const args = process.argv.slice(2);
const FOR_AGENTS = ['done', 'prime', 'session-id', 'event', 'await-event', 'step-status', 'await-approval', 'mcp'];

if (args.length === 1 && ['version', '--version', '-V'].includes(args[0] ?? '')) {
  process.stdout.write(`${MEOW_VERSION}\n`);
} else if (args[0] === 'sim-agent' || args[0] === 'sim-turn') {
  // The simulated agent: a separate program, not a command for people.
  void import('../sim/main.ts').then(async ({ main, mainOfTurn }) => {
    process.exitCode = await (args[0] === 'sim-turn' ? mainOfTurn : main)(args.slice(1));
  });
} else if (FOR_AGENTS.includes(args[0] ?? '') && !args.includes('--help') && !args.includes('-h')) {
  run('agent');
} else {
  run('cli');
}

/**
 * Sets the exit code and lets the process end, so that output is flushed and an open handle shows as a hang in tests. Once
 * nothing is left to wait for, the process exits without freeing its memory.
 */
function run(bundle: 'agent' | 'cli'): void {
  process.once('beforeExit', () => process.exit());
  void import('./load-bundle.ts').then(async ({ loadBundle }) => {
    const { main } = loadBundle(bundle) as typeof Agent | typeof Cli;
    process.exitCode = await main(args);
  });
}
