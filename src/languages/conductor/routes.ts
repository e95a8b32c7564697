// The routes of a step, and the witness that a route or a step demands. The opcode determines the keys, and the outcomes
// that each key stands for.

import { MECHANICAL, type Mechanical, OUTCOME_OF, STATUSES, type Witness } from '../../ir/conductor.ts';
import type { FailureKind } from '../../ir/failure.ts';
import { namesOf } from '../keys.ts';
import { listed, missing, type Report, suggest } from '../report.ts';
import { countAt, durationAt, mapAt, textAt, wrongType } from '../yaml-fields.ts';
import { isScalar, type YamlEntry, type YamlMap, type YamlScalar } from '../yaml-tree.ts';
import { globsAt, neededText, strictKeys } from './fields.ts';
import { ENTERING_KEYS, EXPECT, ROUTE_KEYS, ROUTES, WITNESS } from './keys.ts';
import {
  type Entering,
  named,
  type Opcode,
  type Outline,
  type Reading,
  type Route,
  type StepSyntax,
  STOP,
  waits,
} from './syntax.ts';

interface RouteKeys {
  /** Each key with its outcomes: routes of a success, or kinds of failure. */
  readonly known: Readonly<Record<string, readonly string[]>>;
  readonly required: readonly string[];
  /** Without these a run may reach a point without a next step. */
  readonly expected: readonly string[];
  /** Without a route these end the run normally. The outcomes of other keys are worth another attempt. */
  readonly ends: readonly string[];
  readonly example: string;
}

/** A function, so that loading the module computes nothing. */
function routesOf(opcode: Opcode): RouteKeys {
  const mechanical: RouteKeys = {
    known: Object.fromEntries(MECHANICAL.map((key) => [key, key === 'completed' ? ['completed'] : kindsOf(key)])),
    required: [],
    expected: MECHANICAL,
    ends: ['completed'],
    example: 'routes: { completed: NEXT, error: STOP }',
  };
  const all: Readonly<Record<Opcode, RouteKeys>> = {
    RUN_AGENT: mechanical,
    RUN_VALIDATION: mechanical,
    ROLLBACK: { ...mechanical, expected: ['completed', 'error'] },
    EVALUATE: {
      // An evaluator itself can fail in two ways: by timeout, or otherwise.
      known: {
        ...Object.fromEntries(STATUSES.map((status) => [status, [status]])),
        error: kindsOf('error', 'killed_policy'),
        killed_timeout: kindsOf('killed_timeout', 'killed_idle'),
      },
      required: STATUSES.filter((status) => status !== 'blocked'),
      expected: [],
      ends: [],
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
      ends: ['gate_approved', 'gate_rejected', 'gate_timed_out'],
      example: 'routes: { gate_approved: NEXT, gate_rejected: STOP }',
    },
    STOP: { known: {}, required: [], expected: [], ends: [], example: '' },
  };
  return all[opcode];
}

/** The routes that a step with this opcode can have. */
export function routeNames(opcode: Opcode): readonly string[] {
  return Object.keys(routesOf(opcode).known);
}

function kindsOf(...outcomes: readonly Mechanical[]): readonly string[] {
  const kinds = Object.keys(OUTCOME_OF) as readonly FailureKind[];
  return kinds.filter((kind) => outcomes.some((outcome) => OUTCOME_OF[kind] === outcome));
}

/** Outcomes of the step's effect that take the route. */
export function answersFor({ opcode }: Outline, { key }: Route): readonly string[] {
  return routesOf(opcode).known[key] ?? [];
}

/** Outcomes without a route that end the run normally. */
export function unroutedEnds(step: StepSyntax): readonly { readonly key: string; readonly answer: string }[] {
  const { known, ends } = routesOf(step.opcode);
  const taken = new Set(step.routes.flatMap((route) => answersFor(step, route)));
  const keys = step.gate === null || waits(step.gate) ? ends : ['completed'];
  return keys.flatMap((key) =>
    (known[key] ?? []).filter((answer) => !taken.has(answer)).map((answer) => ({ key, answer })),
  );
}

