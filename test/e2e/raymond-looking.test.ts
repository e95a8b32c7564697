// Raymond workflows before they run, and their display while they run.

import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

const END = '<result>end</result>';

describe('the workflow argument', () => {
  test.each<{ what: string; files: Readonly<Record<string, string>>; path: string; steps: readonly string[] }>([
    { what: 'a folder with START.md', files: { 'START.md': END }, path: 'flow', steps: ['main.1.START'] },
    { what: 'a folder with 1_START.md', files: { '1_START.md': END }, path: 'flow/', steps: ['main.1.1_START'] },
    { what: 'a folder with START.sh', files: { 'START.sh': `echo '${END}'` }, path: './flow', steps: ['main.1.START'] },
    { what: 'a prompt', files: { 'START.md': END, 'B.md': END }, path: 'flow/B.md', steps: ['main.1.B'] },
    {
      what: 'a file with states',
      files: { 'one.yaml': `states:\n  START:\n    prompt: <goto>B</goto>\n  B:\n    sh: echo '${END}'\n` },
      path: 'flow/one.yaml',
      steps: ['main.1.START', 'main.2.B'],
    },
  ])('$what', async ({ files, path, steps }) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', files);
    expect(await ray.run(path)).toMatchObject({ code: 0, stderr: '' });
    const status = await ray.rig.status('r');
    expect(status).toMatchObject({ language: 'raymond', status: 'done' });
    expect(Object.keys(status.steps)).toEqual(steps);
  });

  test('a bare name is searched in the folders for workflows', async () => {
    await using ray = await RaymondRig.setup();
    ray.rig.write('.meow/templates/chores/START.md', END);
    expect(await ray.run('chores')).toMatchObject({ code: 0 });
  });

  test('states may have any file name', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<goto>my state.md</goto>',
      'my state.md': '<goto>Größe.v2</goto>',
      'Größe.v2.md': '<goto>__proto__</goto>',
      '__proto__.md': '<goto>constructor.sh</goto>',
      'constructor.sh': `echo '<result>end</result>'`,
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(Object.keys((await ray.rig.status('r')).steps)).toEqual([
      'main.1.START',
      'main.2.my_state',
      'main.3.Gr__e_v2',
      'main.4.__proto__',
      'main.5.constructor',
    ]);
  });

  test('a workflow whose agents cannot be started is refused before it begins', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '<reset>B.md</reset>', 'B.md': `---\nadapter: nobody\n---\n${END}` });
    const { code, stderr } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stderr).toContain('flow/B.md:1:1: error adapter-unavailable: there is no adapter "nobody"');
    expect(ray.rig.exists('.meow/workflows/r')).toBe(false);
    expect(await ray.run('flow', '--adapter', 'fake')).toMatchObject({ code: 0, stderr: '' });
  });

  test('two start states are refused, and both are named', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': END, '1_START.md': END });
    const { code, stderr } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stderr).toContain('two-starts: the workflow may begin with 1_START.md or START.md');
    expect(ray.rig.exists('.meow/workflows/r')).toBe(false);
  });

  test('an ambiguous name is rejected with a reminder that lists both meanings', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', 'B.md': END, 'B.sh': `echo '${END}'` });
    ray.answers({ to: 'Begin', says: '<goto>B</goto>' }, { to: 'write the full name', says: '<goto>B.sh</goto>' });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).toContain('<goto>: "B" may mean B.md or B.sh; write the full name');
  });

  test('a link that points outside the folder is not a state, one inside it is', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', 'parts/IN.md': END });
    ray.rig.write('OUT.md', END);
    symlinkSync('../OUT.md', ray.rig.path('flow/OUT.md'));
    symlinkSync('parts/IN.md', ray.rig.path('flow/IN.md'));
    ray.answers({ to: 'Begin', says: '<goto>OUT.md</goto>' }, { to: 'no state "OUT.md"', says: '<goto>IN.md</goto>' });
    const { code, stderr } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stderr).toContain('leads-out: OUT.md is a link to a file outside of the folder');
    expect(ray.turns().map(({ step }) => step)).toEqual(['main.1.START', 'main.1.START', 'main.2.IN']);
  });

  test('other files next to the prompts are ignored', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': END, 'README.md': 'Read me.', 'notes.txt': 'x', '.hidden.md': '---\n: [' });
    writeFileSync(ray.rig.path('flow/secret.pem'), 'x', { mode: 0 });
    mkdirSync(ray.rig.path('flow/folder.md'));
    expect(await ray.rig.meow('validate', 'flow')).toMatchObject({ code: 0, stderr: '' });
    chmodSync(ray.rig.path('flow/secret.pem'), 0o600);
  });

  test('a run keeps the workflow that it started with', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '<goto>NEXT.md</goto>', 'NEXT.md': 'as it was <result>end</result>' });
    ray.answers({ to: 'as it was', says: END }, { to: 'goto', says: '<goto>NEXT.md</goto>', after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-started main.1.START');
    ray.folder('flow', { 'NEXT.md': '---\nmodel: [\n---\nas it is' });
    ray.rig.write('go', '');
    expect(await live.ended).toMatchObject({ code: 0 });
    expect(ray.prompt('main.2.NEXT')).toContain('as it was');
  });
});

