// Durable completions per second, without commands.

import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunState } from '../src/kernel/state.ts';
import { type EngineRun, runEngine } from './engine-run.ts';
import type { Measurement } from './measure.ts';
import { atLeast, count, duration, figure, interleaveWarm, makeProject, median, ratios } from './measure.ts';
import { compileShape } from './workflow.ts';

const STEPS = 10_000;
const REWRITTEN_STEPS = 2_000;
/** The time of a rewrite does not depend on earlier ones, so this many are enough. */
const REWRITES = 100;

export const completions: Measurement = {
  name: 'completions',
  method:
    `The engine with a journal on disk and a driver in its own process, ${count(STEPS)} independent steps: from the first ` +
    'requested effect until the last completion is durable. Once with all answers in one tick of the event loop, once with ' +
    'one per tick. The baseline writes the same bytes, in as many appends, each with its datasync. For comparison, the ' +
    `way without a journal: for each completion the JSON of the whole state of ${count(REWRITTEN_STEPS)} steps is written to a new file, ` +
    `synced and renamed (${REWRITES} of them are timed).`,
  async measure(bench) {
    const folder = join(makeProject(bench, 'completions'), '.meow', 'workflows');
    const many = compileShape('wide', STEPS);
    const fewer = compileShape('wide', REWRITTEN_STEPS);
    let runs = 0;
    const run = async (program: typeof many, answersATurn: number): Promise<EngineRun & { journal: string }> => {
      runs += 1;
      const runId = `wf-${runs}`;
      const result = await runEngine({ folder, runId, program, answersATurn });
      return { ...result, journal: join(folder, runId, 'journal.jsonl') };
    };
    let atOnce = await run(many, Infinity);
    let spread = await run(many, 1);
    let small = await run(fewer, Infinity);
    const floorFile = join(bench.folder, 'floor');
    const stateFile = join(bench.folder, 'state.json');
    const samples = await interleaveWarm(bench.rounds, {
      atOnce: async () => (atOnce = await run(many, Infinity)).completingMs,
      atOnceFloor: () => timeAppends(atOnce.journal, atOnce.datasyncs - 1, floorFile),
      spread: async () => (spread = await run(many, 1)).completingMs,
      spreadFloor: () => timeAppends(spread.journal, spread.datasyncs - 1, floorFile),
      small: async () => (small = await run(fewer, Infinity)).completingMs / REWRITTEN_STEPS,
      rewrite: async () => (await timeRewrites(small.state, stateFile)) / REWRITES,
    });
    const rate = (ms: number): number => (STEPS / ms) * 1000;
    return [
      figure({
        what: `durable completions, ${count(STEPS)} in one turn`,
        measured: duration(median(samples.atOnce)),
        against: `${duration(median(samples.atOnceFloor))} for the bytes alone, in ${appends(atOnce.datasyncs - 1)}`,
        values: samples.atOnce.map(rate),
        unit: '/s',
        target: atLeast(20_000),
        samples: { atOnce: samples.atOnce, floor: samples.atOnceFloor },
      }),
      figure({
        what: 'durable completions, one by one',
        measured: duration(median(samples.spread)),
        against: `${duration(median(samples.spreadFloor))} for the bytes alone, in ${appends(spread.datasyncs - 1)}`,
        values: samples.spread.map(rate),
        unit: '/s',
        samples: { spread: samples.spread, floor: samples.spreadFloor },
      }),
      figure({
        what: `a whole-state rewrite per completion, against a record: ${count(REWRITTEN_STEPS)} steps`,
        measured: `${duration(median(samples.rewrite))} a rewrite`,
        against: `${duration(median(samples.small))} a record`,
        values: ratios(samples.rewrite, samples.small),
        unit: '×',
        target: atLeast(50),
        samples: { rewrite: samples.rewrite, record: samples.small },
      }),
    ];
  },
};

function appends(times: number): string {
  return times === 1 ? '1 append' : `${count(times)} appends`;
}

/** Everything except the first record, which requests the effects. */
async function timeAppends(journal: string, times: number, path: string): Promise<number> {
  const text = await readFile(journal);
  const bytes = text.subarray(text.indexOf('\n') + 1);
  const piece = Math.ceil(bytes.length / times);
  const file = await open(path, 'w');
  const began = performance.now();
  for (let at = 0; at < bytes.length; at += piece) {
    await file.write(bytes.subarray(at, at + piece));
    await file.datasync();
  }
  const ms = performance.now() - began;
  await file.close();
  return ms;
}

async function timeRewrites(state: RunState, path: string): Promise<number> {
  const steps = [...state.steps.values()].map(
    ({ id, status, attempt, startedAt, finishedAt, outputs, definition }) => ({
      id,
      executor: definition.executor,
      needs: definition.needs,
      act: definition.act,
      status,
      attempt,
      startedAt,
      finishedAt,
      outputs,
    }),
  );
  const began = performance.now();
  for (let n = 0; n < REWRITES; n++) {
    const file = await open(`${path}.new`, 'w');
    await file.writeFile(JSON.stringify({ phase: state.phase, request: state.request, steps }));
    await file.sync();
    await file.close();
    await rename(`${path}.new`, path);
  }
  return performance.now() - began;
}
