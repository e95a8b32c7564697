// The Program as it is stored with its run, `{"hash":…,"program":…}`. The hash shows whether it was changed.

import { createHash } from 'node:crypto';
import { assert } from '../base/assert.ts';
import { isJsonMap } from '../base/json.ts';
import type { Json } from '../base/json.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Program, Source } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';

/** Of its JSON: parsing and writing it again keeps the order of keys. */
export function hashProgram(program: Program): string {
  return createHash('sha256').update(JSON.stringify(program)).digest('hex');
}

export function encodeProgram(program: Program, hash: string): string {
  return `${JSON.stringify({ hash, program })}\n`;
}

/** The error says what is wrong, to be written after the path: `… is cut off`. */
export function decodeProgram(text: string): Result<{ readonly program: Program; readonly hash: string }, string> {
  const stored = parse(text);
  if (!isJsonMap(stored) || typeof stored['hash'] !== 'string' || !isJsonMap(stored['program'])) {
    return err('is cut off or no longer a program');
  }
  const { hash, program } = stored;
  if (program['format'] !== 2) return err('was written by another version of meow');
  const trusted = program as unknown as Program;
  if (hashProgram(trusted) !== hash) return err('was changed after the run began');
  return ok({ program: trusted, hash });
}

/** From the first bytes of a stored Program, unchecked; null if they do not contain it. */
export function sourceOf(beginning: string): Source | null {
  const [, source = 'null'] = /"source":(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})/.exec(beginning) ?? [];
  return (parse(source) ?? null) as Source | null;
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

// Checks that records continue a sequence. Every store does so before an append, and again when it reads them.

export function checkSequence(lastSeq: number, records: readonly JournalRecord[]): void {
  let expected = lastSeq + 1;
  for (const { seq, at } of records) {
    assert(seq === expected, `record ${seq} was appended instead of ${expected}`);
    assert(Number.isSafeInteger(at), `record ${seq} has the time ${at}`);
    expected++;
  }
}
