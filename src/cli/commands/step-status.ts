// `meow step-status`: prints the status of a step of this run.

import { stepStatus as requestStatus } from '../../app/agent-requests.ts';
import { requireRunContext } from '../../app/run-context.ts';
import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { printLine } from '../output.ts';

const STATUSES = ['pending', 'running', 'completing', 'done', 'failed', 'skipped'];

export async function stepStatus(given: Given): Promise<number> {
  const [step = ''] = given.arguments;
  const is = checkStatus(given.last('is'));
  const isNot = checkStatus(given.last('is-not'));
  if (is !== null && isNot !== null) throw new UsageError('--is and --is-not exclude each other');
  const status = await requestStatus(requireRunContext('step-status'), step);
  printLine(status);
  if (is !== null) return status === is ? EXIT.done : EXIT.failed;
  if (isNot !== null) return status === isNot ? EXIT.failed : EXIT.done;
  return EXIT.done;
}

function checkStatus(wanted: string | null): string | null {
  if (wanted === null || STATUSES.includes(wanted)) return wanted;
  const guess = nearest(wanted, STATUSES);
  throw new UsageError(
    `unknown status ${JSON.stringify(wanted)}`,
    `${guess === null ? '' : `did you mean ${guess}? `}a step is ${STATUSES.slice(0, -1).join(', ')} or ${STATUSES.at(-1) ?? ''}`,
  );
}
