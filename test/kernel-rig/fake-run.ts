// A run without an engine: the real kernel decides each input at once.
//
//   const run = fakeRun(['a']);
//   run.watch((records, state) => handler.onRecords(records, state));
//   await run.tell({ kind: 'stop-requested', by: 'me', force: false });

import { UsageError } from '../../src/base/errors.ts';
import type { LiveRun } from '../../src/engine/client.ts';
import type { Observer } from '../../src/engine/loop.ts';
import type { Clock } from '../../src/engine/ports.ts';
import { UNLIMITED } from '../../src/ir/program.ts';
import { decide } from '../../src/kernel/decide.ts';
import type { Input } from '../../src/kernel/input.ts';
import { initialState } from '../../src/kernel/state.ts';
import { parseProgram } from './program-text.ts';

export interface FakeRun extends LiveRun {
  /** All inputs so far. */
  readonly inputs: readonly Input[];
  watch(observer: Observer): void;
  /** Decides further inputs, but makes them durable only on `release`. */
  hold(): void;
  release(): void;
  /** Makes the journal unwritable. */
  breakDisk(): void;
}

export function fakeRun(program: readonly string[], id = 'wf-1'): FakeRun {
  const state = initialState(parseProgram(program));
  const inputs: Input[] = [];
  let observe: Observer = () => {};
  let seq = 0;
  let broken = false;
  let held: (() => void)[] | null = null;
  const tell = async (input: Input): Promise<void> => {
    if (broken) throw new UsageError('the disk is full');
    inputs.push(input);
    const decisions = decide(state, input, seq);
    if (decisions.length === 0) return;
    seq += 1;
    const record = { seq, at: seq, input, decisions };
    if (held !== null) await new Promise<void>((resolve) => held?.push(resolve));
    observe([record], state);
  };
  const request = { id, mark: 'm', variables: {}, meta: {}, cwd: '/', allowOutside: false, allowance: UNLIMITED };
  void tell({ kind: 'run-requested', request, programHash: '' });
  inputs.length = 0;
  return {
    id,
    state,
    inputs,
    get durable() {
      return held === null || held.length === 0;
    },
    stop: (by, force) => void tell({ kind: 'stop-requested', by, force }),
    pause: (reason) => void tell({ kind: 'pause-requested', reason }),
    submit: tell,
    watch(observer) {
      observe = observer;
    },
    hold() {
      held = [];
    },
    release() {
      const waiting = held ?? [];
      held = null;
      for (const resolve of waiting) resolve();
    },
    breakDisk() {
      broken = true;
    },
  };
}

/** A clock that the test advances. */
export function manualClock(): Clock & { pass(ms: number): void } {
  let now = 1_000;
  const calls = new Set<{ readonly at: number; readonly call: () => void }>();
  return {
    now: () => now,
    at(at, call) {
      const one = { at, call };
      calls.add(one);
      return () => void calls.delete(one);
    },
    pass(ms) {
      now += ms;
      for (const one of calls) {
        if (one.at > now) continue;
        calls.delete(one);
        one.call();
      }
    },
  };
}
