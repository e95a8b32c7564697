// Workflows whose path is computed at run time: compiled when an answer names them, and kept in the journal.

import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

const SUB = { 'START.md': 'Sub {{input}}. <goto>LAST.md</goto>', 'LAST.md': '<result>from the sub</result>' };

describe('a workflow path that is computed at run time', () => {
  test('is entered from a script, like one that is written', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': 'name=one; echo "<call-workflow return=\\"BACK.md\\" input=\\"x\\">../sub/$name</call-workflow>"',
      'BACK.md': 'It said {{result}}. <result>end</result>',
    });
    ray.folder('sub/one', SUB);
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(ray.prompt('main.2.one-START')).toContain('Sub x.');
    expect(ray.prompt('main.4.BACK')).toContain('It said from the sub.');
    expect((await ray.rig.meow('trace', 'r')).stdout).toContain('loaded the workflow ../sub/one');
    expect(await ray.rig.meow('graph', 'r')).toMatchObject({ code: 0, stdout: expect.stringContaining('one-START') });
  });

  test('is entered from an answer, and computes further ones, also in other languages', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': 'Choose <call-workflow return="BACK.md">{{which}}</call-workflow>',
      'BACK.md': 'B',
    });
    ray.folder('sub/one', {
      'START.sh': 'p=two; echo "<function-workflow return=\\"END.md\\">../$p</function-workflow>"',
      'END.md': 'E',
    });
    ray.folder('sub/two', { 'START.sh': 'p=build; echo "<reset-workflow>../$p.meow.toml</reset-workflow>"' });
    ray.rig.write(
      'sub/build.meow.toml',
      '[main]\n[[main.steps]]\nid = "make"\nexecutor = "shell"\ncommand = "touch made"\n',
    );
    ray.answers(
      { to: 'Choose', says: '<call-workflow return="BACK.md">../sub/one</call-workflow>' },
      { to: 'B', says: '<result>end</result>' },
      { to: 'E', says: '<result>end</result>' },
    );
    const { code, stdout } = await ray.run('flow', '--var', 'which=../sub/one');
    expect({ code, stdout }).toMatchObject({ code: 0 });
    expect(ray.rig.exists('made')).toBe(true);
  });

  test('is the same after the engine was killed, and its files are gone', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': 'name=one; echo "<call-workflow return=\\"BACK.md\\">../sub/$name</call-workflow>"',
      'BACK.md': 'It said {{result}}. <result>end</result>',
    });
    ray.folder('sub/one', SUB);
    ray.answers({ to: 'Sub', says: '<goto>LAST.md</goto>', after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-started main.2.one-START');
    live.kill('SIGKILL');
    await live.ended;
    rmSync(ray.rig.path('sub'), { recursive: true });
    ray.rig.write('go', '');
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.4.BACK')).toContain('It said from the sub.');
  });

  test('is entered by several agents at once, and two of one name stay apart', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh':
        'for p in a/one b/one a/one b/one; do echo "<fork-workflow next=\\"END.md\\">../$p</fork-workflow>"; done',
      'END.md': '<result>end</result>',
    });
    ray.folder('a/one', {
      'START.md': 'This is a. <goto>LAST.md</goto>',
      'LAST.md': 'The last of a. <result>a</result>',
    });
    ray.folder('b/one', {
      'START.md': 'This is b. <goto>LAST.md</goto>',
      'LAST.md': 'The last of b. <result>b</result>',
    });
    expect(await ray.run('flow', '--max-agents', '4')).toMatchObject({ code: 0 });
    const last = [1, 2, 3, 4].map((n) => ray.prompt(`main_one${n}.2.one-LAST`).slice(0, 13));
    expect(last).toEqual(['The last of a', 'The last of b', 'The last of a', 'The last of b']);
  });

  test.each([
    ['../sub/none', 'there is no workflow ../sub/none in flow'],
    ['../../out', '../../out is outside of the project'],
    ['../bad', 'bad has problems: '],
    ['../empty', 'empty is not a workflow'],
    ['', 'it does not name a workflow'],
    ['../cut.zip', 'cut.zip is not a zip archive'],
  ])('that cannot be entered fails with the reason: %s', async (path, message) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': `p="${path}"; echo "<call-workflow return=\\"BACK.md\\">$p</call-workflow>"`,
      'BACK.md': 'B',
    });
    ray.folder('../out', { 'START.md': 'x' });
    ray.folder('bad', { 'START.md': '---\nmax_visits: 3\n---\nx' });
    ray.folder('empty', { 'note.txt': 'x' });
    ray.rig.write('cut.zip', 'PK');
    const { code, stdout } = await ray.run('flow');
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining(message) });
    rmSync(ray.rig.path('../out'), { recursive: true });
  });

  test('is refused by a policy that does not allow it, and not loaded', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md':
        '---\nretries: 0\nallowed_transitions:\n  - { tag: call-workflow, target: ../known, return: BACK.md }\n  - { tag: result }\n---\nGo to ../known or end.',
      'BACK.md': 'B',
    });
    ray.folder('known', SUB);
    ray.folder('sub/one', SUB);
    ray.answers({ to: 'Go', says: '<call-workflow return="BACK.md">../sub/one</call-workflow>' });
    const { code, stdout } = await ray.run('flow');
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('is not allowed here') });
  });
});
