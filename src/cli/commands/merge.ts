// `meow merge`: offers the work of a worktree to a branch, and withdraws an offer.

import { type MergeOutcome, offerMerge, type OfferResult, withdrawOffer } from '../../app/merge-queue.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { sanitize } from '../../base/sanitize.ts';
import { EXIT, printJson, printLine, printLines, warn } from '../output.ts';

interface MergeFlags {
  readonly worktree?: string;
  readonly target?: string;
  readonly check?: readonly string[];
  readonly id?: string;
  readonly json?: true;
}

const ACTIONS = ['offer', 'withdraw'] as const;
const OFFER = 'meow merge offer --check "npm test"';

export async function merge(wanted: string, key: string | undefined, flags: MergeFlags): Promise<number> {
  const action = ACTIONS.find((each) => each === wanted);
  if (action === undefined) {
    const guess = didYouMean(wanted, ACTIONS);
    throw new UsageError(`meow merge cannot ${JSON.stringify(wanted)}`, `${guess}it can ${ACTIONS.join(' and ')}`);
  }
  return action === 'offer' ? offer(key, flags) : withdraw(key, flags);
}

async function offer(argument: string | undefined, flags: MergeFlags): Promise<number> {
  const { worktree = '.', target = 'main', check = [], id, json } = flags;
  if (argument !== undefined)
    throw new UsageError(`meow merge offer takes no argument: ${argument}`, 'the key of an offer is --id KEY');
  if (check.length === 0)
    throw new UsageError('meow merge offer needs a check: a target has only checked commits', OFFER);
  const empty = check.find((command) => command.trim() === '');
  if (empty !== undefined) throw new UsageError('--check needs a command', OFFER);
  const interrupted = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void => interrupted.abort(signal);
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    const result = await offerMerge({
      worktree,
      target,
      checks: check,
      key: id ?? null,
      signal: interrupted.signal,
      note: (line) => warn(sanitize(line)),
    });
    show(result, json === true);
    if (interrupted.signal.aborted && result.outcome !== 'merged')
      return interrupted.signal.reason === 'SIGINT' ? INTERRUPTED : TERMINATED;
    return result.outcome === 'merged' ? EXIT.done : EXIT.failed;
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const INTERRUPTED = 130;
const TERMINATED = 143;

async function withdraw(key: string | undefined, { json, ...others }: MergeFlags): Promise<number> {
  if (key === undefined)
    throw new UsageError('meow merge withdraw needs the key of an offer', 'meow merge withdraw RUN/STEP');
  const [foreign] = Object.keys(others).filter((name) => name !== 'worktree');
  if (foreign !== undefined)
    throw new UsageError(`meow merge withdraw does not take --${foreign}`, 'see: meow help merge');
  const result = await withdrawOffer(others.worktree ?? '.', key);
  show(result, json === true);
  return result.outcome === 'withdrawn' ? EXIT.done : EXIT.failed;
}

const SENTENCES: Readonly<Record<MergeOutcome, (result: OfferResult) => string>> = {
  merged: ({ target, commit }) => `merged${target === null ? '' : ` into ${target}`}: ${commit?.slice(0, 12) ?? ''}`,
  conflict: ({ target }) => `not merged: conflicts with ${target ?? 'the target'} in these files:`,
  check_failed: ({ check }) => `not merged: the check failed: ${check ?? ''}`,
  stale: () => 'not merged:',
  withdrawn: () => 'not merged:',
};

function show(result: OfferResult, json: boolean): void {
  const { outcome, target, base, commit, check, output } = result;
  if (json) return printJson({ outcome, target, base, commit, check, output });
  printLine(sanitize(SENTENCES[outcome](result)));
  if (output !== '')
    printLines(
      output
        .trimEnd()
        .split('\n')
        .map((line) => `  ${sanitize(line)}`),
    );
}
