// The key of a state: two states have the same key if the same things can still happen in them.
//
// key/1  Left out: ids of visits, numbers of attempts, times, sessions, texts that were filled, and everything that ended
//        and that no unfinished step can read (footprint/4).
// key/2  Kept: open frames with their steps, what they wait for, values that something can read, agents, gates that may
//        be asked again, and counters that bound something: rounds, retries, reminders, visits with a limit.
// key/3  Lanes have no names: two lanes in the same state are interchangeable.
// key/4  Frames can be left out, as if the one inside them had been entered in their place: see recursion.ts.

import { isJsonMap, type Json } from '../base/json.ts';
import type { Program, Step } from '../ir/program.ts';
import { gateRequestOf } from '../kernel/gates.ts';
import {
  type AgentState,
  frameAround,
  type FrameState,
  isFinished,
  type LaneState,
  retryTimer,
  roundTimer,
  type RunState,
  type StepState,
} from '../kernel/state.ts';
import { conductedHistory } from './conducted.ts';
import { blamedFailures } from './endings.ts';
import { type Footprint, type Footprints, union } from './footprint.ts';
import type { Moves } from './moves.ts';
import type { Names } from './names.ts';

/** `inside`: the frame that takes the place of `instead`, the first of those that are left out. */
export interface Omission {
  readonly frames: ReadonlySet<FrameState>;
  readonly inside: FrameState | null;
  readonly instead: FrameState | null;
}

const NOTHING: Omission = { frames: new Set(), inside: null, instead: null };

export class StateKeys {
  readonly #names: Names;
  readonly #footprints: Footprints;
  readonly #moves: Moves;
  readonly #indexes: ReadonlyMap<Step, number>;
  readonly #limited: readonly (readonly [Step, number])[];
  readonly #isConducted: boolean;
  readonly #readsStatus: boolean;
  #without = NOTHING;
  /** Values as last shown, and for which reads. */
  readonly #shown = new WeakMap<object, { readonly reads: bigint; readonly text: string }>();

