// GET /metrics of `meow serve`: figures for Prometheus. They are computed when they are asked for, from the journals that have
// changed since; nothing is done while nobody asks.

import { createHash, timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import type { FleetView } from '../../view/fleet.ts';
import { countRecords, type RunCounts, sumCounts } from '../../view/run-metrics.ts';
import type { NamedProject } from '../projects.ts';
import { storeOf, unlessRefused } from '../runs.ts';
import { pendingNotifications } from '../sender/pending.ts';

export interface MetricsSource {
  /** Valid until the server ends. */
  token(): string;
  projects(): readonly NamedProject[];
  /** Null before it is known. */
  view(): FleetView | null;
}

export class Metrics {
  readonly #source: MetricsSource;
  readonly #since = Date.now();
  /** By the path of a journal. */
  readonly #counted = new Map<string, { readonly stamp: string; readonly counts: RunCounts }>();

  constructor(source: MetricsSource) {
    this.#source = source;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(body);
    };
    if (request.method !== 'GET') return answer(405, 'read metrics with GET\n', { allow: 'GET' });
    const [, token = ''] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    if (!isSame(token, this.#source.token())) {
      const reason = 'send the token of the file that meow serve --json names: Authorization: Bearer TOKEN\n';
      return answer(401, reason, { 'www-authenticate': 'Bearer' });
    }
    return answer(200, await this.text(), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  }

  async text(): Promise<string> {
    const view = this.#source.view();
    const { steps, turns, tokens, usd, unknownCostTurns } = sumCounts(await this.#countsOfRuns());
    const statuses = new Map<string, number>();
    for (const { status } of view?.runs ?? []) {
      const name = status ?? 'unreadable';
      statuses.set(name, (statuses.get(name) ?? 0) + 1);
    }
    const gates = (view?.needs ?? []).length;
    return [
      ...family('meow_runs', 'gauge', 'Runs of all projects.', labelled('status', statuses)),
      ...family('meow_steps_total', 'counter', 'Steps that have ended.', labelled('outcome', Object.entries(steps))),
      ...family('meow_turns_total', 'counter', 'Turns of agents that have ended.', labelled('adapter', turns)),
      ...family(
        'meow_tokens_total',
        'counter',
        'Tokens that agents reported.',
        labelled('kind', Object.entries(tokens)),
      ),
      ...family('meow_cost_usd_total', 'counter', 'Dollars that agents reported.', [['', usd]]),
      ...family('meow_unknown_cost_turns_total', 'counter', 'Turns of unknown price.', [['', unknownCostTurns]]),
      ...family('meow_gates_open', 'gauge', 'Decisions that people have to make.', [['', gates]]),
      ...family('meow_notifications_pending', 'gauge', 'Notifications that a channel has not accepted yet.', [
        ['', pendingNotifications()],
      ]),
      '',
    ].join('\n');
  }

  async #countsOfRuns(): Promise<readonly RunCounts[]> {
    const all: RunCounts[] = [];
    for (const project of this.#source.projects()) {
      const store = storeOf(project);
      for (const { id } of await unlessRefused(store.list(), [])) {
        const path = store.files(id).localPath('journal.jsonl');
        const stats = tolerate(UNUSABLE, null, () => statSync(path));
        if (stats === null || stats.mtimeMs < this.#since) continue;
        const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
        const known = this.#counted.get(path);
        if (known?.stamp === stamp) {
          all.push(known.counts);
          continue;
        }
        const stored = await unlessRefused(store.read(id), null);
        if (stored === null) continue;
        const counts = countRecords(stored.records, this.#since);
        this.#counted.set(path, { stamp, counts });
        all.push(counts);
      }
    }
    return all;
  }
}

type Sample = readonly [labels: string, value: number];

function labelled(label: string, values: Iterable<readonly [string, number]>): readonly Sample[] {
  return [...values].map(([name, value]) => [`{${label}="${escaped(name)}"}`, value]);
}

/** In the text format of Prometheus. */
function family(name: string, kind: 'counter' | 'gauge', help: string, samples: readonly Sample[]): readonly string[] {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines];
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** In the same time, whatever differs. */
function isSame(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
