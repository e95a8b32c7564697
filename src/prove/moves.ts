// Everything that can happen next in a state: for each pending effect every outcome that its kind can have and that the
// workflow can distinguish.
//
// moves/1  A move is a list of inputs of the real kernel. Moves of one source exclude each other.
// moves/2  A command exits with 0 or 1, or only with 1 if its last words are `exit 1`; a condition is true, false or cannot be evaluated. One `meow` call is answered as
//          the engine would answer it.
// moves/3  An agent reports every combination of outputs, or dies; a headless one without outputs answers with a result. A turn
//          gives every answer that its state allows, or an invalid one, or none. If nothing else runs, it may also reach a
//          usage limit whose end is unknown: then the run pauses.
// moves/4  A gate is approved or rejected. What has a timeout may time out, with everything that stops it.
// moves/5  A retry, a round that waits and an agent that is started again have one move each, or two if they can fail.

import type { CommandSpec, EffectSpec, Outcome, PromptSpec, TurnSpec } from '../ir/effect.ts';
import { success } from '../ir/effect.ts';
import { failure, type FailureKind } from '../ir/failure.ts';
import { type MeowCall, meowCallOf } from '../ir/meow-call.ts';
import type { Outputs } from '../ir/output.ts';
import type { Program } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import { EXPIRED_EXIT_CODE, gateRequestOf } from '../kernel/gates.ts';
import type { Input } from '../kernel/input.ts';
import { findStep } from '../kernel/scope.ts';
import { agentEffectId, effectId, type RunState, type StepState, timeoutTimer } from '../kernel/state.ts';
import { visitKind } from '../view/visits.ts';
import { Answers } from './answers.ts';
import type { Cause, Caused } from './causes.ts';
import {
  beyondTests,
  caused,
  deciderOf,
  GOES_ON,
  hanging,
  invalidAnswer,
  textOf,
  verdictOf,
  written,
} from './causes.ts';
import { conductedCause, conductedOutcomes } from './conducted.ts';
import { Events } from './events.ts';
import { alwaysFails } from './exit-codes.ts';
import { saidIn } from './footprint.ts';
import type { DeclaredOutput, Values } from './values.ts';

export interface Move {
  readonly inputs: readonly Input[];
  /** What the world did, for a story and a test. */
  readonly cause: Cause;
  /** It may end the run at once. */
  readonly mayEnd: boolean;
  /** It cannot happen earlier on the logical clock. A deadline is due without that. */
  readonly notBefore?: number;
}

/** `step`: null if the source is not a step. */
export interface Source {
  readonly id: string;
  readonly step: StepState | null;
  readonly moves: readonly Move[];
}

export class Moves {
  readonly #values: Values;
  readonly #answers: Answers;
  readonly #events: Events;
  /** By script. */
  readonly #calls = new Map<string, MeowCall | null>();
  /** Moves of pending effects, which are the same object in all copies of a state. */
  readonly #constant = new WeakMap<EffectSpec<FilledText>, { readonly id: string; readonly moves: readonly Move[] }>();

  constructor(program: Program, values: Values, scripts: ReadonlyMap<string, string>) {
    this.#values = values;
    this.#answers = new Answers(program, scripts);
    this.#events = new Events(program);
  }

