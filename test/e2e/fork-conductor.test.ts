// A fork of a Conductor run starts its worktree as the snapshot after the last kept step.

import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConductorRig, rollback, userTree, validate, work } from '../fixtures/conductor/rig.ts';

const CHECK = { id: 'check', kind: 'script', entrypoint: 'check.sh' };

/** implement → check, which fails → fix → check again. */
async function done(): Promise<ConductorRig> {
  const made = await ConductorRig.setup(
    { 'a.txt': 'one\n', 'check.sh': '#!/bin/sh\ngrep fixed a.txt\n' },
    '[conductor]\nallowed_entrypoints = ["check.sh"]\n',
  );
  made.agents({ implement: 'echo two >> a.txt; echo new > b.txt', fix: 'echo fixed >> a.txt; git commit -qam fixed' });
  loop(made);
  expect(await made.run()).toMatchObject({ code: 0 });
  return made;
}

function loop(made: ConductorRig, more: Readonly<Record<string, unknown>> = {}): void {
  const routes = {
    completed: 'STOP',
    error: 'fix',
    killed_timeout: 'STOP',
    killed_idle: 'STOP',
    killed_policy: 'STOP',
  };
  made.workflow({
    implement: work('check'),
    check: { ...validate('STOP', [{ ...CHECK, ...more }]), routes },
    fix: work('check'),
  });
}

async function keptIn({ rig }: ConductorRig, id: string): Promise<readonly string[]> {
  const { steps } = JSON.parse((await rig.meow('status', id, '--json')).stdout) as {
    readonly steps: Readonly<Record<string, { readonly kept_from: string | null }>>;
  };
  return Object.entries(steps).flatMap(([step, { kept_from }]) => (kept_from === null ? [] : [step]));
}

test('--from runs a visit again in the files of the visit before it, and needs nothing of the original', async () => {
  await using made = await done();
  const { rig } = made;
  const turns = made.turns();
  const forked = await rig.meow('fork', 'r', '--from', 'fix#1', '--id', 'f');
  expect(forked.code, forked.stderr + forked.stdout).toBe(0);
  expect(made.turns().slice(turns.length)).toEqual(['fix#1.turn 1']);
  expect(await keptIn(made, 'f')).toEqual(['implement#1', 'check#1']);
  expect(rig.read('.meow/worktrees/f/a.txt')).toBe('one\ntwo\nfixed\n');
  expect(rig.read('.meow/worktrees/f/b.txt')).toBe('new\n');
  expect(rig.files('.meow/run/f/artifacts/implement/1').length).toBeGreaterThan(0);
  expect(rig.read('.meow/worktrees/r/a.txt'), 'the original').toBe('one\ntwo\nfixed\n');
  expect((await rig.meow('status', 'r', '--json')).code).toBe(0);
  rmSync(rig.path('.meow/workflows/r'), { recursive: true });
  rmSync(rig.path('.meow/run/r'), { recursive: true });
  await rig.shell(
    'git worktree remove --force .meow/worktrees/r; rm -r .git/refs/meow/r .git/meow/r; git gc -q --prune=now',
  );
  expect((await rig.meow('fork', 'f', '--from', 'fix#1', '--id', 'g')).code).toBe(0);
  expect(rig.read('.meow/worktrees/g/a.txt')).toBe('one\ntwo\nfixed\n');
});

test('a changed validator runs again in the files of the last agent, and nobody is prompted before', async () => {
  await using made = await done();
  const { rig } = made;
  const turns = made.turns();
  loop(made, { args: ['again'] });
  const forked = await rig.meow('resume', 'r', '--reload');
  expect(forked.code, forked.stderr + forked.stdout).toBe(0);
  expect(made.turns().slice(turns.length)).toEqual(['fix#1.turn 1']);
});

test('a fork rolls back to the state before a kept visit', async () => {
  await using made = await ConductorRig.setup({ 'a.txt': 'one\n' });
  const { rig } = made;
  made.agents({ implement: 'echo two >> a.txt' });
  made.workflow({ implement: work('undo'), undo: rollback('pre_step', 'STOP') });
  expect((await made.run()).code).toBe(0);
  const forked = await rig.meow('fork', 'r', '--from', 'undo#1', '--id', 'f');
  expect(forked.code, forked.stderr + forked.stdout).toBe(0);
  expect(await keptIn(made, 'f')).toEqual(['implement#1']);
  expect(rig.read('.meow/worktrees/f/a.txt')).toBe('one\n');
});

test('a changed validator sees the worktree of the snapshot: new, deleted and binary files, and no later work', async () => {
  await using made = await ConductorRig.setup(
    {
      'a.txt': 'one\n',
      'gone.txt': 'here\n',
      'check.sh': '#!/bin/sh\n{ cat a.txt; ls; od -An -tx1 bin; git status --porcelain; } > "$MEOW_RUN_DIR/seen"\n',
      '.gitattributes': '* text\n',
    },
    '[conductor]\nallowed_entrypoints = ["check.sh"]\n',
  );
  const { rig } = made;
  made.agents({
    implement: String.raw`echo two >> a.txt; rm gone.txt; printf '\000\377\r\n' > bin; mkdir new; echo x > new/file`,
    polish: 'echo three >> a.txt; rm -r new bin; git add -A; git commit -qm polished',
  });
  const steps = { implement: work('check'), check: validate('polish', [CHECK]), polish: work('STOP') };
  made.workflow(steps);
  expect(await made.run()).toMatchObject({ code: 0 });
  const seen = rig.read('.meow/run/r/seen');
  expect(seen).toMatch(/^one\ntwo\na\.txt\nbin\ncheck\.sh\nnew\n 00 ff 0d 0a\n/);
  const [turns, user] = [made.turns(), userTree(rig)];
  const original = await rig.shell(
    'git -C .meow/worktrees/r status --porcelain; git -C .meow/worktrees/r log --format=%H',
  );
  made.workflow({ ...steps, check: validate('polish', [{ ...CHECK, args: ['again'] }]) });
  const forked = await rig.meow('fork', 'r', '--source', 'w.yaml', '--id', 'f');
  expect(forked.code, forked.stderr + forked.stdout).toBe(0);
  expect(rig.read('.meow/run/f/seen')).toBe(seen);
  expect(made.turns().slice(turns.length)).toEqual(['polish#1.turn 1']);
  expect(await keptIn(made, 'f')).toEqual(['implement#1']);
  expect(rig.read('.meow/worktrees/f/a.txt')).toBe('one\ntwo\nthree\n');
  expect(userTree(rig), 'the tree of the user').toEqual(user);
  const after = await rig.shell(
    'git -C .meow/worktrees/r status --porcelain; git -C .meow/worktrees/r log --format=%H',
  );
  expect(after.stdout, 'the worktree of the original').toBe(original.stdout);
  expect((await rig.meow('why', 'f', 'check#1')).stdout).toMatch(/It was not kept from run r: w\.yaml:\d+: .*"again"/);
});
