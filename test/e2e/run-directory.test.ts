// The files of a repository run for people, where agents may write too, and what the run releases at its end.

import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConductorRig, leadsTo, outcomes, validate, work } from '../fixtures/conductor/rig.ts';

test('nothing is written through a link that an agent created in the run directory', async () => {
  await using made = await ConductorRig.setup({ 'mine.txt': 'mine\n' });
  const links = ['transcript.md', 'final-state.txt', 'diff.patch', 'diff.patch.new'];
  const lay = links.map((name) => `ln -s "$MEOW_RUN_DIR/../../../mine.txt" "$MEOW_RUN_DIR/${name}"`);
  made.agents({ work: [...lay, 'echo new > new.txt', 'echo done'].join('; ') });
  made.workflow({ work: work('STOP') });
  expect(await made.run()).toMatchObject({ code: 0, stderr: '' });
  expect(made.rig.read('mine.txt')).toBe('mine\n');
  expect(made.rig.read('.meow/run/r/final-state.txt')).toMatch(/^status: done$/m);
  expect(made.rig.read('.meow/run/r/diff.patch')).toContain('new.txt');
});

test('files of the run directory are private to their user', async () => {
  await using made = await ConductorRig.setup({});
  made.agents({ work: 'echo new > new.txt; echo done' });
  made.workflow({ work: work('STOP') });
  expect(await made.run()).toMatchObject({ code: 0 });
  const folder = made.rig.path('.meow/run/r');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => !name.endsWith('.gitignore'),
  );
  const shared = files.filter((name) => {
    const stat = lstatSync(join(folder, name));
    return stat.isFile() && (stat.mode & 0o077) !== 0;
  });
  expect(files).toContain('artifacts/work/1/manifest.json');
  expect(shared).toEqual([]);
});

test('a tree that a run only inspected in place is free for the next run', async () => {
  await using made = await ConductorRig.setup({}, '[validators.never]\ncommand = "exit 1"\n');
  made.agents({ work: 'echo done' });
  const routes = leadsTo('work');
  made.workflow({ check: validate('work', ['never'], { routes }), work: work('STOP') });
  expect(await made.run('--in-place')).toMatchObject({ code: 1 });
  expect(await outcomes(made.rig)).toContain('check#1 error');
  expect(made.rig.exists('.git/meow-lease.json')).toBe(false);
});