  constructor({ blocks }: Program, footprints: Footprints, moves: Moves, names: Names) {
    this.#names = names;
    this.#footprints = footprints;
    this.#moves = moves;
    const all = Object.values(blocks);
    const steps = all.flatMap((block) => block.steps);
    this.#indexes = new Map(steps.map((step, index) => [step, index]));
    this.#limited = all.flatMap(({ visits, steps: [first] }) =>
      visits === null || first === undefined ? [] : [[first, visits.max] as const],
    );
    this.#isConducted = steps.some(({ executor }) => executor === 'evaluate' || executor === 'run_agent');
    this.#readsStatus = steps.some((step) => footprints.ownOf(step).readsStatus);
  }

  of(state: RunState, without: Omission = NOTHING): string {
    const live = this.live(state);
    this.#without = without;
    const lanes = new Map<string, string[]>();
    const history: string[] = [];
    for (const frame of state.frames.values()) {
      if (without.frames.size > 0 && isOmitted(state, frame, without)) continue;
      if (frame.closed) this.#addHistory(state, frame, live, history);
      else this.#laneOf(lanes, frame.lane).push(this.#frame(state, frame, live));
    }
    for (const [name, frames] of lanes) {
      const lane = state.lanes.get(name);
      if (lane !== undefined) frames.push(this.#lane(lane, live));
    }
    const parts = [
      ...[...lanes.values()].map((frames) => frames.join('\n')).toSorted(),
      ...history,
      ...[...state.agents.values()].map((agent) => this.#agent(agent)).toSorted(),
      ...this.#gates(state, live),
      state.looseFailure ? 'loose' : '',
      state.end ?? '',
      ...blamedFailures(state, this.#names),
      this.#moves.emitters(state),
      this.#isConducted ? conductedHistory(state) : '',
    ];
    return hash(parts.join('\n'));
  }

  /** What unfinished steps can still read and touch. */
  live(state: RunState): Footprint {
    const parts: Footprint[] = [];
    const seen = new Set<Step>();
    for (const { settlement, definition, frame } of state.steps.values()) {
      if (settlement !== 'open' || seen.has(definition)) continue;
      seen.add(definition);
      parts.push(this.#footprints.of(definition));
      if (frame.returnTo !== null) parts.push(this.#footprints.ofTarget(frame.returnTo));
    }
    for (const { closed, returnTo } of state.frames.values())
      if (!closed && returnTo !== null) parts.push(this.#footprints.ofTarget(returnTo));
    return union(parts);
  }

  #laneOf(lanes: Map<string, string[]>, name: string): string[] {
    const known = lanes.get(name) ?? [];
    lanes.set(name, known);
    return known;
  }

  #frame(state: RunState, frame: FrameState, live: Footprint): string {
    const { failing, join, round = '', returnTo, recoveryDepth, value } = frame;
    const steps = frame.steps.map((step) => (isSettled(step) ? this.#ended(step, live) : this.#open(state, step)));
    const back = returnTo === null ? '' : JSON.stringify(returnTo);
    const place = `${this.#place(state, frame)} ${join} ${String(round)} ${failing ? 'F' : ''} ${String(recoveryDepth)}`;
    const given = this.#values(frame.variables, live);
    return `${place} ${back} ${value === null ? '' : JSON.stringify(value)} ${given} [${steps.join(' ')}]`;
  }

  /** Where a frame is, without the numbers of visits and recoveries. */
  #place(state: RunState, frame: FrameState): string {
    const {
      owner,
      prefix,
      join,
      steps: [first],
      caller,
    } = frame === this.#without.inside ? (this.#without.instead ?? frame) : frame;
    const block = first === undefined ? '' : String(this.#index(first));
    const above = owner === null ? undefined : state.steps.get(owner);
    if (above === undefined) return `${caller === null ? '' : 'called'} ${block}`;
    const part = join === 'recover' || join === 'answer' ? '' : prefix.slice(above.id.length + 1);
    return `${this.#place(state, above.frame)}/${String(this.#index(above))}/${part} ${block}`;
  }

  #open(state: RunState, step: StepState): string {
    const {
      definition: { retry, repromptsMax, act },
    } = step;
    const counters = [
      retry.attemptsMax > 1 ? step.failures : '',
      repromptsMax > 0 ? step.reprompts : '',
      act.kind === 'each' || act.kind === 'loop' ? `${String(step.blocks)} ${String(step.roundsAllowed)}` : '',
      act.kind === 'each' && step.items !== null ? JSON.stringify(step.items) : '',
    ];
    const flags = [
      state.timers.has(retryTimer(step.id)) ? 'retry' : '',
      state.timers.has(roundTimer(step.id)) ? 'round' : '',
      step.effect === null ? '' : 'effect',
      step.failure === null || retry.attemptsMax === 1 ? '' : 'failed',
      step.childFailed ? 'child-failed' : '',
      step.grown ? 'grown' : '',
      step.queuedFor ?? '',
      step.gate === null ? '' : `gate ${String(gateRequestOf(state, step, step.gate)?.verdict?.approved)}`,
      step.effect?.kind === 'command' ? String(this.#moves.mayReceive(state, step) ?? '') : '',
      step.unresolvedNeeds.some(({ resolved }) => !resolved) ? this.#below(step) : '',
    ];
    const waits = `${String(step.unmet)} ${String(step.openChildren)}`;
    return `${String(this.#index(step))}:${step.status}:${waits}:${counters.join(',')}:${flags.join(',')}`;
  }

  /** Steps below one that has not grown: others may need them. */
  #below(step: StepState): string {
    return step.children
      .flatMap(({ steps }) => steps)
      .map((each) => `${each.id}=${each.settlement}${this.#below(each)}`)
      .join(';');
  }

  #ended(step: StepState, live: Footprint): string {
    const { frame, settlement, children, status } = step;
    const inline = children.some(({ join, failing }) => join === 'inline' && failing) ? 'inline-failed' : '';
    const isJudged = frame.join === 'answer' || frame.join === 'check';
    const judged = isJudged ? `${step.route ?? ''} ${step.failure?.kind ?? ''}` : '';
    const shown = this.#readsStatus ? status : '';
    return `${settlement}${inline}${shown}${judged}${this.#outputs(step, live)}`;
  }

  /** Outputs of a frame that is closed, and that something may still read. */
  #addHistory(state: RunState, frame: FrameState, live: Footprint, history: string[]): void {
    if (frame.join === 'answer' || isOutdated(state, frame)) return;
    for (const step of frame.steps) {
      const read = this.#isLatest(state, step) ? this.#outputs(step, live) : '';
      const shown = this.#readsStatus ? step.status : '';
      if (read !== '' || shown !== '')
        history.push(`${this.#place(state, frame)} ${String(this.#index(step))}${shown}${read}`);
    }
  }

  /** Whether this is the last of several visits: only that one can be read. */
  #isLatest(state: RunState, step: StepState): boolean {
    const latest = state.lanes.get(step.frame.lane)?.latest.get(step.definition.id);
    return latest === undefined || latest === step || step.id.startsWith(step.frame.prefix + step.definition.id);
  }

  #outputs({ definition, outputs }: StepState, live: Footprint): string {
    const read = Object.keys(outputs).filter((name) => this.#footprints.readsOutput(live.reads, definition.id, name));
    return read.length === 0 ? '' : JSON.stringify(read.toSorted().map((name) => [name, outputs[name]]));
  }

  #lane({ variables, visitsOf }: LaneState, live: Footprint): string {
    const visits = this.#limited.map(([step, max]) => Math.min(visitsOf.get(step) ?? 0, max));
    return `${visits.join(',')} ${this.#values(variables, live)}`;
  }

  /** The values of a frame are never changed, only replaced. */
  #values(variables: Readonly<Record<string, Json>>, { reads }: Footprint): string {
    const known = this.#shown.get(variables);
    if (known?.reads === reads) return known.text;
    const read = Object.entries(variables).filter(([name]) => this.#footprints.readsVariable(reads, name));
    const text = JSON.stringify(read.map(([name, value]) => [name, lasting(name, value)]));
    this.#shown.set(variables, { reads, text });
    return text;
  }

  #agent({ name, status, busy, queue }: AgentState): string {
    if (status === 'closed' || status === 'ended' || status === 'named') return '';
    const waiting = [...queue].map((step) => this.#index(step));
    return `agent ${name} ${status} ${busy === null ? '' : String(this.#index(busy))} ${waiting.join(',')}`;
  }

  /** A gate that is named after its step is never asked again. */
  #gates(state: RunState, live: Footprint): readonly string[] {
    return [...state.gates.values()].flatMap(({ name, requests, verdict }) =>
      state.steps.has(name) || !this.#footprints.touchesGate(live.resources, name)
        ? []
        : [`gate ${name} ${requests.size > 0 ? 'asked' : ''} ${String(verdict?.approved)}`],
    );
  }

  #index({ definition }: StepState): number {
    return this.#indexes.get(definition) ?? -1;
  }
}

