// The contract that every driver must fulfil (engine/ports.ts), whatever its effects are. A driver, real or simulated,
// is put into a rig that can restart the engine and control the world behind the driver.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Driver } from '../../src/engine/ports.ts';
import type { Effect, Outcome } from '../../src/ir/effect.ts';

export interface DriverRig {
  /** The driver of the current engine. */
  readonly driver: Driver;
  /** The engine dies, and the next one has a driver that knows only what exists in the world. */
  nextLife(): void;
  /** Each call creates another step. `holds` runs until it is released. */
  effect(what: 'succeeds' | 'fails' | 'holds'): Effect;
  /** Resolves when the effect is running in the world. */
  begun(effect: Effect): Promise<void>;
  /** Lets a held effect succeed; resolves when it has, whether or not a driver knows of it. */
  release(effect: Effect): Promise<void>;
  /** Makes a running effect vanish without a result. */
  lose(effect: Effect): Promise<void>;
  /** How often the effect has been started in the world. */
  timesBegun(effect: Effect): number;
  close(): Promise<void>;
}

export function driverContract(name: string, setUp: () => Promise<DriverRig>): void {
  describe(`${name} fulfils the contract of drivers`, () => {
    let rig: DriverRig;
    beforeEach(async () => {
      rig = await setUp();
    });
    afterEach(() => rig.close());

    test('an effect that succeeds is answered with success', async () => {
      expect(await start(rig, rig.effect('succeeds'))).toMatchObject({ kind: 'success' });
    });

    test('an effect that fails is answered with its failure', async () => {
      expect(await start(rig, rig.effect('fails'))).toMatchObject({ kind: 'failure' });
    });

    test('start, find and stop never answer synchronously', async () => {
      const [first, second] = [rig.effect('succeeds'), rig.effect('succeeds')];
      let calling = true;
      const answered = [first, second].map(
        (effect, index) =>
          new Promise<boolean>((resolve) => {
            rig.driver[index === 0 ? 'start' : 'find'](effect, () => resolve(calling));
          }),
      );
      rig.driver.stop(first.id, { force: true, why: 'run-ending' });
      calling = false;
      expect(await Promise.all(answered)).toEqual([false, false]);
    });

    test('many concurrent effects are each answered with their own outcome', async () => {
      const effects = Array.from({ length: 40 }, (_, index) => rig.effect(index % 4 === 0 ? 'fails' : 'succeeds'));
      const outcomes = await Promise.all(effects.map((effect) => start(rig, effect)));
      expect(outcomes.map(({ kind }) => kind)).toEqual(
        effects.map((_, index) => (index % 4 === 0 ? 'failure' : 'success')),
      );
    });

    test('stopping an unknown effect is ignored', async () => {
      rig.driver.stop('nobody#1', { force: false, why: 'run-ending' });
      rig.driver.stop('nobody#1', { force: true, why: 'run-ending' });
      expect(await start(rig, rig.effect('succeeds'))).toMatchObject({ kind: 'success' });
    });

    test.for([false, true])('a stopped effect (force %s) is answered `stopped`', async (force) => {
      const effect = rig.effect('holds');
      const outcome = start(rig, effect);
      await rig.begun(effect);
      rig.driver.stop(effect.id, { force, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('a stop may be repeated, and made more urgent', async () => {
      const effect = rig.effect('holds');
      const outcome = start(rig, effect);
      await rig.begun(effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      rig.driver.stop(effect.id, { force: true, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
      rig.driver.stop(effect.id, { force: true, why: 'run-ending' });
    });

    test('an effect that is stopped in the same tick as its request is still answered', async () => {
      const effect = rig.effect('holds');
      const outcome = start(rig, effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('find starts an effect that never started', async () => {
      const effect = rig.effect('succeeds');
      rig.nextLife();
      expect(await find(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('find returns the result of an effect that has ended meanwhile, and does not restart it', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      await rig.release(effect);
      expect(await find(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('a result can be found after every restart', async () => {
      const effect = rig.effect('fails');
      const first = await start(rig, effect);
      rig.nextLife();
      expect(await find(rig, effect)).toMatchObject(first);
      rig.nextLife();
      expect(await find(rig, effect)).toMatchObject(first);
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('find waits for an effect that is still running', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      const outcome = find(rig, effect);
      await rig.release(effect);
      expect(await outcome).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('an effect that was found again can be stopped', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      const outcome = find(rig, effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('find answers `lost` for an effect that started and left nothing', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      await rig.lose(effect);
      expect(await find(rig, effect)).toMatchObject({ kind: 'failure', failure: { kind: 'lost' } });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('an effect that is lost while it is awaited is answered `lost`', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      const outcome = find(rig, effect);
      await rig.lose(effect);
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'lost' } });
    });
  });
}

export function start(rig: Pick<DriverRig, 'driver'>, effect: Effect): Promise<Outcome> {
  return new Promise((resolve) => rig.driver.start(effect, resolve));
}

export function find(rig: Pick<DriverRig, 'driver'>, effect: Effect): Promise<Outcome> {
  return new Promise((resolve) => rig.driver.find(effect, resolve));
}
