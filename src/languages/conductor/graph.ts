// Checks the graph of steps: missing targets, allowed targets of evaluations, unreachable steps, and goldens that
// nobody would approve.

import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { YamlScalar } from '../yaml-tree.ts';
import { STOP } from './ids.ts';
import { splitInput } from './inputs.ts';
import type { Route, StepSyntax } from './syntax.ts';
import { named, stepAfter, waits } from './syntax.ts';

export type Steps = ReadonlyMap<string, StepSyntax>;

/** Other steps by id, with their targets. */
export type Unread = ReadonlyMap<string, readonly string[]>;

export function checkTargets(report: Report, steps: Steps, unread: Unread): void {
  const isThere = (id: string): boolean => id === STOP || steps.has(id) || unread.has(id);
  for (const step of steps.values()) {
    for (const { place, key, enters, ...route } of step.routes) {
      const to = stepAfter({ ...route, enters });
      if (isThere(to)) continue;
      const at = enters?.returnTo?.place ?? place;
      missingTarget(report, steps, to, at, `the route "${key}" of ${named(step)} leads to no step`);
    }
    for (const { text, place } of step.allowedNext) {
      if (isThere(text) || step.routes.some(({ to, enters }) => enters !== null && to === text)) continue;
      missingTarget(report, steps, text, place, `${named(step)} allows a step that is none`);
    }
    if (step.opcode === 'EVALUATE') checkEvaluation(report, steps, step);
  }
}

function missingTarget(report: Report, steps: Steps, id: string, place: Route['place'], message: string): void {
  const known = [...new Set([...steps.keys(), STOP])];
  report.error('missing-target', place, `${message}: "${id}"`, () => suggest(id, known, `Steps: ${listed(known)}.`));
}

/** An agent may choose the status, but not where it leads. */
function checkEvaluation(report: Report, steps: Steps, step: StepSyntax): void {
  const allowed = step.allowedNext.map(({ text }) => text);
  for (const { key, to, place, keyPlace, enters } of step.routes) {
    const target = steps.get(to);
    if (target === undefined && to !== STOP && enters === null) continue;
    const opcode = enters === null ? (target?.opcode ?? 'STOP') : 'another workflow';
    if (step.map.entries.get('allowed_next_steps')?.value.kind === 'list' && to !== STOP && !allowed.includes(to)) {
      const message = `the route "${key}" goes to "${to}", which is not in "allowed_next_steps"`;
      report.error('target-not-allowed', place, message, 'Add it there, or choose another step.');
    }
    const legal = LEGAL[key];
    if (legal !== undefined && opcode !== legal && opcode !== 'STOP') {
      const message = `"${key}" may lead to a ${legal} step or STOP only, and "${to}" is ${opcode}`;
      report.error('illegal-target', place, message, `Name a step with the opcode ${legal}, or STOP.`);
    }
    if (key === 'needs_human' && opcode === 'GATE' && target !== undefined && !waits(target.gate)) {
      if (target.gate === null) continue;
      const message = `"needs_human" goes to a gate of type ${target.gate}, which waits for nobody`;
      report.warning('gate-does-not-wait', keyPlace, message, 'Use a gate of type requires_approval.');
    }
  }
}

const LEGAL: Readonly<Record<string, 'ROLLBACK' | 'GATE' | undefined>> = { unsafe: 'ROLLBACK', needs_human: 'GATE' };

/** `entry`: null if missing. Steps that it does not reach are never visited. */
export function checkEntry(
  report: Report,
  steps: Steps,
  { entry, unread }: { readonly entry: YamlScalar | null; readonly unread: Unread },
): void {
  const known = [...new Set([...steps.keys(), ...unread.keys()])];
  // Missing steps have been reported.
  if (entry === null || known.length === 0) return;
  if (known.includes(entry.text)) return checkReach(report, steps, unread, entry.text);
  const hint = (): string => suggest(entry.text, known, `Steps: ${listed(known)}.`);
  report.error('missing-target', entry.place, `"entry_step" names no step: "${entry.text}"`, hint);
}

function checkReach(report: Report, steps: Steps, unread: Unread, entry: string): void {
  const reached = reachedFrom(steps, entry, unread);
  for (const step of steps.values()) {
    if (reached.has(step.id) || step.allowUnreachable) continue;
    const hint = 'Add a route to it, remove it, or write allow_unreachable: true.';
    report.error('unreachable-step', step.place, `no route leads to ${named(step)}`, hint);
  }
}

/** Goldens proposed by a harness must be able to reach a person. */
export function checkGoldens(report: Report, steps: Steps): void {
  for (const step of steps.values()) {
    if (step.harness === null) continue;
    const reached = [...reachedFrom(steps, step.id)].map((id) => steps.get(id));
    // A wrong gate type has been reported.
    if (reached.some((other) => other?.opcode === 'GATE' && (other.gate === null || waits(other.gate)))) continue;
    const message = `${named(step)} may propose goldens, but no gate follows where a person could approve them`;
    const hint = 'Route needs_human of the evaluation to a GATE step of type requires_approval.';
    report.error('golden-without-gate', step.harness, message, hint);
  }
}

/** An output exists only if its step has been visited before. */
export function checkInputs(report: Report, steps: Steps): void {
  for (const step of steps.values()) {
    for (const { text, place } of step.inputs) {
      const [id = '', output] = splitInput(text);
      const giver = output === undefined ? undefined : steps.get(id);
      if (giver === undefined || leadsTo(steps, giver, step.id)) continue;
      const message = `there is no path from ${named(giver)} to ${named(step)}: it would never have "${text}"`;
      report.error('unknown-input', place, message, 'Name an output of a step that comes before.');
    }
  }
}

function leadsTo(steps: Steps, from: StepSyntax, id: string): boolean {
  return from.routes.map(stepAfter).some((to) => steps.has(to) && reachedFrom(steps, to).has(id));
}

/** Ids of all reachable steps, including itself. */
function reachedFrom(steps: Steps, id: string, unread: Unread = new Map()): ReadonlySet<string> {
  const reached = new Set([id]);
  // The loop also visits what it adds.
  for (const each of reached) {
    for (const to of (steps.get(each)?.routes ?? []).map(stepAfter))
      if (steps.has(to) || unread.has(to)) reached.add(to);
    for (const to of unread.get(each) ?? []) reached.add(to);
  }
  return reached;
}
