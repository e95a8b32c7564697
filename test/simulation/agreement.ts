// Runs of a Program in which everything happens by chance, or as on a path that `meow prove` found. What can happen is
// written here anew, so that the two can disagree.

import { type CommandSpec, type Outcome, success } from '../../src/ir/effect.ts';
import { failure, type FailureKind } from '../../src/ir/failure.ts';
import { meowCallOf } from '../../src/ir/meow-call.ts';
import { type Program, UNLIMITED } from '../../src/ir/program.ts';
import type { FilledText } from '../../src/ir/text.ts';
import { oneOf, type Random } from '../../src/base/random.ts';
import { decide } from '../../src/kernel/decide.ts';
import { gateRequestOf } from '../../src/kernel/gates.ts';
import type { Input } from '../../src/kernel/input.ts';
import { pendingEffects } from '../../src/kernel/pending-effects.ts';
import { CLEANUP_STEP, initialState, type RunState, type StepState } from '../../src/kernel/state.ts';

type Choice = readonly Input[];

/** A run that has ended, or that waits forever. */
export function walk(program: Program, random: Random): RunState {
  const state = started(program);
  while (state.phase !== 'ended') {
    const { usual, rare } = choicesIn(state);
    const all = rare.length > 0 && (usual.length === 0 || random() < 0.2) ? rare : usual;
    if (all.length === 0) return state;
    for (const input of oneOf(random, oneOf(random, all))) happen(state, input);
  }
  return state;
}

/** The run that the inputs of a path lead to; a text if one of them cannot happen. */
export function follow(program: Program, path: readonly Choice[]): RunState | string {
  const state = started(program);
  askGates(state);
  const parts = path.flatMap((move) => (TOGETHER.has(move[0]?.kind) ? [move] : move.map((input) => [input])));
  for (const part of parts) {
    if (part.length === 0) continue;
    const { usual, rare } = choicesIn(state);
    const wanted = part.map(essence).join(', ');
    const isOffered = [...usual, ...rare].flat().some((choice) => choice.map(essence).join(', ') === wanted);
    if (!isOffered) return `${wanted} cannot happen`;
    for (const input of part) happen(state, input);
    askGates(state);
  }
  for (let count = 0; state.end !== null && state.phase !== 'ended' && count < ENDING_MAX; count++) {
    const drain = state.timers.has('drain') ? [{ kind: 'deadline-passed', timer: 'drain' } as const] : [];
    const [next] = [
      ...drain,
      ...pendingEffects(state).map(({ id, spec, step }) => finish(id, stoppedOr(spec.kind, step))),
    ];
    if (next === undefined) break;
    happen(state, next);
  }
  return state;
}

const ENDING_MAX = 1_000;
/** The command ends with them. After others time may pass. */
const TOGETHER: ReadonlySet<Input['kind'] | undefined> = new Set([
  'event-emitted',
  'event-received',
  'gate-expired',
] as const);

function stoppedOr(kind: string, step: string): Outcome {
  return step === CLEANUP_STEP || kind === 'kill' || kind === 'attend' ? success() : failed('stopped');
}

function started(program: Program): RunState {
  const state = initialState(program);
  const request = { id: 'wf', mark: '', variables: {}, meta: {}, cwd: '.', allowOutside: false, allowance: UNLIMITED };
  decide(state, { kind: 'run-requested', request, programHash: '' }, 1_000);
  return state;
}

function happen(state: RunState, input: Input): void {
  const due = input.kind === 'deadline-passed' ? (state.timers.get(input.timer)?.at ?? 0) : 0;
  decide(state, input, Math.max((state.recordedAt ?? 0) + 1, due));
}

/** A command asks for its gate at once. */
function askGates(state: RunState): void {
  const { usual } = choicesIn(state);
  for (const input of usual.flat(2)) if (input.kind === 'gate-asked') happen(state, input);
}

/** What tells one input from another, without texts and values that no Program reads. */
function essence(input: Input): string {
  switch (input.kind) {
    case 'effect-finished': {
      const { outcome, effect } = input;
      if (outcome.kind === 'failure') return `${effect} fails`;
      const { items, said } = outcome.outputs;
      return `${effect} ${String(outcome.route)} ${JSON.stringify(Array.isArray(items) ? items.length : null)} ${String(said === 'true' || said === true)}`;
    }
    case 'gate-decided':
      return `${input.gate} ${String(input.verdict.approved)}`;
    case 'step-reported':
      return `${input.step} reports`;
    case 'event-emitted':
      return `${input.event.type} emitted`;
    default:
      return JSON.stringify({ ...input, asking: null });
  }
}

