// `witness: { command, expect, depends_on, timeout }`: a command that the engine runs itself to confirm an outcome.

import type { Witness } from '../../ir/conductor.ts';
import type { Report } from '../report.ts';
import { countAt, durationAt, mapAt, textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { neededText, shown, strictKeys } from './fields.ts';
import { globsAt } from './paths.ts';

const EXAMPLE = 'For example witness: { command: npm test, expect: { exit_code: 0 } }.';

/** Null if none is required, or after an error was reported. */
export function readWitness(report: Report, map: YamlMap, owner: string): Witness | null {
  const entry = map.entries.get('witness');
  const inner = mapAt(report, map, 'witness', EXAMPLE);
  if (entry === undefined || inner === null) return null;
  const what = `the witness of ${owner}`;
  strictKeys(report, inner, ['command', 'expect', 'depends_on', 'timeout'], what);
  const command = neededText(report, inner, 'command', { place: entry.keyPlace, what, hint: EXAMPLE });
  const timeoutMs = durationAt(report, inner, 'timeout');
  const witness = {
    expect: readExpectation(report, inner),
    dependsOn: globsAt(report, inner, 'depends_on', 'depends_on: ["test/**"]') ?? [],
    timeoutMs: timeoutMs === 0 ? null : timeoutMs,
  };
  return command === null ? null : { command: command.text, ...witness };
}

/** `{ exit_code, output }`; a number alone is an exit code, a text alone a pattern of the output. */
function readExpectation(report: Report, map: YamlMap): Witness['expect'] {
  const value = map.entries.get('expect')?.value;
  const nothing = { exitCode: 0, output: null };
  if (value === undefined || value.kind === 'nothing') return nothing;
  if (value.kind === 'number') return { ...nothing, exitCode: countAt(report, map, 'expect', 0) ?? 0 };
  if (value.kind === 'string') return { ...nothing, output: readPattern(report, 'expect', value) };
  if (value.kind === 'map') {
    strictKeys(report, value, ['exit_code', 'output'], '"expect"');
    const output = textAt(report, value, 'output');
    return {
      exitCode: countAt(report, value, 'exit_code', 0) ?? 0,
      output: output === null ? null : readPattern(report, 'output', output),
    };
  }
  const hint = 'For example expect: { exit_code: 0, output: "[1-9][0-9]* passed" }.';
  report.error('wrong-type', value.place, `"expect" must be a map, got ${shown(value)}`, hint);
  return nothing;
}

function readPattern(report: Report, key: string, { text, place }: YamlScalar): string | null {
  try {
    if (!new RegExp(text, 'm').test('')) return text;
    const message = `"${key}" fits even where nothing is printed, and so proves nothing`;
    report.error('invalid-pattern', place, message, 'Ask for something that only a success prints.');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `"${key}" is not a regular expression: ${error.message}`;
    report.error('invalid-pattern', place, message, 'Escape literal characters with a backslash.');
  }
  return null;
}
