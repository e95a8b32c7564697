import { expect, test } from 'vitest';
import { readReport } from './harness-report.ts';

const REPORT = {
  suite_id: 'smoke',
  cases: [{ id: 'a', status: 'passed' }, { id: 'b', status: 'failed' }, { id: 'c', status: 'passed' }, { id: 'd' }],
  summary: { passed: 2, failed: 1 },
};

const NONE = { report: null, problem: null, proposedGoldens: [] };

function read(name: string, value: unknown) {
  return readReport(name, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
}

test('a report is read, with its cases counted by their status', () => {
  expect(read('harness_report.json', { ...REPORT, proposed_goldens: ['golden/a.png'], ux_flags: [] })).toEqual({
    report: {
      suiteId: 'smoke',
      summary: { passed: 2, failed: 1 },
      statuses: { passed: 2, failed: 1, unknown: 1 },
    },
    problem: null,
    proposedGoldens: ['golden/a.png'],
  });
});

test('a report without goldens proposes none', () => {
  expect(read('harness_report.json', { ...REPORT, proposed_goldens: null })).toMatchObject({
    problem: null,
    proposedGoldens: [],
  });
});

test('a file is known as a report by its name, in whichever folder', () => {
  for (const name of ['harness_report.json', 'out/harness_report.json', 'cli_harness_report-2.JSON'])
    expect(readReport(name, Buffer.from('[]')).problem !== null).toBe(true);
  for (const name of ['harness_report/x.json', 'report.json', 'harness_report.txt'])
    expect(readReport(name, Buffer.from('[]')).problem !== null).toBe(false);
});

test('a JSON file of another name is a report if it has what makes one', () => {
  expect(read('result.json', REPORT)).toMatchObject({ report: { suiteId: 'smoke' } });
  expect(read('result.json', { suite_id: 'x', cases: [] })).toEqual(NONE);
  for (const value of ['[]', 'null', '{', '3']) expect(read('result.json', value)).toEqual(NONE);
});

test('goldens count under any name, and whatever else is wrong with the report', () => {
  expect(read('result.json', { proposed_goldens: ['a.png', 3] })).toEqual({
    report: null,
    problem:
      'is not a harness report: suite_id is missing; cases is missing; summary is missing; ' +
      'proposed_goldens is not a list of paths',
    proposedGoldens: ['a.png'],
  });
});

test.for<[unknown, string]>([
  ['{"suite_id": "a",\n nonsense}', 'it is not JSON from line 2, column 2 on'],
  ['', 'it is not JSON from line 1, column 1 on'],
  ['[]', 'it is not an object'],
  [{ ...REPORT, suite_id: 7 }, 'suite_id is not a string'],
  [{ ...REPORT, cases: {} }, 'cases is not a list of objects'],
  [{ ...REPORT, cases: ['a'] }, 'cases is not a list of objects'],
  [{ ...REPORT, summary: [] }, 'summary is not an object'],
  [{ ...REPORT, proposed_goldens: 'a.png' }, 'proposed_goldens is not a list of paths'],
  [{ ...REPORT, proposed_goldens: ['a.png', 3] }, 'proposed_goldens is not a list of paths'],
  [{ suite_id: 'a' }, 'cases is missing; summary is missing'],
])('%j is no report', ([value, message]) => {
  expect(read('harness_report.json', value)).toMatchObject({
    report: null,
    problem: `is not a harness report: ${message}`,
  });
});

test('bytes that are no text are no report, and nothing breaks', () => {
  const bytes = Buffer.from([0x7b, 0xff, 0xfe, 0x7d]);
  expect(readReport('harness_report.json', bytes)).toEqual({
    ...NONE,
    problem: 'is not a harness report: it is not UTF-8',
  });
  expect(readReport('other.json', bytes)).toEqual(NONE);
});

test('a report says nothing that every object has', () => {
  expect(read('harness_report.json', '{"__proto__": {"suite_id": "a", "cases": [], "summary": {}}}')).toMatchObject({
    report: null,
  });
});
