// A driver for short tasks: they are not stopped, and after a crash they are repeated. Problems of the world are
// failures in the outcome; an exception is a bug and ends the engine, except for system errors about the run's own
// files.

import { assert } from '../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { Driver } from '../../engine/ports.ts';
import type { ConductedSpec } from '../../ir/conducted.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import { PendingEffects } from '../pending-effect.ts';
import { failed, taskOf } from './context.ts';
import type { ConductorContext, Task } from './context.ts';

type Spec<K extends ConductedSpec['kind']> = Extract<ConductedSpec, { kind: K }>;

export function taskDriver<K extends ConductedSpec['kind']>(
  context: ConductorContext,
  kind: K,
  perform: (task: Task, spec: Spec<K>) => Promise<Outcome>,
): Driver {
  const open = new PendingEffects();
  const answered = async (effect: Effect): Promise<Outcome> => {
    const { spec } = effect;
    assert(spec.kind === kind, `${effect.id} is a ${spec.kind}, and asked of the driver of ${kind}`);
    try {
      return await perform(taskOf(context, effect), spec as Spec<K>);
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return failed('refused', `what it does cannot be recorded: ${error.message}`);
    }
  };
  const start: Driver['start'] = (effect, answer) => open.ask(effect.id, answer, () => answered(effect));
  return { start, find: start, stop: () => undefined };
}
