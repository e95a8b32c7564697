// A step of a workflow, of any opcode.

import type { Witness } from '../../ir/conducted.ts';
import type { Report } from '../report.ts';
import { booleanAt } from '../yaml-fields.ts';
import { readEvaluate } from './evaluate.ts';
import { strictKeys } from './fields.ts';
import { readGate, readRollback, readStop } from './gate.ts';
import type { Reading } from './reading.ts';
import { checkRoutes, readRoutes } from './routes.ts';
import { readRunAgent } from './run-agent.ts';
import { readRunValidation } from './run-validation.ts';
import type { Opcode, Outline, Particulars, Route, StepSyntax } from './syntax.ts';
import { named, OPCODES } from './syntax.ts';
import { readWitness } from './witness.ts';

const COMMON = ['id', 'opcode', 'allow_unreachable'];

const KEYS: Readonly<Record<Opcode, readonly string[]>> = {
  RUN_AGENT: ['agent', 'model', 'prompt', 'inputs', 'policy', 'limits', 'witness', 'routes'],
  RUN_VALIDATION: ['run', 'limits', 'witness', 'routes'],
  EVALUATE: [
    'prompt',
    'evaluator',
    'agent',
    'model',
    'inputs',
    'limits',
    'max_partial',
    'allowed_next_steps',
    'routes',
  ],
  GATE: ['gate', 'reason', 'approvers', 'timeout', 'routes'],
  ROLLBACK: ['target', 'routes'],
  STOP: ['reason', 'verdict'],
};

/** `workflow`: its id. */
export function readStep(reading: Reading, step: Outline, workflow: string): StepSyntax {
  const { report } = reading;
  const { map, opcode } = step;
  const elsewhere = (key: string): string | null => {
    const others = OPCODES.filter((other) => KEYS[other].includes(key));
    return others.length === 0 ? null : `Steps with it are ${others.join(', ')}.`;
  };
  strictKeys(report, map, [...COMMON, ...KEYS[opcode]], named(step), elsewhere);
  const routes = readRoutes(reading, step);
  const read = {
    ...step,
    ...readParticulars(reading, step, witnessOf(report, step, routes), workflow),
    routes,
    allowUnreachable: booleanAt(report, map, 'allow_unreachable') ?? false,
  };
  checkRoutes(report, read);
  return read;
}

function readParticulars(reading: Reading, step: Outline, witness: Witness | null, workflow: string): Particulars {
  switch (step.opcode) {
    case 'RUN_AGENT':
      return readRunAgent(reading, step, witness);
    case 'RUN_VALIDATION':
      return readRunValidation(reading, step, witness);
    case 'EVALUATE':
      return readEvaluate(reading, step);
    case 'GATE':
      return readGate(reading.report, step, workflow);
    case 'ROLLBACK':
      return readRollback(reading.report, step);
    case 'STOP':
      return readStop(reading.report, step);
  }
}

/** Only `completed` of a step can require a witness. */
function witnessOf(report: Report, step: Outline, routes: readonly Route[]): Witness | null {
  const own = KEYS[step.opcode].includes('witness') ? readWitness(report, step.map, named(step)) : null;
  const onRoutes = routes.filter(({ witness }) => witness !== null);
  const entry = step.map.entries.get('witness');
  if (own !== null && entry !== undefined && onRoutes.length > 0) {
    const message = `${named(step)} and one of its routes both demand a witness`;
    report.error('duplicate-witness', entry.keyPlace, message, 'Remove one of the two.');
  }
  return own ?? onRoutes.find(({ key }) => key === 'completed')?.witness ?? null;
}
