// The sessions of headless agents.
//
// A turn has a plan: which command of the adapter to use, with which ids, and the session's previous cost. The process of the
// turn records the plan when it begins, so a turn that is found again has the same plan.

import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';

import { err, ok, type Result } from '../../../base/errors.ts';
import { parseJson } from '../../../base/json.ts';
import type { RunFiles } from '../../../engine/ports.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import type { TokenParts, Usage } from '../../../ir/output.ts';
import type { Text } from '../../../ir/text.ts';
import { isUsage } from '../../../ir/usage-shape.ts';
import { ABSENT, tolerate } from '../../../sys/errors.ts';
import { appendLine, makeFolder, readJsonFile, readRecord, readLines } from '../../../sys/files.ts';
import { fileName, readStatus, stepFile, type StepFolder } from '../../step-folder.ts';
import { plus, type RawUsage } from '../readers/reader.ts';
import type { HoleValues } from '../render-adapter.ts';
import { fields, isText, nullable, oneOf, optional } from '../../../base/shape.ts';

/** `id` of a fresh session and `newId` of a fork: the chosen id; null or absent if none was chosen. */
export type SessionWish =
  | { readonly kind: 'fresh'; readonly id?: string | null }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'fork'; readonly id: string; readonly newId?: string | null };

export interface SessionPlan {
  readonly kind: SessionWish['kind'];
  /** The session to continue or to fork. */
  readonly from: string | null;
  /** The session of the turn; null if only the agent can report it. */
  readonly session: string | null;
  /** For a fresh session: the session whose transcript it gets first. Absent if none. */
  readonly replays?: string;
  /** Its previous cost; null if unknown. */
  readonly before: Usage | null;
}

const isPlan = fields<SessionPlan>({
  kind: oneOf('fresh', 'resume', 'fork'),
  from: nullable(isText),
  session: nullable(isText),
  replays: optional(isText),
  before: nullable(isUsage),
});

/** The plan of an earlier engine, if there is one. Has no side effects. The error is a sentence. */
export function planSession(
  folder: StepFolder,
  requested: SessionWish,
  adapter: Adapter,
  ways: HeadlessProfile,
  sessions: SessionRegistry,
): Result<SessionPlan, string> {
  const kept = readPlan(folder);
  if (kept !== null) return ok(kept);
  const wish = startable(requested, sessions);
  if (wish.kind === 'fork' && ways.fork === null && ways.replays === true) {
    const session = chosen(wish.newId, ways, sessions);
    return ok({ kind: 'fresh', from: null, session, replays: wish.id, before: NOTHING });
  }
  const command = commandFor(wish.kind, adapter.name, ways);
  if (!command.ok) return command;
  if (wish.kind === 'fresh') {
    return ok({ kind: 'fresh', from: null, session: chosen(wish.id, ways, sessions), before: NOTHING });
  }
  const session = wish.kind === 'resume' ? wish.id : chosen(wish.newId, ways, sessions);
  return ok({ kind: wish.kind, from: wish.id, session, before: sessions.read(wish.id)?.total ?? null });
}

const NOTHING: Usage = { usd: 0, tokens: 0 };

/** A session that nobody has seen may not exist: instead of being resumed, it is started as it was planned. */
function startable(wish: SessionWish, sessions: SessionRegistry): SessionWish {
  if (wish.kind !== 'resume') return wish;
  const known = sessions.read(wish.id);
  if (known === null || known.state === 'seen') return wish;
  const { parent } = known;
  return parent === null ? { kind: 'fresh', id: wish.id } : { kind: 'fork', id: parent, newId: wish.id };
}

/** A session that an earlier turn tried to start may exist without having been seen: it is not tried again. */
function chosen(
  id: string | null | undefined,
  { sessionId }: HeadlessProfile,
  sessions: SessionRegistry,
): string | null {
  if (sessionId !== 'chosen') return null;
  return typeof id === 'string' && isUntried(id, sessions) ? id : randomUUID();
}

function isUntried(id: string, sessions: SessionRegistry): boolean {
  return (sessions.read(id)?.state ?? 'chosen') === 'chosen';
}

/** Called before a program starts with it. */
export function tryPlan({ kind, session, from, replays }: SessionPlan, sessions: SessionRegistry): void {
  if (session !== null && kind !== 'resume' && isUntried(session, sessions)) sessions.trying(session, replays ?? from);
}

/** Null if there is no plan. Turns of version 0.1.0-alpha have it in a file of its own, written before they began. */
export function readPlan(folder: StepFolder): SessionPlan | null {
  const line = /\n(\{.*\})\n/.exec(readStatus(folder) ?? '')?.[1];
  const plan: unknown = line === undefined ? readJsonFile(stepFile(folder, 'turn.json')) : parseJson(line);
  return isPlan(plan) ? plan : null;
}

/** Placeholder values for the adapter's commands. */
export function sessionHoles({ kind, from, session }: SessionPlan): HoleValues {
  const id = from ?? session;
  return {
    ...(id === null ? {} : { session_id: id }),
    ...(kind === 'fork' && session !== null ? { new_session_id: session } : {}),
  };
}

/** The error is a sentence. */
export function commandFor(
  kind: SessionPlan['kind'],
  adapter: string,
  { command, resume, fork }: HeadlessProfile,
): Result<Text, string> {
  const text = { fresh: command, resume, fork }[kind];
  return text === null ? err(`the adapter ${adapter} has no way to ${kind} a session without a terminal`) : ok(text);
}

// The sessions of a run's agents: `sessions.jsonl` in its folder has a line for each change, and the last one of a session
// counts. Runs of version 0.1.0-alpha have a file for each session, `sessions/ID.json`. A run has one registry, which caches what it has
// read and written.
//
// Some programs report the total cost of a session. The cost of a turn is then the difference, and a fork starts with
// the total of its parent. Totals only grow.
//
// A session whose id we chose may never exist, if its program dies early. It exists once the program's output mentions
// it. Until then, continuing it means starting it, under another id if that was tried before, since it may exist after
// all.

