// Something else in the place of a run's files: no command hangs, and the other runs are in nobody's way.

import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Rig, shellStep } from '../rig/rig.ts';

test('runs with planted files are listed as unreadable, and each command says what is wrong', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  const file = (path: string): string => rig.path(`.meow/workflows/${path}`);
  const plant: Readonly<Record<string, (path: string) => void | Promise<unknown>>> = {
    pipe: (path) => rig.shell(`mkfifo ${path}`),
    folder: (path) => mkdirSync(path),
    loop: (path) => symlinkSync(path, path),
    endless: (path) => symlinkSync('/dev/zero', path),
  };
  const planted: string[] = [];
  for (const [what, put] of Object.entries(plant)) {
    for (const name of ['journal.jsonl', 'program.json']) {
      const id = `${what}-${name.split('.')[0]}`;
      await rig.meow('run', 'w.meow.toml', '--id', id);
      rmSync(file(`${id}/${name}`));
      await put(file(`${id}/${name}`));
      planted.push(id);
    }
  }
  await rig.meow('run', 'w.meow.toml', '--id', 'fine');
  // The lock of a run that has ended.
  await rig.shell(`mkfifo ${file('fine.yaml.lock')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'good');
  writeFileSync(file('not-a-run'), '');

  const listed = await rig.meow('list');
  expect(listed).toMatchObject({ stderr: '', code: 0 });
  const rows = new Map(listed.stdout.split('\n').map((line) => line.split(/ +/).slice(0, 2) as [string, string]));
  expect(rows.get('good')).toBe('done');
  for (const id of planted) expect(rows.get(id), id).toBe('unreadable');
  const found = JSON.parse((await rig.meow('list', '--json', '--status', 'unreadable')).stdout) as { id: string }[];
  expect(found.map(({ id }) => id).toSorted()).toEqual(planted.toSorted());
  for (const command of ['gates', 'agents']) expect(await rig.meow(command)).toMatchObject({ code: 0, stdout: '' });
  for (const id of planted) {
    for (const command of ['status', 'trace', 'resume']) {
      const { code, stderr } = await rig.meow(command, id);
      expect({ code, stderr }, `${command} ${id}`).toEqual({
        code: 2,
        stderr: expect.stringMatching(
          /^meow: .*(?:link|other than a file|a folder where a file is needed).*\n {2}.*\n$/,
        ) as unknown,
      });
    }
  }
});
