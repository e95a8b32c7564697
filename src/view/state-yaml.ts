// The text of `.meow/workflows/ID.yaml`: a run as people and tools read it, a moment behind the journal. It is valid
// YAML 1.2 for any data, by simple means: maps are blocks, a string is a bare word where nobody can take it for anything
// else, and otherwise a JSON string (save a script, which stays readable), and what is nested in a value is JSON. A
// step's lines are kept until the step is touched, so that a change in a run of thousands of steps costs little more than
// putting the text together.

import type { Json } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import type { CommandSpec } from '../ir/effect.ts';
import type { Text } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { isFinished } from '../kernel/state.ts';
import {
  agentStatus,
  expandedInto,
  needsOf,
  openGates,
  runError,
  runStatus,
  shownVariables,
  stepError,
} from './status.ts';
import { writtenText } from '../ir/text.ts';

/** The text for one run whose state goes on changing; `touch` says which steps have. */
export class StateYaml {
  readonly #state: RunState;
  /** In the state's order. */
  readonly #steps: { readonly step: StepState; text: string | null }[] = [];
  readonly #places = new Map<string, number>();
  /** The texts of so many steps as one; null where one of them has changed. */
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

  /** The run without its steps, where those are too many for a file: that much is true at least. */
  withoutSteps(why: string): string {
    return `${head(this.#state)}# ${why}\nsteps: {}\n`;
  }

  /** What the text is made of, in order: a long one need not be put together. */
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

  /** Steps are never taken away, so the new ones are the last. */
  #adoptNewSteps(): void {
    const known = this.#steps.length;
    if (this.#state.steps.size === known) return;
    let place = 0;
    for (const step of this.#state.steps.values()) {
      if (place >= known) {
        this.#places.set(step.id, place);
        this.#steps.push({ step, text: null });
        this.#chunks[Math.floor(place / CHUNK)] = null;
      }
      place += 1;
    }
  }

  #chunkText(index: number): string {
    const part = this.#steps.slice(index * CHUNK, (index + 1) * CHUNK);
    return part
      .map((known) => {
        const text = known.text ?? stepText(known.step);
        // What is over is not touched again, save by who resumes the run; what is long is dear to keep twice.
        known.text = isFinished(known.step) || text.length > LONG_TEXT ? null : text;
        return text;
      })
      .join('');
  }
}

/** Ids of the steps whose lines may differ after these records; steps that are new need not be named. */
export function changedSteps(records: readonly JournalRecord[]): readonly string[] {
  const touched = new Set<string>();
  for (const { decisions } of records) {
    for (const decision of decisions) for (const id of stepsChangedBy(decision)) touched.add(id);
  }
  return [...touched];
}

const CHUNK = 64;
/** Longer ones are dear to keep, and made anew. */
const CHUNK_CACHE_MAX = 128 * 1024;

function stepsChangedBy(decision: Decision): readonly string[] {
  switch (decision.kind) {
    case 'step-started':
    case 'step-answered':
    case 'step-failed-once':
    case 'step-retried':
    case 'step-lost':
    case 'step-done':
    case 'step-failed':
    case 'step-recovered':
    case 'recovery-failed':
    case 'step-grown':
    case 'items-read':
    case 'iterations-named':
    case 'step-completing':
    case 'step-progressed':
    case 'step-printed':
    case 'gate-asked':
    case 'gate-expired':
    case 'wait-released':
    case 'event-received':
    case 'usage-counted':
      return [decision.step];
    case 'steps-skipped':
    case 'steps-stopping':
      return decision.steps;
    case 'run-resumed':
      return decision.reopened;
    case 'frame-opened':
      return decision.frame.owner === null ? [] : [decision.frame.owner];
    case 'run-started':
    case 'steps-added':
    case 'frame-failing':
    case 'value-returned':
    case 'frames-dropped':
    case 'frame-closed':
    case 'gate-decided':
    case 'event-emitted':
    case 'agent-opened':
    case 'agent-reviving':
    case 'agent-session':
    case 'agents-closing':
    case 'agents-hastened':
    case 'agent-closed':
    case 'run-ending':
    case 'cleanup-started':
    case 'cleanup-stopping':
    case 'cleanup-finished':
    case 'warned':
    case 'run-ended':
      return [];
  }
}

