// A program and records for tests of stores: their contents do not matter to a store.

import { success } from '../../src/ir/effect.ts';
import { DEFAULT_LIMITS, type Program } from '../../src/ir/program.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';

export function aProgram(): Program {
  return {
    format: 2,
    source: { language: 'meow', name: 'a.meow.toml#main' },
    entry: 'main',
    blocks: { main: { name: 'main', parameters: [], steps: [], naming: 'path', visits: null } },
    cleanup: { success: null, failure: null, stop: null },
    limits: DEFAULT_LIMITS,
    drainMs: 0,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
}

export function aRecord(seq: number, stdout = `says ${seq}`): JournalRecord {
  return {
    seq,
    at: 1_800_000_000_000 + seq * 7,
    input: { kind: 'effect-finished', effect: `s${seq}#1`, outcome: success({ stdout }) },
    decisions: [{ kind: 'step-done', step: `s${seq}`, outputs: { stdout }, kept: [], session: null }],
  };
}