/** A bare STOP reached by one of these is a success. */
export function isGood(key: string): boolean {
  return key === 'success' || key === 'completed' || key === 'gate_approved';
}

/** As written. An EVALUATE without a route for `blocked` leads to STOP. */
export function readRoutes(reading: Reading, step: Outline): readonly Route[] {
  const { report } = reading;
  const { opcode, map } = step;
  if (opcode === 'STOP') return [];
  const hint = `For example ${routesOf(opcode).example}.`;
  const entry = map.entries.get('routes');
  if (entry === undefined) missing(report, step.place, named(step), 'routes', hint);
  const written = mapAt(report, map, 'routes', hint);
  if (entry === undefined || written === null) return [];
  const routes = [...written.entries.values()].flatMap((each) => readRoute(reading, step, each) ?? []);
  if (opcode !== 'EVALUATE' || written.entries.has('blocked')) return routes;
  const { keyPlace } = entry;
  return [...routes, { key: 'blocked', keyPlace, to: STOP, place: keyPlace, witness: null, enters: null }];
}

/** `NEXT`, `{ to: NEXT, witness: { command: … } }`, or `{ to: ./release.meow.toml, variables: { … }, return: NEXT }`. */
function readRoute(reading: Reading, step: Outline, { key, keyPlace, value }: YamlEntry): Route | null {
  const { report } = reading;
  const names = namesOf(ROUTES[step.opcode].keys);
  if (!names.includes(key)) {
    const hint = (): string => suggest(key, names, `Its routes: ${listed(names)}.`);
    return report.error('unknown-route', keyPlace, `${named(step)} has no outcome "${key}"`, hint);
  }
  if (isScalar(value) && value.text.trim() !== '') {
    const { text: to, place } = value;
    return { key, keyPlace, to, place, witness: null, enters: readEntering(reading, value, null) };
  }
  const what = `the route "${key}"`;
  if (value.kind !== 'map') {
    return wrongType(report, value, `${what} must name a step or STOP`, `For example ${key}: STOP.`);
  }
  const hint = `For example ${key}: { to: NEXT, witness: { command: npm test } }.`;
  const to = neededText(report, value, 'to', { place: keyPlace, what, hint });
  const more = to !== null && isWorkflowPath(to.text) ? ENTERING_KEYS : [];
  strictKeys(report, value, namesOf([...ROUTE_KEYS, ...more]), what);
  const witness = readWitness(report, value, what);
  const isProvable = key === 'completed' && (step.opcode === 'RUN_AGENT' || step.opcode === 'RUN_VALIDATION');
  if (witness !== null && !isProvable) {
    const place = value.entries.get('witness')?.keyPlace ?? keyPlace;
    const message = `${named(step)} cannot prove the outcome "${key}"`;
    const cure = 'Demand a witness where work is claimed to be done: for "completed" of RUN_AGENT or RUN_VALIDATION.';
    report.error('misplaced-witness', place, message, cure);
  }
  if (to === null) return null;
  return { key, keyPlace, to: to.text, place: to.place, witness, enters: readEntering(reading, to, value) };
}