  sources(state: RunState): readonly Source[] {
    if (state.end !== null) return this.#whileEnding(state);
    const ofSteps = [...state.inFlight].map(([id, step]) => ({ id, step, moves: this.#ofStep(state, id, step) }));
    const ofAgents = [...state.agents.values()].flatMap((agent): Source[] => {
      const id = agent.status === 'opening' ? agentEffectId(agent) : null;
      return id === null ? [] : [{ id, step: null, moves: restartMoves(id, agent.name) }];
    });
    const ofTimers = [...state.timers.values()].flatMap((timer): Source[] => {
      if (timer.kind !== 'retry' && timer.kind !== 'round') return [];
      const moves = [move([{ kind: 'deadline-passed', timer: timer.id }], GOES_ON, false)];
      return [{ id: timer.id, step: state.steps.get(timer.step) ?? null, moves }];
    });
    return [...ofSteps, ...ofAgents, ...ofTimers];
  }

  /** Running steps may still fail, or all are stopped. */
  #whileEnding(state: RunState): readonly Source[] {
    const failing = [...state.inFlight].map(([id, step]) => {
      const moves = this.#ofStep(state, id, step).filter(({ mayEnd, cause }) => mayEnd && cause.kind !== 'decides');
      return { id, step, moves };
    });
    return [...failing, { id: 'end', step: null, moves: [move([], GOES_ON, true)] }];
  }

  /** Inputs that follow at once, because nothing else can happen to the effect: a command asks for its gate. */
  prompt(state: RunState): Input | null {
    for (const [id, step] of state.inFlight) {
      const { effect } = step;
      if (effect?.kind === 'command') {
        const call = this.#callOf(effect);
        if (call?.kind !== 'await-approval' || step.gate !== null || state.end !== null) continue;
        const approvers = call.approvers.length > 0 ? { approvers: call.approvers } : {};
        return { kind: 'gate-asked', gate: call.gate, step: step.id, prompt: call.prompt, ...approvers };
      }
      if (effect?.kind !== 'git' && effect?.kind !== 'inspect') continue;
      const [only, second] = conductedOutcomes(state, step, effect);
      if (only !== undefined && second === undefined && only.kind === 'success')
        return { kind: 'effect-finished', effect: id, outcome: only };
    }
    return null;
  }

  /** Whether an event that the step waits for may come; undefined if it waits for none. */
  mayReceive(state: RunState, step: StepState): boolean | undefined {
    const call = step.effect?.kind === 'command' ? this.#callOf(step.effect) : null;
    return call?.kind === 'await-event' ? this.#events.next(state, step, call.type) !== null : undefined;
  }

  /** Steps that may emit an event at any time, as far as they have started: part of what can still happen. */
  emitters(state: RunState): string {
    return this.#events.started(state);
  }

  /** The call of `meow` that a command consists of. */
  #callOf({ script }: CommandSpec<FilledText>): MeowCall | null {
    if (typeof script !== 'string') return null;
    const known = this.#calls.get(script);
    if (known !== undefined) return known;
    const call = meowCallOf(script);
    this.#calls.set(script, call);
    return call;
  }

  #ofStep(state: RunState, id: string, step: StepState): readonly Move[] {
    const { effect } = step;
    if (effect === null) return [];
    // A command ends in the same ways in all states in which it is pending, unless the engine answers it.
    const isConstant = effect.kind === 'command' && (effect.steering !== null || this.#callOf(effect) === null);
    if (!isConstant) return this.#movesOf(state, id, step, effect);
    const known = this.#constant.get(effect);
    if (known?.id === id) return known.moves;
    const moves = this.#movesOf(state, id, step, effect);
    this.#constant.set(effect, { id, moves });
    return moves;
  }

  #movesOf(state: RunState, id: string, step: StepState, effect: EffectSpec<FilledText>): readonly Move[] {
    const stopping = endsRun(step);
    const outcomes = [...this.#outcomes(state, id, step, effect), ...handledFailures(state, id, step, effect)];
    const moves = outcomes.map((each) => (stopping ? { ...each, mayEnd: true } : each));
    const timer = timeoutTimer(step.id, step.attempt);
    if (!state.timers.has(timer)) return moves;
    const to = caused(state, step);
    const late: Input = { kind: 'deadline-passed', timer };
    const stopped = effect.kind === 'gate' ? [] : [finished(id, failed('stopped', 'stopped'))];
    // Nobody answers a call of `meow`: no rule of a test is needed for that.
    const silent = effect.kind === 'command' && this.#callOf(effect) !== null ? GOES_ON : hanging(state, step);
    const cause: Cause = effect.kind === 'gate' ? { kind: 'expires', gate: textOf(effect.gate), ...to } : silent;
    return [...moves, move([late, ...stopped], cause, true)];
  }

  #outcomes(state: RunState, id: string, step: StepState, effect: EffectSpec<FilledText>): readonly Move[] {
    const ends = (outcome: Outcome, cause: Cause = GOES_ON): Move =>
      move([finished(id, outcome)], cause, outcome.kind === 'failure');
    switch (effect.kind) {
      case 'command':
        return this.#ofCommand(state, id, step, effect);
      case 'turn':
        return this.#ofTurn(state, id, step, effect);
      case 'prompt':
        return this.#ofPrompt(state, id, step, effect);
      case 'spawn':
        return [
          ends(success({ workdir: '.' }, { session: 'session' })),
          ends(failed('spawn-failed', 'the agent did not start'), beyondTests('an agent does not start')),
        ];
      case 'kill':
        return [ends(success())];
      case 'read': {
        const { act } = step.definition;
        const lists = this.#values.lists(act.kind === 'each' ? act.itemName : 'item');
        const read = { kind: 'reads', path: textOf(effect.path), ...caused(state, step) } as const;
        return [
          ...lists.map((items) => ends(success({ items }), { ...read, text: JSON.stringify(items) })),
          ends(failed('not-started', 'the file cannot be read'), { ...read, text: null }),
        ];
      }
      case 'git':
      case 'inspect':
        return conductedOutcomes(state, step, effect).map((outcome) =>
          ends(outcome, conductedCause(state, step, effect, outcome)),
        );
      case 'gate': {
        const gate = textOf(effect.gate);
        return [true, false].map((approved) => decided(gate, approved, effect.approvers, caused(state, step)));
      }
      case 'attend':
        return [];
      // A kind of effect that proofs do not know more about.
      default:
        return [ends(success()), ends(failed('not-started', 'the effect failed'), beyondTests('an effect fails'))];
    }
  }

