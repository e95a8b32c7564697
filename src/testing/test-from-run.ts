// Makes a test from the journal of a run: what agents and commands answered becomes rules, decisions become gate rules, and
// what happened becomes the expectation. Pure but for the reader of files that it is given.

import type { Json, JsonMap } from '../base/json.ts';
import { exactDuration, formatDuration } from '../base/time.ts';
import type { CommandSpec, Effect, Outcome } from '../ir/effect.ts';
import { meowCallOf } from '../ir/meow-call.ts';
import type { Outputs } from '../ir/output.ts';
import type { Program } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import { apply } from '../kernel/apply.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';
import { CLEANUP_STEP, initialState, isFinished, type RunState, type StepState } from '../kernel/state.ts';
import { statusView } from '../view/status.ts';
import { isTomlValue, tomlTable } from './toml-text.ts';
import { RecordedRepository, type RepositoryReader } from './recorded-repository.ts';
import { endedSteps } from './world.ts';

export interface RecordedRun {
  readonly program: Program;
  readonly records: readonly JournalRecord[];
  /** Null: the file name finds it. */
  readonly workflow: string | null;
  readonly name: string;
  /** Texts with all stored values put in. */
  text(text: FilledText): string;
  /** Standard output or error of an attempt; empty if there is none. */
  output(step: string, attempt: number, stream: 'stdout' | 'stderr'): string;
  /** A file of the run's folder as it is now; null if it does not exist. */
  file(path: string): string | null;
  /** For a Conductor run; `folder`: relative to the test file. */
  readonly repository?: { readonly folder: string; readonly reader: RepositoryReader } | undefined;
}

interface Rule {
  readonly kind: 'on' | 'command' | 'gate' | 'event' | 'engine' | 'stop';
  /** The step that it answers. */
  readonly step: string | null;
  readonly entries: Readonly<Record<string, Json | undefined>>;
  /** How long the command or the agent took. */
  readonly ms?: number;
}

/** The text of a test file. */
export function testFromRun(run: RecordedRun): string {
  const story = new RecordedStory(run);
  for (const record of run.records) story.tell(record);
  const { state, rules } = story;
  const initial = story.repository.initialFiles();
  const files = new Map([...(initial ?? story.repository.changedFiles()), ...story.files]);
  const { variables = {}, allowance } = state.request ?? {};
  const isStable = stability(state);
  const given = Object.entries(variables).filter(([name, value]) => !name.startsWith('@') && isStable(value));
  const flags = allowance?.usd === null || allowance === undefined ? undefined : { budget_usd: allowance.usd };
  const head = {
    name: run.name,
    variables: given.length === 0 ? undefined : Object.fromEntries(given),
    folder: initial === null ? run.repository?.folder : undefined,
    files: files.size === 0 ? undefined : Object.fromEntries(files),
    flags,
  };
  return [
    ...(run.workflow === null ? [] : [`${tomlTable('', { workflow: run.workflow }).trim()}\n`]),
    tomlTable('[[test]]', head),
    ...rules.map((rule) => tomlTable(`[[test.${rule.kind}]]`, timed(rule, story.isParallel))),
    tomlTable('[test.expect]', expectationsOf(story, isStable)),
  ].join('\n');
}

/** If commands and agents worked at the same time, the order in which they ended matters, and so does each millisecond. */
function timed({ kind, entries, ms = 0 }: Rule, isParallel: boolean): Rule['entries'] {
  const shown = isParallel ? ms : ms < SHORT_MS ? 0 : Math.round(ms / SHORT_MS) * SHORT_MS;
  if (shown === 0) return entries;
  if (kind === 'command') return { ...entries, takes: exactDuration(shown) };
  const actions = (entries['do'] ?? []) as readonly JsonMap[];
  return isParallel ? { ...entries, do: [{ wait: exactDuration(shown) }, ...actions] } : entries;
}

class RecordedStory {
  readonly state: RunState;
  /** Whether two commands or agents worked at the same time. */
  isParallel = false;
  rules: Rule[] = [];
  /** Files that the run read. */
  readonly files = new Map<string, string>();
  readonly #run: RecordedRun;
  readonly #reports = new Map<string, { readonly outputs: Outputs; readonly notes: string | null }>();
  /** Gates. `isInScripts`: only steps in `scripted` have asked. */
  readonly #asked = new Map<string, { readonly at: number; readonly isInScripts: boolean }>();
  /** Steps whose scripts ask gates and do more: rules answer these scripts, so that nothing is asked in the test. */
  readonly scripted = new Set<string>();
  /** When agents ended their previous prompt. */
  readonly #freeSince = new Map<string, number>();
  readonly repository: RecordedRepository;
  #lastEnded: string | null = null;

