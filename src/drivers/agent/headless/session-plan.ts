// The session of one turn: which command of the adapter to use, with which ids, and the session's previous cost. The
// plan is made once and stored in the turn's folder before anything starts, so a turn that is found again has the same
// plan.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import type { Text } from '../../../ir/text.ts';
import type { Usage } from '../../../ir/usage.ts';
import type { HoleValues } from '../render-adapter.ts';
import { hasBegun } from '../../step-folder.ts';
import { readJsonFile } from '../../../sys/json-file.ts';
import type { SessionRegistry } from './session-registry.ts';

/** `id` of a fresh session and `newId` of a fork: the chosen id; null if none was chosen. */
export type SessionWish =
  | { readonly kind: 'fresh'; readonly id: string | null }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'fork'; readonly id: string; readonly newId: string | null };

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

export interface PlanRequest {
  /** Absolute folder of the turn. */
  readonly folder: string;
  readonly wish: SessionWish;
  /** True: an existing plan belongs to this turn and is used. False: it may be left from a turn that never began. */
  readonly again: boolean;
}

/** Has no side effects. The error is a sentence. */
export function planSession(
  { folder, wish, again }: PlanRequest,
  adapter: Adapter,
  ways: HeadlessProfile,
  sessions: SessionRegistry,
): Result<SessionPlan, string> {
  const kept = again || hasBegun(folder) ? readPlan(folder) : null;
  return kept === null ? planFor(wish, adapter, ways, sessions) : ok(kept);
}

/** File of the plan; exists before anything starts. */
export const PLAN = 'turn.json';

/** A truncated plan counts as absent: nothing was started with it. */
export function planText(plan: SessionPlan): string {
  return `${JSON.stringify(plan)}\n`;
}

/** Called before a program starts with it. */
export function tryPlan({ kind, session, from, replays }: SessionPlan, sessions: SessionRegistry): void {
  if (session !== null && kind !== 'resume' && isUntried(session, sessions)) sessions.trying(session, replays ?? from);
}

/** Null if there is no plan. */
export function readPlan(folder: string): SessionPlan | null {
  return readJsonFile(join(folder, PLAN)) as SessionPlan | null;
}

/** Placeholder values for the adapter's commands. */
export function sessionHoles({ kind, from, session }: SessionPlan): HoleValues {
  const id = from ?? session;
  return {
    ...(id === null ? {} : { session_id: id }),
    ...(kind === 'fork' && session !== null ? { new_session_id: session } : {}),
  };
}

/** Null if the adapter has no such command. */
export function commandFor({ kind }: Pick<SessionPlan, 'kind'>, ways: HeadlessProfile): Text | null {
  switch (kind) {
    case 'fresh':
      return ways.command;
    case 'resume':
      return ways.resume;
    case 'fork':
      return ways.fork;
  }
}

function planFor(
  wish: SessionWish,
  adapter: Adapter,
  ways: HeadlessProfile,
  sessions: SessionRegistry,
): Result<SessionPlan, string> {
  const known = wish.kind === 'fresh' ? null : sessions.read(wish.id);
  if (wish.kind === 'resume' && known !== null && known.state !== 'seen') {
    const { id } = wish;
    const again: SessionWish =
      known.parent === null ? { kind: 'fresh', id } : { kind: 'fork', id: known.parent, newId: id };
    return planFor(again, adapter, ways, sessions);
  }
  if (wish.kind === 'fork' && ways.fork === null && ways.replays === true) {
    const session = chosen(wish.newId, ways, sessions);
    return ok({ kind: 'fresh', from: null, session, replays: wish.id, before: NOTHING });
  }
  if (commandFor(wish, ways) === null) {
    const what = wish.kind === 'resume' ? 'resume a session' : 'fork a session';
    return err(`the adapter ${adapter.name} has no way to ${what} without a terminal`);
  }
  switch (wish.kind) {
    case 'fresh':
      return ok({ kind: 'fresh', from: null, session: chosen(wish.id, ways, sessions), before: NOTHING });
    case 'resume':
      return ok({ kind: 'resume', from: wish.id, session: wish.id, before: known?.total ?? null });
    case 'fork': {
      const session = chosen(wish.newId, ways, sessions);
      return ok({ kind: 'fork', from: wish.id, session, before: known?.total ?? null });
    }
  }
}

const NOTHING: Usage = { usd: 0, tokens: 0 };

/** A session that an earlier turn tried to start may exist without having been seen: it is not tried again. */
function chosen(id: string | null, { sessionId }: HeadlessProfile, sessions: SessionRegistry): string | null {
  if (sessionId !== 'chosen') return null;
  return id !== null && isUntried(id, sessions) ? id : randomUUID();
}

function isUntried(id: string, sessions: SessionRegistry): boolean {
  return (sessions.read(id)?.state ?? 'chosen') === 'chosen';
}