describe('meow validate', () => {
  test('reports all problems at once, each with its position', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': `---
allowed_tags: [goto, resul]
allowed_targets: { goto: [NOPE.md] }
colour: red
---
Go on: <goto>LOOP.md</goto> <call>A.md</call> <reset>LOOP.md</reset>`,
      'LOOP.md': '<goto>LOOP.md</goto> {{nobody}}',
      'A.md': '<call return="LOOP.md">LOOP.md</call>',
      'FORK.md': '<fork next="FORK.md">A.md</fork>',
      'YAML.md': '---\nmodel: "x\n---\ny',
    });
    const { code, stdout } = await ray.rig.meow('validate', 'flow');
    expect(code).toBe(1);
    const found = stdout.matchAll(/^flow\/(\S+): (?:error|warning) ([\w-]+):/gm);
    expect([...found].map(([, place, code]) => `${place} ${code}`)).toEqual([
      'A.md:1:1 unreachable-state',
      'A.md:1:1 never-returns',
      'FORK.md:1:1 unreachable-state',
      'LOOP.md:1:1 unreachable-state',
      'LOOP.md:1:22 unknown-placeholder',
      'START.md:1:1 no-result',
      'START.md:2:22 unknown-tag',
      'START.md:3:27 missing-target',
      'START.md:4:1 unknown-key',
      'START.md:6:8 contradicting-policy',
      'START.md:6:29 missing-attribute',
      'START.md:6:29 contradicting-policy',
      'START.md:6:47 contradicting-policy',
      'YAML.md:1:1 unreachable-state',
      'YAML.md:2:9 invalid-yaml',
    ]);
  });

  test('warns about a call if the adapter cannot fork', async () => {
    await using ray = await RaymondRig.setup();
    const toml = ray.rig.read('.meow/adapters/fake/adapter.toml');
    ray.rig.write('.meow/adapters/fake/adapter.toml', toml.replace(/^fork = .*\n/m, ''));
    ray.folder('flow', { 'START.md': '<call return="B.md">A.md</call>', 'A.md': END, 'B.md': END });
    const { code, stdout } = await ray.rig.meow('validate', 'flow');
    expect(code).toBe(1);
    expect(stdout).toContain('flow/START.md:1:1: error cannot-fork');
    const run = await ray.run('flow');
    expect(run.stderr).toContain('cannot-fork');
  });

  test('reports problems of a state that nothing leads to, and runs start without it', async () => {
    await using ray = await RaymondRig.setup();
    const toml = ray.rig.read('.meow/adapters/fake/adapter.toml');
    ray.rig.write('.meow/adapters/fake/adapter.toml', toml.replace(/^fork = .*\n/m, ''));
    ray.folder('flow', {
      'START.md': 'Begin. <result>end</result>',
      'NOTES.md': '---\nmodel: [\n---\nThings to do.',
      'OLD.md': '<call return="START.md">NOTES.md</call>',
    });
    ray.answers({ to: 'Begin', says: '<goto>NOTES.md</goto>', times: 1 }, { to: '', says: END });
    expect((await ray.rig.meow('validate', 'flow')).stdout).toMatch(
      /NOTES.*warning invalid-yaml[^]*OLD.*warning cannot-fork/,
    );
    const { code, stderr } = await ray.run('flow');
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('warning invalid-yaml') });
    expect(ray.turns()).toHaveLength(2);
  });

  test('meow run --dry-run compiles and starts nothing', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '<goto>B.md</goto>', 'B.md': END });
    const { code, stdout } = await ray.run('flow', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain('START');
    expect(ray.turns()).toEqual([]);
    expect(ray.rig.exists('.meow/workflows/r')).toBe(false);
  });
});

describe('meow graph', () => {
  const FLOW = {
    'START.md': '<call return="BACK.md">LOOK.md</call> or <reset>START.md</reset>',
    'LOOK.md': '<result>found</result>',
    'BACK.md': '---\nmax_visits: 2\nthen: LAST.md\n---\n<fork next="LAST.md">WORKER.md</fork>',
    'WORKER.md': END,
    'LAST.md': END,
  };

  test('draws the states and transitions', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', FLOW);
    const { code, stdout } = await ray.rig.meow('graph', 'flow', '--format', 'text');
    expect(code).toBe(0);
    expect(stdout).toBe(`flow
  START   prompt
    → call LOOK.md: LOOK, BACK
    → reset START.md: START
  LOOK    prompt
  BACK    prompt
    → fork WORKER.md: WORKER
    → next after fork WORKER.md: LAST
    → after 2 visits: LAST
  WORKER  prompt
  LAST    prompt
`);
  });

  test.each(['mermaid', 'dot', 'json'])('as %s', async (format) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', FLOW);
    const { code, stdout } = await ray.rig.meow('graph', 'flow', '--format', format);
    expect(code).toBe(0);
    for (const state of ['START', 'LOOK', 'BACK', 'WORKER', 'LAST']) expect(stdout).toContain(state);
  });
});

describe('meow status --json', () => {
  test('shows agents with their state, session, folder and return stack', async () => {
    await using ray = await RaymondRig.setup();
    mkdirSync(ray.rig.path('sub'));
    ray.folder('flow', {
      'START.md': '<fork next="CALL.md" item="x" cd="sub">WORKER.md</fork>',
      'CALL.md': '<call return="BACK.md">LOOK.md</call>',
      'LOOK.md': '<function return="FOUND.sh">DEEP.md</function>',
      'DEEP.md': 'Deep down.',
      'FOUND.sh': `echo '${END}'`,
      'BACK.md': END,
      'WORKER.md': 'At work.',
    });
    ray.answers({ to: 'Deep down', says: END, after: 'go' }, { to: 'At work', says: END, after: '../go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r', '--meta', 'issue=195');
    await ray.rig.decided('r', 'step-progressed main.4.DEEP');
    await ray.rig.decided('r', 'step-progressed main_worker1.1.WORKER');
    const begun = (step: string): string => ray.lines().find(([each]) => each === step)?.[3] ?? '';
    const status = await ray.rig.status('r');
    expect(status).toMatchObject({
      language: 'raymond',
      source: 'flow',
      status: 'running',
      meta: { issue: '195' },
      agents: [
        {
          id: 'main',
          status: 'active',
          adapter: 'fake',
          session: begun('main.4.DEEP'),
          workdir: ray.rig.folder,
          current_step: 'main.4.DEEP',
          state: 'DEEP.md',
          stack: [
            { session: begun('main.1.START'), state: 'BACK.md' },
            { session: begun('main.3.LOOK'), state: 'FOUND.sh' },
          ],
        },
        {
          id: 'main_worker1',
          status: 'active',
          session: begun('main_worker1.1.WORKER'),
          workdir: ray.rig.path('sub'),
          current_step: 'main_worker1.1.WORKER',
          state: 'WORKER.md',
          stack: [],
        },
      ],
    });
    ray.rig.write('go', '');
    expect(await live.ended).toMatchObject({ code: 0 });
    expect(await ray.rig.status('r')).toMatchObject({
      agents: [
        { id: 'main', current_step: null, state: null, stack: [], session: begun('main.1.START') },
        { id: 'main_worker1', current_step: null, state: null, stack: [] },
      ],
    });
  });

  test('shows the states in the order of their visits, and the result of the run', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '<goto>B.md</goto>', 'B.md': '<result>all is well</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    const status = await ray.rig.status('r');
    expect(Object.entries(status.steps).map(([id, { status: each }]) => [id, each])).toEqual([
      ['main.1.START', 'done'],
      ['main.2.B', 'done'],
    ]);
    expect(status).toMatchObject({ result: 'all is well' });
  });
});

test('a stopped run resumes where it left off', async () => {
  await using ray = await RaymondRig.setup();
  ray.folder('flow', {
    'START.md': '<call return="BACK.md">LOOK.md</call>',
    'LOOK.md': 'Look around.',
    'BACK.md': END,
  });
  ray.answers({ to: 'Look around', says: '<result>found</result>', after: 'go' });
  const live = ray.rig.start('run', 'flow', '--id', 'r');
  await ray.rig.decided('r', 'step-progressed main.2.LOOK');
  expect(await ray.rig.meow('stop', 'r')).toMatchObject({ code: 0 });
  expect(await live.ended).toMatchObject({ code: 143 });
  expect(await ray.rig.left()).toEqual([]);
  ray.rig.write('go', '');
  expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  expect(ray.turns().map(({ step, session }) => `${step} ${session}`)).toEqual([
    'main.1.START fresh',
    'main.2.LOOK fork main.1.START',
    'main.2.LOOK fork main.1.START',
    'main.3.BACK resume main.1.START',
  ]);
});
