// The entry of the program. It answers `--version` itself, for that is asked often and must be instant; everything else
// is loaded when it is wanted, and what agents call is a small program of its own. Nothing may be imported here that the
// fast path does not need.

declare const MEOW_VERSION: string;

const args = process.argv.slice(2);
const FOR_AGENTS = ['done', 'prime', 'session-id', 'event', 'await-event', 'step-status', 'await-approval'];

if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`${MEOW_VERSION}\n`);
} else if (args[0] === 'sim-agent') {
  // A program of its own, which knows nothing of the others: not a command for people.
  void import('../sim/main.ts').then(({ main }) => {
    process.exitCode = main(args.slice(1));
  });
} else if (FOR_AGENTS.includes(args[0] ?? '') && !args.includes('--help') && !args.includes('-h')) {
  void import('./agent.ts').then(async ({ main }) => {
    process.exitCode = await main(args);
  });
} else {
  // The exit status is set, not forced: what was printed is flushed, and a handle left open shows as a hang in tests.
  void import('./cli.ts').then(async ({ main }) => {
    process.exitCode = await main(args);
  });
}
