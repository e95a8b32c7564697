// Answers of the states of a machine: every transition that the policy allows, or that the text shows.
//
// answers/1  An answer is a text with one tag, which the same reader reads that reads real answers.
// answers/2  Of a state with a policy: each allowed transition. What the policy leaves open is what the text shows, and if
//            it shows nothing, every state.
// answers/3  Of a state without a policy: each transition that its text shows; if it shows none, every state, and a return.

import { own } from '../base/json.ts';
import { laneContextOf, readTransitions } from '../ir/answer-transitions.ts';
import type { EffectSpec, Outcome } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { AllowedTransition, Machine, TransitionPolicy } from '../ir/machine.ts';
import { implicitTransition, TAG_RULES } from '../ir/machine.ts';
import type { Program, Step } from '../ir/program.ts';
import { refuseAnswer } from '../ir/reminder.ts';
import { allTags, type Tag, type TransitionTag } from '../ir/tags.ts';
import type { FilledText, Text } from '../ir/text.ts';
import type { Transition } from '../ir/transition.ts';
import { variablesFor } from '../kernel/scope.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { saidIn } from './footprint.ts';

export interface Answer {
  readonly text: string;
  readonly follows: readonly Transition[];
}

type Shown = Readonly<{ name: TransitionTag; content: string; attributes: Readonly<Record<string, string>> }>;

export class Answers {
  readonly #program: Program;
  readonly #scripts: ReadonlyMap<string, string>;
  readonly #texts = new Map<Step, readonly string[]>();
  readonly #refusals = new Map<Step, Outcome | null>();
  /** A pending effect is the same in all copies of its state, and so are the values that its answers need. */
  readonly #answers = new WeakMap<EffectSpec<FilledText>, readonly Answer[]>();

  /** `scripts`: contents of the files that commands execute, by command. */
  constructor(program: Program, scripts: ReadonlyMap<string, string>) {
    this.#program = program;
    this.#scripts = scripts;
  }

  of(state: RunState, step: StepState): readonly Answer[] {
    const { effect } = step;
    if (effect === null) return [];
    const known = this.#answers.get(effect) ?? this.#answersTo(state, step, effect);
    this.#answers.set(effect, known);
    return known;
  }

  #answersTo(state: RunState, step: StepState, effect: EffectSpec<FilledText>): readonly Answer[] {
    const steering = this.#steeringOf(step.definition);
    if (steering === null) return [];
    const session = step.frame.nextSession;
    const lane = laneContextOf({ variables: variablesFor(state, step), session, spec: effect });
    const found = new Map<string, Answer>();
    for (const text of this.#candidates(step.definition, steering)) {
      const read = readTransitions(steering.policy, steering.machine, lane, text);
      if (read.kind === 'follows') found.set(JSON.stringify(read.follows), { text, follows: read.follows });
    }
    return [...found.values()];
  }

  /** An answer without a valid transition: the agent is told what to answer instead. Null for scripts. */
  refusal({ definition }: StepState): Outcome | null {
    const known = this.#refusals.get(definition);
    if (known !== undefined) return known;
    const found = this.#refusalOf(definition);
    this.#refusals.set(definition, found);
    return found;
  }

  #refusalOf(definition: Step): Outcome | null {
    const steering = this.#steeringOf(definition);
    if (steering === null || steering.policy.speaker === 'script' || isCertain(steering.policy)) return null;
    const { message, reminder } = refuseAnswer(steering.policy, steering.machine, 'the answer has no transition tag');
    return { kind: 'failure', failure: failure('protocol', message, { reprompt: reminder }) };
  }

  #steeringOf({ act }: Step): Steering | null {
    const key = act.kind === 'effect' && 'steering' in act.effect ? act.effect.steering : null;
    const policy = key === null ? undefined : own(this.#program.steerings, key);
    const machine = policy === undefined ? undefined : own(this.#program.machines, policy.machine);
    return policy === undefined || machine === undefined ? null : { policy, machine };
  }

  #candidates(step: Step, steering: Steering): readonly string[] {
    const known = this.#texts.get(step);
    if (known !== undefined) return known;
    const shown = step.act.kind === 'effect' ? allTags(this.#shownIn(step.act.effect)).filter(isTransition) : [];
    const texts = [...new Set(candidates(steering, shown).map(written))];
    this.#texts.set(step, texts);
    return texts;
  }

  /** A script writes quotes inside of quotes: `echo "<goto input=\"x\">A</goto>"`. */
  #shownIn(effect: EffectSpec<Text>): string {
    const said = saidIn(effect);
    if (effect.kind !== 'command') return said;
    return (this.#scripts.get(said) ?? said).replaceAll(String.raw`\"`, '"');
  }
}

type Steering = Readonly<{ policy: TransitionPolicy; machine: Machine }>;

/** The only allowed transition is taken whatever the answer is. */
function isCertain({ allowed, forced }: TransitionPolicy): boolean {
  return forced || implicitTransition(allowed) !== null;
}

function isTransition(tag: Tag): tag is Tag & { readonly name: TransitionTag } {
  return tag.name !== 'print';
}

function candidates({ policy, machine }: Steering, shown: readonly Shown[]): readonly Shown[] {
  if (policy.allowed !== null) return policy.allowed.flatMap((allowed) => allowedAnswers(machine, allowed, shown));
  if (shown.length > 0) return shown;
  const anywhere = Object.keys(machine.states).map(
    (state): Shown => ({ name: 'goto', content: state, attributes: {} }),
  );
  return [...anywhere, { name: 'result', content: 'result', attributes: {} }];
}

/** The tag with every value of what the policy leaves open. */
function allowedAnswers(machine: Machine, allowed: AllowedTransition, shown: readonly Shown[]): readonly Shown[] {
  const { tag } = allowed;
  const similar = shown.filter(({ name }) => name === tag);
  const { target, requiredAttribute } = TAG_RULES[tag];
  const states = Object.keys(machine.states);
  const places = target === 'workflow' ? Object.keys(machine.workflows) : states;
  const open = target === 'back' ? [allowed.payload ?? (tag === 'ask' ? 'a question' : 'result')] : places;
  const contents = choices(
    target === 'back' ? null : allowed.target,
    similar.map(({ content }) => content),
    open,
  );
  const fixed = requiredAttribute === null ? null : allowed[requiredAttribute];
  const ways =
    requiredAttribute === null
      ? [undefined]
      : choices(
          fixed,
          similar.flatMap(({ attributes }) => attributes[requiredAttribute] ?? []),
          states,
        );
  return contents.flatMap((content) =>
    ways.map((way) => {
      const attributes: Record<string, string> = {};
      if (requiredAttribute !== null && way !== undefined) attributes[requiredAttribute] = way;
      return { name: tag, content, attributes };
    }),
  );
}

function choices(fixed: string | null, shown: readonly string[], all: readonly string[]): readonly string[] {
  if (fixed !== null) return [fixed];
  return shown.length > 0 ? [...new Set(shown)] : all;
}

function written({ name, content, attributes }: Shown): string {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}="${value}"`);
  const inside = content.trim() === '' ? 'text' : content.trim();
  return `<${name}${pairs.join('')}>${inside}</${name}>`;
}
