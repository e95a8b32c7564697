// Checks the graph of steps: missing targets, allowed targets of evaluations, unreachable steps, and goldens that
// nobody would approve.

import type { Place } from '../../base/source.ts';
import { listed, type Report, suggest } from '../report.ts';
import type { DocumentSyntax } from './document.ts';
import { splitInput } from './step.ts';
import { named, stepAfter, type StepSyntax, STOP, waits } from './syntax.ts';

export type Steps = ReadonlyMap<string, StepSyntax>;

type Unread = DocumentSyntax['unread'];

export function checkGraph(report: Report, steps: Steps, document: DocumentSyntax): void {
  checkTargets(report, steps, document.unread);
  checkEntry(report, steps, document);
  // The inputs and outputs of unreadable steps are unknown.
  if (document.unread.size > 0) return;
  checkGoldens(report, steps);
  checkInputs(report, steps);
}

function checkTargets(report: Report, steps: Steps, unread: Unread): void {
  const exists = (id: string): boolean => id === STOP || steps.has(id) || unread.has(id);
  const known = [...new Set([...steps.keys(), STOP])];
  const missing = (id: string, place: Place, message: string): null =>
    report.error('missing-target', place, `${message}: "${id}"`, () => suggest(id, known, `Steps: ${listed(known)}.`));
  for (const step of steps.values()) {
    for (const route of step.routes) {
      const to = stepAfter(route);
      if (exists(to)) continue;
      const place = route.enters?.returnTo?.place ?? route.place;
      missing(to, place, `the route "${route.key}" of ${named(step)} leads to no step`);
    }
    for (const { text, place } of step.allowedNext) {
      if (exists(text) || step.routes.some(({ to, enters }) => enters !== null && to === text)) continue;
      missing(text, place, `${named(step)} allows a step that is none`);
    }
    if (step.opcode === 'EVALUATE') checkEvaluation(report, steps, step);
  }
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
    const gate = opcode === 'GATE' ? (target?.gate ?? null) : null;
    if (key === 'needs_human' && gate !== null && !waits(gate)) {
      const message = `"needs_human" goes to a gate of type ${gate}, which waits for nobody`;
      report.warning('gate-does-not-wait', keyPlace, message, 'Use a gate of type requires_approval.');
    }
  }
}

const LEGAL: Readonly<Record<string, 'ROLLBACK' | 'GATE' | undefined>> = { unsafe: 'ROLLBACK', needs_human: 'GATE' };

/** Steps that the entry does not reach are never visited. */
function checkEntry(report: Report, steps: Steps, { entry, unread }: DocumentSyntax): void {
  const known = [...new Set([...steps.keys(), ...unread.keys()])];
  // Missing steps have been reported.
  if (entry === null || known.length === 0) return;
  if (!known.includes(entry.text)) {
    const hint = (): string => suggest(entry.text, known, `Steps: ${listed(known)}.`);
    report.error('missing-target', entry.place, `"entry_step" names no step: "${entry.text}"`, hint);
    return;
  }
  const reached = reachedFrom(steps, entry.text, unread);
  for (const step of steps.values()) {
    if (reached.has(step.id) || step.allowUnreachable) continue;
    const hint = 'Add a route to it, remove it, or write allow_unreachable: true.';
    report.error('unreachable-step', step.place, `no route leads to ${named(step)}`, hint);
  }
}

/** Goldens proposed by a harness must be able to reach a person. */
function checkGoldens(report: Report, steps: Steps): void {
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
function checkInputs(report: Report, steps: Steps): void {
  for (const step of steps.values()) {
    for (const { text, place } of step.inputs) {
      const [id = '', output] = splitInput(text);
      const provider = output === undefined ? undefined : steps.get(id);
      if (provider === undefined || leadsTo(steps, provider, step.id)) continue;
      const message = `there is no path from ${named(provider)} to ${named(step)}: it would never have "${text}"`;
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