/** For each thing that can happen its alternatives. `rare`: what happens late. */
function choicesIn(state: RunState): Readonly<Record<'usual' | 'rare', readonly (readonly Choice[])[]>> {
  const usual: (readonly Choice[])[] = [];
  const rare: (readonly Choice[])[] = [...state.timers.keys()].map((timer) => [[{ kind: 'deadline-passed', timer }]]);
  for (const { id, step, spec } of pendingEffects(state)) {
    const running = state.steps.get(step);
    const ends = (...outcomes: readonly Outcome[]): readonly Choice[] =>
      outcomes.map((outcome) => [finish(id, outcome)]);
    if ((running?.stopping ?? null) !== null) usual.push(ends(failed('stopped')));
    else if (step === CLEANUP_STEP || spec.kind === 'kill') usual.push(ends(success()));
    else if (spec.kind === 'attend') {
      if ((state.agents.get(spec.agent)?.busy ?? null) !== null) rare.push(ends(failed('agent-crashed')));
    } else if (spec.kind === 'prompt') {
      if (spec.mode === 'fire-forget') usual.push(ends(success(), success(), failed('not-delivered')));
      else if (running?.status === 'completing') usual.push(ends(success()));
      else {
        const report = (said: string): Choice => [
          { kind: 'step-reported', step, outputs: { said }, notes: null, message: null },
        ];
        usual.push([report(step), report('true')]);
      }
    } else if (spec.kind === 'read') {
      usual.push(ends(...[[], [0], [0, 1]].map((items) => success({ items })), failed('not-started')));
    } else if (spec.kind === 'command') {
      const call = running === undefined ? null : callChoices(state, id, running, spec);
      usual.push(...(call?.usual ?? [ends(...commandOutcomes(spec))]));
      rare.push(...(call?.rare ?? []));
    } else if (spec.kind === 'turn') {
      usual.push(ends(success({ said: 'x' }), success({ said: 'true' }), failed('agent-crashed')));
    } else {
      usual.push(
        ends(success(), success(), success(), failed(spec.kind === 'spawn' ? 'spawn-failed' : 'exit-nonzero')),
      );
    }
  }
  for (const { effect } of state.inFlight.values())
    if (effect?.kind === 'gate' && typeof effect.gate === 'string' && state.end === null)
      usual.push(decisions(effect.gate));
  return { usual: usual.filter((all) => all.length > 0), rare };
}

function commandOutcomes({ verdict }: CommandSpec<FilledText>): readonly Outcome[] {
  if (verdict === 'condition')
    return [
      ...['true', 'false'].flatMap((route) => [success({}, { route }), success({ said: 'true' }, { route })]),
      failed('condition-error'),
    ];
  return [success({ said: 'x' }), success({ said: 'true' }), failed('exit-nonzero')];
}

/** Null if the command is not a call of `meow`. */
function callChoices(
  state: RunState,
  id: string,
  step: StepState,
  { script }: CommandSpec<FilledText>,
): Readonly<Record<'usual' | 'rare', readonly (readonly Choice[])[]>> | null {
  const call = typeof script === 'string' ? meowCallOf(script) : null;
  // What it prints may be true.
  const outcomes = (code: number): readonly Outcome[] =>
    code === 0 ? [success(), success({ said: 'true' })] : [failed('exit-nonzero', code)];
  const exit = (code: number, ...before: readonly Input[]): readonly Choice[] =>
    outcomes(code).map((outcome) => [...before, finish(id, outcome)]);
  if (call === null || call.kind === 'step-status') return null;
  if (call.kind === 'event') {
    const event = { id: `${call.type} ${id}`, type: call.type, agent: null, data: {} };
    return { usual: [exit(0, { kind: 'event-emitted', event })], rare: [] };
  }
  if (call.kind === 'await-event') {
    const event = state.events.latest.find(({ type, seq }) => type === call.type && seq > step.eventsSeen)?.seq;
    const receive = event === undefined ? [] : exit(0, { kind: 'event-received', step: step.id, event, asking: null });
    return { usual: [receive], rare: call.expires ? [exit(1)] : [] };
  }
  if (step.gate === null) {
    const ask: Input = { kind: 'gate-asked', gate: call.gate, step: step.id, prompt: null };
    return { usual: state.end === null ? [[[ask]]] : [], rare: [] };
  }
  const verdict = gateRequestOf(state, step, call.gate)?.verdict ?? null;
  if (verdict !== null) return { usual: [exit(verdict.approved ? 0 : 1)], rare: [] };
  const expiry: Input = { kind: 'gate-expired', gate: call.gate, step: step.id };
  return { usual: [decisions(call.gate)], rare: call.expires ? [exit(3, expiry)] : [] };
}

function decisions(gate: string): readonly Choice[] {
  return [true, false].map((approved) => {
    const verdict = { approved, by: 'ann', notes: null, answer: null };
    return [{ kind: 'gate-decided', gate, verdict, message: null }];
  });
}

function finish(effect: string, outcome: Outcome): Input {
  return { kind: 'effect-finished', effect, outcome };
}

function failed(kind: FailureKind, code: number | null = null): Outcome {
  return { kind: 'failure', failure: failure(kind, kind, { code }) };
}
