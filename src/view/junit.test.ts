import { expect, test } from 'vitest';
import { junitXml } from './junit.ts';

test('each file is a suite, each test a case, and all texts are escaped', () => {
  const cases = [
    { name: 'a < b', status: 'passed', ms: 12, messages: [] },
    { name: '"c"', status: 'failed', ms: 0, messages: ['x & y\nz\u0007', 'second'] },
    { name: 'd', status: 'error', ms: 0, messages: ['no folder'] },
  ] as const;
  expect(junitXml([{ name: 'a.test.toml', cases }])).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" errors="1" time="0.012">
  <testsuite name="a.test.toml" tests="3" failures="1" errors="1" time="0.012">
    <testcase name="a &lt; b" classname="a.test.toml" time="0.012"/>
    <testcase name="&quot;c&quot;" classname="a.test.toml" time="0.000">
      <failure message="x &amp; y">x &amp; y
z</failure>
      <failure message="second">second</failure>
    </testcase>
    <testcase name="d" classname="a.test.toml" time="0.000">
      <error message="no folder">no folder</error>
    </testcase>
  </testsuite>
</testsuites>
`);
});
