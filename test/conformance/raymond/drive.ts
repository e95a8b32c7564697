// Runs a compiled workflow through the kernel, with answers that are parsed as drivers parse them. The lines show the
// session of each turn, its prompt, and its result.
//
//   const { lines, state } = drive(program, { 'main.1.START': '<goto>B.md</goto>', 'main.*.B': '<result>x</result>' });

import { present } from '../../../src/base/errors.ts';
import type { JsonMap } from '../../../src/base/json.ts';
import { segmentMatcher } from '../../../src/base/names.ts';
import { laneContextOf, readTransitions } from '../../../src/ir/answer-transitions.ts';
import { type Effect, type Outcome, type Session, success } from '../../../src/ir/effect.ts';
import { failure } from '../../../src/ir/failure.ts';
import { type Program, UNLIMITED } from '../../../src/ir/program.ts';
import { decide } from '../../../src/kernel/decide.ts';
import type { Input } from '../../../src/kernel/input.ts';
import { requestsOf } from '../../../src/kernel/pending-effects.ts';
import { initialState, type RunState } from '../../../src/kernel/state.ts';

export interface Driven {
  /** One line for each turn, script and printed message. */
  readonly lines: readonly string[];
  /** The effects, by id. */
  readonly asked: ReadonlyMap<string, Effect>;
  readonly state: RunState;
  /** Continues with an input of another kind: an answer, or the passing of time. */
  readonly hear: (input: Input, at?: number) => void;
}

/** By the ids of steps, with `*` for any part; a list has one for each attempt. */
export type Answers = Readonly<Record<string, string | readonly string[]>>;

export function drive(program: Program, answers: Answers, variables: JsonMap = {}): Driven {
  const state = initialState(program);
  const lines: string[] = [];
  const asked = new Map<string, Effect>();
  const owed: Effect[] = [];
  let sessions = 0;
  const nextSession = (session: Session): string => (session.kind === 'resume' ? session.id : `s${String(++sessions)}`);

  const take = (input: Input, at: number): void => {
    for (const decision of decide(state, input, at)) {
      if (decision.kind === 'warned') lines.push(`warned: ${decision.message}`);
      if (decision.kind === 'step-failed') lines.push(`${decision.step} failed: ${decision.failure.message}`);
      if (decision.kind === 'gate-asked') lines.push(`${decision.gate} asks: ${String(decision.prompt)}`);
      for (const request of requestsOf(state, decision)) if (request.kind === 'start') owed.push(request.effect);
    }
  };

  const answer = (effect: Effect): Outcome => {
    const { spec, step, attempt } = effect;
    const found = Object.entries(answers).find(([pattern]) => segmentMatcher(pattern)(step))?.[1];
    const text = typeof found === 'string' ? found : found?.[attempt - 1];
    if (text === undefined)
      return { kind: 'failure', failure: failure('exit-nonzero', 'there is no answer for this step') };
    const steering = present(program.steerings[(spec as { readonly steering?: string }).steering ?? ''], 'not steered');
    const machine = present(program.machines[steering.machine], 'no machine');
    const session = spec.kind === 'turn' ? nextSession(effect.session) : null;
    const how = effect.session.kind === 'fresh' ? 'fresh' : `${effect.session.kind} ${effect.session.id}`;
    const cwd = 'cwd' in spec && typeof spec.cwd === 'string' && spec.cwd !== '' ? ` in ${spec.cwd}` : '';
    const what = session === null ? 'runs' : `${how} → ${session}`;
    const steered = readTransitions(steering, machine, laneContextOf(effect), text);
    lines.push(`${step}${attempt > 1 ? `#${String(attempt)}` : ''} ${what}${cwd}`);
    if (steered.kind === 'refused') {
      const more = { session, reprompt: spec.kind === 'turn' ? steered.reminder : null };
      return { kind: 'failure', failure: failure('protocol', steered.message, more) };
    }
    for (const printed of steered.printed) lines.push(`${step} prints: ${printed}`);
    return success({}, { follows: steered.follows, session });
  };

  const settle = (at: number): void => {
    for (let effect = owed.shift(); effect !== undefined; effect = owed.shift()) {
      asked.set(effect.id, effect);
      take({ kind: 'effect-finished', effect: effect.id, outcome: answer(effect) }, at);
      for (const { id, at: due } of state.timers.values()) {
        if (due <= at) take({ kind: 'deadline-passed', timer: id }, at);
      }
    }
  };

  const hear = (input: Input, at = 0): void => {
    take(input, at);
    settle(at);
  };
  const defaults = present(program.blocks[program.entry], 'no entry').parameters.flatMap(({ name, fallback }) =>
    fallback?.kind === 'literal' ? [[name, fallback.value] as const] : [],
  );
  hear({
    kind: 'run-requested',
    request: {
      id: 'wf-1',
      mark: 'm',
      variables: { ...Object.fromEntries(defaults), ...variables },
      meta: {},
      cwd: '/project',
      allowOutside: false,
      allowance: UNLIMITED,
    },
    programHash: 'hash',
  });
  return { lines, asked, state, hear };
}

/** The prompt or the script of an effect. */
export function toldTo({ asked }: Driven, effect: string): string {
  const { spec } = present(asked.get(effect), `nobody asked for ${effect}`);
  const text = spec.kind === 'turn' ? spec.prompt : spec.kind === 'command' ? spec.script : '';
  return typeof text === 'string' ? text : text.map((piece) => (typeof piece === 'string' ? piece : '…')).join('');
}
