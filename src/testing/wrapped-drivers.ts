// Drivers around drivers.

import type { Answer, Driver } from '../engine/ports.ts';
import type { Effect } from '../ir/effect.ts';

/** A driver whose answers pass through a function. */
export function intercepted(driver: Driver, through: (effect: Effect, answer: Answer) => Answer): Driver {
  return {
    start: (effect, answer, note) => driver.start(effect, through(effect, answer), note),
    find: (effect, answer, note) => driver.find(effect, through(effect, answer), note),
    stop: (effectId, how) => driver.stop(effectId, how),
    conclude: (effectId) => driver.conclude?.(effectId),
    decide: (effectId, verdict) => driver.decide?.(effectId, verdict),
  };
}

/** Passes each effect to one of two drivers. */
export function routed(isReal: (effect: Effect) => boolean, real: Driver, simulated: Driver): Driver {
  const chosen = new Map<string, Driver>();
  const choose = (effect: Effect): Driver => {
    const driver = isReal(effect) ? real : simulated;
    chosen.set(effect.id, driver);
    return driver;
  };
  return {
    start: (effect, answer, note) => choose(effect).start(effect, answer, note),
    find: (effect, answer, note) => choose(effect).find(effect, answer, note),
    stop: (effectId, how) => chosen.get(effectId)?.stop(effectId, how),
    conclude: (effectId) => chosen.get(effectId)?.conclude?.(effectId),
  };
}
