// A workflow as it was read: what each step asks of the world, and where it leads, with the places of all that is checked
// against the other steps.

import type { Place } from '../../base/source.ts';
import type { Witness } from '../../ir/conducted.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { STOP } from './ids.ts';
import type { OpcodeSpec } from './opcodes.ts';

export const OPCODES = ['RUN_AGENT', 'RUN_VALIDATION', 'EVALUATE', 'GATE', 'ROLLBACK', 'STOP'] as const;
export type Opcode = (typeof OPCODES)[number];

/** A step of which no more is known than what others refer to. */
export interface Outline {
  readonly id: string;
  readonly opcode: Opcode;
  readonly map: YamlMap;
  /** Of its id. */
  readonly place: Place;
}

export interface StepSyntax extends Outline {
  /** Null where a part of it is missing or wrong, which has been reported. */
  readonly spec: OpcodeSpec | null;
  readonly timeoutMs: number | null;
  readonly routes: readonly Route[];
  readonly allowUnreachable: boolean;
  /** What its prompt is given. */
  readonly inputs: readonly YamlScalar[];
  /** Of an EVALUATE: where it may lead. */
  readonly allowedNext: readonly YamlScalar[];
  /** Of a RUN_VALIDATION: what may leave a report with new goldens. */
  readonly harness: Place | null;
  readonly gate: GateType | null;
  /** Of a STOP: null where it depends on the route that led to it. */
  readonly verdict: 'success' | 'failure' | null;
}

/** What most steps have nothing to say about. */
export const UNSAID = {
  timeoutMs: null,
  inputs: [],
  allowedNext: [],
  harness: null,
  gate: null,
  verdict: null,
} as const;

/** What a step of one opcode says beside what all say. */
export type Particulars = Pick<StepSyntax, 'spec' | keyof typeof UNSAID>;

export interface Route {
  readonly key: string;
  readonly keyPlace: Place;
  readonly to: string;
  /** Of the target; of the step where nobody wrote it. */
  readonly place: Place;
  readonly witness: Witness | null;
  /** The workflow that it enters in place of a step, and then `to` is its path. */
  readonly enters: Entering | null;
}

export interface Entering {
  /** The name of its first block. */
  readonly entry: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The step to continue with when it is done; null: STOP. */
  readonly returnTo: YamlScalar | null;
}

/** The step or STOP that a route leads to, be it after another workflow. */
export function stepAfter({ to, enters }: Pick<Route, 'to' | 'enters'>): string {
  return enters === null ? to : (enters.returnTo?.text ?? STOP);
}

/** The first two wait for a decision, the others only ask for it. */
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
