// The entry of the program. It answers `--version` itself, for that is asked often and must be instant; everything else
// is loaded when it is wanted. Nothing may be imported here that the fast path does not need.

declare const MEOW_VERSION: string;

const args = process.argv.slice(2);

if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`${MEOW_VERSION}\n`);
} else {
  // The exit status is set, not forced: what was printed is flushed, and a handle left open shows as a hang in tests.
  void import('./cli.ts').then(async ({ main }) => {
    process.exitCode = await main(args);
  });
}