  constructor(run: RecordedRun) {
    this.#run = run;
    this.repository = new RecordedRepository(run.repository?.reader ?? null);
    this.state = initialState(run.program);
  }

  tell({ at, input, decisions }: JournalRecord): void {
    const wasEnded = this.state.phase === 'ended';
    this.#hear(input, at);
    for (const decision of decisions) apply(this.state, decision, at);
    if (input.kind === 'run-resumed' && wasEnded) this.#forgetRepeated();
    this.#lastEnded = endedSteps({ decisions }).at(-1) ?? this.#lastEnded;
  }

  #hear(input: Input, at: number): void {
    switch (input.kind) {
      case 'effect-finished':
        return this.#finished(input.effect, input.outcome, at);
      case 'step-reported':
        if (this.state.steps.get(input.step)?.status === 'running') this.#reports.set(input.step, input);
        return;
      case 'gate-asked':
        return this.#gateAsked(input.gate, input.step, at);
      case 'gate-decided':
        return this.#decided(input, at);
      case 'event-emitted':
        return this.#emitted(input.event);
      case 'run-resumed':
        return this.#resumed();
      case 'stop-requested': {
        if (this.state.phase === 'ended' || this.rules.some(({ kind }) => kind === 'stop')) return;
        return this.#add('stop', null, { ...this.#since(at), force: input.force ? true : undefined });
      }
      default:
    }
  }

  #add(kind: Rule['kind'], step: string | null, entries: Rule['entries'], ms = 0): void {
    this.rules.push({ kind, step, entries, ms });
  }

  /** The test takes no time where the run did, so that a step says better when something happened. */
  #since(at: number): { readonly after_step?: string; readonly after?: string } {
    if (this.#lastEnded !== null) return { after_step: this.#lastEnded };
    return { after: formatDuration(Math.max(0, at - (this.state.startedAt ?? at))) };
  }

  #finished(effectId: string, outcome: Outcome, at: number): void {
    const step = this.state.inFlight.get(effectId);
    if (step !== undefined) return this.#stepFinished(step, outcome, at);
    const { cleanup, agentEffects } = this.state;
    if (cleanup !== null && effectId.startsWith(`${CLEANUP_STEP}#`))
      return this.#add('command', CLEANUP_STEP, { step: 'cleanup', ...exitOf(outcome) });
    const busy = agentEffects.get(effectId)?.busy ?? null;
    if (busy === null || outcome.kind !== 'failure' || outcome.failure.kind !== 'agent-crashed') return;
    this.#answered(busy.id, [{ crash: outcome.failure.code ?? 1 }]);
  }

  #stepFinished(step: StepState, outcome: Outcome, at: number): void {
    const spec = step.effect;
    if (isLost(outcome) || spec === null) return;
    const working = [...this.state.inFlight.values()].filter(({ effect }) => WORK.has(effect?.kind ?? ''));
    if (working.length > 1) this.isParallel = true;
    switch (spec.kind) {
      case 'command':
        return this.#commandFinished(step, spec, outcome, at);
      case 'turn':
        return this.#answered(step.id, turnActions(step, outcome), at - (step.startedAt ?? at));
      case 'prompt':
        return spec.mode === 'fire-forget' ? undefined : this.#promptFinished(step, spec, outcome, at);
      case 'read':
        return this.#read(spec);
      case 'git':
      case 'inspect':
        return this.#inspected(step, spec, outcome);
      default:
    }
  }

  /** Steps of an opcode after its turn or command: what changed is what that did. */
  #inspected(step: StepState, spec: Extract<Effect['spec'], { kind: 'git' | 'inspect' }>, outcome: Outcome): void {
    const happened = this.repository.after(
      spec,
      outcome.kind === 'success' ? outcome.outputs : outcome.failure.outputs,
    );
    if (happened === null) return;
    const { by, actions, files } = happened;
    const visit = step.id.replace(/\.[^.]*$/, '');
    const isMeant = (rule: Rule): boolean =>
      (rule.kind === 'on' || rule.kind === 'command') &&
      (by === 'anything' || rule.step?.startsWith(`${visit}.`) === true);
    const index = this.rules.findLastIndex(isMeant);
    const rule = this.rules[index];
    if (rule === undefined) return;
    const { entries } = rule;
    const added: Rule['entries'] =
      rule.kind === 'on'
        ? { do: [...actions, ...((entries['do'] ?? []) as readonly JsonMap[])] }
        : { files: { ...((entries['files'] ?? {}) as JsonMap), ...files } };
    if (actions.length > 0 || Object.keys(files).length > 0)
      this.rules[index] = { ...rule, entries: { ...entries, ...added } };
  }

  #read(spec: Extract<Effect['spec'], { kind: 'read' }>): void {
    const path = 'path' in spec ? this.#run.text(spec.path) : '';
    const text = path === '' || path.startsWith('/') || path.startsWith('..') ? null : this.#run.file(path);
    if (text !== null) this.files.set(path, text);
  }

  #commandFinished(step: StepState, spec: CommandSpec<FilledText>, outcome: Outcome, at: number): void {
    if (this.#isCall(spec)) return;
    const { id, attempt } = step;
    const common = { step: id, times: 1 };
    if (neverEnded(step, outcome)) return this.#add('command', id, { ...common, hangs: true });
    const ms = at - (step.startedAt ?? at);
    const files = spec.captures.flatMap(({ name, from }) => {
      const value = outcome.kind === 'success' ? outcome.outputs[name] : undefined;
      if (from.kind !== 'file' || value === undefined) return [];
      return [[this.#run.text(from.path), typeof value === 'string' ? value : JSON.stringify(value)] as const];
    });
    const text = (stream: 'stdout' | 'stderr'): string | undefined =>
      this.#run.output(id, attempt, stream) || undefined;
    const entries = {
      ...common,
      ...exitOf(outcome),
      stdout: text('stdout'),
      stderr: text('stderr'),
      files: files.length === 0 ? undefined : Object.fromEntries(files),
    };
    this.#add('command', id, entries, ms);
  }

  /** A command that the test answers itself. */
  #isCall(spec: CommandSpec<FilledText>): boolean {
    const call = meowCallOf(this.#run.text(spec.script));
    return call !== null && !call.usesFiles;
  }

  #gateAsked(gate: string, step: string, at: number): void {
    const spec = this.state.steps.get(step)?.effect;
    const isInScript = spec?.kind === 'command' && !this.#isCall(spec);
    if (isInScript) this.scripted.add(step);
    this.#asked.set(gate, { at, isInScripts: isInScript && this.#asked.get(gate)?.isInScripts !== false });
  }

  #promptFinished(
    step: StepState,
    spec: Extract<Effect['spec'], { kind: 'prompt' }>,
    outcome: Outcome,
    at: number,
  ): void {
    const begun = Math.max(step.startedAt ?? at, this.#freeSince.get(step.agent ?? '') ?? 0);
    this.#freeSince.set(step.agent ?? '', at);
    const report = this.#reports.get(step.id);
    this.#reports.delete(step.id);
    if (report !== undefined) {
      const paths = spec.expects.flatMap(({ name, type }) => (type === 'file_path' ? [report.outputs[name]] : []));
      const writes = paths.flatMap((path) =>
        typeof path === 'string' ? [{ write: path, text: this.#run.file(path) ?? '' }] : [],
      );
      const outputs = Object.entries(report.outputs).filter(([, value]) => isTomlValue(value));
      const notes = report.notes === null ? {} : { notes: report.notes };
      return this.#answered(step.id, [...writes, { done: Object.fromEntries(outputs), ...notes }], at - begun);
    }
    this.#answered(step.id, turnActions(step, outcome), at - begun);
  }

  #answered(step: string, actions: readonly JsonMap[], ms = 0): void {
    this.#add('on', step, { step, times: 1, do: actions }, ms);
  }

  #decided({ gate, verdict }: Extract<Input, { kind: 'gate-decided' }>, at: number): void {
    const asked = this.#asked.get(gate);
    if (asked?.isInScripts === true) return;
    const waited = asked === undefined ? 0 : at - asked.at;
    const after = waited < SHORT_MS ? undefined : formatDuration(waited);
    const { approved, by, notes, answer } = verdict;
    const decide = answer !== null ? 'answer' : approved ? 'approve' : 'reject';
    const who = verdict.proof?.kind === 'signature' && !by.startsWith('ssh:') ? `ssh:${by}` : by;
    const texts = { answer: answer ?? undefined, by: who, notes: notes ?? undefined };
    this.#add('gate', null, { gate, times: 1, after, decide, ...texts });
  }

  /** Events that a command or an agent of the run sends are sent again in the test. */
  #emitted({ type, agent, data }: Extract<Input, { kind: 'event-emitted' }>['event']): void {
    const running = [...this.state.inFlight.values()].map(({ effect }) =>
      effect?.kind === 'command' ? meowCallOf(this.#run.text(effect.script)) : null,
    );
    if (running.some((call) => call?.kind === 'event' && call.type === type)) return;
    const kept = Object.entries(data).filter(([, value]) => isTomlValue(value));
    const moment = this.#since(this.state.recordedAt ?? 0);
    this.#add('event', null, { ...moment, type, agent: agent ?? undefined, data: Object.fromEntries(kept) });
  }

  /** An engine that resumes a run replaces one that died, unless the run had ended. */
  #resumed(): void {
    if (this.state.phase === 'ended' || this.#lastEnded === null) return;
    this.#add('engine', null, { dies_after: this.#lastEnded, optional: true });
  }

  /** The test does at once what a resumed run repeats. */
  #forgetRepeated(): void {
    this.rules = this.rules.filter(({ step, kind }) => {
      if (kind === 'stop' || step === CLEANUP_STEP) return false;
      const found = step === null ? null : this.state.steps.get(step);
      return found === null || (found !== undefined && isFinished(found));
    });
  }
}

