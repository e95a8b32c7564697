// What follows from each answer to a gate, read from the Program, so that a person knows what a decision starts or ends. It is
// what would follow now if nothing else happened: other steps may still finish, fail or ask. Data only.

import { own } from '../base/json.ts';
import type { FailureKind } from '../ir/failure.ts';
import type { Block } from '../ir/program.ts';
import { plainText, type Text } from '../ir/text.ts';
import type { Target, Transition } from '../ir/transition.ts';
import { failsWithChildren } from '../kernel/ending.ts';
import { retryDelay } from '../kernel/retry.ts';
import { failsOwner, frameAround, isFinished, type RunState, type StepState, stepOf } from '../kernel/state.ts';
import { undecidedRequests } from '../kernel/state.ts';
import { entrySteps } from './entry-steps.ts';
import { openGates } from './status.ts';

export interface GateConsequences {
  /** Of a question: if it is answered. */
  readonly approve: readonly Consequence[];
  readonly reject: readonly Consequence[];
}

export type Consequence = Readonly<
  /** These start next: steps of the run, or those that a block or a state begins with. */
  | ({ kind: 'runs' } & Listed)
  /** It continues: the command that asked, or the agent, which is told yes or no. */
  | { kind: 'continues'; step: string; agent: string | null; allowed: boolean }
  /** `handled`: the workflow continues after that. */
  | { kind: 'fails'; step: string; handled: boolean }
  | { kind: 'retries'; step: string }
  | ({ kind: 'skips' } & Listed)
  | { kind: 'ends'; verdict: 'done' | 'failed'; reason: string | null }
>;

/** At most `LISTED_MAX` ids; `count`: of all. */
interface Listed {
  readonly steps: readonly string[];
  readonly count: number;
}

const LISTED_MAX = 20;

/** Null if the gate is not open. */
export function gateConsequences(state: RunState, gate: string): GateConsequences | null {
  const shown = openGates(state).find(({ id }) => id === gate);
  const found = state.gates.get(gate);
  if (shown === undefined || found === undefined) return null;
  const steps = [...undecidedRequests(state, found)].map(([step]) => step).filter((step) => !isFinished(step));
  const after = (approved: boolean): readonly Consequence[] =>
    merged(
      steps.flatMap((step) =>
        shown.kind === 'dialog'
          ? [{ kind: 'continues', step: step.id, agent: step.agent, allowed: approved } as const]
          : afterVerdict(state, step, approved),
      ),
    );
  return { approve: after(true), reject: after(false) };
}

function afterVerdict(state: RunState, step: StepState, approved: boolean): readonly Consequence[] {
  const { act } = step.definition;
  if (act.kind === 'effect' && act.effect.kind === 'gate') {
    if (!act.effect.blocks) return [];
    return afterSuccess(state, step, approved ? 'approved' : 'rejected');
  }
  // `meow await-approval` exits with 0 or 1, and the rest of the script decides what that means.
  const isCommand = act.kind === 'effect' && act.effect.kind === 'command';
  if (!isCommand) return [{ kind: 'continues', step: step.id, agent: step.agent, allowed: approved }];
  if (act.effect.verdict === 'condition') return afterSuccess(state, step, approved ? 'true' : 'false');
  return approved ? afterSuccess(state, step, 'done') : afterFailure(state, step, 'exit-nonzero');
}

function afterSuccess(state: RunState, step: StepState, route: string): readonly Consequence[] {
  const routed = own(step.definition.routes, route);
  if (routed === undefined) {
    return step.definition.unrouted === 'done' ? afterMet(state, step) : afterFailure(state, step, 'unrouted');
  }
  return afterTransition(state, step, routed);
}

function afterTransition(state: RunState, step: StepState, routed: Transition): readonly Consequence[] {
  switch (routed.kind) {
    case 'end':
      return afterMet(state, step);
    case 'expand': {
      const first = blockStart(state, step, routed.target, `${step.id}.`);
      if (first.length === 0) return afterMet(state, step);
      return [runs(first), ...(routed.join === 'inline' ? afterMet(state, step) : [])];
    }
    case 'goto':
    case 'call':
    case 'fork':
      return [runs(blockStart(state, step, routed.target, step.frame.prefix))];
    case 'return':
      return step.frame.returnTo === null
        ? afterMet(state, step)
        : [runs(blockStart(state, step, step.frame.returnTo, step.frame.prefix))];
    case 'fail':
      return settledAsFailed(state, step);
    case 'reject':
      return afterFailure(state, step, 'gate-rejected');
    case 'stop':
      return [{ kind: 'ends', verdict: routed.verdict, reason: routed.reason }];
  }
}

