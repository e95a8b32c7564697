import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import type { SessionPlan, SessionWish } from './sessions.ts';
import { planSession, sessionHoles, SessionRegistry, spentIn, sumOf, tryPlan } from './sessions.ts';

let run: string;
let sessions: SessionRegistry;
let turns = 0;
beforeEach(() => {
  run = mkdtempSync(join(tmpdir(), 'meow-plan-'));
  sessions = new SessionRegistry({ localPath: (path) => join(run, path) });
});
afterEach(() => rmSync(run, { recursive: true }));

const ADAPTER = { name: 'odd' } as Adapter;
const WAYS = { command: 'begin', resume: 'go on', fork: 'fork', sessionId: 'chosen' } as HeadlessProfile;
const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown as string;
const FREE = { usd: 0, tokens: 0 };

function plan(wish: SessionWish, ways: Partial<HeadlessProfile> = {}, folder = `turn-${++turns}`): SessionPlan {
  const prefix = join(run, `${folder}.`);
  const planned = planSession({ prefix, inRun: `${folder}.` }, wish, ADAPTER, { ...WAYS, ...ways }, sessions);
  if (!planned.ok) throw new Error(planned.error);
  tryPlan(planned.value, sessions);
  writeFileSync(`${prefix}status`, `1 - boot\n${JSON.stringify(planned.value)}\n`);
  return planned.value;
}

describe('a session that is begun', () => {
  test('has the id that was chosen for it, or a new one', () => {
    expect(plan({ kind: 'fresh', id: 'mine' })).toEqual({ kind: 'fresh', from: null, session: 'mine', before: FREE });
    expect(plan({ kind: 'fresh', id: null }).session).toEqual(UUID);
  });

  test('has no id if the agent reports it, or has no sessions', () => {
    expect(plan({ kind: 'fresh', id: 'mine' }, { sessionId: 'told' }).session).toBeNull();
    expect(plan({ kind: 'fresh', id: null }, { sessionId: 'none' }).session).toBeNull();
  });

  test('has the same id when it is planned again, and another in another turn', () => {
    const first = plan({ kind: 'fresh', id: 'mine' }, {}, 'same');
    expect(plan({ kind: 'fresh', id: 'mine' }, {}, 'same')).toEqual(first);
    expect(plan({ kind: 'fresh', id: 'mine' }).session).toEqual(UUID);
  });
});

describe('a session that is continued', () => {
  test('has cost before what it has been told to have cost', () => {
    sessions.told('s', { usd: 2, tokens: 20 });
    sessions.told('s', { usd: 1, tokens: 30 });
    expect(plan({ kind: 'resume', id: 's' })).toEqual({
      kind: 'resume',
      from: 's',
      session: 's',
      before: { usd: 2, tokens: 30 },
    });
  });

  test('has an unknown cost if nothing is known about it', () => {
    expect(plan({ kind: 'resume', id: 'foreign' })).toMatchObject({ session: 'foreign', before: null });
  });

  test('is begun where it was chosen and never tried, and begun under another id where it was tried and never seen', () => {
    sessions.choose('s', null);
    expect(plan({ kind: 'resume', id: 's' })).toMatchObject({ kind: 'fresh', session: 's' });
    expect(plan({ kind: 'resume', id: 's' })).toMatchObject({ kind: 'fresh', session: UUID });
    sessions.saw('s');
    expect(plan({ kind: 'resume', id: 's' })).toMatchObject({ kind: 'resume', session: 's' });
  });

  test('is forked again where it was to be a fork and never seen', () => {
    sessions.saw('parent');
    plan({ kind: 'fork', id: 'parent', newId: 'child' });
    expect(plan({ kind: 'resume', id: 'child' })).toMatchObject({ kind: 'fork', from: 'parent', session: UUID });
  });
});

describe('a session that is forked', () => {
  test('begins with what its parent has cost', () => {
    sessions.told('parent', { usd: 2, tokens: 20 });
    const forked = plan({ kind: 'fork', id: 'parent', newId: 'child' });
    expect(forked).toEqual({ kind: 'fork', from: 'parent', session: 'child', before: { usd: 2, tokens: 20 } });
    expect(sessionHoles(forked)).toEqual({ session_id: 'parent', new_session_id: 'child' });
  });

  test('is known when it is told, where the agent says its id', () => {
    const forked = plan({ kind: 'fork', id: 'parent', newId: 'child' }, { sessionId: 'told' });
    expect(forked).toMatchObject({ from: 'parent', session: null });
    expect(sessionHoles(forked)).toEqual({ session_id: 'parent' });
  });
});

test('what an adapter has no command for is refused', () => {
  const refused = (wish: SessionWish): unknown =>
    planSession(
      { prefix: join(run, 'turn.'), inRun: 'turn.' },
      wish,
      ADAPTER,
      { ...WAYS, resume: null, fork: null },
      sessions,
    );
  expect(refused({ kind: 'resume', id: 's' })).toEqual({
    ok: false,
    error: 'the adapter odd has no way to resume a session without a terminal',
  });
  expect(refused({ kind: 'fork', id: 's', newId: null })).toEqual({
    ok: false,
    error: 'the adapter odd has no way to fork a session without a terminal',
  });
});

const UNKNOWN = { usd: null, tokens: null };
const told = { usd: 3, tokens: 300 };

describe('what a turn has cost', () => {
  test('is what is told of the turn', () => {
    expect(spentIn({ ...told, scope: 'turn' }, { kind: 'resume', before: null })).toEqual(told);
  });

  test('is what its session has cost more than before', () => {
    const plan = { kind: 'resume', before: { usd: 1, tokens: 100 } } as const;
    expect(spentIn({ ...told, scope: 'session' }, plan)).toEqual({ usd: 2, tokens: 200 });
    expect(spentIn({ usd: 0.5, tokens: null, scope: 'session' }, plan)).toEqual({ usd: 0, tokens: null });
  });

  test('is not known where it is not known what the session had cost', () => {
    expect(spentIn({ ...told, scope: 'session' }, { kind: 'resume', before: null })).toEqual(UNKNOWN);
    const half = { usd: null, tokens: 100 };
    expect(spentIn({ ...told, scope: 'session' }, { kind: 'fork', before: half })).toEqual({ usd: null, tokens: 200 });
  });

  test('is known of the first turn, whatever is counted', () => {
    const scope = 'untold';
    expect(spentIn({ ...told, scope }, { kind: 'fresh', before: { usd: 0, tokens: 0 } })).toEqual(told);
    expect(spentIn({ ...told, scope }, { kind: 'resume', before: { usd: 1, tokens: 1 } })).toEqual(UNKNOWN);
  });

  test('is not known where nothing is told', () => {
    expect(spentIn(null, { kind: 'fresh', before: { usd: 0, tokens: 0 } })).toEqual(UNKNOWN);
  });
});

test('a sum with something unknown in it is unknown', () => {
  expect(sumOf([told, told])).toEqual({ usd: 6, tokens: 600 });
  expect(sumOf([told, { usd: null, tokens: 1 }])).toEqual({ usd: null, tokens: 301 });
  expect(sumOf([])).toBeNull();
});