/** Shorter times are not part of a test, unless something else worked at the same time. */
const SHORT_MS = 1_000;

const WORK = new Set(['command', 'prompt', 'turn']);

function turnActions(step: StepState, outcome: Outcome): readonly JsonMap[] {
  if (neverEnded(step, outcome)) return [{ hang: true }];
  if (outcome.kind === 'success') {
    const { result } = outcome.outputs;
    const cost = Object.entries(outcome.usage ?? {}).filter(
      ([name, amount]) => (name === 'usd' || name === 'tokens') && typeof amount === 'number' && amount > 0,
    );
    const spent = cost.length === 0 ? [] : [{ cost: Object.fromEntries(cost) }];
    return [{ say: typeof result === 'string' ? result : '' }, ...spent];
  }
  const { kind, code, message } = outcome.failure;
  if (kind === 'exit-nonzero' && code !== null && code !== 1) return [{ crash: code }];
  return [{ fail: message }];
}

function isLost(outcome: Outcome): boolean {
  return outcome.kind === 'failure' && outcome.failure.kind === 'lost';
}

/** It would not have ended by itself. */
function neverEnded({ stopping }: StepState, outcome: Outcome): boolean {
  if (outcome.kind === 'success') return false;
  return stopping !== null || outcome.failure.kind === 'stopped' || outcome.failure.kind === 'idle';
}

