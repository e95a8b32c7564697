// What the configuration of the user and other runs mean for the turns of agents. None starts while a usage limit of its account holds
// (account-limits.ts), or in quiet hours: such a turn ends before its program is started, and the kernel tries it again later, which
// counts as no retry. A turn that reports no price gets that of the configuration.
//
//   admit/1  A turn that an earlier engine reserved money for and never started is not started by the next one, because others may
//            have spent that money meanwhile. It counts as lost, so that the kernel asks for admission again.

import { formatMoment } from '../base/time.ts';
import { endOfHours, type Hours } from '../base/time-zone.ts';
import { failed } from '../drivers/outputs.ts';
import { mayHavePrompt } from '../drivers/agent/files.ts';
import { hasBegun, stepFolder } from '../drivers/step-folder.ts';
import type { Driver, RunFiles } from '../engine/ports.ts';
import type { Effect, Outcome } from '../ir/effect.ts';
import type { WaitingFor } from '../ir/failure.ts';
import type { Usage } from '../ir/output.ts';
import type { Price } from '../languages/money-config.ts';
import { filledText, namedModel } from '../view/status.ts';
import { type AccountLimits, accountOf } from './account-limits.ts';
import { withComputedPrice } from './turn-prices.ts';

export interface AdmittedTurnsOptions {
  readonly runId: string;
  readonly files: RunFiles;
  /** Of the agents. */
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: AccountLimits;
  readonly prices: Readonly<Record<string, Price>>;
  /** Null if the run works in them. Read again for each turn. */
  readonly quiet: () => Hours | null;
  /** False: what would wait for a limit fails. */
  readonly waits: boolean;
  /** Whether money is reserved for the turn of a step. */
  readonly isReserved: (step: string) => boolean;
  /** The adapter of a turn or a prompt; null for other effects. */
  readonly adapterOf: (effect: Effect) => string | null;
}

const NEVER_STARTED = failed('lost', 'an earlier engine ended before it gave the agent its prompt', { unbegun: true });

/** If quiet hours never end, the configuration may change. */
const QUIET_LOOK_MS = 600_000;

export function admittedTurns(driver: Driver, options: AdmittedTurnsOptions): Driver {
  const ask =
    (how: 'start' | 'find'): Driver['start'] =>
    (effect, answer, note) => {
      const adapter = options.adapterOf(effect);
      if (adapter === null) return driver[how](effect, answer, note);
      const account = accountOf(adapter, options.environment);
      const isNew = how === 'start' || isUnbegun(effect, options);
      const isStale = how === 'find' && isNew && options.isReserved(effect.step);
      const refusal = isStale ? NEVER_STARTED : isNew ? refusalOf(account, options) : null;
      // Never before this call returns.
      if (refusal !== null) return queueMicrotask(() => answer(refusal));
      const model = namedModel(effect.spec);
      const price = (usage: Usage): Usage => withComputedPrice(usage, options.prices, adapter, model);
      driver[how](effect, (outcome) => answer(priced(shared(outcome, account, options), price)), note);
    };
  return {
    start: ask('start'),
    find: ask('find'),
    stop: (effectId, how) => driver.stop(effectId, how),
    conclude: (effectId) => driver.conclude?.(effectId),
    decide: (effectId, verdict) => driver.decide?.(effectId, verdict),
  };
}

/** Of a prompt: its delivery has not begun. */
function isUnbegun({ id, spec, step, attempt }: Effect, { files }: AdmittedTurnsOptions): boolean {
  if (spec.kind === 'prompt') return !mayHavePrompt(files, filledText(spec.agent), id);
  return spec.kind === 'turn' && !hasBegun(stepFolder(files, step, attempt));
}

function refusalOf(account: string, { limits, quiet, waits, runId }: AdmittedTurnsOptions): Outcome | null {
  const now = Date.now();
  const limit = limits.of(account, now);
  if (limit !== null) {
    const { until, reportedBy } = limit;
    const by = reportedBy === runId ? 'this run' : `run ${reportedBy}`;
    const message = `${account} has reached a usage limit until ${formatMoment(until)}, as ${by} found out`;
    if (!waits) return failed('limit-reached', message);
    const waitingFor: WaitingFor = { kind: 'limit', until, account, reportedBy };
    return failed('limit-reached', message, { retryAt: limits.slot(account, until, now), waitingFor });
  }
  const hours = quiet();
  const end = hours === null ? null : endOfHours(hours, now);
  if (end === null) return null;
  const until = end === Infinity ? null : end;
  const waitingFor: WaitingFor = { kind: 'quiet', until, account: null, reportedBy: null };
  const message = until === null ? 'these are quiet hours, without an end' : `quiet hours until ${formatMoment(until)}`;
  return failed('limit-reached', message, { retryAt: until ?? now + QUIET_LOOK_MS, waitingFor });
}

function priced(outcome: Outcome, price: (usage: Usage) => Usage): Outcome {
  const usage = outcome.kind === 'success' ? outcome.usage : outcome.failure.usage;
  if (usage === null || usage.usd !== null) return outcome;
  const known = price(usage);
  return outcome.kind === 'success'
    ? { ...outcome, usage: known }
    : { ...outcome, failure: { ...outcome.failure, usage: known } };
}

/** A limit that this turn has met is told to the other runs. */
function shared(outcome: Outcome, account: string, { limits, runId }: AdmittedTurnsOptions): Outcome {
  if (outcome.kind === 'success' || outcome.failure.kind !== 'limit-reached') return outcome;
  const { retryAt: until } = outcome.failure;
  const now = Date.now();
  if (until === null || until <= now) return outcome;
  limits.report(account, { until, reportedBy: runId }, now);
  const waitingFor: WaitingFor = { kind: 'limit', until, account, reportedBy: runId };
  const retryAt = limits.slot(account, until, now);
  return { ...outcome, failure: { ...outcome.failure, retryAt, waitingFor } };
}