  #ofCommand(state: RunState, id: string, step: StepState, spec: CommandSpec<FilledText>): readonly Move[] {
    if (spec.steering !== null) return this.#ofScript(state, id, step, spec);
    const call = this.#callOf(spec);
    if (call !== null) return this.#ofCall(state, id, step, spec, call);
    const { act } = step.definition;
    const said = act.kind === 'effect' ? saidIn(act.effect) : '';
    const exits = [...(alwaysFails(said) ? [] : [0]), 1, ...(spec.verdict === 'condition' ? [127] : [])];
    const moves = exits.flatMap((exit) =>
      this.#captured(step, spec, exit).map((outputs) => exited(state, id, step, spec, exit, outputs)),
    );
    const idle = spec.idleMs === undefined ? [] : hung(state, id, step, spec.idleMs);
    return [...moves, ...idle];
  }

  /** Values of the captured outputs, in all combinations. A failed command may have written none. */
  #captured(step: StepState, { captures }: CommandSpec<FilledText>, exit: number): readonly Outputs[] {
    const codes = captures.filter(({ from }) => from.kind === 'exit-code');
    const status = Object.fromEntries(codes.map(({ name, type }) => [name, type === 'string' ? String(exit) : exit]));
    if (exit > 1) return [status];
    const others: readonly DeclaredOutput[] = captures.filter(({ from }) => from.kind !== 'exit-code');
    if (exit === 0) return this.#reported(step, others).map((outputs) => ({ ...outputs, ...status }));
    const [first = {}] = this.#values.combinations(step.definition.id, others);
    const isHandled = step.definition.onError.kind !== 'fail' && others.length > 0;
    return [{ ...first, ...status }, ...(isHandled ? [status] : [])];
  }

  #reported({ definition: { id } }: StepState, declared: readonly DeclaredOutput[]): readonly Outputs[] {
    return this.#values.combinations(id, [...declared, ...this.#values.undeclared(id, declared)]);
  }

  /** One call of `meow` that the engine itself answers. */
  #ofCall(
    state: RunState,
    id: string,
    step: StepState,
    spec: CommandSpec<FilledText>,
    call: MeowCall,
  ): readonly Move[] {
    const exit = (code: number, before: readonly Input[] = [], cause: Cause = GOES_ON): readonly Move[] =>
      this.#captured(step, spec, code).map((captured, index) => {
        const { inputs, mayEnd } = exited(state, id, step, spec, code, captured);
        return move([...before, ...inputs], index === 0 ? cause : beyondTests('a call prints a certain text'), mayEnd);
      });
    switch (call.kind) {
      case 'await-approval':
        return gateCallMoves(state, step, call, exit);
      case 'event':
        return exit(0, [emitted(call.type, effectId(step.id, step.attempt))]);
      case 'await-event': {
        const next = this.#events.next(state, step, call.type);
        const late = call.expires ? delayed(step, call.timeoutMs, exit(1)) : [];
        const isEmitted = next?.some(({ kind }) => kind === 'event-emitted') === true;
        const cause: Cause = isEmitted ? { kind: 'emits', event: call.type, ...caused(state, step) } : GOES_ON;
        return [...(next === null ? [] : exit(0, next, cause)), ...late];
      }
      case 'step-status': {
        const status = findStep(state, call.step, step.id)?.status ?? null;
        if (status === null) return exit(2);
        return exit((call.is !== null && call.is !== status) || call.isNot === status ? 1 : 0);
      }
    }
  }

  #ofScript(state: RunState, id: string, step: StepState, spec: CommandSpec<FilledText>): readonly Move[] {
    const answers = this.#answers.of(state, step).map(({ text, follows }) => {
      const outputs = { exit_code: 0, outcome: 'true' };
      const cause: Cause = { kind: 'exit', exit: 0, stdout: text, files: {}, ...caused(state, step) };
      return move([finished(id, success(outputs, { follows }))], cause, false);
    });
    const idle = spec.idleMs === undefined ? [] : hung(state, id, step, spec.idleMs);
    return [...answers, exited(state, id, step, spec, 1, {}), ...idle];
  }

  #ofTurn(state: RunState, id: string, step: StepState, spec: TurnSpec<FilledText>): readonly Move[] {
    const session = 'session';
    const dies: Cause = { kind: 'dies', ...caused(state, step) };
    const crashed = move([finished(id, failed('agent-crashed', 'the agent exited'))], dies, true);
    const idle = spec.idleMs === null || !isRouted(step, 'idle') ? [] : hung(state, id, step, spec.idleMs);
    const mayPause = state.program.source.language !== 'meow' && state.inFlight.size === 1;
    const limited = mayPause ? [move([finished(id, LIMIT_REACHED)], PAUSES, true)] : [];
    if (spec.steering === null) {
      const cause: Cause = { kind: 'reports', outputs: {}, ...caused(state, step) };
      const done = this.#reported(step, []).map((outputs) =>
        move([finished(id, success({ result: 'result', ...outputs }, { session }))], cause, false),
      );
      return [...done, crashed, ...idle, ...limited];
    }
    const answers = this.#answers.of(state, step).map(({ text, follows }) => {
      const given = success({}, { session, follows });
      return move([finished(id, given)], { kind: 'answers', text, ...caused(state, step) }, false);
    });
    const refused = this.#answers.refusal(step);
    const invalid = refused === null ? [] : [move([finished(id, refused)], invalidAnswer(state, step), true)];
    return [...answers, ...invalid, crashed, ...idle, ...limited];
  }

  #ofPrompt(state: RunState, id: string, step: StepState, spec: PromptSpec<FilledText>): readonly Move[] {
    if (spec.mode === 'fire-forget') {
      const lost = failed('not-delivered', 'the agent did not accept the prompt');
      return [
        move([finished(id, success())], GOES_ON, false),
        move([finished(id, lost)], beyondTests('an agent does not accept a prompt'), true),
      ];
    }
    const isHeadless = state.agents.get(step.agent ?? '')?.info?.spawn.channel === 'headless';
    if (isHeadless && spec.expects.length === 0) {
      const answered = finished(id, success({ result: 'result' }));
      const dies = move([agentExit(state, id, step)], { kind: 'dies', ...caused(state, step) }, true);
      return [move([answered], { kind: 'answers', text: 'result', ...caused(state, step) }, false), dies];
    }
    const reports = this.#reported(step, spec.expects).map((outputs) => {
      const report: Input = { kind: 'step-reported', step: step.id, outputs, notes: null, message: null };
      return move([report, finished(id, success())], { kind: 'reports', outputs, ...caused(state, step) }, false);
    });
    return [...reports, move([agentExit(state, id, step)], { kind: 'dies', ...caused(state, step) }, true)];
  }
}