function exitOf(outcome: Outcome): { readonly exit: number } {
  if (outcome.kind === 'failure') return { exit: outcome.failure.code ?? 1 };
  return { exit: outcome.route === 'false' ? 1 : 0 };
}

/** Whether a value is the same in every run: it contains neither the run's id nor its folder. */
function stability({ request }: RunState): (value: Json) => boolean {
  const own = [request?.id, request?.cwd].filter((text) => text !== undefined && text !== '');
  return (value) => {
    const text = JSON.stringify(value);
    return isTomlValue(value) && text.length < VALUE_MAX && own.every((each) => !text.includes(String(each)));
  };
}

const VALUE_MAX = 2_000;

/** Values that differ in every run. */
const VOLATILE = new Set(['session_id', 'terminal', 'workdir', 'adapter', 'denied']);
/** Outputs that the verdict about a gate adds to a step. */
const OF_VERDICTS = new Set(['decided_by', 'notes', 'reason', 'answer']);

function expectationsOf(
  { state, repository, scripted }: RecordedStory,
  isStable: (value: Json) => boolean,
): Rule['entries'] {
  const isExpected = (step: string, name: string): boolean =>
    !VOLATILE.has(name) && !name.includes('.') && !(scripted.has(step) && OF_VERDICTS.has(name));
  const { steps, error } = statusView(state);
  const each = Object.entries(steps);
  const files = Object.entries(repository.expectedFiles()).filter(([, expected]) => isStable(expected));
  const outcomes = each.flatMap(([id, { outcome }]) => (outcome === null ? [] : [[id, outcome] as const]));
  const outputs = each.flatMap(([id, step]) =>
    Object.entries(step.outputs).flatMap(([name, value]) =>
      step.outcome === null && isExpected(id, name) && isStable(value) ? [[`${id}.${name}`, value] as const] : [],
    ),
  );
  const failed = Object.entries({ step: error?.step, type: error?.type }).filter(([, text]) => text);
  return {
    run: state.end ?? 'waiting',
    steps: Object.fromEntries(each.map(([id, { status }]) => [id, status])),
    outcomes: outcomes.length === 0 ? undefined : Object.fromEntries(outcomes),
    outputs: outputs.length === 0 ? undefined : Object.fromEntries(outputs),
    error: failed.length === 0 ? undefined : (Object.fromEntries(failed) as JsonMap),
    files: files.length === 0 ? undefined : Object.fromEntries(files),
  };
}
