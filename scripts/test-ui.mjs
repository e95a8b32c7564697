// `npm run test:ui`: runs the tests in test/ui/, which open the page in the system's Chromium. `npm run setup` installs it on
// Debian. Without it one line says so and the tests are skipped. Arguments are passed to vitest: `npm run test:ui -- -t gate`.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { build, conclude, runTests } from './run-tests.mjs';

/** As test/rig/browser.ts finds it. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

if (!hasChromium()) {
  process.stdout.write('Chromium is not installed, so the tests of the page are skipped: npm run setup\n');
  conclude({ passed: 0, failed: 0, skipped: 1 });
} else if (build()) {
  conclude(runTests(['--config', 'test/ui/vitest.config.ts', ...process.argv.slice(2)]));
} else {
  conclude({ passed: 0, failed: 1, skipped: 0 });
}

function hasChromium() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return NAMES.some((name) => folders.some((folder) => existsSync(join(folder, name))));
}
