// Events that steps wait for.
//
// events/1  A step receives only events after it became ready, and each once.
// events/2  A command that is one `meow event TYPE` emits the event when it ends.
// events/3  A longer script, a prompt or a template of a hook that mentions `meow event` and the type may emit it at any
//           time after its step has started: nobody can know when.

import type { EffectSpec } from '../ir/effect.ts';
import { meowCallOf } from '../ir/meow-call.ts';
import type { Program, Step } from '../ir/program.ts';
import type { Text } from '../ir/text.ts';
import type { Input } from '../kernel/input.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { saidIn } from './footprint.ts';

export class Events {
  readonly #program: Program;
  /** Steps that may emit at any time, by the type that somebody waits for. */
  readonly #emitters = new Map<string, ReadonlySet<Step>>();

  constructor(program: Program) {
    this.#program = program;
    for (const { steps } of Object.values(program.blocks)) {
      for (const { act } of steps) {
        const call = act.kind === 'effect' && act.effect.kind === 'command' ? meowCallOf(saidIn(act.effect)) : null;
        if (call?.kind === 'await-event') this.#emittersOf(call.type);
      }
    }
  }

  /** The inputs by which the step receives the next event of the type; null if there is none yet. */
  next(state: RunState, step: StepState, type: string): readonly Input[] | null {
    const found = state.events.latest.find((event) => event.type === type && event.seq > step.eventsSeen);
    const receive = (event: number): Input => ({ kind: 'event-received', step: step.id, event, asking: null });
    if (found !== undefined) return [receive(found.seq)];
    const emitter = this.#startedEmitter(state, type);
    if (emitter === null) return null;
    const id = `${type} ${String(state.events.count + 1)}`;
    const event = { id, type, agent: null, data: {} };
    return [{ kind: 'event-emitted', event }, receive(state.events.count + 1)];
  }

  /** Names of the emitters that have started, for the types that somebody waits for. */
  started(state: RunState): string {
    const found: string[] = [];
    for (const [type, emitters] of this.#emitters)
      if (emitters.size > 0 && this.#startedEmitter(state, type) !== null) found.push(type);
    return found.join(' ');
  }

  #startedEmitter(state: RunState, type: string): StepState | null {
    const emitters = this.#emittersOf(type);
    if (emitters.size === 0) return null;
    for (const step of state.steps.values()) if (step.startedAt !== null && emitters.has(step.definition)) return step;
    return null;
  }

  #emittersOf(type: string): ReadonlySet<Step> {
    const known = this.#emitters.get(type);
    if (known !== undefined) return known;
    const steps = Object.values(this.#program.blocks).flatMap((block) => block.steps);
    const found = new Set(steps.filter(({ act }) => act.kind === 'effect' && mentions(act.effect, type)));
    this.#emitters.set(type, found);
    return found;
  }
}

function mentions(effect: EffectSpec<Text>, type: string): boolean {
  const said = saidIn(effect);
  const call = effect.kind === 'command' ? meowCallOf(said) : null;
  if (call !== null || !/\bmeow\s+event\b/.test(said)) return false;
  return said.split(/[^\w.:-]+/).includes(type);
}
