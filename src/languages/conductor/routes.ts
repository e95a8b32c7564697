// The routes of a step. The opcode determines the keys, and the outcomes that each key stands for.

import type { Place } from '../../base/source.ts';
import type { FailureKind } from '../../ir/failure.ts';
import type { Mechanical } from '../../ir/conducted.ts';
import { MECHANICAL, OUTCOME_OF, STATUSES } from '../../ir/conducted.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { mapAt, textAt } from '../yaml-fields.ts';
import type { YamlEntry, YamlMap, YamlScalar } from '../yaml-tree.ts';
import { isScalar, missingKey, neededText, shown, strictKeys } from './fields.ts';
import { STOP } from './ids.ts';
import type { Reading } from './reading.ts';
import type { Entering, GateType, Opcode, Outline, Route, StepSyntax } from './syntax.ts';
import { named, waits } from './syntax.ts';
import { readWitness } from './witness.ts';

interface RouteKeys {
  /** Each key with its outcomes: routes of a success, or kinds of failure. */
  readonly known: Readonly<Record<string, readonly string[]>>;
  /** Required keys. */
  readonly required: readonly string[];
  /** Without these a run may reach a point without a next step. */
  readonly expected: readonly string[];
  readonly example: string;
}

function kindsOf(...outcomes: readonly Mechanical[]): readonly FailureKind[] {
  const kinds = Object.keys(OUTCOME_OF) as readonly FailureKind[];
  return kinds.filter((kind) => outcomes.some((outcome) => OUTCOME_OF[kind] === outcome));
}

const BY_MECHANICS = Object.fromEntries(
  MECHANICAL.map((key) => [key, key === 'completed' ? ['completed'] : kindsOf(key)]),
);

const MECHANICAL_KEYS: RouteKeys = {
  known: BY_MECHANICS,
  required: [],
  expected: MECHANICAL,
  example: 'routes: { completed: NEXT, error: STOP }',
};

const KEYS: Readonly<Record<Exclude<Opcode, 'STOP'>, RouteKeys>> = {
  RUN_AGENT: MECHANICAL_KEYS,
  RUN_VALIDATION: MECHANICAL_KEYS,
  ROLLBACK: { ...MECHANICAL_KEYS, expected: ['completed', 'error'] },
  EVALUATE: {
    // An evaluator itself can fail in two ways: by timeout, or otherwise.
    known: {
      ...Object.fromEntries(STATUSES.map((status) => [status, [status]])),
      error: kindsOf('error', 'killed_policy'),
      killed_timeout: kindsOf('killed_timeout', 'killed_idle'),
    },
    required: STATUSES.filter((status) => status !== 'blocked'),
    expected: [],
    example: 'routes: { success: STOP, partial: fix, blocked: STOP, unsafe: rollback, needs_human: ask }',
  },
  GATE: {
    known: {
      gate_approved: ['approved'],
      gate_rejected: ['rejected'],
      gate_timed_out: ['timeout'],
      killed_timeout: ['timeout'],
      completed: ['completed'],
    },
    required: [],
    expected: ['gate_approved', 'gate_rejected'],
    example: 'routes: { gate_approved: NEXT, gate_rejected: STOP }',
  },
};

/** Outcomes of the step's effect that take the route. */
export function answersFor({ opcode }: Outline, { key }: Route): readonly string[] {
  return opcode === 'STOP' ? [] : (KEYS[opcode].known[key] ?? []);
}

/** Outcomes without a route that end the run normally, except those worth another attempt. */
export function unroutedEnds({ opcode, gate, routes }: StepSyntax): readonly UnroutedEnd[] {
  if (opcode === 'STOP' || opcode === 'EVALUATE') return [];
  const keys = gate === null || waits(gate) ? WAITED_FOR[opcode] : ['completed'];
  const { known } = KEYS[opcode];
  const taken = new Set(routes.flatMap(({ key }) => known[key] ?? []));
  return keys.flatMap((key) =>
    (known[key] ?? []).filter((answer) => !taken.has(answer)).map((answer) => ({ key, answer })),
  );
}

interface UnroutedEnd {
  readonly key: string;
  readonly answer: string;
}

