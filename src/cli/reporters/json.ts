// An object for each decision, and a last one with how the run ended.

import { decisionJson } from '../../view/timeline.ts';
import { runStatus } from '../../view/status.ts';
import { complain, sayJson } from '../output.ts';
import type { Reporter } from '../../app/observer.ts';

export function jsonReporter(): Reporter {
  let run = '';
  return {
    open({ id }) {
      run = id;
    },
    observe(records) {
      for (const record of records) for (const object of decisionJson(record, run)) sayJson(object);
    },
    note: (line) => complain(`meow: ${line}`),
    warn: (line) => complain(`meow: ${line}`),
    end(state, exit) {
      sayJson({ kind: 'run-ended', id: run, status: runStatus(state), exit });
    },
    abandon() {},
  };
}
