// `meow step-status`: how a step of this run stands. Without an engine the journal tells.

import { basename, dirname } from 'node:path';
import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { askSoon } from '../../app/query-engine.ts';
import { say } from '../output.ts';
import type { Surroundings } from '../../app/run-context.ts';
import { noRun, requireSurroundings } from '../../app/run-context.ts';

const STATUSES = ['pending', 'running', 'completing', 'done', 'failed', 'skipped'];

export async function stepStatus(given: Given): Promise<number> {
  const [step = ''] = given.arguments;
  const is = checkStatus(given.last('is'));
  const isNot = checkStatus(given.last('is-not'));
  if (is !== null && isNot !== null) throw new UsageError('--is and --is-not exclude each other');
  const around = requireSurroundings('step-status');
  const status = await statusOf(around, step);
  say(status);
  if (is !== null) return status === is ? EXIT.done : EXIT.failed;
  if (isNot !== null) return status === isNot ? EXIT.failed : EXIT.done;
  return EXIT.done;
}

/** `gone`: see Patience. */
export async function statusOf(around: Surroundings, step: string, gone?: AbortSignal): Promise<string> {
  const status = await knownStatus(around, step, gone);
  if (status === null) throw new UsageError(`run ${around.workflow ?? ''} has no step ${step}`);
  return status;
}

/** Null where there is no such step. */
async function knownStatus(around: Surroundings, step: string, gone?: AbortSignal): Promise<string | null> {
  const { workflow, inbox, step: asker, agent } = around;
  const answer = await askSoon(around, { type: 'step_status', workflow, step, asker, agent }, gone);
  if (answer?.kind === 'step-status') return answer.status;
  if (answer?.kind === 'error' && answer.code === 'unknown-step') return null;
  if (answer?.kind === 'error') throw new UsageError(answer.message);
  if (inbox === null) throw noRun(around);
  const runFolder = dirname(inbox);
  const { storedStepStatus } = await import('../../app/offline-step-status.ts');
  const stored = await storedStepStatus(dirname(runFolder), basename(runFolder), step, asker);
  if (!stored.ok) throw new UsageError(stored.error);
  return stored.value;
}

function checkStatus(wanted: string | null): string | null {
  if (wanted === null || STATUSES.includes(wanted)) return wanted;
  const guess = nearest(wanted, STATUSES);
  throw new UsageError(
    `there is no status ${JSON.stringify(wanted)}`,
    `${guess === null ? '' : `did you mean ${guess}? `}steps are ${STATUSES.join(', ')}`,
  );
}
