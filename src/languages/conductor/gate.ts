// GATE, ROLLBACK and STOP: decisions of people, restoring, and the end.

import type { Report } from '../report.ts';
import { durationAt, textAt } from '../yaml-fields.ts';
import { missingKey, neededText, oneOf, textsAt, wordAt } from './fields.ts';
import type { GateType, Outline, Particulars } from './syntax.ts';
import { GATE_TYPES, named, UNSAID, waits } from './syntax.ts';

const GATE_HINT = 'Write gate: requires_approval.';

/** `workflow`: its id, for a gate without a reason. */
export function readGate(report: Report, step: Outline, workflow: string): Particulars {
  const { map, id, place } = step;
  const written = neededText(report, map, 'gate', { place, what: named(step), hint: GATE_HINT });
  const gate = written === null ? null : oneOf<GateType>(report, 'gate', written, GATE_TYPES);
  const reason = textAt(report, map, 'reason');
  const timeoutMs = durationAt(report, map, 'timeout') || null;
  const timeout = map.entries.get('timeout');
  if (gate !== null && !waits(gate) && timeout !== undefined) {
    const message = `a gate of type ${gate} does not wait, and has no time to run out`;
    report.warning('unused-key', timeout.keyPlace, message, 'Remove it, or use the type requires_approval.');
  }
  const approvers = readApprovers(report, step);
  if (gate === null) return { ...UNSAID, spec: null };
  const prompt = reason?.text.trim() ?? `${workflow} asks for a decision: ${id}`;
  return {
    ...UNSAID,
    gate,
    timeoutMs: waits(gate) ? timeoutMs : null,
    spec: { kind: 'gate', effect: { kind: 'gate', gate: id, prompt, blocks: waits(gate), approvers } },
  };
}

function readApprovers(report: Report, { map }: Outline): readonly string[] | null {
  const example = 'approvers: [ada, grace]';
  const approvers = textsAt(report, map, 'approvers', example);
  if (approvers === null) return null;
  const entry = map.entries.get('approvers');
  if (approvers.length === 0 && entry?.value.kind === 'list' && entry.value.items.length === 0) {
    const hint = `For example ${example}; leave it out, and anybody may.`;
    report.error('invalid-value', entry.value.place, 'nobody may decide this gate', hint);
  }
  for (const { text, place } of approvers) {
    if (text.trim() === '') report.error('invalid-value', place, 'an approver has no name', `For example ${example}.`);
  }
  return approvers.map(({ text }) => text);
}

const TARGETS = ['pre_run', 'pre_step'] as const;

export function readRollback(report: Report, step: Outline): Particulars {
  const { map, place } = step;
  if (!map.entries.has('target')) {
    missingKey(report, place, named(step), 'target', 'Write target: pre_run, or target: pre_step.');
  }
  const written = textAt(report, map, 'target');
  if (written?.text.startsWith('checkpoint:') === true) {
    const message = `"target": named checkpoints are reserved for a later version`;
    report.error('reserved-target', written.place, message, 'Use pre_run or pre_step.');
    return { ...UNSAID, spec: null };
  }
  const target = written === null ? null : oneOf(report, 'target', written, TARGETS);
  return { ...UNSAID, spec: target === null ? null : { kind: 'rollback', target } };
}

export function readStop(report: Report, { map }: Outline): Particulars {
  const reason = textAt(report, map, 'reason')?.text.trim() ?? null;
  const verdict = wordAt(report, map, 'verdict', ['success', 'failure'] as const);
  return { ...UNSAID, verdict, spec: { kind: 'stop', verdict: verdict ?? 'success', reason } };
}
