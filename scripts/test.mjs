// `npm test`: builds, runs the checks, then every test once. A build or a check that fails counts as a failed test
// (run-tests.mjs). Arguments are passed to vitest: `npm test -- --project e2e -t resume`.

import { check } from './check.mjs';
import { build, conclude, runTests } from './run-tests.mjs';

if (build()) {
  // The unit tests are part of all tests below.
  const problems = (await check(['types', 'pure', 'lint', 'format', 'unused'])).length;
  const count = runTests(process.argv.slice(2));
  conclude({ ...count, failed: count.failed + problems });
} else {
  conclude({ passed: 0, failed: 1, skipped: 0 });
}
