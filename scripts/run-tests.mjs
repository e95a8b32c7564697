// Runs vitest once and counts. Passed and skipped count tests. Failed also counts each other problem: a test file that
// could not be loaded, or an error outside any test. So `0 failed` and exit code 0 always come together.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

export function build() {
  const built = run(process.execPath, ['scripts/build.mjs']) === 0;
  if (!built) process.stdout.write('the build failed, so nothing was tested\n');
  return built;
}

/** `args`: for vitest. */
export function runTests(args, environment = process.env) {
  const folder = mkdtempSync(join(tmpdir(), 'meow-test-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const status = run(join(root, 'node_modules/.bin/vitest'), ['run', ...reporters, ...args], environment);
    const count = countTests(report);
    return status === 0 ? count : { ...count, failed: Math.max(count.failed, 1) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The last line of output: `N passed, N failed[, N skipped]`. */
export function conclude({ passed, failed, skipped }) {
  process.exitCode = failed === 0 ? 0 : 1;
  process.stdout.write(`\n${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`);
}

function countTests(report) {
  let results;
  try {
    results = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }; // the runner died before writing it, which its exit code shows
  }
  const unloaded = results.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  return {
    passed: results.numPassedTests,
    failed: results.numFailedTests + unloaded.length,
    skipped: results.numPendingTests + results.numTodoTests,
  };
}

function run(command, args, environment = process.env) {
  const { status, error } = spawnSync(command, args, { cwd: root, env: environment, stdio: 'inherit' });
  if (error !== undefined) process.stderr.write(`${error.message}\n`);
  return status;
}
