// The step that `logs` and `why` show if none is named.

import type { ReadRun } from '../app/runs.ts';
import { UsageError } from '../base/errors.ts';
import { mainStep } from '../view/summary.ts';
import { warn } from './output.ts';

/** Says on stderr which it is. */
export function chosenStep({ id, state }: Pick<ReadRun, 'id' | 'state'>): string {
  const step = mainStep(state);
  if (step === null) throw new UsageError(`run ${id} has no steps`, `meow status ${id} shows it`);
  warn(`step ${step.id} (${step.status}); for another one, name it: meow show ${id} --steps`);
  return step.id;
}
