// EVALUATE: an agent or a command judges the run and chooses a route.

import type { Hints } from '../../ir/conducted.ts';
import { countAt, mapAt, textAt } from '../yaml-fields.ts';
import { missingKey, neededText, strictKeys, textsAt } from './fields.ts';
import { readInputs } from './inputs.ts';
import type { LimitsSyntax } from './limits.ts';
import { overLimits, readLimits, turnLimits } from './limits.ts';
import type { Evaluate } from './opcodes.ts';
import type { Reading } from './reading.ts';
import { adapterFor, modelFor } from './reading.ts';
import type { Outline, Particulars } from './syntax.ts';
import { named, UNSAID } from './syntax.ts';

const PARTIAL_MAX = 3;

export function readEvaluate(reading: Reading, step: Outline): Particulars {
  const { report, defaults } = reading;
  const { map } = step;
  const what = named(step);
  const byCommand = map.entries.has('evaluator');
  const limits = overLimits(readLimits(report, map, what, !byCommand), defaults.limits);
  const inputs = readInputs(report, map, reading.steps);
  const hints = { componentKind: defaults.componentKind, evalProfile: defaults.evalProfile };
  const evaluator = byCommand
    ? commandEvaluator(reading, step, limits)
    : agentEvaluator(reading, step, inputs, limits, hints);
  const allowedNext = textsAt(report, map, 'allowed_next_steps', 'allowed_next_steps: [fix, ask, STOP]') ?? [];
  if (!map.entries.has('allowed_next_steps')) {
    missingKey(report, step.place, what, 'allowed_next_steps', 'For example allowed_next_steps: [fix, ask, STOP].');
  }
  const partialMax = countAt(report, map, 'max_partial', 1) ?? PARTIAL_MAX;
  const next = allowedNext.map(({ text }) => text);
  const spec: Evaluate | null =
    evaluator === null ? null : { kind: 'evaluate', evaluator, allowedNext: next, partialMax, hints };
  return { ...UNSAID, spec, timeoutMs: limits.timeoutMs, allowedNext, inputs };
}

type Evaluator = Evaluate['evaluator'];

function agentEvaluator(
  reading: Reading,
  step: Outline,
  inputs: Particulars['inputs'],
  limits: LimitsSyntax,
  hints: Hints,
): Evaluator | null {
  const { report } = reading;
  const { map, place, id } = step;
  const hint = 'For example prompt: planner.evaluate_results.v1.';
  const prompt = neededText(report, map, 'prompt', { place, what: named(step), hint });
  const adapter = adapterFor(reading, textAt(report, map, 'agent'), step);
  const model = modelFor(reading, textAt(report, map, 'model'), adapter);
  const file = prompt === null ? null : reading.prompts.named('prompt', prompt, 'planner');
  if (prompt === null || file === null) return null;
  const names = inputs.map(({ text }) => text);
  const text = reading.prompts.text(prompt, file, id, names);
  return { kind: 'agent', agent: { adapter, model, prompt: text, inputs: names, limits: turnLimits(limits), hints } };
}

/** It gets all evidence, whether or not a prompt asks for it. */
function commandEvaluator({ report }: Reading, { map }: Outline, limits: LimitsSyntax): Evaluator | null {
  for (const key of ['agent', 'model', 'inputs']) {
    const entry = map.entries.get(key);
    if (entry === undefined) continue;
    const message = `"${key}" has no effect on a command, which gets all the evidence`;
    report.warning('unused-key', entry.keyPlace, message, 'Remove it, or remove "evaluator".');
  }
  const hint = 'For example evaluator: { command: scripts/judge.sh }.';
  const evaluator = mapAt(report, map, 'evaluator', hint);
  if (evaluator === null) return null;
  strictKeys(report, evaluator, ['command'], '"evaluator"');
  const command = neededText(report, evaluator, 'command', { place: evaluator.place, what: '"evaluator"', hint });
  return command === null ? null : { kind: 'command', command: command.text, idleMs: limits.idleMs || null };
}
