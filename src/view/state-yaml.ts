// The text of `.meow/workflows/ID.yaml`: a run for people and tools, slightly behind the journal. It is valid YAML 1.2
// for any data. Maps are blocks; a string is bare if that is unambiguous, otherwise a JSON string; nested values are
// JSON; scripts stay readable. The text of a step is cached until the step changes, so that a change in a run of
// thousands of steps is cheap.

import type { Json } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import type { CommandSpec } from '../ir/effect.ts';
import { type Text, writtenText } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import { isFinished, type RunState, type StepState } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';
import {
  agentStatus,
  countsOf,
  expandedInto,
  needsOf,
  openGates,
  runError,
  runStatus,
  shownVariables,
  stepError,
} from './status.ts';

/** The text for one run whose state keeps changing; `invalidate` names the changed steps. */
export class StateYaml {
  readonly #state: RunState;
  /** In the order of the state. */
  readonly #steps: { readonly step: StepState; text: string | null }[] = [];
  readonly #places = new Map<string, number>();
  /** How many of the run's steps it knows, shown or folded. */
  #seen = 0;
  /** Joined texts of several steps; null if one of them has changed. */
  readonly #chunks: (string | null)[] = [];

  constructor(state: RunState) {
    this.#state = state;
  }

  invalidate(steps: Iterable<string>): void {
    for (const id of steps) {
      const place = this.#places.get(id);
      const known = place === undefined ? undefined : this.#steps[place];
      if (place === undefined || known === undefined) continue;
      known.text = null;
      this.#chunks[Math.floor(place / CHUNK)] = null;
    }
  }

  text(): string {
    return this.pieces().join('');
  }

  /** The run without its steps, if they are too many for the file. */
  withoutSteps(why: string): string {
    return `${head(this.#state)}# ${why}\nsteps: {}\n`;
  }

  /** The parts of the text in order, so that a long one need not be joined. */
  pieces(): readonly string[] {
    this.#adoptNewSteps();
    const none = this.#state.steps.size === 0 ? ' {}' : '';
    const chunks = this.#chunks.map((known, index) => {
      const text = known ?? this.#chunkText(index);
      this.#chunks[index] = text.length > CHUNK_CACHE_MAX ? null : text;
      return text;
    });
    return [`${head(this.#state)}steps:${none}\n`, ...chunks];
  }

  /** Steps are never removed, so new ones are at the end. */
  #adoptNewSteps(): void {
    if (this.#state.steps.size === this.#seen) return;
    let index = 0;
    for (const step of this.#state.steps.values()) {
      index += 1;
      // What performs a step is a part of it.
      if (index <= this.#seen || step.frame.isInner) continue;
      const place = this.#steps.length;
      this.#places.set(step.id, place);
      this.#steps.push({ step, text: null });
      this.#chunks[Math.floor(place / CHUNK)] = null;
    }
    this.#seen = index;
  }

  #chunkText(index: number): string {
    const part = this.#steps.slice(index * CHUNK, (index + 1) * CHUNK);
    return part
      .map((known) => {
        const text = known.text ?? stepText(known.step);
        // A finished step changes only after a resume, and a long text is expensive to cache twice.
        known.text = isFinished(known.step) || text.length > LONG_TEXT ? null : text;
        return text;
      })
      .join('');
  }
}

/** Ids of the steps whose text may differ after these records, without new steps. */
export function changedSteps(records: readonly JournalRecord[]): readonly string[] {
  return [...new Set(records.flatMap(({ decisions }) => decisions.flatMap(stepsChangedBy)))];
}

const CHUNK = 64;
/** Longer chunks are not cached. */
const CHUNK_CACHE_MAX = 128 * 1024;

function stepsChangedBy(decision: Decision): readonly string[] {
  switch (decision.kind) {
    case 'run-resumed':
      return decision.reopened;
    case 'frame-opened':
      return decision.frame.owner === null ? [] : [decision.frame.owner];
    case 'steps-added':
    case 'frame-failing':
      return [];
    default:
      if ('step' in decision) return [decision.step];
      return 'steps' in decision ? decision.steps : [];
  }
}

function head(state: RunState): string {
  const { request, program, startedAt, endedAt, reason, result } = state;
  const lines = [
    '# Status of the run, for people and tools. Generated from the journal; edits here have no effect.\n',
    entry('', 'id', request?.id ?? null),
    entry('', 'template', program.source.name),
    entry('', 'language', program.source.language),
    `status: ${runStatus(state)}\n`,
  ];
  if (startedAt !== null) lines.push(`started_at: ${formatMoment(startedAt)}\n`);
  if (endedAt !== null) lines.push(`ended_at: ${formatMoment(endedAt)}\n`);
  lines.push(entry('', 'counts', countsOf(shownSteps(state))));
  if (reason !== null) lines.push(entry('', 'reason', reason));
  const error = runError(state);
  if (error !== null) lines.push(map('', 'error', Object.entries(error)));
  if (result !== null) lines.push(entry('', 'result', result));
  lines.push(
    script('cleanup_on_success', program.cleanup.success),
    script('cleanup_on_failure', program.cleanup.failure),
    script('cleanup_on_stop', program.cleanup.stop),
    map('', 'vars', Object.entries(shownVariables(request?.variables ?? {}))),
    map('', 'meta', Object.entries(request?.meta ?? {})),
    agents(state),
  );
  // A list: several steps may wait for the same gate.
  const gates = openGates(state).map(({ id, step, opened_at }) => ({ id, status: 'open', step, opened_at }));
  if (gates.length > 0) lines.push(entry('', 'gates', gates));
  if (state.warnings.length > 0) lines.push(entry('', 'warnings', state.warnings));
  return lines.join('');
}

