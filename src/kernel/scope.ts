// Name lookup for a step: variables of its frame, its enclosing frames and its lane, then outputs of finished steps,
// then built-ins and metadata.

import { assert, err, ok, type Result } from '../base/errors.ts';
import { isJsonMap, type Json, type JsonMap, own } from '../base/json.ts';
import { nearest } from '../base/names.ts';
import { formatMoment } from '../base/time.ts';
import { storedFileOf } from '../ir/output.ts';
import { type Lookup, StoredOutput } from '../ir/text.ts';
import { frameAround, type FrameState, type RunState, type StepState } from './state.ts';

/** `step` is null for the run's cleanup script. `round`: the one that is about to begin; null: the one around the frame. */
export function lookupFrom(
  state: RunState,
  frame: FrameState,
  step: StepState | null,
  at: number,
  round: Round | null = null,
): Lookup {
  return (path) => {
    const [name = '', ...rest] = path;
    // A step in the same frame wins over a variable with its name.
    if (rest[0] === 'outputs' && state.steps.has(`${frame.prefix}${name}`))
      return findOutput(state, frame, name, rest.slice(1));
    const variable = findVariable(state, frame, name);
    if (variable !== undefined) return valueAt(variable, rest, name);
    const split = path.indexOf('outputs', 1);
    const inRound = name === 'previous' && split > 0 ? (round ?? roundAround(state, frame)) : null;
    if (inRound !== null) return findPrevious(state, inRound, path.slice(1, split).join('.'), path.slice(split + 1));
    if (split > 0) return findOutput(state, frame, path.slice(0, split).join('.'), path.slice(split + 1));
    if (rest.length === 0) {
      // `@name` always means the built-in, even if a variable has that name.
      const builtIn = own(builtIns(state, frame, step, at), name.replace(/^@/, ''));
      const known = builtIn ?? own(state.request?.meta ?? {}, name);
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
  const { frame } = step;
  const found: Record<string, Json> = { ...state.lanes.get(frame.lane)?.variables, ...frame.visibleVariables };
  // In a block that performs a step, outputs go where its compiler says, and nowhere else.
  for (const need of frame.join === 'answer' ? [] : step.definition.needs) {
    const needed = state.steps.get(`${frame.prefix}${need}`);
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
function findOutput(state: RunState, frame: FrameState, name: string, path: readonly string[]): ReturnType<Lookup> {
  for (let prefix = frame.prefix; ; prefix = prefix.slice(0, prefix.lastIndexOf('.', prefix.length - 2) + 1)) {
    const step = state.steps.get(`${prefix}${name}`);
    if (step !== undefined) return outputOf(step, path);
    if (prefix === '') break;
  }
  const visited = state.lanes.get(frame.lane)?.latest.get(name);
  return visited === undefined ? err(`there is no step ${name}`) : outputOf(visited, path);
}

interface Round {
  /** Id of the loop. */
  readonly loop: string;
  readonly round: number;
}

/** The round of the innermost loop around a frame. */
function roundAround(state: RunState, frame: FrameState): Round | null {
  for (let now: FrameState | null = frame; now !== null; now = frameAround(state, now))
    if (now.round !== undefined && now.owner !== null) return { loop: now.owner, round: now.round };
  return null;
}

/** An output of the round before; the first round has an empty text for all. */
function findPrevious(
  state: RunState,
  { loop, round }: Round,
  name: string,
  path: readonly string[],
): ReturnType<Lookup> {
  if (round === 1) return ok('');
  const id = `${loop}.${round - 1}.${name}`;
  const step = state.steps.get(id);
  return step === undefined ? err(`there is no step ${id}`) : outputOf(step, path);
}

export function outputOf(step: StepState, path: readonly string[]): ReturnType<Lookup> {
  const [field = '', ...rest] = path;
  const value = own(step.outputs, field);
  const where = `${step.id}.outputs.${field}`;
  if (value !== undefined) {
    // The outputs of a loop contain those of its steps.
    const stored = path.findIndex((_, index) => step.kept.includes(path.slice(0, index + 1).join('.')));
    if (stored === -1) return valueAt(value, rest, where);
    if (stored + 1 < path.length)
      return err(`${where} is over 1 MB and stored in a file, so a part of it cannot be used`);
    const kept = valueAt(value, rest, where);
    const file = kept.ok ? storedFileOf(kept.value) : null;
    assert(file !== null, `${where} is stored in a file, but its path is missing`);
    return ok(new StoredOutput(file));
  }
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

function builtIns(state: RunState, frame: FrameState, step: StepState | null, at: number): Partial<JsonMap> {
  const moment = formatMoment(at);
  return {
    workflow_id: state.request?.id,
    timestamp: moment,
    date: moment.slice(0, 10),
    time: moment.slice(11, 19),
    step_id: step?.id,
    __step_prefix__: frame.prefix,
    agent_id: frame.lane,
    run_folder: state.request?.folder,
    lane_folder: `${state.request?.folder ?? ''}/tasks/${frame.lane}`,
    state: step?.definition.id,
    visit: step === null ? undefined : state.lanes.get(frame.lane)?.visitsOf.get(step.definition),
  };
}

function unknownName({ visibleVariables }: FrameState, path: readonly string[]): string {
  // Authors cannot write names that begin with `@`.
  const names = Object.keys(visibleVariables).filter((name) => !name.startsWith('@'));
  const near = nearest(path[0] ?? '', names);
  const known = names.length === 0 ? 'there are no variables here' : `known here: ${names.join(', ')}`;
  return `{{${path.join('.')}}} is unknown${near === null ? '' : `; did you mean ${near}?`} (${known})`;
}

/**
 * Resolves the name of a step. Inside `a.0.b`, `check` means `a.0.check`, else `a.check`, else `check`. `asker`: the
 * step that asks; null if it is asked from outside of any step.
 */
export function findStep(state: RunState, name: string, asker: string | null): StepState | null {
  const segments = asker?.split('.') ?? [];
  for (let depth = Math.max(0, segments.length - 1); depth >= 0; depth--) {
    const found = state.steps.get([...segments.slice(0, depth), name].join('.'));
    if (found !== undefined) return found;
  }
  return null;
}
