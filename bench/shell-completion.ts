// Completion of a command line in bash, in a project with many runs and a run of many steps.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Figure, Measurement } from './measure.ts';
import { atMost, duration, figure, median, MEOW } from './measure.ts';

const RUNS = 200;
const STEPS = 1_000;

export const shellCompletion: Measurement = {
  name: 'shell-completion',
  method: `bash with the script of meow completion, in a project with ${RUNS} runs, one of which has ${STEPS.toLocaleString('en')} steps: from the call of the function until the candidates are known.`,
  async measure({ rounds, folder }) {
    const script = join(folder, 'meow.bash');
    writeFileSync(script, execFileSync(MEOW, ['completion', 'bash']));
    makeRuns(join(folder, '.meow/workflows'));
    const timesOf = (line: string): readonly number[] => {
      const ask = [
        `. ${script}; COMP_WORDS=(${line} ''); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _meow`,
        `for round in $(seq ${rounds}); do began=$EPOCHREALTIME; _meow; ended=$EPOCHREALTIME`,
        `echo $((\${ended/./} - \${began/./})); done`,
      ].join('; ');
      const output = execFileSync('bash', ['--norc', '-c', ask], { cwd: folder, encoding: 'utf8' });
      return output
        .trim()
        .split('\n')
        .map((micros) => Number(micros) / 1_000);
    };
    const commands = timesOf('meow');
    const answer = (what: string, line: string): Figure => {
      const values = timesOf(line);
      return figure({
        what: `completion in bash: ${what}`,
        measured: duration(median(values)),
        against: `${duration(median(commands))} for the commands`,
        values: [...values],
        unit: 'ms',
        target: atMost(30),
        samples: { [what]: values },
      });
    };
    return [
      answer(`${RUNS} runs`, 'meow logs'),
      answer(`${STEPS.toLocaleString('en')} steps`, 'meow logs run-1'),
      answer('open gates', 'meow approve run-1'),
    ];
  },
};

function makeRuns(folder: string): void {
  for (let run = 1; run <= RUNS; run += 1) {
    mkdirSync(join(folder, `run-${run}`), { recursive: true });
    writeFileSync(join(folder, `run-${run}`, 'journal.jsonl'), '');
  }
  const steps = Array.from(
    { length: STEPS },
    (_, step) => `  step-${step}:\n    executor: shell\n    status: done\n    needs: []\n    outputs:\n      text: x\n`,
  );
  const gates = 'gates: [{"id": "review", "status": "open"}]';
  writeFileSync(join(folder, 'run-1.yaml'), `id: run-1\n${gates}\nsteps:\n${steps.join('')}`);
}
