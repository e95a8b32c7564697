// What every driver owes the engine (engine/ports.ts), whatever its effects are made of. A driver, real or simulated,
// is put into a rig that can begin a new life of the engine and can steer the world behind the driver.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Driver } from '../../src/engine/ports.ts';
import type { Effect, Outcome } from '../../src/ir/effect.ts';

export interface DriverRig {
  /** The driver of the engine's present life. */
  readonly driver: Driver;
  /** The engine dies, and the next one has a driver that knows only what is left in the world. */
  nextLife(): void;
  /** Each call makes another step. `holds` goes on until it is released. */
  effect(what: 'succeeds' | 'fails' | 'holds'): Effect;
  /** Resolves when the effect is under way in the world. */
  begun(effect: Effect): Promise<void>;
  /** Lets an effect that holds succeed; resolves when it has, whether or not a driver knows of it. */
  release(effect: Effect): Promise<void>;
  /** Makes an effect that has begun vanish without a result. */
  lose(effect: Effect): Promise<void>;
  /** How often the effect has been begun in the world. */
  timesBegun(effect: Effect): number;
  close(): Promise<void>;
}

export function driverContract(name: string, setUp: () => Promise<DriverRig>): void {
  describe(`${name} keeps the contract of drivers`, () => {
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

    test('start, find and stop never answer while they are called', async () => {
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

    test('many effects at once are each answered with their own outcome', async () => {
      const effects = Array.from({ length: 40 }, (_, index) => rig.effect(index % 4 === 0 ? 'fails' : 'succeeds'));
      const outcomes = await Promise.all(effects.map((effect) => start(rig, effect)));
      expect(outcomes.map(({ kind }) => kind)).toEqual(
        effects.map((_, index) => (index % 4 === 0 ? 'failure' : 'success')),
      );
    });

    test('stopping what is not known is ignored', async () => {
      rig.driver.stop('nobody#1', { force: false, why: 'run-ending' });
      rig.driver.stop('nobody#1', { force: true, why: 'run-ending' });
      expect(await start(rig, rig.effect('succeeds'))).toMatchObject({ kind: 'success' });
    });

    test.for([false, true])('an effect that is stopped (force %s) is answered `stopped`', async (force) => {
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

    test('an effect that is stopped in the turn it was asked for in is answered all the same', async () => {
      const effect = rig.effect('holds');
      const outcome = start(rig, effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('what is prepared begins when it is asked for, and once', async () => {
      const effect = rig.effect('succeeds');
      rig.driver.prepare?.(effect);
      expect(await start(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('what is prepared may be stopped in the turn it is asked for in', async () => {
      const effect = rig.effect('holds');
      rig.driver.prepare?.(effect);
      const outcome = start(rig, effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('what was prepared by an engine that died was never begun', async () => {
      const effect = rig.effect('succeeds');
      rig.driver.prepare?.(effect);
      rig.nextLife();
      expect(rig.timesBegun(effect)).toBe(0);
      expect(await find(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('find starts what was never begun', async () => {
      const effect = rig.effect('succeeds');
      rig.nextLife();
      expect(await find(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('find takes the result of what has ended meanwhile, and does not begin it again', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      await rig.release(effect);
      expect(await find(rig, effect)).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('a result can be found by every life that asks', async () => {
      const effect = rig.effect('fails');
      const first = await start(rig, effect);
      rig.nextLife();
      expect(await find(rig, effect)).toEqual(first);
      rig.nextLife();
      expect(await find(rig, effect)).toEqual(first);
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('find waits for what still lives', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      const outcome = find(rig, effect);
      await rig.release(effect);
      expect(await outcome).toMatchObject({ kind: 'success' });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('what was found again can be stopped', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      const outcome = find(rig, effect);
      rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
      expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    });

    test('find answers `lost` for what began and left nothing', async () => {
      const effect = rig.effect('holds');
      void start(rig, effect);
      await rig.begun(effect);
      rig.nextLife();
      await rig.lose(effect);
      expect(await find(rig, effect)).toMatchObject({ kind: 'failure', failure: { kind: 'lost' } });
      expect(rig.timesBegun(effect)).toBe(1);
    });

    test('what is lost while it is waited for is answered `lost`', async () => {
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
