// The driver of the toy effect. It changes nothing outside the run, so a later engine simply performs the effect again.

import { assert } from '../../../src/base/errors.ts';
import { resolveText } from '../../../src/drivers/outputs.ts';
import { PendingEffects } from '../../../src/drivers/pending-effect.ts';
import type { Answer, Driver, RunFiles } from '../../../src/engine/ports.ts';
import { type Effect, type Outcome, success } from '../../../src/ir/effect.ts';
import { failure } from '../../../src/ir/failure.ts';
import type { FilledText } from '../../../src/ir/text.ts';
import type { ReverseSpec } from './reverse-spec.ts';

export function reverseDriver(files: RunFiles): Driver {
  const pending = new PendingEffects();
  const ask = ({ id, spec }: Effect, answer: Answer): void =>
    pending.ask(id, answer, () => Promise.resolve(reverse(spec, files)));
  return { start: ask, find: ask, stop: (effectId, how) => pending.get(effectId)?.stop(how) };
}

/** The union has this kind only after the toy is added. */
function reverse(spec: Effect['spec'] | ReverseSpec<FilledText>, files: RunFiles): Outcome {
  assert(spec.kind === 'reverse', `cannot reverse a ${spec.kind}`);
  const text = resolveText(spec.text, files);
  if (!text.ok) return { kind: 'failure', failure: failure('not-started', text.error) };
  return success({ reversed: Array.from(text.value).toReversed().join('') });
}
