// The end of a run, where it may end like that: golden snapshots that were proposed and that nobody approved keep it from
// succeeding, by whatever path it came.

import { success } from '../../ir/effect.ts';
import type { HaltSpec } from '../../ir/conducted.ts';
import { earlierVisits, failed } from './asking.ts';
import type { Perform } from './context.ts';
import { listed, pendingGoldens } from './escalation.ts';

export const performHalt: Perform<HaltSpec> = (context, { effect, spec }) => {
  const goldens = spec.verdict === 'success' ? pendingGoldens(earlierVisits(context, effect)) : [];
  if (goldens.length === 0) return Promise.resolve(success());
  const message =
    `golden snapshots were proposed and nobody approved them: ${listed(goldens)}. ` +
    'A gate that blocks must be approved after the validation that proposes them';
  return Promise.resolve(failed('refused', message));
};
