// What is observed while the kernel decides: the steps that started and ended, their cost, and the facts that claims are
// about.
//
// watch/1  A fact is remembered in the state if a claim needs it: a step was done, a gate was approved, a step started.
// watch/2  A decision hides if a claim could no longer be broken after it, or if less runs at once than before. Such a
//          decision may not be explored before the others: see reduction.ts.

import { errorType } from '../ir/failure.ts';
import type { Claim } from '../ir/claim.ts';
import type { Step } from '../ir/program.ts';
import { verdictFor } from '../kernel/gates.ts';
import type { Decision } from '../kernel/decision.ts';
import { type RunState, type StepState, stepOf } from '../kernel/state.ts';
import { outcomeOf } from '../view/visits.ts';
import { textOf } from './causes.ts';
import type { Names } from './names.ts';

export interface EndedStep {
  readonly step: string;
  readonly outcome: string;
}

/** What happened during one move. */
export interface Observed {
  readonly ended: EndedStep[];
  /** `step: route` of branches that were taken. */
  readonly routes: string[];
  /** Names of steps, each as often as it started. */
  readonly started: string[];
  readonly definitions: Step[];
  readonly skipped: string[];
  /** Adapters of the prompts and turns that started. */
  readonly turns: string[];
  commands: number;
  /** One character for each claim. */
  facts: string;
  /** Indexes of claims. */
  readonly broken: Set<number>;
  hides: boolean;
  /** When the last input of the move itself arrived. */
  at: number | null;
}

export class Watch {
  readonly #names: Names;
  readonly #claims: readonly Claim[];

  constructor(names: Names, claims: readonly Claim[]) {
    this.#names = names;
    this.#claims = claims;
  }

  begin(facts: string): Observed {
    return {
      ended: [],
      routes: [],
      started: [],
      definitions: [],
      skipped: [],
      turns: [],
      commands: 0,
      facts,
      broken: new Set(),
      hides: false,
      at: null,
    };
  }

  initialFacts(): string {
    return this.#claims.map(() => '0').join('');
  }

  /** After a decision of the kernel; the state contains it already. */
  see(state: RunState, decision: Decision, observed: Observed): void {
    switch (decision.kind) {
      case 'step-started':
        return this.#started(state, stepOf(state, decision.step), decision, observed);
      case 'step-done':
      case 'step-failed':
        return this.#ended(state, stepOf(state, decision.step), decision, observed);
      case 'step-answered': {
        const step = stepOf(state, decision.step);
        if (decision.route !== null && !step.frame.isInner)
          observed.routes.push(`${this.#names.of(state, step)}: ${decision.route}`);
        return;
      }
      case 'steps-skipped':
        observed.skipped.push(...decision.steps);
        return;
      case 'gate-decided':
        if (decision.verdict.approved)
          this.#learn(observed, (claim) => claim.kind === 'never' && claim.unlessGate === decision.gate);
        return;
      case 'agent-closed':
        observed.hides = true;
        return;
      case 'frame-closed':
        // A state that another one replaces leaves as many lanes as before.
        if (isEnded(state, decision.frame)) observed.hides = true;
        return;
      default:
        return;
    }
  }

  /** After all decisions of an input. */
  seeState(state: RunState, observed: Observed): void {
    if (this.#claims.length === 0) return;
    for (const [index, claim] of this.#claims.entries()) {
      if (claim.kind !== 'alone') continue;
      let running = 0;
      for (const step of state.steps.values())
        if (isAtWork(step) && this.#names.matches(claim.step, state, step)) running += 1;
      if (running > 1) observed.broken.add(index);
    }
  }

  /** The run has ended. A paused one continues when somebody resumes it, and breaks no claim by that. */
  seeEnd(state: RunState, observed: Observed): void {
    if (state.end === 'paused') return;
    for (const [index, claim] of this.#claims.entries()) {
      const isMeant = claim.kind === 'always' && (claim.when === 'any' || claim.when === state.end);
      if (isMeant && observed.facts[index] === '0') observed.broken.add(index);
      if (claim.kind === 'cleaned' && state.end === 'done' && hasAgents(state)) observed.broken.add(index);
    }
  }

  #started(
    state: RunState,
    step: StepState,
    { effect }: Extract<Decision, { kind: 'step-started' }>,
    observed: Observed,
  ): void {
    observed.definitions.push(step.definition);
    if (effect?.kind === 'command') observed.commands += 1;
    if (effect?.kind === 'turn') observed.turns.push(textOf(effect.adapter));
    if (effect?.kind === 'prompt') observed.turns.push(state.agents.get(step.agent ?? '')?.info?.adapter ?? '');
    if (step.frame.isInner) return;
    if (step.attempt === 1) observed.started.push(this.#names.of(state, step));
    if (this.#claims.length === 0) return;
    for (const [index, claim] of this.#claims.entries()) {
      if (claim.kind !== 'never' || observed.facts[index] !== '0') continue;
      if (this.#names.matches(claim.step, state, step)) observed.broken.add(index);
    }
    this.#learn(observed, (claim) => claim.kind === 'always' && this.#names.matches(claim.step, state, step));
  }

  #ended(
    state: RunState,
    step: StepState,
    decision: Extract<Decision, { kind: 'step-done' | 'step-failed' }>,
    observed: Observed,
  ): void {
    if (step.frame.isInner) return;
    const isDone = decision.kind === 'step-done';
    const outcome = isDone ? doneWord(state, step) : (outcomeOf(step) ?? errorType(decision.failure.kind));
    observed.ended.push({ step: this.#names.of(state, step), outcome });
    if (this.#claims.length === 0) return;
    const matches = (pattern: string): boolean => this.#names.matches(pattern, state, step);
    if (isDone)
      this.#learn(observed, (claim) => claim.kind === 'never' && claim.unless !== null && matches(claim.unless));
    if (this.#claims.some((claim) => claim.kind === 'alone' && matches(claim.step))) observed.hides = true;
  }

  /** From now on the fact of these claims is known, which hides their breach. */
  #learn(observed: Observed, of: (claim: Claim) => boolean): void {
    const facts = Array.from(observed.facts, (fact, index) => {
      const claim = this.#claims[index];
      return fact === '0' && claim !== undefined && of(claim) ? '1' : fact;
    });
    const learned = facts.join('');
    if (learned !== observed.facts) observed.hides = true;
    observed.facts = learned;
  }
}

function isAtWork({ status, frame }: StepState): boolean {
  return (status === 'running' || status === 'completing') && !frame.isInner;
}

/** Whether the lane of a frame has ended. Only a state machine has lanes that count. */
function isEnded(state: RunState, frame: string): boolean {
  if (Object.keys(state.program.machines).length === 0) return false;
  const lane = state.lanes.get(state.frames.get(frame)?.lane ?? '');
  return lane?.frame?.closed !== false;
}

function hasAgents(state: RunState): boolean {
  for (const { status } of state.agents.values()) if (status === 'active' || status === 'opening') return true;
  return false;
}

function doneWord(state: RunState, step: StepState): string {
  const visited = outcomeOf(step);
  if (visited !== null) return visited;
  const verdict = verdictFor(state, step);
  if (verdict !== null && step.definition.act.kind === 'effect') return verdict.approved ? 'approved' : 'rejected';
  const { act } = step.definition;
  const isCondition = act.kind === 'effect' && act.effect.kind === 'command' && act.effect.verdict === 'condition';
  const { outcome } = step.outputs;
  return isCondition && typeof outcome === 'string' ? outcome : 'done';
}