/** The end of the limit is unknown. */
const LIMIT_REACHED: Outcome = {
  kind: 'failure',
  failure: failure('limit-reached', 'the agent has reached a usage limit', { parks: true }),
};
const PAUSES = beyondTests('an agent reaches a usage limit');

function move(inputs: readonly Input[], cause: Cause, mayEnd: boolean): Move {
  return { inputs, cause, mayEnd };
}

export function finished(effect: string, outcome: Outcome): Input {
  return { kind: 'effect-finished', effect, outcome };
}

function failed(kind: FailureKind, message: string, outputs: Outputs = NONE, code: number | null = null): Outcome {
  if (outputs !== NONE) return { kind: 'failure', failure: failure(kind, message, { outputs, code }) };
  const key = `${kind} ${message}`;
  const known = FAILURES.get(key) ?? { kind: 'failure', failure: failure(kind, message) };
  FAILURES.set(key, known);
  return known;
}

const NONE: Outputs = {};
/** Failures without outputs. Each state has some, and they are always the same. */
const FAILURES = new Map<string, Outcome>();

/** As the driver of commands reports it. */
function exited(
  state: RunState,
  id: string,
  step: StepState,
  spec: CommandSpec<FilledText>,
  exit: number,
  captured: Outputs,
): Move {
  const outputs: Outputs = { exit_code: exit, outcome: exit === 0 ? 'true' : 'false', ...captured };
  const cause: Cause = { kind: 'exit', exit, ...written(spec, captured), ...caused(state, step) };
  const end = (outcome: Outcome): Move => move([finished(id, outcome)], cause, outcome.kind === 'failure');
  const message = `the command exited with status ${String(exit)}`;
  if (spec.verdict === 'success')
    return end(exit === 0 ? success(outputs) : failed('exit-nonzero', message, outputs, exit));
  if (exit === 127 || spec.errors.includes(exit)) return end(failed('condition-error', message, outputs, exit));
  return end(success(outputs, { route: exit === 0 ? 'true' : 'false' }));
}