const WAITED_FOR = {
  RUN_AGENT: ['completed'],
  RUN_VALIDATION: ['completed'],
  ROLLBACK: ['completed'],
  GATE: ['gate_approved', 'gate_rejected', 'gate_timed_out'],
} as const;

/** A bare STOP reached by one of these is a success. */
export function isGood(key: string): boolean {
  return key === 'success' || key === 'completed' || key === 'gate_approved';
}

/** As written. An EVALUATE without a route for `blocked` leads to STOP. */
export function readRoutes(reading: Reading, step: Outline): readonly Route[] {
  const { report } = reading;
  const { opcode, map } = step;
  if (opcode === 'STOP') return [];
  const { example } = KEYS[opcode];
  const entry = map.entries.get('routes');
  if (entry === undefined) {
    missingKey(report, step.place, named(step), 'routes', `For example ${example}.`);
    return [];
  }
  const written = mapAt(report, map, 'routes', `For example ${example}.`);
  if (written === null) return [];
  const routes = [...written.entries.values()].flatMap((each) => readRoute(reading, step, each) ?? []);
  if (opcode !== 'EVALUATE' || written.entries.has('blocked')) return routes;
  const { keyPlace } = entry;
  return [...routes, { key: 'blocked', keyPlace, to: STOP, place: keyPlace, witness: null, enters: null }];
}

function readRoute(reading: Reading, step: Outline, { key, keyPlace, value }: YamlEntry): Route | null {
  const { report } = reading;
  const known = step.opcode === 'STOP' ? {} : KEYS[step.opcode].known;
  if (!Object.hasOwn(known, key)) {
    const names = Object.keys(known);
    const hint = (): string => suggest(key, names, `Its routes: ${listed(names)}.`);
    report.error('unknown-route', keyPlace, `${named(step)} has no outcome "${key}"`, hint);
    return null;
  }
  if (value.kind === 'map') return readRouteMap(reading, step, key, keyPlace, value);
  if (isScalar(value) && value.text.trim() !== '') return routeTo(reading, key, keyPlace, value, null);
  const message = `the route "${key}" must name a step or STOP, got ${shown(value)}`;
  report.error('wrong-type', value.place, message, `For example ${key}: STOP.`);
  return null;
}

/** `{ to: NEXT, witness: { command: … } }`, or `{ to: ./release.meow.toml, variables: { … }, return: NEXT }`. */
function readRouteMap(reading: Reading, step: Outline, key: string, keyPlace: Place, map: YamlMap): Route | null {
  const { report } = reading;
  const what = `the route "${key}"`;
  const hint = `For example ${key}: { to: NEXT, witness: { command: npm test } }.`;
  const to = neededText(report, map, 'to', { place: keyPlace, what, hint });
  const more = to !== null && isWorkflowPath(to.text) ? ['variables', 'return'] : [];
  strictKeys(report, map, ['to', 'witness', ...more], what);
  const witness = readWitness(report, map, what);
  const place = map.entries.get('witness')?.keyPlace ?? keyPlace;
  if (witness !== null && !isProvable(step.opcode, key)) {
    const message = `${named(step)} cannot prove the outcome "${key}"`;
    const cure = 'Demand a witness where work is claimed to be done: for "completed" of RUN_AGENT or RUN_VALIDATION.';
    report.error('misplaced-witness', place, message, cure);
  }
  return to === null ? null : { ...routeTo(reading, key, keyPlace, to, map), witness };
}

function isProvable(opcode: Opcode, key: string): boolean {
  return key === 'completed' && (opcode === 'RUN_AGENT' || opcode === 'RUN_VALIDATION');
}

/** `map`: options beside the target. */
function routeTo(reading: Reading, key: string, keyPlace: Place, to: YamlScalar, map: YamlMap | null): Route {
  const enters = isWorkflowPath(to.text) ? readEntering(reading, to, map) : null;
  return { key, keyPlace, to: to.text, place: to.place, witness: null, enters };
}

