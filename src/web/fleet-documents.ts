// Documents about many runs: what was decided, and what agents used.

import { RecentRuns } from '../app/recent-runs.ts';
import type { ReadRun } from '../app/runs.ts';
import { TerminalTails } from '../app/terminal-feed.ts';
import { CostEntries } from '../view/cost-entries.ts';
import { moment, statusView } from '../view/status.ts';
import type { FleetFeed } from './fleet-feed.ts';
import type { NamedRuns } from './named-runs.ts';
import type { AgentLines, AgentLinesDocument, DecidedGate, DecidedGates, UsageDocument, UsageRow } from './protocol.ts';

const DAY_MS = 24 * 3_600_000;
/** As long as an ended run stays in the fleet. */
const DECIDED_SHOWN_MS = DAY_MS;
const USAGE_SHOWN_MS = 35 * DAY_MS;
const GATES_MAX = 200;
/** More than a list of agents shows. */
const TERMINALS_MAX = 12;
const LINES = 3;

type OfRun<T> = Omit<T, 'project' | 'run'>;

/** Keeps what it has read, so each page load reads only runs that have changed. */
export class FleetDocuments {
  readonly #runs: NamedRuns;
  readonly #feed: FleetFeed;
  readonly #tails = new TerminalTails();
  readonly #decided = new RecentRuns(decidedIn, DECIDED_SHOWN_MS);
  readonly #used = new RecentRuns(usedIn, USAGE_SHOWN_MS);

  constructor(runs: NamedRuns, feed: FleetFeed) {
    this.#runs = runs;
    this.#feed = feed;
  }

  /** Of the agents that the fleet shows as being at work. */
  async agentLines(): Promise<AgentLinesDocument> {
    const atWork = (this.#feed.view?.agents ?? []).filter(({ status }) => status === 'active').slice(0, TERMINALS_MAX);
    const agents = atWork.map(async ({ project, run, id }): Promise<AgentLines | null> => {
      const found = this.#runs.find({ project, run });
      if (found === null) return null;
      const lines = await this.#tails.of(found.store, run, id, LINES);
      return lines.length === 0 ? null : { project, run, agent: id, lines };
    });
    return { agents: (await Promise.all(agents)).filter((each) => each !== null) };
  }

  async decided(): Promise<DecidedGates> {
    const runs = await this.#decided.of(this.#runs.shown().projects);
    const gates = runs.flatMap(({ project, run, found }) => (found ?? []).map((gate) => ({ project, run, ...gate })));
    const latestFirst = gates.toSorted((a, b) => ((a.decidedAt ?? '') < (b.decidedAt ?? '') ? 1 : -1));
    return { gates: latestFirst.slice(0, GATES_MAX) };
  }

  async usage(): Promise<UsageDocument> {
    const runs = await this.#used.of(this.#runs.shown().projects);
    return {
      rows: runs.flatMap(({ project, run, found }) => (found ?? []).map((row) => ({ project, run, ...row }))),
      unreadable: runs.flatMap(({ project, run, found }) => (found === null ? [{ project, run }] : [])),
    };
  }
}

function decidedIn({ state, records }: ReadRun): readonly OfRun<DecidedGate>[] {
  const gates = new Map(statusView(state).gates.map((gate) => [gate.id, gate]));
  const found: OfRun<DecidedGate>[] = [];
  for (const { at, decisions } of records) {
    for (const decision of decisions) {
      if (decision.kind !== 'gate-decided' && decision.kind !== 'gate-expired') continue;
      const { kind, step = null, prompt = null } = gates.get(decision.gate) ?? {};
      const facts = {
        gate: decision.gate,
        kind: kind === undefined || kind === 'approval' ? ('gate' as const) : kind,
        step,
        prompt,
        decidedAt: moment(at),
      };
      if (decision.kind === 'gate-expired') {
        found.push({ ...facts, status: 'expired', by: null, via: null, notes: null, answer: null });
      } else {
        const { approved, by, notes, answer, via = null } = decision.verdict;
        const status = answer !== null ? 'answered' : approved ? 'approved' : 'rejected';
        found.push({ ...facts, status, by, via, notes, answer });
      }
    }
  }
  return found;
}

function usedIn({ state, records }: ReadRun): readonly OfRun<UsageRow>[] {
  const costs = new CostEntries();
  for (const record of records) costs.note(record);
  const rows = new Map<string, OfRun<UsageRow>>();
  for (const { at, agent, adapter: turned, cost } of costs.all) {
    const day = new Date(at).toLocaleDateString('en-CA');
    const adapter = turned ?? state.agents.get(agent ?? '')?.info?.adapter ?? null;
    const key = JSON.stringify([day, agent, adapter]);
    const { usd = 0, tokens = 0, unpriced = 0, turns = 0 } = rows.get(key) ?? {};
    rows.set(key, {
      day,
      agent,
      adapter,
      usd: usd + cost.usd,
      tokens: tokens + cost.tokens,
      unpriced: unpriced + cost.unpriced,
      turns: turns + 1,
    });
  }
  return [...rows.values()];
}