/** The step is done, or the workflow continues after its failure. */
function afterMet(state: RunState, step: StepState): readonly Consequence[] {
  const ready = step.waiters.filter(({ status, unmet }) => status === 'pending' && unmet === 1);
  if (ready.length > 0) return [runs(ready.map(({ id }) => id))];
  const { frame } = step;
  if (frame.open > 1) return [];
  const around = frameAround(state, frame);
  if (frame.caller !== null) {
    return frame.returnTo === null ? [] : [runs(blockStart(state, step, frame.returnTo, frame.prefix))];
  }
  if (frame.owner === null || around === null) return state.openFrames > 1 ? [] : [end('done')];
  // The last step below another one: that one is done as well.
  return frame.join === 'recover' || frame.join === 'check' ? [] : afterMet(state, stepOf(state, frame.owner));
}

function afterFailure(state: RunState, step: StepState, kind: FailureKind): readonly Consequence[] {
  if (retryDelay(step, kind) !== null) return [{ kind: 'retries', step: step.id }];
  const routed = own(step.definition.routes, kind);
  return routed === undefined ? settledAsFailed(state, step) : handled(step, afterTransition(state, step, routed));
}

function settledAsFailed(state: RunState, step: StepState): readonly Consequence[] {
  const { onError } = step.definition;
  if (onError.kind === 'continue') return handled(step, afterMet(state, step));
  if (onError.kind === 'recover' && step.frame.recoveryDepth < state.limits.recoveryDepthMax) {
    return handled(step, [runs(blockStart(state, step, onError.target, `${step.id}.`))]);
  }
  return [{ kind: 'fails', step: step.id, handled: false }, ...afterFailedFrame(state, step)];
}

function handled(step: StepState, then: readonly Consequence[]): readonly Consequence[] {
  return [{ kind: 'fails', step: step.id, handled: true }, ...then];
}

/** Nobody handles the failure where it happened. */
function afterFailedFrame(state: RunState, step: StepState): readonly Consequence[] {
  const { frame } = step;
  const pending = (steps: Iterable<StepState>): readonly StepState[] =>
    [...steps].filter(({ status, frame: { isInner } }) => status === 'pending' && !isInner);
  const skips = (steps: readonly StepState[]): readonly Consequence[] =>
    steps.length === 0 ? [] : [{ kind: 'skips', ...listed(steps.map(({ id }) => id)) }];
  if (frame.owner === null) {
    const isWholeRun = frame.caller === null && state.program.onFailure === 'drain';
    return isWholeRun ? [...skips(pending(state.steps.values())), end('failed')] : skips(pending(frame.steps));
  }
  const owner = stepOf(state, frame.owner);
  const beside = skips(pending(frame.steps));
  if (!failsOwner(frame) || owner.definition.act.kind === 'each') return beside;
  return [
    ...beside,
    ...(failsWithChildren(owner) ? settledAsFailed(state, owner) : afterFailure(state, owner, 'child-failed')),
  ];
}

/** How a block begins; ids of steps as they would be below `prefix`, or names of states and opcodes. */
function blockStart(state: RunState, step: StepState, target: Target, prefix: string): readonly string[] {
  const name = blockName(step, target);
  const block = name === null ? undefined : own<Block>(state.program.blocks, name);
  if (name === null || block === undefined) return ['the next state'];
  if (block.naming === 'path') return entrySteps(block).map(({ id }) => `${prefix}${id}`);
  for (const { states } of Object.values(state.program.machines)) {
    const found = Object.entries(states).find(([, entered]) => entered === name);
    if (found !== undefined) return [found[0]];
  }
  return entrySteps(block).map(({ id }) => id);
}

/** Null if only the answer tells. */
function blockName({ frame }: StepState, { block, names }: Target): string | null {
  if (typeof block === 'string') return block;
  const filled = fill(block, frame.visibleVariables);
  return filled === null ? null : (own(names, filled) ?? null);
}

function fill(text: Exclude<Text, string>, variables: Readonly<Record<string, unknown>>): string | null {
  let filled = '';
  for (const part of text.parts) {
    if (typeof part === 'string') {
      filled += part;
      continue;
    }
    const [name = '', ...rest] = part.path;
    const value = own(variables, name);
    if (rest.length > 0 || (typeof value !== 'string' && typeof value !== 'number')) return null;
    filled += plainText(value);
  }
  return filled;
}

function runs(steps: readonly string[]): Consequence {
  return { kind: 'runs', ...listed(steps) };
}

function end(verdict: 'done' | 'failed'): Consequence {
  return { kind: 'ends', verdict, reason: null };
}

function listed(steps: readonly string[]): Listed {
  return { steps: steps.slice(0, LISTED_MAX), count: steps.length };
}

/** Several steps may wait for one gate. */
function merged(all: readonly Consequence[]): readonly Consequence[] {
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
}
