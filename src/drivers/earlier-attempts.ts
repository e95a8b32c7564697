// A driver around another: an attempt of a step begins when no process of the step's earlier attempts is left.
//
// earlier/1  Whatever an earlier attempt left, in any session and however its shell ended, is killed first.
// earlier/2  If it cannot be killed, the attempt fails: two attempts never run side by side.
//
// Starts of agents are not attempts in this sense: the driver of agents stops what is left of an agent's earlier life.

import type { Driver } from '../engine/ports.ts';
import type { Effect, Outcome } from '../ir/effect.ts';
import { crash } from '../sys/errors.ts';
import { killProcessTree, type Termination } from '../sys/kill-process-tree.ts';
import { type DriverContext, isEarlierAttempt } from './environment.ts';
import { failed } from './outputs.ts';

export function afterEarlierAttempts(driver: Driver, run: Pick<DriverContext, 'runId' | 'mark'>): Driver {
  /** Effects whose earlier attempts are being killed, with everything that is asked of the driver meanwhile. */
  const waiting = new Map<string, { readonly ending: Termination; readonly requests: Request[] }>();
  const pass = (effectId: string, request: Request): void => {
    const known = waiting.get(effectId);
    if (known === undefined) request(null);
    else known.requests.push(request);
  };
  const ask = (how: 'start' | 'find'): Driver['start'] => {
    return (effect, answer, note) => {
      const request = (problem: Outcome | null): void =>
        problem === null ? driver[how](effect, answer, note) : answer(problem);
      const isLater = effect.attempt > 1 && WITH_ATTEMPTS.has(effect.spec.kind);
      if (!isLater || waiting.has(effect.id)) return pass(effect.id, request);
      const marker = (each: string): boolean => isEarlierAttempt(run, effect, each);
      const ending = killProcessTree({ marker, leader: null }, { graceMs: GRACE_MS });
      const requests = [request];
      waiting.set(effect.id, { ending, requests });
      const proceed = async (): Promise<void> => {
        const left = await ending.done;
        waiting.delete(effect.id);
        const pids = left.map(({ pid }) => pid).join(', ');
        const message = `these processes of an earlier attempt could not be killed: ${pids}`;
        const problem = left.length === 0 ? null : failed('not-started', message);
        for (const each of requests) each(problem);
      };
      proceed().catch(crash);
    };
  };
  return {
    start: ask('start'),
    find: ask('find'),
    stop(effectId, how) {
      if (how.force) waiting.get(effectId)?.ending.atOnce();
      pass(effectId, () => driver.stop(effectId, how));
    },
    conclude: (effectId) => pass(effectId, () => driver.conclude?.(effectId)),
    decide: (effectId, verdict) => pass(effectId, () => driver.decide?.(effectId, verdict)),
  };
}

/** `problem`: why the effect cannot be performed. */
type Request = (problem: Outcome | null) => void;

/** Time between TERM and KILL. */
const GRACE_MS = 5_000;
const WITH_ATTEMPTS: ReadonlySet<Effect['spec']['kind']> = new Set(['command', 'turn', 'prompt']);
