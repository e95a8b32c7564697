// Simulated processes fulfil the same contract as the driver of real commands, so proofs with them apply to it.

import type { Driver } from '../../src/engine/ports.ts';
import { type Effect, type Outcome, success } from '../../src/ir/effect.ts';
import { type FailureKind, failure } from '../../src/ir/failure.ts';
import { Processes, type SimulatedProcess } from '../../src/testing/processes.ts';
import { driverContract, type DriverRig } from './driver.ts';

driverContract('the simulated driver', async () => new SimulatedRig());

class SimulatedRig implements DriverRig {
  readonly #begun = new Map<string, number>();
  readonly #processes = new Processes({
    begin: (process) => this.#begin(process),
    stop: (process) => void setImmediate(() => process.finish(failing('stopped'))),
    conclude: (process) => process.finish(success()),
  });
  driver: Driver = this.#processes.driver();
  #count = 0;

  nextLife(): void {
    this.#processes.detachAll();
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
    this.#processes.get(id)?.finish(success());
  }

  async lose({ id }: Effect): Promise<void> {
    this.#processes.get(id)?.lose();
  }

  timesBegun({ id }: Effect): number {
    return this.#begun.get(id) ?? 0;
  }

  async close(): Promise<void> {}

  #begin(process: SimulatedProcess): void {
    const { id, step } = process.effect;
    this.#begun.set(id, (this.#begun.get(id) ?? 0) + 1);
    if (step.startsWith('holds')) return;
    const outcome = step.startsWith('fails') ? failing('exit-nonzero') : success();
    setImmediate(() => process.finish(outcome));
  }
}

function failing(kind: FailureKind): Outcome {
  return { kind: 'failure', failure: failure(kind, 'failed') };
}
