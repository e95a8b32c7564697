// `meow cost`: what the turns of agents have cost.

import { findProject } from '../../app/project.ts';
import { projectsToShow } from '../../app/projects.ts';
import { resolveRun, storeOf } from '../../app/runs.ts';
import { turnCosts } from '../../app/turn-costs.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { sanitize } from '../../base/sanitize.ts';
import { formatDuration, formatMoment, parseDuration } from '../../base/time.ts';
import {
  COST_KEYS,
  costFigures,
  type CostFigures,
  costRows,
  type CostKey,
  type TurnCost,
} from '../../view/cost-rows.ts';
import { costText } from '../../view/usage.ts';
import { EXIT, printLines, printResult, warn, warnUnreadable } from '../output.ts';
import { inColumns, paletteFor } from '../terminal.ts';

interface CostFlags {
  readonly all?: true;
  readonly since?: string;
  readonly by?: string;
  readonly json?: true;
}

export async function cost(wanted: readonly string[], flags: CostFlags): Promise<number> {
  const by = keyNamed(flags.by ?? 'run');
  const since = flags.since === undefined ? null : momentOf(flags.since, Date.now());
  if (flags.all && wanted.length > 0)
    throw new UsageError('--all means all runs of all projects', 'leave out --all, or the ids of runs');
  const turns: TurnCost[] = [];
  const projects = flags.all ? projectsToShow([]).projects : [findProject()];
  for (const project of projects) {
    const store = storeOf(project);
    const runs = wanted.length === 0 ? null : await Promise.all(wanted.map((id) => resolveRun(store, id)));
    const found = await turnCosts(project, { runs: runs === null ? null : [...new Set(runs)], since });
    turns.push(...found.turns);
    for (const id of found.unreadable) warnUnreadable(id);
  }
  const rows = costRows(turns, by);
  const total = costFigures(turns);
  if (flags.json) return printResult({ by, since: since === null ? null : formatMoment(since), rows, total });
  if (rows.length === 0) {
    warn('no turns of agents');
    return EXIT.done;
  }
  const shown = [...rows.map((row) => [row.key ?? '-', ...cells(row)]), ['total', ...cells(total)]];
  const [head = '', ...lines] = inColumns([by, 'turns', 'tokens', 'cost', 'agent time'], shown);
  const palette = paletteFor(process.stdout);
  printLines([palette.dim(head), ...lines.map(sanitize)]);
  return EXIT.done;
}

function cells({
  turns,
  tokens,
  known_usd: usd,
  unknown_turns: unpriced,
  agent_ms: ms,
}: CostFigures): readonly string[] {
  const text = costText({ usd, tokens: 0, unpriced });
  return [
    String(turns),
    String(tokens.total ?? '-'),
    text === '' ? (unpriced > 0 ? '-' : '$0') : text,
    formatDuration(ms),
  ];
}

function keyNamed(wanted: string): CostKey {
  const found = COST_KEYS.find((key) => key === wanted);
  if (found !== undefined) return found;
  throw new UsageError(
    `costs cannot be summed by ${JSON.stringify(wanted)}`,
    `${didYouMean(wanted, COST_KEYS)}--by is one of ${COST_KEYS.join(', ')}`,
  );
}

/** `7d`: so long ago. `2026-11-19`: the beginning of that day, in local time; or a moment in ISO 8601. */
function momentOf(text: string, now: number): number {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  if (day !== undefined) {
    const date = new Date(Number(year), Number(month) - 1, Number(day));
    if (date.getMonth() === Number(month) - 1 && date.getDate() === Number(day)) return date.getTime();
  } else {
    const ago = /^\d+$/.test(text) ? null : parseDuration(text);
    if (ago !== null) return now - ago;
    const moment = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(moment)) return moment;
  }
  throw new UsageError(
    `--since ${JSON.stringify(text)} is neither a time nor a date`,
    'for example --since 7d or --since 2026-11-19',
  );
}