export interface SessionRecord {
  readonly state: 'chosen' | 'tried' | 'seen';
  /** The parent of a fork. */
  readonly parent: string | null;
  /** Total cost; null if unknown. */
  readonly total: Usage | null;
}

const SESSION = {
  state: oneOf('chosen', 'tried', 'seen'),
  parent: nullable(isText),
  total: nullable(isUsage),
};

export class SessionRegistry {
  readonly #file: string;
  readonly #folder: string;
  /** As on disk; null until the first read. */
  #known: Map<string, SessionRecord> | null = null;

  constructor(files: Pick<RunFiles, 'localPath'>) {
    this.#file = files.localPath('sessions.jsonl');
    this.#folder = files.localPath('sessions');
  }

  /** Null if unknown. */
  read(id: string): SessionRecord | null {
    const known =
      this.#all.get(id) ?? readRecord(join(this.#folder, `${fileName(id)}.json`), fields<SessionRecord>(SESSION));
    if (known !== null) this.#all.set(id, known);
    return known;
  }

  /** The id was chosen; nothing was started. */
  choose(id: string, parent: string | null): void {
    if (this.read(id) === null) this.#write(id, { state: 'chosen', parent, total: null });
  }

  /** A program is about to start it. */
  trying(id: string, parent: string | null): void {
    this.#write(id, { state: 'tried', parent, total: null });
  }

  saw(id: string): void {
    const known = this.read(id);
    if (known?.state !== 'seen') this.#write(id, { parent: null, total: null, ...known, state: 'seen' });
  }

  /** A turn that is found again reports an earlier total. */
  told(id: string, total: Usage): void {
    const known = this.read(id);
    const before: Usage = known?.total ?? UNKNOWN;
    const parts = laterParts(before.parts, total.parts);
    const latest: Usage = {
      usd: later(before.usd, total.usd),
      tokens: later(before.tokens, total.tokens),
      ...(parts === undefined ? {} : { parts }),
    };
    if (latest.usd === before.usd && latest.tokens === before.tokens) return;
    this.#write(id, { state: 'seen', parent: null, ...known, total: latest });
  }

  /** File of its transcript (transcript.ts). */
  transcript(id: string): string {
    if (existsSync(dirname(this.#folder))) makeFolder(this.#folder);
    return join(this.#folder, `${fileName(id)}.jsonl`);
  }

  #write(id: string, record: SessionRecord): void {
    // The run's folder may have been deleted meanwhile.
    tolerate(ABSENT, undefined, () => appendLine(this.#file, { id, ...record }));
    this.#all.set(id, record);
  }

  get #all(): Map<string, SessionRecord> {
    if (this.#known === null) {
      const changes = readLines(
        this.#file,
        fields<SessionRecord & { readonly id: string }>({ ...SESSION, id: isText }),
      );
      this.#known = new Map(changes.map(({ id, ...record }) => [id, record]));
    }
    return this.#known;
  }
}

function later(before: number | null, now: number | null): number | null {
  return before === null || now === null ? (now ?? before) : Math.max(before, now);
}

/** Costs of turns, from the reports of their programs. Unknown is null, and so is every sum with it, never 0. */
export const UNKNOWN: Usage = { usd: null, tokens: null };

export function spentIn(reported: RawUsage | null, { kind, before }: Pick<SessionPlan, 'kind' | 'before'>): Usage {
  if (reported === null) return UNKNOWN;
  const { scope, ...all } = reported;
  const { usd, tokens, parts, model } = all;
  switch (scope) {
    case 'turn':
      return all;
    case 'session': {
      const ofTurn = differenceOfParts(parts, before);
      return {
        usd: difference(usd, before?.usd),
        tokens: difference(tokens, before?.tokens),
        ...(ofTurn === undefined ? {} : { parts: ofTurn }),
        ...(model === undefined ? {} : { model }),
      };
    }
    case 'untold':
      return kind === 'fresh' ? all : UNKNOWN;
  }
}

/** Null if nothing could have cost anything. */
export function sumOf(all: readonly Usage[]): Usage | null {
  if (all.length === 0) return null;
  return all.reduce((sum, each) => {
    const { parts: a } = sum;
    const { parts: b } = each;
    const parts =
      a === undefined || b === undefined
        ? {}
        : { parts: { input: a.input + b.input, cached: a.cached + b.cached, output: a.output + b.output } };
    const model = sum.model === undefined || sum.model !== each.model ? {} : { model: sum.model };
    return { usd: plus(sum.usd, each.usd), tokens: plus(sum.tokens, each.tokens), ...parts, ...model };
  });
}

/** A session that was new had none before. */
function differenceOfParts(now: TokenParts | undefined, before: Usage | null): TokenParts | undefined {
  const base = before?.parts ?? (before?.tokens === 0 ? { input: 0, cached: 0, output: 0 } : undefined);
  if (now === undefined || base === undefined) return undefined;
  return {
    input: Math.max(0, now.input - base.input),
    cached: Math.max(0, now.cached - base.cached),
    output: Math.max(0, now.output - base.output),
  };
}

function laterParts(before: TokenParts | undefined, now: TokenParts | undefined): TokenParts | undefined {
  if (before === undefined || now === undefined) return now ?? before;
  return {
    input: Math.max(before.input, now.input),
    cached: Math.max(before.cached, now.cached),
    output: Math.max(before.output, now.output),
  };
}

function difference(now: number | null, before: number | null = null): number | null {
  return now === null || before === null ? null : Math.max(0, now - before);
}
