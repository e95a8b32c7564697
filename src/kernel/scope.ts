// Name lookup for a step: variables of its frame, its enclosing frames and its lane, then outputs of finished steps,
// then built-ins and metadata.

import { assert } from '../base/assert.ts';
import type { Json, JsonMap } from '../base/json.ts';
import { isJsonMap, own } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { formatMoment } from '../base/time.ts';
import { StoredOutput } from '../ir/text.ts';
import type { Lookup } from '../ir/text.ts';
import type { FrameState, RunState, StepState } from './state.ts';

/** `step` is null for the run's cleanup script. */
export function lookupFrom(state: RunState, frame: FrameState, step: StepState | null, at: number): Lookup {
  return (path) => {
    const [name = '', ...rest] = path;
    // A step in the same frame wins over a variable with its name.
    if (rest[0] === 'outputs' && state.steps.has(`${frame.prefix}${name}`))
      return findOutput(state, frame, name, rest.slice(1));
    const variable = findVariable(state, frame, name);
    if (variable !== undefined) return valueAt(variable, rest, name);
    const split = path.indexOf('outputs', 1);
    if (split > 0) return findOutput(state, frame, path.slice(0, split).join('.'), path.slice(split + 1));
    if (rest.length === 0) {
      const known = builtIn(state, frame, step, at, name) ?? own(state.request?.meta ?? {}, name);
      if (known !== undefined) return ok(known);
    }
    return err(unknownName(frame, path));
  };
}

/** The part of a value that a path names. */
export function valueAt(value: Json, path: readonly string[], name: string): Result<Json, string> {
  let now: Json = value;
  let where = name;
  for (const segment of path) {
    const next: Json | undefined = Array.isArray(now)
      ? (now as readonly Json[])[/^\d+$/.test(segment) ? Number(segment) : -1]
      : isJsonMap(now) && Object.hasOwn(now, segment)
        ? now[segment]
        : undefined;
    if (next === undefined) return err(`${where} has no ${segment}; it is ${describeShape(now)}`);
    now = next;
    where += `.${segment}`;
  }
  return ok(now);
}

/** Variables for a command's environment: all visible ones, and the outputs of the steps it needs. */
export function variablesFor(state: RunState, step: StepState): JsonMap {
  const found: Record<string, Json> = {
    ...state.lanes.get(step.frame.lane)?.variables,
    ...step.frame.visibleVariables,
  };
  // In a block that performs a step, outputs go where its compiler says, and nowhere else.
  const needs = step.frame.join === 'answer' ? [] : step.definition.needs;
  for (const need of needs) {
    const needed = state.steps.get(`${step.frame.prefix}${need}`);
    for (const [name, value] of Object.entries(needed?.outputs ?? {})) {
      if (needed?.kept.includes(name) !== true) found[`${need}.outputs.${name}`] = value;
    }
  }
  return found;
}

function findVariable(state: RunState, { visibleVariables, lane }: FrameState, name: string): Json | undefined {
  if (Object.hasOwn(visibleVariables, name)) return visibleVariables[name];
  return own(state.lanes.get(lane)?.variables ?? {}, name);
}

/** Tries `build` within `each.0.` as `each.0.build`, `each.build`, `build`. */
function findOutput(
  state: RunState,
  frame: FrameState,
  name: string,
  path: readonly string[],
): Result<Json | StoredOutput, string> {
  for (let prefix = frame.prefix; ; prefix = prefix.slice(0, prefix.lastIndexOf('.', prefix.length - 2) + 1)) {
    const step = state.steps.get(`${prefix}${name}`);
    if (step !== undefined) return outputOf(step, path);
    if (prefix === '') break;
  }
  const visited = state.lanes.get(frame.lane)?.latest.get(name);
  return visited === undefined ? err(`there is no step ${name}`) : outputOf(visited, path);
}

function outputOf(step: StepState, path: readonly string[]): Result<Json | StoredOutput, string> {
  const [field = '', ...rest] = path;
  const value = own(step.outputs, field);
  const where = `${step.id}.outputs.${field}`;
  if (value !== undefined && step.kept.includes(field)) {
    if (rest.length > 0) return err(`${where} is over 1 MB and stored in a file, so a part of it cannot be used`);
    const file = isJsonMap(value) ? value['$file'] : null;
    assert(typeof file === 'string', `${where} is stored in a file, but its path is missing`);
    return ok(new StoredOutput(file));
  }
  if (value !== undefined) return valueAt(value, rest, where);
  if (step.settlement === 'open')
    return err(`step ${step.id} has no output ${field} yet, because it has not finished; add it to needs`);
  const names = Object.keys(step.outputs);
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  return err(`step ${step.id} (${step.status}) has no output ${field}; ${has}`);
}

/** Describes the type of a value in an error message. */
export function describeShape(value: Json): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isJsonMap(value)) return `a map with ${Object.keys(value).join(', ') || 'nothing'}`;
  return value === null ? 'null' : `a ${typeof value}`;
}

/** `@name` always means the built-in, even if a variable has that name. */
function builtIn(
  state: RunState,
  frame: FrameState,
  step: StepState | null,
  at: number,
  name: string,
): Json | undefined {
  switch (name.startsWith('@') ? name.slice(1) : name) {
    case 'workflow_id':
      return state.request?.id;
    case 'timestamp':
      return formatMoment(at);
    case 'date':
      return formatMoment(at).slice(0, 10);
    case 'time':
      return formatMoment(at).slice(11, 19);
    case 'step_id':
      return step?.id;
    case '__step_prefix__':
      return frame.prefix;
    case 'agent_id':
      return frame.lane;
    case 'state':
      return step?.definition.id;
    case 'visit':
      return step === null ? undefined : state.lanes.get(frame.lane)?.visitsOf.get(step.definition);
    default:
      return undefined;
  }
}

function unknownName({ visibleVariables }: FrameState, path: readonly string[]): string {
  // Authors cannot write names that begin with `@`.
  const names = Object.keys(visibleVariables).filter((name) => !name.startsWith('@'));
  const near = nearest(path[0] ?? '', names);
  const known = names.length === 0 ? 'there are no variables here' : `known here: ${names.join(', ')}`;
  return `{{${path.join('.')}}} is unknown${near === null ? '' : `; did you mean ${near}?`} (${known})`;
}