/** Whether the frame is left out, or something below one that is. */
function isOmitted(state: RunState, frame: FrameState, { frames, inside }: Omission): boolean {
  for (let at: FrameState | null = frame; at !== null && at !== inside; at = frameAround(state, at))
    if (frames.has(at)) return true;
  return false;
}

function isSettled(step: StepState): boolean {
  return isFinished(step) && step.settlement !== 'open';
}

/** A round before the previous one of its loop. */
function isOutdated(state: RunState, { owner, round }: FrameState): boolean {
  const loop = owner === null || round === undefined ? undefined : state.steps.get(owner);
  const present = loop?.children.findLast((child) => child.round !== undefined)?.round;
  return present !== undefined && round !== undefined && (round < present - 1 || loop?.settlement !== 'open');
}

/** Without what changes from visit to visit. */
function lasting(name: string, value: Json): Json {
  if (name === 'ask_id') return '';
  if (name !== '_failed_step' || !isJsonMap(value)) return value;
  return { error_type: value['error_type'] ?? null, agent: value['agent'] ?? null };
}

/** 128 bits: two of a billion states have the same with a chance of less than one in a billion billions. */
function hash(text: string): string {
  let [a, b, c, d] = [1_779_033_703, 3_144_134_277, 1_013_904_242, 2_773_480_762];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = b ^ Math.imul(a ^ code, 597_399_067);
    b = c ^ Math.imul(b ^ code, 2_869_860_233);
    c = d ^ Math.imul(c ^ code, 951_274_213);
    d = a ^ Math.imul(d ^ code, 2_716_044_179);
  }
  return [a, b, c, d].map((part) => (part >>> 0).toString(36)).join('.');
}