function agents({ agents: known }: RunState): string {
  if (known.size === 0) return 'agents: {}\n';
  const maps = [...known.values()].map(({ name, status, info, busy }) => {
    const facts: readonly (readonly [string, Json])[] = [
      ['adapter', info?.adapter ?? null],
      ['tmux_session', info?.terminal ?? null],
      ['workdir', info?.workdir ?? null],
      ['session_id', info?.session ?? null],
      ['status', agentStatus(status, busy !== null)],
      ['current_step', busy?.id ?? null],
    ];
    return map('  ', name, facts.filter(isKnown));
  });
  return `agents:\n${maps.join('')}`;
}

function isKnown([, value]: readonly [string, Json]): boolean {
  return value !== null;
}

/**
 * If a workflow calls itself thousands of times, ids become very long. Above this length, related steps are named by
 * relative paths: `..` is the parent step, `../x` a step beside it, `./x` a step below.
 */
const LONG_TEXT = 240;

function stepText(step: StepState): string {
  const { definition, status, attempt, agent, startedAt, finishedAt, outputs, frame } = step;
  const inner = '    ';
  let text = `  ${key(step.id, '  ')}\n${entry(inner, 'executor', definition.executor)}`;
  if (agent !== null) text += entry(inner, 'agent', agent);
  text += `${inner}status: ${status}\n`;
  if (attempt > 0) text += `${inner}attempt: ${attempt}\n`;
  const near = step.id.length > LONG_TEXT;
  if (definition.needs.length > 0)
    text += entry(inner, 'needs', near ? definition.needs.map((need) => `../${need}`) : needsOf(step));
  if (frame.owner !== null) text += entry(inner, 'expanded_from', near ? '..' : frame.owner);
  if (startedAt !== null) text += `${inner}started_at: ${formatMoment(startedAt)}\n`;
  if (finishedAt !== null) text += `${inner}finished_at: ${formatMoment(finishedAt)}\n`;
  const values = Object.entries(outputs);
  if (values.length > 0) text += map(inner, 'outputs', values);
  if (step.notes !== null) text += entry(inner, 'notes', step.notes);
  const error = stepError(step);
  if (error !== null) text += map(inner, 'error', Object.entries(error).filter(isKnown));
  const into = expandedInto(step).map((id) => (near && id.startsWith(step.id) ? `.${id.slice(step.id.length)}` : id));
  if (into.length > 0) text += entry(inner, 'expanded_into', into);
  return text;
}

function map(indent: string, name: string, entries: readonly (readonly [string, Json])[]): string {
  const label = `${indent}${key(name, indent)}`;
  if (entries.length === 0) return `${label} {}\n`;
  return `${label}\n${entries.map(([inner, value]) => entry(`${indent}  `, inner, value)).join('')}`;
}

function entry(indent: string, name: string, value: Json): string {
  return `${indent}${key(name, indent)} ${typeof value === 'string' ? scalar(value) : flow(value)}\n`;
}

/** The key with its colon. YAML limits a key on the same line as its value to 1024 characters. */
function key(name: string, indent: string): string {
  const text = scalar(name);
  return text.length <= KEY_MAX ? `${text}:` : `? ${text}\n${indent}:`;
}

function scalar(text: string): string {
  return WORD.test(text) && !NOT_A_STRING.test(text) ? text : quoted(text);
}

const KEY_MAX = 1_000;
const WORD = /^[A-Za-z_][A-Za-z0-9_./#-]*$/;
/** Words that some YAML parsers do not read as strings. */
const NOT_A_STRING = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

function flow(value: Json): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(flow).join(', ')}]`;
  return `{${Object.entries(value)
    .map(([name, inner]) => `${quoted(name)}: ${flow(inner)}`)
    .join(', ')}}`;
}

/** A JSON string is a YAML string. Characters that YAML cannot contain are escaped; lone surrogates are replaced. */
function quoted(text: string): string {
  const json = JSON.stringify(text);
  if (!NEEDS_ESCAPING.test(json)) return json;
  return JSON.stringify(text.replaceAll(LONE_SURROGATE, '\ufffd')).replaceAll(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const NEEDS_ESCAPING = /[^\x20-\x7e]|\\ud/;
const LONE_SURROGATE = /\p{Surrogate}/gu;
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** As written, over several lines, if that is certain to be read back unchanged. */
function script(name: string, command: CommandSpec<Text> | null): string {
  if (command === null) return '';
  const text = writtenText(command.script);
  if (!BLOCK_SAFE.test(text) || text.endsWith('\n\n')) return entry('', name, text);
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  const body = lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n');
  return `${name}: ${text.endsWith('\n') ? '|' : '|-'}\n${body}\n`;
}

const BLOCK_SAFE = /^[!-~][\t\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*$/;