/** Step ids never contain these characters. */
function isWorkflowPath(target: string): boolean {
  return /[./#]/.test(target);
}

function readEntering(reading: Reading, to: YamlScalar, map: YamlMap | null): Entering {
  const { report } = reading;
  const passed = map === null ? null : mapAt(report, map, 'variables', 'For example variables: { version: 2 }.');
  const given = [...(passed?.entries.values() ?? [])].flatMap(({ key, value }) => {
    if (isScalar(value)) return [[key, value.text] as const];
    const message = `the variable "${key}" must be a text, got ${shown(value)}`;
    report.error('wrong-type', value.place, message, 'Write a text.');
    return [];
  });
  const variables = Object.fromEntries(given);
  const entry = enterChecked(reading, to, Object.keys(variables));
  return { entry, variables, returnTo: map === null ? null : textAt(report, map, 'return') };
}

/** The block to enter; empty after an error was reported. */
function enterChecked(
  { report, steps, enter }: Reading,
  { text, place }: YamlScalar,
  given: readonly string[],
): string {
  const entered = enter(text);
  if (entered?.kind !== 'found') {
    const hint = 'Paths are seen from the folder of this workflow; a step is named without dots and slashes.';
    report.error('missing-target', place, entered?.message ?? `there is no workflow ${text}`, entered?.hint ?? hint);
    return '';
  }
  for (const name of entered.required.filter((each) => !given.includes(each))) {
    const message = `${text} needs the variable "${name}", and the route does not pass it`;
    report.error('missing-input', place, message, `For example { to: ${text}, variables: { ${name}: VALUE } }.`);
  }
  for (const id of entered.visited.filter((each) => each !== STOP && steps.has(each))) {
    const message = `${text} has a step "${id}" as well: one run cannot tell their visits apart`;
    report.error('duplicate-id', place, message, 'Rename one of the two steps.');
  }
  return entered.entry;
}

/** Reports missing routes, and routes that are never taken. */
export function checkRoutes(report: Report, step: StepSyntax): void {
  const { opcode, map, gate, timeoutMs, routes } = step;
  const entry = map.entries.get('routes');
  if (opcode === 'STOP' || entry?.value.kind !== 'map') return;
  const { required, expected, example } = KEYS[opcode];
  const written = entry.value.entries;
  const lacking = (keys: readonly string[]): readonly string[] => keys.filter((key) => !written.has(key));
  const needed = lacking(required);
  if (needed.length > 0) {
    const message = `${named(step)} has no route for ${listed(needed)}`;
    report.error('missing-route', entry.keyPlace, message, `For example ${example}.`);
  }
  const timedOut = gate !== null && timeoutMs !== null && !written.has('killed_timeout') ? ['gate_timed_out'] : [];
  const open = lacking(gate === null || waits(gate) ? [...expected, ...timedOut] : ['completed']);
  if (open.length > 0) {
    const message = `${named(step)} has no route for ${listed(open)}: a run that comes to that fails`;
    report.warning('missing-route', entry.keyPlace, message, `Name the next step: ${open[0] ?? ''}: STOP.`);
  }
  if (opcode === 'GATE') checkGate(report, gate, routes);
}

/** Routes that a gate of this type never takes, and duplicates under an old name. */
function checkGate(report: Report, gate: GateType | null, routes: readonly Route[]): void {
  const older = routes.find(({ key }) => key === 'killed_timeout');
  const newer = routes.find(({ key }) => key === 'gate_timed_out');
  if (older !== undefined && newer !== undefined) {
    const message = '"killed_timeout" is an older name of "gate_timed_out", and both are here';
    report.error('duplicate-route', older.keyPlace, message, 'Remove one of the two.', [
      { message: 'the other one', place: newer.keyPlace },
    ]);
  }
  if (gate === null) return;
  for (const { key, keyPlace } of routes) {
    if ((key === 'completed') !== waits(gate)) continue;
    const message = waits(gate)
      ? `a gate of type ${gate} waits for a decision: it never takes the route "completed"`
      : `a gate of type ${gate} does not wait for a decision: it never takes the route "${key}"`;
    const hint = waits(gate) ? 'Use gate_approved and gate_rejected.' : 'Use completed, or the type requires_approval.';
    report.warning('unused-route', keyPlace, message, hint);
  }
}
