import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { Json } from '../../../base/json.ts';
import { READER_NAMES, readerNamed } from './named.ts';
import type { Reader } from './reader.ts';
import { attempts } from '../../../../test/rig/sample.ts';

function reader(name: string): Reader {
  const named = readerNamed(name);
  if (!named.ok) throw new Error(named.error);
  return named.value;
}

test('a reader that there is not is refused with those that there are', () => {
  expect(readerNamed('toString')).toEqual({
    ok: false,
    error: `there is no reader "toString" of an agent's output; available: ${READER_NAMES.join(', ')}`,
  });
});

/** Words that readers know, so that chance comes upon them. */
const WORDS = `
  type kind subtype message content item part error result usage stats tokens session_id sessionID thread_id
  session id tool_id tool_use_id text is_error status modelUsage permission_denials tasks errors data
  rate_limit_info resetsAt cost limit system init assistant user tool_use tool_result rate_limit_event
  turn.completed ok turn.failed item.started item.completed agent_message step_start step_finish begun tool
  __proto__ constructor total code until success rejected structured_output
`
  .trim()
  .split(/\s+/);
const word = fc.constantFrom(...WORDS);
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    word,
    fc.constantFrom<Json>(null, true, false, 0, -1, 1e308, 429, ''),
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(word, tie('value')), { maxLength: 6 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value;
const line = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(fc.tuple(word, json), { maxLength: 8 }).map((all) => JSON.stringify(Object.fromEntries(all))),
  },
  { weight: 1, arbitrary: json.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);

describe.each(READER_NAMES)('the reader %s', (name) => {
  test('takes whatever it is given, and never throws', () => {
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 12 }),
        fc.option(fc.integer({ min: 0, max: 255 })),
        fc.oneof(fc.string(), line),
        (lines, status, stderr) => {
          const read = reader(name);
          for (const [index, each] of lines.entries()) {
            read.line(each);
            if (index % 5 === 4) read.longLine(index % 2 === 0);
            expect(typeof read.text).toBe('string');
            expect(typeof read.toolInFlight).toBe('boolean');
          }
          const { verdict, usage } = read.end({ status, stderr, at: 0 });
          if (verdict.kind === 'answer') expect(status).toBe(0);
          for (const amount of [usage?.usd, usage?.tokens]) expect((amount ?? 0) >= 0).toBe(true);
        },
      ),
      { numRuns: attempts(400) },
    );
  });

  test('says nothing of a program that said nothing, and does not succeed without it', () => {
    expect(reader(name).end({ status: 1, stderr: '', at: 0 })).toEqual({
      verdict: { kind: 'silent' },
      denied: 0,
      usage: null,
    });
  });

  test('passes over an object that is nested without end', () => {
    const read = reader(name);
    read.line(`${'{"message":'.repeat(50_000)}1${'}'.repeat(50_000)}`);
    read.line('['.repeat(200_000));
    expect(read.session).toBeNull();
  });
});
