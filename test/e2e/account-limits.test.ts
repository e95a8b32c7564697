// Usage limits that runs share, and quiet hours.

import { expect, test } from 'vitest';

import { Rig, until } from '../rig/rig.ts';

const WORKFLOW = `
[[main.steps]]
id = "worker"
executor = "spawn"
agent = "x"
adapter = "sim"

[[main.steps]]
id = "work"
executor = "agent"
agent = "x"
prompt = "hello"
needs = ["worker"]
retry = { max_attempts = 1 }
`;

interface Decision {
  readonly kind: string;
  readonly step?: string;
  readonly counts?: boolean;
  readonly retryAt?: number | string;
  readonly progress?: { readonly delivery?: string };
  readonly failure?: { readonly waitingFor?: { readonly until: number | string; readonly reportedBy: string } };
}

function decisionsOf(rig: Rig, id: string): readonly (Decision & { readonly at: number })[] {
  const lines = rig
    .read(`.meow/workflows/${id}/journal.jsonl`)
    .split('\n')
    .filter((line) => line.endsWith('}'));
  return lines
    .map((line) => JSON.parse(line) as { at: number | string; decisions: Decision[] })
    .flatMap(({ at, decisions }) => decisions.map((decision) => ({ ...decision, at: msOf(at) })));
}

/** Journals write moments as text. */
function msOf(moment: number | string): number {
  return typeof moment === 'number' ? moment : Date.parse(moment);
}

interface WaitingStatus {
  readonly steps: Readonly<Record<string, { readonly waiting_for: Readonly<Record<string, unknown>> | null }>>;
}

test('a limit that one of eight runs meets keeps the others from starting turns until its reset; then all go on, spread out', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/config.toml', '[accounts]\nspread = "2s"\n');
  rig.write('limited.meow.toml', WORKFLOW);
  rig.write('limited.sim.toml', '[[on]]\ntimes = 1\ndo = [{ limit = "12s" }]\n');
  rig.write('w.meow.toml', WORKFLOW);
  const first = rig.start('run', 'limited.meow.toml', '--id', 'r0');
  await rig.decided('r0', 'step-failed-once work');
  const others = Array.from({ length: 7 }, (_, index) => `r${index + 1}`);
  const running = others.map((id) => rig.start('run', 'w.meow.toml', '--id', id));
  await until(
    () => others.some((id) => rig.exists(`.meow/workflows/${id}/journal.jsonl`) && isWaiting(rig, id)),
    'a run to wait',
  );
  const waiting = others.find((id) => rig.exists(`.meow/workflows/${id}/journal.jsonl`) && isWaiting(rig, id)) ?? '';
  const { stdout } = await rig.meow('status', waiting, '--json');
  const shown = (JSON.parse(stdout) as WaitingStatus).steps['work']?.waiting_for;
  const ended = await Promise.all([first, ...running].map((live) => live.ended));
  expect(ended.map(({ code }) => code)).toEqual(ended.map(() => 0));

  const met = decisionsOf(rig, 'r0').find(({ kind }) => kind === 'step-failed-once')?.failure?.waitingFor?.until ?? 0;
  const reset = msOf(met);
  if (shown !== null)
    expect(shown).toEqual({
      kind: 'limit',
      until: new Date(reset).toISOString(),
      account: expect.stringMatching(/^sim [0-9a-f]{8}$/),
      reported_by: 'r0',
    });
  const starts = ['r0', ...others].map((id) => {
    const decisions = decisionsOf(rig, id);
    // No retry is spent.
    expect(decisions.filter(({ kind, counts }) => kind === 'step-failed-once' && counts !== false)).toEqual([]);
    const waits = decisions.filter(({ kind }) => kind === 'step-failed-once');
    for (const { failure } of waits) expect(failure?.waitingFor).toMatchObject({ until: met, reportedBy: 'r0' });
    const delivered = decisions.filter(({ progress }) => progress?.delivery === 'accepted');
    const began = delivered.at(-1)?.at ?? 0;
    expect(delivered).toHaveLength(id === 'r0' ? 2 : 1);
    expect(began).toBeGreaterThanOrEqual(reset);
    const slot = waits.at(-1)?.retryAt;
    return slot === undefined ? null : msOf(slot);
  });
  // At even distances, as far as they had to wait.
  const slots = starts.filter((slot) => slot !== null).toSorted((a, b) => a - b);
  expect(slots[0]).toBe(reset);
  expect(new Set(slots).size).toBe(slots.length);
  if (slots.length === 8) expect(slots.map((slot) => slot - reset)).toEqual([0, 250, 500, 750, 1000, 1250, 1500, 1750]);
});

function isWaiting(rig: Rig, id: string): boolean {
  return rig.decisions(id).includes('step-failed-once work');
}

test('a run in the background starts no turn in quiet hours; another one does', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/config.toml', '[quiet]\nhours = "00:00-24:00"\n');
  rig.write('w.meow.toml', WORKFLOW);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'loud')).code).toBe(0);
  const quiet = rig.start('run', 'w.meow.toml', '--id', 'quiet', '--background');
  await rig.decided('quiet', 'step-failed-once work');
  const { stdout } = await rig.meow('status', 'quiet', '--json');
  expect((JSON.parse(stdout) as WaitingStatus).steps['work']?.waiting_for).toEqual({
    kind: 'quiet',
    until: null,
    account: null,
    reported_by: null,
  });
  expect(decisionsOf(rig, 'quiet').filter(({ progress }) => progress?.delivery !== undefined)).toEqual([]);
  expect((await rig.meow('stop', 'quiet')).code).toBe(0);
  await quiet.ended;
});
