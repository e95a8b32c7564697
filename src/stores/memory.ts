// A store for tests and the simulator: the contract of the file store, without a disk. What is kept is text, so that
// nobody can change a record after it was appended, and nothing survives that JSON would drop.

import { assert } from '../base/assert.ts';
import type { Journal, Store, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { checkSequence } from './check-sequence.ts';
import { checkRunId, lockedRun, missingRun, neverBegan, takenRun } from './usage-errors.ts';
import { hashProgram } from './stored-program.ts';

export function memoryStore(): Store {
  const runs = new Map<string, KeptRun>();

  function find(runId: string): KeptRun {
    checkRunId(runId);
    const run = runs.get(runId);
    if (run === undefined) throw missingRun(runId, [...runs.keys()]);
    return run;
  }

  return {
    async create(runId, program) {
      checkRunId(runId);
      const before = runs.get(runId);
      if (before?.held) throw lockedRun(runId, null);
      if (before !== undefined && before.records.length > 0) throw takenRun(runId);
      const run: KeptRun = {
        program: JSON.stringify(program),
        programHash: hashProgram(program),
        records: [],
        held: false,
      };
      runs.set(runId, run);
      return take(run, () => runs.delete(runId));
    },

    async open(runId) {
      const run = find(runId);
      if (run.held) throw lockedRun(runId, null);
      if (run.records.length === 0) throw neverBegan(runId);
      return take(run, () => {});
    },

    async read(runId) {
      return readKept(find(runId));
    },
  };
}

interface KeptRun {
  readonly program: string;
  readonly programHash: string;
  readonly records: string[];
  held: boolean;
}

function readKept(run: KeptRun): StoredRun {
  return {
    program: JSON.parse(run.program) as Program,
    programHash: run.programHash,
    records: run.records.map((text) => JSON.parse(text) as JournalRecord),
  };
}

function take(run: KeptRun, discard: () => void): Journal {
  run.held = true;
  let closed = false;
  return {
    ...readKept(run),
    async append(records) {
      assert(!closed, 'the journal is closed');
      checkSequence(run.records.length, records);
      for (const record of records) run.records.push(JSON.stringify(record));
    },
    async close() {
      if (closed) return;
      closed = true;
      run.held = false;
      if (run.records.length === 0) discard();
    },
  };
}
