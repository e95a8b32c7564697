// An object for each decision, and a last one with how the run ended.

import { decisionJson } from '../../view/timeline.ts';
import { runStatus } from '../../view/status.ts';
import { warn, printJson } from '../output.ts';
import type { Reporter } from '../../app/observer.ts';

export function jsonReporter(): Reporter {
  let run = '';
  return {
    open({ id }) {
      run = id;
    },
    observe(records) {
      for (const record of records) for (const object of decisionJson(record, run)) printJson(object);
    },
    note: (line) => warn(`meow: ${line}`),
    warn: (line) => warn(`meow: ${line}`),
    end(state, exit) {
      printJson({ kind: 'run-ended', id: run, status: runStatus(state), exit });
    },
    abandon() {},
  };
}
