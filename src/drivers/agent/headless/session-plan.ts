// The session of one turn: which of the adapter's commands it takes, which ids go into that, and what the session has
// cost before. It is made once for a turn, and kept in its folder before anything is started: a turn that is found
// again, or begun by a later life since it never was, has the same.

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

/** `id` of a fresh one, and `newId` of a fork: as it was chosen; null where nobody has. */
export type SessionWish =
  | { readonly kind: 'fresh'; readonly id: string | null }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'fork'; readonly id: string; readonly newId: string | null };

export interface SessionPlan {
  readonly kind: SessionWish['kind'];
  /** Of a session to be gone on with, or to be forked from. */
  readonly from: string | null;
  /** The one that the turn takes place in; null where only the agent can tell it. */
  readonly session: string | null;
  /** Of a fresh one: the session whose transcript it is told first. Absent if there is none. */
  readonly replays?: string;
  /** What that had cost before; null where it is not known. */
  readonly before: Usage | null;
}

export interface PlanRequest {
  /** Of the turn. Absolute. */
  readonly folder: string;
  readonly wish: SessionWish;
  /** A plan that is there was made for this very turn by an earlier life, and is followed. Else it may be of one that never came. */
  readonly again: boolean;
}

/** Leaves no trace. An error is a sentence. */
export function planSession(
  { folder, wish, again }: PlanRequest,
  adapter: Adapter,
  ways: HeadlessProfile,
  sessions: SessionRegistry,
): Result<SessionPlan, string> {
  const kept = again || hasBegun(folder) ? readPlan(folder) : null;
  return kept === null ? planFor(wish, adapter, ways, sessions) : ok(kept);
}

/** The file that keeps it; it is there before anything is started. */
export const PLAN = 'turn.json';

/** One that was not written to its end tells of nothing, and nothing was begun by it. */
export function planText(plan: SessionPlan): string {
  return `${JSON.stringify(plan)}\n`;
}

/** A program is about to be started by it. */
export function tryPlan({ kind, session, from, replays }: SessionPlan, sessions: SessionRegistry): void {
  if (session !== null && kind !== 'resume' && isUntried(session, sessions)) sessions.trying(session, replays ?? from);
}

/** Null where none was made. */
export function readPlan(folder: string): SessionPlan | null {
  return readJsonFile(join(folder, PLAN)) as SessionPlan | null;
}

/** What the session is to the adapter's commands. */
export function sessionHoles({ kind, from, session }: SessionPlan): HoleValues {
  const id = from ?? session;
  return {
    ...(id === null ? {} : { session_id: id }),
    ...(kind === 'fork' && session !== null ? { new_session_id: session } : {}),
  };
}

/** Null where the adapter has none for it. */
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
    const what = wish.kind === 'resume' ? 'go on with a session' : 'fork a session';
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

/** One that an earlier turn was to begin may be there without having been seen: it is not tried again. */
function chosen(id: string | null, { sessionId }: HeadlessProfile, sessions: SessionRegistry): string | null {
  if (sessionId !== 'chosen') return null;
  return id !== null && isUntried(id, sessions) ? id : randomUUID();
}

function isUntried(id: string, sessions: SessionRegistry): boolean {
  return (sessions.read(id)?.state ?? 'chosen') === 'chosen';
}
