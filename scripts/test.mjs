// `npm test`: builds, checks the tree, then runs every test once. The last line is the count, alone:
//
//   N passed, N failed[, N skipped]
//
// Passed and skipped are tests. Failed are tests too, and whatever else went wrong counts there as one each: a build, a
// part of the check, a test file that could not be loaded, an error outside of any test. So `0 failed` and exit status 0
// always come together.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check } from './check.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

const count = { passed: 0, failed: 0, skipped: 0 };
if (run(process.execPath, ['scripts/build.mjs']) === 0) {
  // The unit tests are among all tests below.
  count.failed += (await check(['types', 'pure', 'lint', 'format', 'unused'])).length;
  runTests(process.argv.slice(2));
} else {
  process.stdout.write('the build failed, so nothing was tested\n');
  count.failed += 1;
}

process.exitCode = count.failed === 0 ? 0 : 1;
const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`;
process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);

/** Arguments are handed to vitest: `npm test -- --project e2e -t resume`. */
function runTests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'meow-test-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const status = run(join(root, 'node_modules/.bin/vitest'), ['run', ...reporters, ...args]);
    const failed = countTests(report);
    count.failed += status === 0 ? failed : Math.max(failed, 1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function countTests(report) {
  let results;
  try {
    results = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return 0; // the runner did not live to write it, which its exit status says
  }
  count.passed += results.numPassedTests;
  count.skipped += results.numPendingTests + results.numTodoTests;
  const unloaded = results.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  return results.numFailedTests + unloaded.length;
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) process.stderr.write(`${error.message}\n`);
  return status;
}