/** Step ids never contain these characters. */
export function isWorkflowPath(target: string): boolean {
  return /[./#]/.test(target);
}

/** Null if the target is a step. `map`: options beside the target. */
function readEntering(reading: Reading, to: YamlScalar, map: YamlMap | null): Entering | null {
  if (!isWorkflowPath(to.text)) return null;
  const { report } = reading;
  const passed = map === null ? null : mapAt(report, map, 'variables', 'For example variables: { version: 2 }.');
  const given = [...(passed?.entries.values() ?? [])].flatMap(({ key, value }) => {
    if (isScalar(value)) return [[key, value.text] as const];
    return wrongType(report, value, `the variable "${key}" must be a text`, 'Write a text.') ?? [];
  });
  const variables = Object.fromEntries(given);
  const entry = enterChecked(reading, to, Object.keys(variables));
  return { entry, variables, returnTo: map === null ? null : textAt(report, map, 'return') };
}

/** The block to enter; empty after an error was reported. */
function enterChecked(reading: Reading, { text, place }: YamlScalar, given: readonly string[]): string {
  const { report, steps } = reading;
  const entered = reading.enter(text);
  if (entered?.kind !== 'found') {
    const hint = 'Paths are relative to the folder of this workflow. The name of a step has no dots and slashes.';
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
  const { opcode, map, gate, timeoutMs } = step;
  const entry = map.entries.get('routes');
  if (entry?.value.kind !== 'map') return;
  const { required, expected, example } = routesOf(opcode);
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
  if (opcode === 'GATE') checkGate(report, step);
}

/** Routes that a gate of this type never takes, and duplicates under an old name. */
function checkGate(report: Report, { gate, routes }: StepSyntax): void {
  const older = routes.find(({ key }) => key === 'killed_timeout');
  const newer = routes.find(({ key }) => key === 'gate_timed_out');
  if (older !== undefined && newer !== undefined) {
    const message = '"killed_timeout" is an older name of "gate_timed_out", and both are here';
    const related = [{ message: 'the other one', place: newer.keyPlace }];
    report.error('duplicate-route', older.keyPlace, message, 'Remove one of the two.', related);
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

// `witness: { command, expect, depends_on, timeout }`: a command that the engine runs itself to confirm an outcome.

const EXAMPLE = 'For example witness: { command: npm test, expect: { exit_code: 0 } }.';

/** Null if none is required, or after an error was reported. */
export function readWitness(report: Report, map: YamlMap, owner: string): Witness | null {
  const entry = map.entries.get('witness');
  const inner = mapAt(report, map, 'witness', EXAMPLE);
  if (entry === undefined || inner === null) return null;
  const what = `the witness of ${owner}`;
  strictKeys(report, inner, namesOf(WITNESS.keys), what);
  const command = neededText(report, inner, 'command', { place: entry.keyPlace, what, hint: EXAMPLE });
  const timeoutMs = durationAt(report, inner, 'timeout');
  const witness = {
    expect: readExpectation(report, inner),
    dependsOn: globsAt(report, inner, 'depends_on', 'depends_on: ["test/**"]') ?? [],
    timeoutMs: timeoutMs === 0 ? null : timeoutMs,
  };
  return command === null ? null : { command: command.text, ...witness };
}

/** `{ exit_code, output }`; a number alone is an exit code, a text alone a pattern of the output. */
function readExpectation(report: Report, map: YamlMap): Witness['expect'] {
  const value = map.entries.get('expect')?.value;
  const nothing = { exitCode: 0, output: null };
  if (value === undefined || value.kind === 'nothing') return nothing;
  if (value.kind === 'number') return { ...nothing, exitCode: countAt(report, map, 'expect', 0) ?? 0 };
  if (value.kind === 'string') return { ...nothing, output: readPattern(report, 'expect', value) };
  if (value.kind === 'map') {
    strictKeys(report, value, namesOf(EXPECT.keys), '"expect"');
    const output = textAt(report, value, 'output');
    return {
      exitCode: countAt(report, value, 'exit_code', 0) ?? 0,
      output: output === null ? null : readPattern(report, 'output', output),
    };
  }
  const hint = 'For example expect: { exit_code: 0, output: "[1-9][0-9]* passed" }.';
  wrongType(report, value, '"expect" must be a map', hint);
  return nothing;
}

function readPattern(report: Report, key: string, { text, place }: YamlScalar): string | null {
  try {
    if (!new RegExp(text, 'm').test('')) return text;
    const message = `"${key}" fits even where nothing is printed, and so proves nothing`;
    report.error('invalid-pattern', place, message, 'Ask for something that only a success prints.');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `"${key}" is not a regular expression: ${error.message}`;
    report.error('invalid-pattern', place, message, 'Escape literal characters with a backslash.');
  }
  return null;
}
