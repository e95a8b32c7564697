// Results of tests as JUnit XML, which CI services read.

export interface JunitSuite {
  readonly name: string;
  readonly cases: readonly JunitCase[];
}

export interface JunitCase {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'error';
  readonly ms: number;
  readonly messages: readonly string[];
}

export function junitXml(suites: readonly JunitSuite[]): string {
  const cases = suites.flatMap((suite) => suite.cases);
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts(cases)}>`,
    ...suites.flatMap(suiteLines),
    '</testsuites>',
  ];
  return `${lines.join('\n')}\n`;
}

function suiteLines({ name, cases }: JunitSuite): readonly string[] {
  return [
    `  <testsuite name="${escaped(name)}" ${counts(cases)}>`,
    ...cases.flatMap((each) => caseLines(name, each)),
    '  </testsuite>',
  ];
}

function caseLines(suite: string, { name, status, ms, messages }: JunitCase): readonly string[] {
  const head = `    <testcase name="${escaped(name)}" classname="${escaped(suite)}" time="${seconds(ms)}"`;
  if (status === 'passed') return [`${head}/>`];
  const tag = status === 'failed' ? 'failure' : 'error';
  const told = messages.map((message) => {
    const [first = ''] = message.split('\n');
    return `      <${tag} message="${escaped(first)}">${escaped(message)}</${tag}>`;
  });
  return [`${head}>`, ...told, '    </testcase>'];
}

function counts(cases: readonly JunitCase[]): string {
  const [failures, errors] = (['failed', 'error'] as const).map(
    (status) => cases.filter((each) => each.status === status).length,
  );
  const time = seconds(cases.reduce((sum, { ms }) => sum + ms, 0));
  return `tests="${cases.length}" failures="${failures ?? 0}" errors="${errors ?? 0}" time="${time}"`;
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Drops what XML 1.0 cannot contain. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
