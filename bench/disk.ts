// The disk itself: the floor of every durable figure.

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { count, duration, figure, interleaveWarm, type Measurement, median } from './measure.ts';
import { timeStepFiles } from './step-files.ts';

const APPENDS = 100;
const GROUP = 100;
const STEPS = 300;
const LINE = `${JSON.stringify({ filler: 'x'.repeat(240) })}\n`;

export const disk: Measurement = {
  name: 'disk',
  method:
    `Appends of a line of ${LINE.length} bytes, each followed by a datasync, asynchronous like the journal: ${APPENDS} with one line ` +
    `each, ${APPENDS} with ${GROUP} lines each; and the empty files of ${STEPS} steps. The disk is that of the temporary folder (TMPDIR).`,
  async measure(bench) {
    const perAppend = (lines: number) => (): Promise<number> => timeAppends(join(bench.folder, 'appended'), lines);
    const samples = await interleaveWarm(bench.rounds, {
      single: perAppend(1),
      grouped: perAppend(GROUP),
      files: () => timeStepFiles(bench.folder, STEPS) / STEPS,
    });
    const row = (what: string, taken: readonly number[], each: string, number: number) =>
      figure({
        what,
        measured: `${duration(median(taken))} ${each}`,
        against: 'the floor itself',
        values: taken.map((ms) => (number / ms) * 1000),
        unit: '/s',
        samples: { [each]: taken },
      });
    return [
      row('append + datasync, one line', samples.single, 'an append', 1),
      row(`append + datasync, ${count(GROUP)} lines together`, samples.grouped, 'an append', GROUP),
      row('files of a step', samples.files, 'a step', 1),
    ];
  },
};

async function timeAppends(path: string, lines: number): Promise<number> {
  const bytes = Buffer.from(LINE.repeat(lines));
  const file = await open(path, 'w');
  const began = performance.now();
  for (let n = 0; n < APPENDS; n++) {
    await file.write(bytes);
    await file.datasync();
  }
  const ms = performance.now() - began;
  await file.close();
  return ms / APPENDS;
}
