// Outputs of a failed step that its recovery replaces.

import { ok } from '../base/errors.ts';
import { type Json, own } from '../base/json.ts';
import { coerce, type ValueType } from '../ir/output.ts';
import type { StepOutputs } from './decision.ts';
import type { StepState } from './state.ts';

/** Outputs of the recovery's last step that replace declared outputs of the failed step. */
export function recoveredOutputs(step: StepState, last: StepState | undefined): StepOutputs {
  const outputs: [string, Json][] = [];
  for (const [name, type] of declaredOutputs(step)) {
    const value = own(last?.outputs ?? {}, name);
    if (value === undefined || !declaredOutputs(last).has(name)) continue;
    const typed = typeof value === 'string' && last?.kept.includes(name) !== true ? coerce(value, type) : ok(value);
    // A value of the wrong type is passed as it is; its user reports the error.
    outputs.push([name, typed.ok ? typed.value : value]);
  }
  const names = new Set(outputs.map(([name]) => name));
  return { outputs: Object.fromEntries(outputs), kept: (last?.kept ?? []).filter((name) => names.has(name)) };
}

/** Outputs declared by the author, without those that every command has. */
function declaredOutputs(step: StepState | undefined): ReadonlyMap<string, ValueType> {
  const act = step?.definition.act;
  if (act?.kind !== 'effect') return new Map();
  if (act.effect.kind === 'command') return new Map(act.effect.captures.map(({ name, type }) => [name, type]));
  if (act.effect.kind !== 'prompt') return new Map();
  return new Map(act.effect.expects.map(({ name, type }) => [name, type === 'file_path' ? 'string' : type]));
}
