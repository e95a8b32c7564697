// The entry of the program. It answers `--version` itself, for that is asked often and must be instant; everything else
// is loaded when it is wanted, and what agents call is a small program of its own. Nothing may be imported here that the
// fast path does not need.

import type * as Agent from './agent.ts';
import type * as Cli from './cli.ts';

declare const MEOW_VERSION: string;

const args = process.argv.slice(2);
const FOR_AGENTS = ['done', 'prime', 'session-id', 'event', 'await-event', 'step-status', 'await-approval', 'mcp'];

if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`${MEOW_VERSION}\n`);
} else if (args[0] === 'sim-agent') {
  // A program of its own, which knows nothing of the others: not a command for people.
  void import('../sim/main.ts').then(({ main }) => {
    process.exitCode = main(args.slice(1));
  });
} else if (args[0] === 'sim-turn') {
  void import('../sim/main.ts').then(async ({ mainOfTurn }) => {
    process.exitCode = await mainOfTurn(args.slice(1));
  });
} else if (FOR_AGENTS.includes(args[0] ?? '') && !args.includes('--help') && !args.includes('-h')) {
  run('agent');
} else {
  run('cli');
}

/**
 * The exit status is set, not forced: what was printed is flushed, and a handle left open shows as a hang in tests. Once
 * there is nothing left to wait for, we go, and leave it to the system to clear up our memory.
 */
function run(bundle: 'agent' | 'cli'): void {
  process.once('beforeExit', () => process.exit());
  void import('./load-bundle.ts').then(async ({ loadBundle }) => {
    const { main } = loadBundle(bundle) as typeof Agent | typeof Cli;
    process.exitCode = await main(args);
  });
}
