// The simulator's processes fulfil the same contract as the driver of real commands, so proofs with them apply to it.

import type { Driver } from '../../src/engine/ports.ts';
import { type Effect, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import { Processes } from '../simulation/processes.ts';
import { driverContract, type DriverRig } from './driver.ts';

driverContract('the simulated driver', async () => new SimulatedRig());

class SimulatedRig implements DriverRig {
  readonly #begun = new Map<string, number>();
  readonly #processes = new Processes({
    after: (_ms, call) => void setImmediate(call),
    chance: () => 0,
    twice: 0,
    absent: () => false,
    begins: ({ id }) => this.#begun.set(id, (this.#begun.get(id) ?? 0) + 1),
    ends: (effect) => this.#ends(effect),
  });
  driver: Driver = this.#processes.driver();
  #count = 0;

  nextLife(): void {
    this.#processes.die();
    this.driver = this.#processes.driver();
  }

  effect(what: 'succeeds' | 'fails' | 'holds'): Effect {
    this.#count += 1;
    const step = `${what}-${this.#count}`;
    const spec = {
      kind: 'command',
      script: what,
      cwd: null,
      env: {},
      captures: [],
      verdict: 'success',
      errors: [],
      steering: null,
    } as const;
    return { id: `${step}#1`, step, attempt: 1, spec, session: { kind: 'fresh' }, lane: 'main', variables: {} };
  }

  async begun(): Promise<void> {}

  async release({ id }: Effect): Promise<void> {
    this.#processes.finish(id, success());
  }

  async lose({ id }: Effect): Promise<void> {
    this.#processes.lose(id);
  }

  timesBegun({ id }: Effect): number {
    return this.#begun.get(id) ?? 0;
  }

  async close(): Promise<void> {}

  #ends({ step }: Effect) {
    if (step.startsWith('holds')) return null;
    const fails = step.startsWith('fails');
    return () => (fails ? ({ kind: 'failure', failure: failure('exit-nonzero', 'failed') } as const) : success());
  }
}
