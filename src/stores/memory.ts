// A store in memory, for tests and the simulator. It fulfils the contract of every store. Records are stored as text, so
// that nobody can change one after its append, and nothing survives that JSON would drop.

import { hostname } from 'node:os';

import { assert, UsageError } from '../base/errors.ts';
import type { Journal, JournalEvent, RunFile, RunFiles, Store, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { checkRunId, missingRunError, neverBeganError, runExistsError, runLockedError } from './errors.ts';
import { checkSequence, hashProgram } from './journal-lines.ts';

export function memoryStore(): Store {
  const runs = new Map<string, MemoryRun>();
  const files = new Map<string, RunFiles>();

  function find(runId: string): MemoryRun {
    checkRunId(runId);
    const run = runs.get(runId);
    if (run === undefined) throw missingRunError(runId, [...runs.keys()]);
    return run;
  }

  return {
    async create(runId, program) {
      checkRunId(runId);
      const before = runs.get(runId);
      if (before?.heldSince) throw runLockedError(runId, null);
      if (before !== undefined && before.records.length > 0) throw runExistsError(runId);
      const run: MemoryRun = {
        program: JSON.stringify(program),
        programHash: hashProgram(program),
        records: [],
        changed: new Signal(),
        changedAt: Date.now(),
        heldSince: null,
      };
      runs.set(runId, run);
      return lock(run, () => runs.delete(runId));
    },

    async open(runId) {
      const run = find(runId);
      if (run.heldSince !== null) throw runLockedError(runId, null);
      if (run.records.length === 0) throw neverBeganError(runId);
      return lock(run, () => {});
    },

    async read(runId) {
      return storedRun(find(runId));
    },

    async list({ prefix = '', limit } = {}) {
      return [...runs]
        .filter(([id]) => id.startsWith(prefix))
        .map(([id, run]) => {
          const { program, records } = storedRun(run);
          const startedAt = records[0]?.at ?? null;
          return { id, changedAt: run.changedAt, source: program.source, startedAt, last: records.at(-1) ?? null };
        })
        .toSorted((a, b) => b.changedAt - a.changedAt || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
    },

    follow(runId, fromSeq, signal = new AbortController().signal) {
      checkRunId(runId);
      return followRun(runs, runId, fromSeq, signal);
    },

    async holder(runId) {
      checkRunId(runId);
      const since = runs.get(runId)?.heldSince ?? null;
      return since === null ? null : { pid: process.pid, host: hostname(), since, take: `${runId} ${since}` };
    },

    async programText(runId) {
      checkRunId(runId);
      return runs.get(runId)?.program ?? '';
    },

    files(runId) {
      checkRunId(runId);
      const known = files.get(runId) ?? memoryFiles();
      files.set(runId, known);
      return known;
    },
  };
}

interface MemoryRun {
  readonly program: string;
  readonly programHash: string;
  readonly records: string[];
  readonly changed: Signal;
  changedAt: number;
  heldSince: string | null;
}

function storedRun(run: MemoryRun): StoredRun {
  return {
    program: JSON.parse(run.program) as Program,
    programHash: run.programHash,
    records: run.records.map((text) => JSON.parse(text) as JournalRecord),
  };
}

function lock(run: MemoryRun, discard: () => void): Journal {
  run.heldSince = new Date().toISOString();
  let closed = false;
  return {
    ...storedRun(run),
    async append(records) {
      assert(!closed, 'the journal is closed');
      checkSequence(run.records.length, records);
      for (const record of records) run.records.push(JSON.stringify(record));
      run.changedAt = Math.max(Date.now(), run.changedAt + 1);
      run.changed.fire();
    },
    async close() {
      if (closed) return;
      closed = true;
      run.heldSince = null;
      if (run.records.length === 0) discard();
      run.changed.fire();
    },
  };
}

type Runs = ReadonlyMap<string, MemoryRun>;

async function* followRun(runs: Runs, id: string, fromSeq: number, signal: AbortSignal): AsyncGenerator<JournalEvent> {
  const run = runs.get(id);
  const count = run?.records.length ?? 0;
  let next = fromSeq;
  if (count > 0 && count < fromSeq - 1) {
    yield { kind: 'cut', lastSeq: count };
    next = count + 1;
  }
  while (!signal.aborted) {
    if (run === undefined || runs.get(id) !== run) {
      yield { kind: 'lost', why: 'deleted', refusal: missingRunError(id, []) };
      return;
    }
    const fresh = run.records.slice(next - 1);
    next += fresh.length;
    if (fresh.length > 0) yield { kind: 'records', records: fresh.map((text) => JSON.parse(text) as JournalRecord) };
    else await run.changed.next(signal);
  }
}

class Signal {
  readonly #waiting = new Set<() => void>();

  fire(): void {
    for (const wake of this.#waiting) wake();
  }

  async next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    let wake = (): void => {};
    await new Promise<void>((resolve) => {
      wake = resolve;
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
    this.#waiting.delete(wake);
    signal.removeEventListener('abort', wake);
  }
}

function memoryFiles(): RunFiles {
  const contents = new Map<string, Buffer>();
  const changed = new Signal();
  const put = (path: string, bytes: Buffer): void => {
    contents.set(path, bytes);
    changed.fire();
  };
  return {
    async list(folder) {
      const prefix = folder === '' ? '' : `${folder}/`;
      const found = new Map<string, RunFile>();
      for (const [path, bytes] of contents) {
        if (!path.startsWith(prefix)) continue;
        const [name = '', ...below] = path.slice(prefix.length).split('/');
        const isFile = below.length === 0;
        found.set(name, { name, kind: isFile ? 'file' : 'folder', size: isFile ? bytes.length : 0 });
      }
      return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    async read(path, start = 0, length = Infinity) {
      return contents.get(path)?.subarray(start, start + length) ?? null;
    },
    async *changes(_folder, signal) {
      while (!signal.aborted) {
        const next = changed.next(signal);
        yield;
        await next;
      }
    },
    async append(path, bytes) {
      put(path, Buffer.concat([contents.get(path) ?? Buffer.alloc(0), bytes]));
    },
    async replace(path, bytes) {
      put(path, Buffer.from(bytes));
    },
    async remove(path) {
      for (const known of contents.keys()) {
        if (known === path || known.startsWith(`${path}/`)) contents.delete(known);
      }
      changed.fire();
    },
    localPath(path) {
      throw new UsageError(`${path} is not on this machine`);
    },
  };
}
