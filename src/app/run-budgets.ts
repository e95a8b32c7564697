// The budgets of a run, from the configuration of the user and of the project: both hold. A run and its forks share one.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { fields, isText } from '../base/shape.ts';
import type { Budgets, RunRequest } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import { isRunId } from '../stores/errors.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { appendLine, readLines } from '../sys/files.ts';

/** Null if the configuration limits nothing, and no fork shares the budget of the run. */
export function budgetsOf(
  { money: { budgets } }: Pick<Config, 'money'>,
  { runs, id }: { readonly runs: string; readonly id: string },
): Budgets | null {
  const relatives = hasForks(runs, id);
  if (budgets.length === 0 && !relatives) return null;
  return {
    runUsd: smallest(budgets.map(({ runUsd }) => runUsd)),
    agentUsd: smallest(budgets.map(({ agentUsd }) => agentUsd)),
    days: budgets.some(({ dayUsd, dayTokens }) => dayUsd !== null || dayTokens !== null),
    relatives,
    // Budgets of flags alone are reached, and reserve nothing.
    reserveUsd: Math.max(0, ...budgets.map(({ reserveUsd }) => reserveUsd)),
    ...(budgets.length === 0 ? {} : { overrun: Math.min(...budgets.map(({ overrun }) => overrun)) }),
  };
}

/** With the budgets of the configuration. */
export function withBudgets(config: Pick<Config, 'money'>, runs: string, request: RunRequest): RunRequest {
  const { budgets: _, ...rest } = request;
  const budgets = budgetsOf(config, { runs, id: request.id });
  return budgets === null ? rest : { ...rest, budgets };
}

function smallest(limits: readonly (number | null)[]): number | null {
  const set = limits.filter((limit) => limit !== null);
  return set.length === 0 ? null : Math.min(...set);
}

function hasForks(runs: string, runId: string): boolean {
  return existsSync(forksFile(runs, runId));
}

const FORKS = 'forks.jsonl';

function forksFile(runs: string, origin: string): string {
  return join(runs, origin, FORKS);
}

/** For a fork: the runs of its origin share a budget. */
export function noteFork(runs: string, origin: string, runId: string): void {
  const path = forksFile(runs, origin);
  // The run that it comes from may have been removed.
  if (!existsSync(dirname(path)) || forksOf(runs, origin).includes(runId)) return;
  appendLine(path, { id: runId });
}

export function forksOf(runs: string, origin: string): readonly string[] {
  const lines = tolerate(UNUSABLE, [], () => readLines(forksFile(runs, origin), fields({ id: isText })));
  return lines.map(({ id }) => id).filter(isRunId);
}
