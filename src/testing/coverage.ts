// Which steps and routes of a workflow the runs of tests reached, and which not.
//
//   coverage/1  A step counts once, wherever it is used: by the place where it is written.
//   coverage/2  A step is covered when it started; a route, when an outcome took it.

import type { RouteTaken, WrittenPlace, WrittenStep } from '../languages/outline.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import type { Transition } from '../ir/transition.ts';
import { TAG_RULES } from '../ir/machine.ts';
import { isFork } from '../ir/tags.ts';
import { outcomeOf } from '../view/visits.ts';
import type { WorldEnd } from './world.ts';

export interface Missing {
  readonly place: WrittenPlace;
  /** `step build`, or `route on_false of gate`. */
  readonly what: string;
}

export interface CoverageResult {
  /** Covered, and all. */
  readonly steps: readonly [number, number];
  readonly routes: readonly [number, number];
  readonly missing: readonly Missing[];
}

interface Entry extends Missing {
  readonly kind: 'steps' | 'routes';
  covered: boolean;
}

/** Coverage of one or several workflows. */
export class Coverage {
  readonly #entries = new Map<string, Entry>();

  /** Adds what happened in a run. `placeOf`: the place for people, and the same for the same text. */
  add(
    outline: readonly WrittenStep[],
    end: Pick<WorldEnd, 'state' | 'records'>,
    placeOf: (place: WrittenPlace) => WrittenPlace,
  ): void {
    const seen = new Happened(end);
    for (const written of outline) {
      const { block, step, name, routes } = written;
      const key = keyOf(block, step);
      this.#note('steps', placeOf(written.place), `step ${name}`, seen.started.has(key));
      for (const { label, place, taken } of routes)
        this.#note('routes', placeOf(place), `route ${label} of ${name}`, seen.took(key, block, taken));
    }
  }

  result(): CoverageResult {
    const entries = [...this.#entries.values()];
    const count = (kind: Entry['kind']): [number, number] => {
      const all = entries.filter((entry) => entry.kind === kind);
      return [all.filter(({ covered }) => covered).length, all.length];
    };
    const missing = entries.filter(({ covered }) => !covered).map(({ place, what }) => ({ place, what }));
    return { steps: count('steps'), routes: count('routes'), missing };
  }

  #note(kind: Entry['kind'], place: WrittenPlace, what: string, covered: boolean): void {
    const key = `${place.file}:${place.line} ${what}`;
    const entry = this.#entries.get(key) ?? { kind, place, what, covered: false };
    this.#entries.set(key, { ...entry, covered: entry.covered || covered });
  }
}

/** Covered steps and routes of all; 100 if nothing is written. */
export function percentOf({ steps, routes }: Pick<CoverageResult, 'steps' | 'routes'>): number {
  const [covered, all] = [steps[0] + routes[0], steps[1] + routes[1]];
  return all === 0 ? 100 : (100 * covered) / all;
}

/** Steps that started, by block and step. */
export function startedIn(end: Pick<WorldEnd, 'state' | 'records'>): ReadonlySet<string> {
  return new Happened(end).started;
}

export function keyOf(block: string, step: string): string {
  return `${block}\0${step}`;
}

/** What happened in one run, by block and step. */
class Happened {
  readonly started = new Set<string>();
  readonly #outcomes = new Map<string, Set<string>>();
  readonly #recovered = new Set<string>();
  readonly #transitions = new Map<string, Transition[]>();
  /** Blocks that were not entered because of their limit of visits. */
  readonly #passedOver = new Set<string>();
  /** Block and step by id. */
  readonly #nameOf = new Map<string, string>();
  readonly #state: RunState;

  constructor({ state, records }: Pick<WorldEnd, 'state' | 'records'>) {
    this.#state = state;
    for (const record of records) this.#read(record);
    for (const step of state.steps.values()) {
      const word = outcomeOf(step);
      if (word !== null) this.#outcome(step.id, word);
    }
  }

  took(name: string, block: string, taken: RouteTaken): boolean {
    switch (taken.kind) {
      case 'outcome':
        return taken.words.some((word) => this.#outcomes.get(name)?.has(word) === true);
      case 'recovery':
        return this.#recovered.has(name);
      case 'instead':
        return this.#passedOver.has(block);
      case 'transition':
        return (this.#transitions.get(name) ?? []).some((each) => this.#fits(each, taken));
    }
  }

  #read({ input, decisions }: JournalRecord): void {
    const entered: string[] = [];
    for (const decision of decisions) {
      switch (decision.kind) {
        case 'steps-added': {
          const { block, steps } = decision;
          const definitions = this.#state.program.blocks[block]?.steps ?? [];
          entered.push(block);
          for (const [index, id] of steps.entries()) this.#nameOf.set(id, keyOf(block, definitions[index]?.id ?? ''));
          break;
        }
        case 'step-started':
          this.started.add(this.#nameOf.get(decision.step) ?? '');
          break;
        case 'frame-opened':
          if (decision.frame.join === 'recover' && decision.frame.owner !== null)
            this.#recovered.add(this.#nameOf.get(decision.frame.owner) ?? '');
          break;
        case 'step-failed':
          this.#outcome(decision.step, decision.failure.kind);
          break;
        case 'step-answered':
        case 'step-done':
        case 'step-recovered': {
          const { outcome } = decision.outputs;
          if (typeof outcome === 'string') this.#outcome(decision.step, outcome);
          if ('route' in decision && typeof decision.route === 'string') this.#outcome(decision.step, decision.route);
          break;
        }
        default:
      }
    }
    if (input.kind !== 'effect-finished' || input.outcome.kind !== 'success') return;
    for (const transition of input.outcome.follows ?? []) this.#moved(input.effect, transition, entered);
  }

  #moved(effect: string, transition: Transition, entered: readonly string[]): void {
    const name = this.#nameOf.get(effect.replace(/#\d+$/, '')) ?? '';
    this.#transitions.set(name, [...(this.#transitions.get(name) ?? []), transition]);
    const target = blockOf(transition);
    if (target !== null && !entered.includes(target) && entered.length > 0) this.#passedOver.add(target);
  }

  #fits(transition: Transition, { tag, to, back }: Extract<RouteTaken, { kind: 'transition' }>): boolean {
    if (tag === 'result') return transition.kind === 'return';
    const target = blockOf(transition);
    if (tag === 'ask') return target !== null && this.#asks().has(target);
    if (target !== to) return false;
    if (isFork(tag)) return transition.kind === 'fork';
    const { session, requiredAttribute } = TAG_RULES[tag];
    if (requiredAttribute !== 'return') return transition.kind === 'goto' && transition.session === session;
    if (transition.kind !== 'call' || transition.session !== session) return false;
    return back === null || transition.returnTo.block === back;
  }

  #asks(): ReadonlySet<string> {
    return new Set(Object.values(this.#state.program.machines).flatMap(({ asks }) => Object.values(asks)));
  }

  #outcome(id: string, word: string): void {
    const name = this.#nameOf.get(id) ?? '';
    this.#outcomes.set(name, (this.#outcomes.get(name) ?? new Set()).add(word));
  }
}

function blockOf(transition: Transition): string | null {
  return 'target' in transition && typeof transition.target.block === 'string' ? transition.target.block : null;
}
