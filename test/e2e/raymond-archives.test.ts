// Zip archives of a folder: run, validated, shown and resumed like the folder.

import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RaymondRig } from '../fixtures/raymond/rig.ts';
import { type Entry, zipOf } from '../fixtures/raymond/zip.ts';

const FLOW: readonly Entry[] = [
  { name: 'START.md', text: 'Begin. <goto>CHECK.sh</goto>' },
  {
    name: 'CHECK.sh',
    text: '#!/bin/sh\nnote=$(cat "$(dirname "$0")/data/note.txt")\necho "<goto input=\'$note\'>NEXT.md</goto>"\n',
    mode: 0o100_755,
  },
  { name: 'data/note.txt', text: 'from the archive' },
  { name: 'NEXT.md', text: 'Use {{input}}. <call-workflow return="END.md">sub/one</call-workflow>' },
  { name: 'END.md', text: 'It was {{result}}. <result>end</result>' },
  { name: 'sub/one/START.md', text: '<result>sub</result>' },
];

function write(ray: RaymondRig, name: string, entries: readonly Entry[]): Buffer {
  const zip = zipOf(entries);
  writeFileSync(ray.rig.path(name), zip);
  return zip;
}

describe('a zip archive of a folder', () => {
  test.each([
    ['with the states at its top', FLOW],
    ['with the folder in it', FLOW.map((entry) => ({ ...entry, name: `flow/${entry.name}` }))],
  ])('%s is run, with its scripts and the files beside them', async (_how, entries) => {
    await using ray = await RaymondRig.setup();
    write(ray, 'z1.zip', entries);
    expect(await ray.run('z1.zip')).toMatchObject({ code: 0, stderr: '' });
    expect(ray.prompt('main.3.NEXT')).toContain('Use from the archive.');
    expect(ray.prompt('main.5.END')).toContain('It was sub.');
  });

  test('is validated and shown like the folder', async () => {
    await using ray = await RaymondRig.setup();
    write(ray, 'z1.zip', [...FLOW.slice(1), { name: 'START.md', text: '<goto>NOWHERE.md</goto>' }]);
    const { code, stdout } = await ray.rig.meow('validate', 'z1.zip');
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('z1.zip/START.md:1:1: error') });
    write(ray, 'z2.zip', FLOW);
    expect(await ray.rig.meow('graph', 'z2.zip')).toMatchObject({ code: 0, stdout: expect.stringContaining('CHECK') });
  });

  test('is not opened if it merely is beside the workflow', async () => {
    await using ray = await RaymondRig.setup();
    writeFileSync(ray.rig.path('broken.zip'), 'not a zip');
    writeFileSync(ray.rig.path('START.sh'), 'echo "<result>x</result>"');
    expect(await ray.run('START.sh')).toMatchObject({ code: 0, stderr: '' });
  });

  test('is not needed any more once the run has started', async () => {
    await using ray = await RaymondRig.setup();
    write(ray, 'z1.zip', FLOW);
    ray.answers({ to: 'Begin', says: 'no', exit: 1, times: 1 });
    expect(await ray.run('z1.zip')).toMatchObject({ code: 1 });
    rmSync(ray.rig.path('z1.zip'));
    const { code, stderr } = await ray.rig.meow('resume', 'r');
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('z1.zip') });
    expect(ray.prompt('main.3.NEXT')).toContain('Use from the archive.');
  });

  test('is entered by another workflow, and may be simulated', async () => {
    await using ray = await RaymondRig.setup();
    write(ray, 'lib.zip', FLOW);
    ray.folder('flow', { 'START.md': '<reset-workflow>../lib.zip</reset-workflow>' });
    expect(await ray.run('flow', '--adapter', 'sim')).toMatchObject({ code: 0 });
  });

  test.each([
    ['is cut off', zipOf(FLOW).subarray(0, 200), 'bad.zip is not a zip archive, or is cut off'],
    ['is encrypted', zipOf([{ name: 'START.md', text: 'x', flags: 1 }]), 'bad.zip is encrypted: "START.md"'],
    ['leads out', zipOf([{ name: '../START.md', text: 'x' }]), 'bad.zip has the entry "../START.md"'],
    ['has no start', zipOf([{ name: 'OTHER.md', text: 'x' }]), 'the workflow has no state to begin with'],
  ])('that %s is refused with its reason', async (_what, zip, message) => {
    await using ray = await RaymondRig.setup();
    writeFileSync(ray.rig.path('bad.zip'), zip);
    for (const command of ['run', 'validate', 'graph']) {
      const { code, stdout, stderr } = await ray.rig.meow(command, 'bad.zip');
      expect({ command, code, said: `${stdout}${stderr}` }).toEqual({
        command,
        code: 1,
        said: expect.stringContaining(message),
      });
    }
  });

  test('has the SHA-256 that its name claims', async () => {
    await using ray = await RaymondRig.setup();
    const hash = createHash('sha256').update(zipOf(FLOW)).digest('hex');
    write(ray, `flow-${hash}.zip`, FLOW);
    write(ray, `other-${hash}.zip`, FLOW.slice(0, 1));
    expect(await ray.rig.meow('validate', `flow-${hash}.zip`)).toMatchObject({ code: 0 });
    const { code, stderr } = await ray.run(`other-${hash}.zip`);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('does not have the SHA-256') });
  });
});