function hung(state: RunState, id: string, step: StepState, idleMs: number): readonly Move[] {
  const silent = move([finished(id, failed('idle', 'it was silent for too long'))], hanging(state, step), true);
  return delayed(step, idleMs, [silent]);
}

/** The end of the agent, by which its prompt fails. */
function agentExit(state: RunState, id: string, step: StepState): Input {
  const crashed = failed('agent-crashed', 'the agent exited');
  const agent = state.agents.get(step.agent ?? '');
  const attended = agent?.status === 'active' && agent.busy === step ? agentEffectId(agent) : null;
  return finished(attended ?? id, crashed);
}

function restartMoves(id: string, agent: string): readonly Move[] {
  return [
    move([finished(id, success({ workdir: '.' }, { session: 'session' }))], GOES_ON, false),
    move(
      [finished(id, failed('spawn-failed', `agent ${agent} did not start`))],
      beyondTests('an agent does not start'),
      true,
    ),
  ];
}

function decided(gate: string, approved: boolean, approvers: readonly string[] | null, to: Caused): Move {
  const input: Input = { kind: 'gate-decided', gate, verdict: verdictOf(approved, approvers), message: null };
  return move([input], { kind: 'decides', gate, approved, by: deciderOf(approvers), ...to }, true);
}

function gateCallMoves(
  state: RunState,
  step: StepState,
  { gate, expires, approvers, timeoutMs }: Extract<MeowCall, { kind: 'await-approval' }>,
  exit: (code: number, before?: readonly Input[], cause?: Cause) => readonly Move[],
): readonly Move[] {
  const known = gateRequestOf(state, step, gate)?.verdict ?? null;
  if (known !== null) return exit(known.approved ? 0 : 1);
  const decisions = [true, false].flatMap((approved) => {
    const { inputs, cause } = decided(gate, approved, approvers.length === 0 ? null : approvers, caused(state, step));
    return exit(approved ? 0 : 1, inputs, cause);
  });
  if (!expires) return decisions;
  const late: Input = { kind: 'gate-expired', gate, step: step.id };
  const expiry = exit(EXPIRED_EXIT_CODE, [late], { kind: 'expires', gate, ...caused(state, step) });
  return [...decisions, ...delayed(step, timeoutMs, expiry)];
}

/** They happen when the time has passed since the step started. */
function delayed({ startedAt }: StepState, ms: number | null, moves: readonly Move[]): readonly Move[] {
  return moves.map((each) => ({ ...each, notBefore: (startedAt ?? 0) + (ms ?? 0) }));
}

/** `by`: id of the effect, so that the event is unique in its run. */
function emitted(type: string, by: string): Input {
  return { kind: 'event-emitted', event: { id: `${type} by ${by}`, type, agent: null, data: {} } };
}

/** Kinds of failure that an effect can have besides the usual ones. */
const FURTHER_KINDS: Readonly<Partial<Record<EffectSpec<unknown>['kind'], readonly FailureKind[]>>> = {
  command: ['signal', 'not-started', 'output-missing', 'output-invalid'],
  prompt: ['not-delivered'],
};

/** Failures that the workflow tells apart by a route or by the kinds that it retries. */
function handledFailures(
  state: RunState,
  id: string,
  step: StepState,
  { kind }: EffectSpec<FilledText>,
): readonly Move[] {
  const { routes, retry } = step.definition;
  const isOuterVisit = step.frame.isInner || visitKind(step.definition) !== null;
  const further = isOuterVisit ? [] : (FURTHER_KINDS[kind] ?? []);
  return further
    .filter((each) => Object.hasOwn(routes, each) || retry.kinds?.includes(each) === true)
    .map((each) =>
      move([finished(id, failed(each, `it failed: ${each}`))], beyondTests(`a step fails: ${each}`), true),
    );
}

/** A route of the step ends the run. */
function endsRun({ definition: { routes } }: StepState): boolean {
  return Object.values(routes).some(({ kind }) => kind === 'stop');
}

/** Whether something tells this kind of failure from others: a route of the step, or of the step that it performs. */
function isRouted(step: StepState, kind: FailureKind): boolean {
  return Object.hasOwn(step.definition.routes, kind) || step.frame.join === 'answer';
}