function head(state: RunState): string {
  const { request, program, startedAt, endedAt, reason, result } = state;
  const lines = [
    '# How the run stands, for people and tools. Its truth is the journal beside this file; edits here change nothing.\n',
    entry('', 'id', request?.id ?? null),
    entry('', 'template', program.source.name),
    entry('', 'language', program.source.language),
    `status: ${runStatus(state)}\n`,
  ];
  if (startedAt !== null) lines.push(`started_at: ${formatMoment(startedAt)}\n`);
  if (endedAt !== null) lines.push(`ended_at: ${formatMoment(endedAt)}\n`);
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
    gates(state),
  );
  if (state.warnings.length > 0) lines.push(entry('', 'warnings', state.warnings));
  return lines.join('');
}

function agents({ agents: known }: RunState): string {
  if (known.size === 0) return 'agents: {}\n';
  const lines = ['agents:\n'];
  for (const { name, status, info, busy } of known.values()) {
    const facts: [string, Json][] = [];
    if (info !== null) {
      facts.push(['adapter', info.adapter]);
      if (info.terminal !== null) facts.push(['tmux_session', info.terminal]);
      facts.push(['workdir', info.workdir]);
      if (info.session !== null) facts.push(['session_id', info.session]);
    }
    facts.push(['status', agentStatus(status, busy !== null)]);
    if (busy !== null) facts.push(['current_step', busy.id]);
    lines.push(map('  ', name, facts));
  }
  return lines.join('');
}

/** A list: several steps may wait for the same gate. */
function gates(state: RunState): string {
  const open = openGates(state).map(({ id, step, opened_at }) => ({ id, status: 'open', step, opened_at }));
  return open.length === 0 ? '' : entry('', 'gates', open);
}

/**
 * Where a workflow calls itself thousands of times, ids grow as long as the way to them. Steps that belong together are
 * then named from each other's places: `..` is the step above, `../x` a step beside, `./x` one below.
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
  if (error !== null) {
    const facts = Object.entries(error).filter(([, value]) => value !== null);
    text += map(inner, 'error', facts);
  }
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

/** With its colon. YAML lets no key on the line of its value be longer than 1024 characters. */
function key(name: string, indent: string): string {
  const text = scalar(name);
  return text.length <= KEY_MAX ? `${text}:` : `? ${text}\n${indent}:`;
}

function scalar(text: string): string {
  return WORD.test(text) && !NOT_A_STRING.test(text) ? text : quoted(text);
}

const KEY_MAX = 1_000;
const WORD = /^[A-Za-z_][A-Za-z0-9_./#-]*$/;
/** Words that some readers take for something else than themselves. */
const NOT_A_STRING = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

function flow(value: Json): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(flow).join(', ')}]`;
  return `{${Object.entries(value)
    .map(([name, inner]) => `${quoted(name)}: ${flow(inner)}`)
    .join(', ')}}`;
}

/** A JSON string is a YAML string; what YAML cannot hold unescaped is escaped, and half a surrogate pair replaced. */
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

/** As its author wrote it, over as many lines, where that is sure to be read back as it is. */
function script(name: string, command: CommandSpec<Text> | null): string {
  if (command === null) return '';
  const text = writtenText(command.script);
  if (!BLOCK_SAFE.test(text) || text.endsWith('\n\n')) return entry('', name, text);
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  const body = lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n');
  return `${name}: ${text.endsWith('\n') ? '|' : '|-'}\n${body}\n`;
}

const BLOCK_SAFE = /^[!-~][\t\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*$/;
