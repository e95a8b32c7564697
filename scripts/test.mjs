// `npm test`: builds, checks the tree, then runs every test once. A build or a part of the check that fails counts as a
// failed test (run-tests.mjs). Arguments are handed to vitest: `npm test -- --project e2e -t resume`.

import { check } from './check.mjs';
import { build, conclude, runTests } from './run-tests.mjs';

if (build()) {
  // The unit tests are among all tests below.
  const problems = (await check(['types', 'pure', 'lint', 'format', 'unused'])).length;
  const count = runTests(process.argv.slice(2));
  conclude({ ...count, failed: count.failed + problems });
} else {
  conclude({ passed: 0, failed: 1, skipped: 0 });
}
