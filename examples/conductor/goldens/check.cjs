// Renders the page and compares it with the expected output. Writes a report, and proposes a different output; `--accept`
// makes it the expected one.

const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');

const GOLDEN = 'expected/page.html';

import('./page.mjs').then(({ page }) => {
  const rendered = page('Ada');
  if (process.argv.includes('--accept')) return writeFileSync(GOLDEN, rendered);
  const isSame = rendered === readFileSync(GOLDEN, 'utf8');
  if (!isSame) {
    mkdirSync('proposed', { recursive: true });
    writeFileSync('proposed/page.html', rendered);
  }
  const report = {
    suite_id: 'pages',
    version: '1.0.0',
    generated_at: new Date().toISOString(),
    cases: [
      {
        id: 'page',
        kind: 'web',
        status: isSame ? 'passed' : 'failed',
        repro: 'node check.cjs',
        observations: isSame ? [] : [`the page differs from ${GOLDEN}`],
        artifacts: isSame ? [] : ['proposed/page.html'],
      },
    ],
    summary: { passed: isSame ? 1 : 0, failed: isSame ? 0 : 1, flaky: 0, duration_ms: 1 },
    proposed_goldens: isSame ? [] : [GOLDEN],
  };
  writeFileSync('harness_report.json', `${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = isSame ? 0 : 1;
});
