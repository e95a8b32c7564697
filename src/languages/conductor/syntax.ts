// A workflow as syntax: each step's request and routes, with the positions of everything that is checked against other
// steps.

import type { Place } from '../../base/source.ts';
import type { Witness } from '../../ir/conducted.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { STOP } from './ids.ts';
import type { OpcodeSpec } from './opcodes.ts';

export const OPCODES = ['RUN_AGENT', 'RUN_VALIDATION', 'EVALUATE', 'GATE', 'ROLLBACK', 'STOP'] as const;
export type Opcode = (typeof OPCODES)[number];

/** The parts of a step that others refer to. */
export interface Outline {
  readonly id: string;
  readonly opcode: Opcode;
  readonly map: YamlMap;
  /** Position of its id. */
  readonly place: Place;
}

export interface StepSyntax extends Outline {
  /** Null after an error was reported. */
  readonly spec: OpcodeSpec | null;
  readonly timeoutMs: number | null;
  readonly routes: readonly Route[];
  readonly allowUnreachable: boolean;
  /** Inputs of its prompt. */
  readonly inputs: readonly YamlScalar[];
  /** Of an EVALUATE: its allowed targets. */
  readonly allowedNext: readonly YamlScalar[];
  /** Of a RUN_VALIDATION: what may leave a report with new goldens. */
  readonly harness: Place | null;
  readonly gate: GateType | null;
  /** Of a STOP: null if the route decides. */
  readonly verdict: 'success' | 'failure' | null;
}

/** Defaults of optional parts. */
export const UNSAID = {
  timeoutMs: null,
  inputs: [],
  allowedNext: [],
  harness: null,
  gate: null,
  verdict: null,
} as const;

/** The parts of a step that depend on its opcode. */
export type Particulars = Pick<StepSyntax, 'spec' | keyof typeof UNSAID>;

export interface Route {
  readonly key: string;
  readonly keyPlace: Place;
  readonly to: string;
  /** Position of the target, or of the step if it is implicit. */
  readonly place: Place;
  readonly witness: Witness | null;
  /** The workflow that it enters instead of a step; `to` is then its path. */
  readonly enters: Entering | null;
}

export interface Entering {
  /** Name of its first block. */
  readonly entry: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The step to continue with when it is done; null: STOP. */
  readonly returnTo: YamlScalar | null;
}

/** The step or STOP that a route leads to, possibly after another workflow. */
export function stepAfter({ to, enters }: Pick<Route, 'to' | 'enters'>): string {
  return enters === null ? to : (enters.returnTo?.text ?? STOP);
}

/** The first two wait for a decision, the others only request one. */
export const GATE_TYPES = [
  'requires_approval',
  'blocking_approval',
  'queue_for_review',
  'requires_daily_review',
] as const;
export type GateType = (typeof GATE_TYPES)[number];

export function waits(gate: GateType | null): boolean {
  return gate === 'requires_approval' || gate === 'blocking_approval';
}

/** For messages. */
export function named({ opcode, id }: Pick<Outline, 'opcode' | 'id'>): string {
  return id === STOP ? 'the step STOP' : `the ${opcode} step "${id}"`;
}
