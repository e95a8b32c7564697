// Inputs and working directories of states, scripts, and questions to people.

import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

describe('placeholders', () => {
  test('stand for the input, the state, its visit, the agent, the run, --var and --meta', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md':
        'in={{input}} {{state}} {{visit}} {{agent_id}} {{workflow_id}} {{issue}} {{team}} <goto input="a b">NEXT.md</goto>',
      'NEXT.md': '[{{input}}][{{result}}] {{issue}} {{state}} {{visit}} <result>end</result>',
    });
    const given = ['--var', 'input=first', '--var', 'issue=195', '--meta', 'team=blue'];
    expect(await ray.run('flow', ...given)).toMatchObject({ code: 0, stderr: '' });
    expect(ray.prompt('main.1.START')).toMatch('in=first START 1 main r 195 blue <goto');
    expect(ray.prompt('main.2.NEXT')).toMatch('[a b][a b] 195 NEXT 1 <result>');
    expect(await ray.rig.status('r')).toMatchObject({ vars: { issue: '195' }, meta: { team: 'blue' } });
  });

  test('are replaced once, whatever the value contains', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': 'Begin.',
      'NEXT.md': '[{{input}}] {{{{input}} {{ a b }} {{.Names}} <result>end</result>',
    });
    ray.answers({ to: 'Begin', says: '<goto input="{{state}} {{nobody}} $(id) &amp;">NEXT.md</goto>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(ray.prompt('main.2.NEXT')).toBe(
      '[{{state}} {{nobody}} $(id) &amp;] {{input}} {{ a b }} {{.Names}} <result>end</result>',
    );
  });

  test('a result is passed unchanged, except for one line break at each end', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<call return="NEXT.md">LOOK.md</call>',
      'LOOK.md': 'Look.',
      'NEXT.md': 'It came to [{{result}}]',
    });
    ray.answers(
      { to: 'It came to', says: '<result>end</result>' },
      { to: 'Look', says: '<result>\n\n  <b>bold</b> <goto>X.md</goto>\ttab "quoted"\n\n</result>' },
    );
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.NEXT')).toBe('It came to [\n  <b>bold</b> <goto>X.md</goto>\ttab "quoted"\n]');
  });

  test('without a value cause a warning, and fail the state before an agent sees it', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '<goto>NEXT.md</goto>', 'NEXT.md': 'Do {{isue}}. <result>end</result>' });
    const { code, stdout, stderr } = await ray.run('flow', '--var', 'issue=1');
    expect(code).toBe(1);
    expect(stderr).toContain('flow/NEXT.md:1:4: warning unknown-placeholder');
    expect(stderr).toContain('issue');
    expect(stdout).toContain('failed: main.2.NEXT (variable_unresolved');
    expect(stdout).toContain('{{isue}} is unknown');
    expect(ray.turns()).toHaveLength(1);
  });

  test('a prompt may be larger than any program argument', async () => {
    await using ray = await RaymondRig.setup();
    const large = 'word '.repeat(100_000);
    ray.folder('flow', { 'START.md': `${large}<result>end</result>` });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.1.START')).toHaveLength(large.length + '<result>end</result>'.length);
  });

  test('a result over 1 MB reaches the prompt that uses it', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<call return="NEXT.md">LOOK.sh</call>',
      'LOOK.sh': 'printf "<result>"; head -c 3000000 /dev/zero | tr "\\0" x; echo "</result>"',
      'NEXT.md': 'It came to {{result}}',
    });
    ray.answers({ to: 'It came to', says: '<result>end</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.NEXT')).toHaveLength('It came to '.length + 3_000_000);
  });

  test('an answer over 1 MB is read to its end, and asked for once', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', 'NEXT.md': '[{{input}}] <result>end</result>' });
    const long = 'word '.repeat(300_000);
    ray.answers({ to: 'Begin', says: `<print>so far</print> ${long}<goto input="found">NEXT.md</goto>` });
    const { code, stdout } = await ray.run('flow');
    expect({ code, printed: stdout.includes('so far') }).toEqual({ code: 0, printed: true });
    expect(ray.prompt('main.2.NEXT')).toContain('[found]');
    expect(ray.turns().map(({ step }) => step)).toEqual(['main.1.START', 'main.2.NEXT']);
  });
});

describe('texts for people', () => {
  test('are shown when they are said, once, also if the engine is killed meanwhile', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh':
        'echo "<print>half</print>"; until [ -e go ]; do sleep 0.02; done; echo "<print>all</print><goto>SAY.md</goto>"',
      'SAY.md': 'Say it. <print>so</print> <result>end</result>',
    });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-printed main.1.START');
    live.kill('SIGKILL');
    await live.ended;
    ray.rig.write('go', '');
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    const printed = ray.journal().flatMap(({ decisions }) => decisions.filter(({ kind }) => kind === 'step-printed'));
    expect(printed.map(({ text }) => text)).toEqual(['half', 'all', 'so']);
  });
});

describe('task folders', () => {
  test('each agent has one, for prompts and scripts, made when it is used', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': 'Begin. <fork next="KEEP.sh" item="a">WORK.md</fork>',
      'KEEP.sh': 'echo kept > "$RAYMOND_TASK_FOLDER/note"; echo "<goto>DONE.md</goto>"',
      'DONE.md': 'Look into {{task_folder}}. <result>end</result>',
      'WORK.md': 'Work without a folder. <result>end</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    const folder = ray.rig.path('.meow/workflows/r/tasks/main');
    expect(ray.prompt('main.3.DONE')).toBe(`Look into ${folder}. <result>end</result>`);
    expect(ray.rig.read('.meow/workflows/r/tasks/main/note')).toBe('kept\n');
    expect(ray.rig.exists('.meow/workflows/r/tasks/main_work1')).toBe(false);
  });
});

describe('a run may start', () => {
  test('at a script', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Never.', 'CHECK.sh': 'echo "<result>checked</result>"' });
    expect(await ray.run('flow/CHECK.sh')).toMatchObject({ code: 0 });
    expect(ray.turns()).toEqual([]);
  });

  test('at a state of a YAML file, which others may call, too', async () => {
    await using ray = await RaymondRig.setup();
    ray.rig.write('flow.yaml', 'states:\n  START: { prompt: Never. }\n  LAST: { prompt: "<result>last</result>" }\n');
    expect(await ray.run('flow.yaml/LAST')).toMatchObject({ code: 0 });
    expect(ray.turns().map(({ step }) => step)).toEqual(['main.1.LAST']);
    ray.folder('caller', {
      'START.md': '<call-workflow return="END.md">../flow.yaml/LAST</call-workflow>',
      'END.md': '[{{result}}] <result>end</result>',
    });
    expect(await ray.rig.meow('run', 'caller', '--id', 'other')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.END')).toContain('[last]');
    expect(await ray.rig.meow('run', 'flow.yaml/NONE')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"NONE"'),
    });
    ray.rig.write('w.yaml', 'workflow_id: w\n');
    expect(await ray.rig.meow('run', 'w.yaml/X')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no states'),
    });
  });
});

describe('agent settings', () => {
  test('a tag overrides front matter, which overrides workflow.yaml, for model and effort', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'workflow.yaml': 'model: of-all\neffort: low\n',
      'START.md': '<goto>OWN.md</goto>',
      'OWN.md':
        '---\nmodel: its-own\n---\n<function return="BACK.md" model="of-the-tag" effort="high">OWN.md</function>',
      'BACK.md': '<result>end</result>',
    });
    ray.answers(
      {
        to: 'of-the-tag',
        says: '<function return="BACK.md" model="of-the-tag" effort="high">OWN.md</function>',
        times: 1,
      },
      { to: 'of-the-tag', says: '<result>x</result>' },
    );
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.lines().map(([step, , , , , ...args]) => [step, ...args].join(' '))).toEqual([
      'main.1.START model=of-all effort=low',
      'main.2.OWN model=its-own effort=low',
      'main.3.OWN model=of-the-tag effort=high',
      'main.4.BACK model=of-all effort=low',
    ]);
  });

  test('front matter or a tag can set the adapter of a session, and the caller’s applies again after it', async () => {
    await using ray = await RaymondRig.setup();
    const other = ray.rig.read('.meow/adapters/fake/adapter.toml').replaceAll('"fake"', '"other"');
    ray.rig.write('.meow/adapters/other/adapter.toml', other.replace('model={{model}}', 'x'));
    ray.folder('flow', {
      'START.md': '<function return="BACK.md" adapter="other">JUDGE.md</function>',
      'JUDGE.md': '<goto>JUDGE2.md</goto>',
      'JUDGE2.md': '<result>yes</result>',
      'BACK.md': '<reset>OTHER.md</reset>',
      'OTHER.md': '---\nadapter: other\n---\n<goto>LAST.md</goto>',
      'LAST.md': '<result>end</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    const adapters = Object.fromEntries(
      ray
        .journal()
        .flatMap(({ decisions }) =>
          decisions.flatMap(({ kind, step, effect }) =>
            kind === 'step-started' ? [[step, (effect as { adapter: string }).adapter]] : [],
          ),
        ),
    );
    expect(adapters).toEqual({
      'main.1.START': 'fake',
      'main.2.JUDGE': 'other',
      'main.3.JUDGE2': 'other',
      'main.4.BACK': 'fake',
      'main.5.OTHER': 'other',
      'main.6.LAST': 'other',
    });
  });

  test('a session is not continued by another adapter', async () => {
    await using ray = await RaymondRig.setup();
    const other = ray.rig.read('.meow/adapters/fake/adapter.toml').replaceAll('"fake"', '"other"');
    ray.rig.write('.meow/adapters/other/adapter.toml', other);
    ray.folder('flow', { 'START.md': 'Begin.', 'OTHER.md': '---\nadapter: other\n---\n<result>end</result>' });
    ray.answers({ to: '', says: '<goto>OTHER.md</goto>' });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('<goto> continues a session of fake, so it cannot use other; use <reset>');
  });
});

describe('working directories', () => {
  /** The working directory of each step, relative to the project. */
  function folders(ray: RaymondRig): Readonly<Record<string, string>> {
    const lines = ray.rig.read('.agent/folders').trimEnd().split('\n');
    return Object.fromEntries(
      lines.map((line) => line.split('\t')).map(([step = '', at = '']) => [step, at.slice(ray.rig.folder.length)]),
    );
  }

  test('cd with reset, function and fork applies from then on; a return restores it, a worker inherits it', async () => {
    await using ray = await RaymondRig.setup();
    mkdirSync(ray.rig.path('sub/deep'), { recursive: true });
    ray.folder('flow', {
      'START.md': '<function return="BACK.md" cd="sub">THERE.md</function>',
      'THERE.md': '<goto>SCRIPT.sh</goto>',
      'SCRIPT.sh': 'pwd > "$AGENT_PWD"; echo "<result>x</result>"',
      'BACK.md': '<reset cd="./sub">RESET.md</reset>',
      'RESET.md': '<fork next="NEXT.md" cd="deep">WORKER.md</fork><fork next="NEXT.md">HEIR.md</fork>',
      'WORKER.md': '<result>x</result>',
      'HEIR.md': '<result>x</result>',
      'NEXT.md': '<reset cd="..">LAST.md</reset>',
      'LAST.md': '<result>end</result>',
    });
    const { code, stderr } = await ray.rig.meowWith(
      { AGENT_PWD: ray.rig.path('script-pwd') },
      'run',
      'flow',
      '--id',
      'r',
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(folders(ray)).toEqual({
      'main.1.START': '',
      'main.2.THERE': '/sub',
      'main.4.BACK': '',
      'main.5.RESET': '/sub',
      'main_worker1.1.WORKER': '/sub/deep',
      'main_heir2.1.HEIR': '/sub',
      'main.6.NEXT': '/sub',
      'main.7.LAST': '',
    });
    expect(ray.rig.read('script-pwd')).toBe(`${ray.rig.path('sub')}\n`);
  });

  test.each([
    ['an absolute path', (rig: string) => join(rig, '../home')],
    ['a path upwards', () => '../home'],
    ['a link', () => 'link'],
  ])('%s that points outside the project needs --allow-outside', async (_what, cd) => {
    await using ray = await RaymondRig.setup();
    symlinkSync(ray.rig.home, ray.rig.path('link'));
    ray.folder('flow', {
      'START.md': `<reset cd="${cd(ray.rig.folder)}">NEXT.md</reset>`,
      'NEXT.md': '<result>end</result>',
    });
    ray.answers({ to: 'could not be followed', says: 'no' });
    const refused = await ray.run('flow');
    expect(refused.code).toBe(1);
    expect(ray.prompt('main.1.START')).toContain('no transition tag');
    expect(refused.stdout).toContain('is outside of the project, and the run was started without --allow-outside');
    expect(ray.turns().map(({ step }) => step)).toEqual(Array.from({ length: 3 }, () => 'main.1.START'));

    const allowed = await ray.rig.meow('run', 'flow', '--id', 'r2', '--allow-outside');
    expect(allowed).toMatchObject({ code: 0 });
    expect(ray.rig.read('.agent/folders')).toMatch(`main.2.NEXT\t${ray.rig.home}\n`);
  });

  test('a link that now points outside the project is not followed', async () => {
    await using ray = await RaymondRig.setup();
    mkdirSync(ray.rig.path('sub'));
    symlinkSync(ray.rig.path('sub'), ray.rig.path('link'));
    ray.folder('flow', {
      'START.md': '<reset cd="link">TURN.sh</reset>',
      'TURN.sh': `ln -sfn ${ray.rig.home} ../link; echo '<goto>NEXT.md</goto>'`,
      'NEXT.md': '<result>end</result>',
    });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('is outside of the project, and the run was started without --allow-outside');
    expect(ray.turns().map(({ step }) => step)).toEqual(['main.1.START']);
  });

  test('the project is the folder with .meow, also if meow is called in a subfolder', async () => {
    await using ray = await RaymondRig.setup();
    mkdirSync(ray.rig.path('sub'));
    ray.folder('flow', {
      'START.md': '<reset cd="../flow">NEXT.md</reset>',
      'NEXT.md': '<call-workflow return="LAST.md">../other</call-workflow>',
      'LAST.md': '<result>end</result>',
      '../other/START.md': '<result>found</result>',
    });
    expect(await ray.rig.meowIn(ray.rig.path('sub'), 'run', '../flow', '--id', 'r')).toMatchObject({ code: 0 });
    expect(folders(ray)).toEqual({
      'main.1.START': '/sub',
      'main.2.NEXT': '/flow',
      'main.3.other-START': '/flow',
      'main.4.LAST': '/flow',
    });
  });

  test('an invalid path is reported', async () => {
    await using ray = await RaymondRig.setup();
    mkdirSync(ray.rig.path('sub'));
    ray.folder('flow', { 'START.md': 'Begin.', 'NEXT.md': '<result>end</result>' });
    ray.answers(
      { to: 'Begin', says: `<reset cd="${'x'.repeat(5_000)}">NEXT.md</reset>` },
      { to: 'xxx', says: '<reset cd="a\u0000b">NEXT.md</reset>' },
      { to: 'does not name a folder', says: '<reset cd="flow/START.md">NEXT.md</reset>', times: 1 },
    );
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('START.md is not a folder');
  });

  test('a missing folder is reported, and so is cd with a continued session', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', 'NEXT.md': '<result>end</result>' });
    ray.answers(
      { to: 'Begin', says: '<reset cd="nowhere">NEXT.md</reset>' },
      { to: 'nowhere', says: '<goto cd="flow">NEXT.md</goto>' },
      { to: 'cannot change its folder', says: '<reset cd="flow">NEXT.md</reset>' },
    );
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).toMatch(/cd: its folder .*nowhere does not exist/);
    expect(stdout).toContain('<goto> continues its session, so it cannot change its folder with cd');
  });
});

describe('scripts', () => {
  test('find their input in the environment', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="END.md" item="it\'s $HOME" dash-ed="d" input="in put">SHOW.sh</fork>',
      'SHOW.sh':
        'for name in MEOW_WORKFLOW MEOW_AGENT RAYMOND_WORKFLOW_ID RAYMOND_AGENT_ID RAYMOND_RESULT RAYMOND_INPUT item issue MEOW_VAR_DASH_ED\n' +
        'do eval "printf \'%s=%s\\n\' $name \\"\\$$name\\""; done > seen\n' +
        'echo "<goto>NEXT.sh</goto>"',
      'NEXT.sh': 'echo "next $item" >> seen; echo "<result></result>"',
      'END.md': '<result>end</result>',
    });
    expect(await ray.run('flow', '--var', 'issue=9')).toMatchObject({ code: 0 });
    expect(ray.rig.read('seen')).toBe(`MEOW_WORKFLOW=r
MEOW_AGENT=main_show1
RAYMOND_WORKFLOW_ID=r
RAYMOND_AGENT_ID=main_show1
RAYMOND_RESULT=in put
RAYMOND_INPUT=in put
item=it's $HOME
issue=9
MEOW_VAR_DASH_ED=d
next it's $HOME
`);
  });

  test('return a result byte for byte', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': 'echo \'<call return="NEXT.sh">SAY.sh</call>\'',
      'SAY.sh': 'printf "<result>\\n two\\n\\n</result>"',
      'NEXT.sh': 'printf %s "$RAYMOND_RESULT" > got; echo "<result>end</result>"',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.rig.read('got')).toBe('\n two\n\n');
  });

  test('run with or without the executable bit, in any language', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': 'a=(one two); echo "<goto>${a[1]}</goto>"',
      two: '#!/usr/bin/env node\nconsole.log("<goto>THREE</goto>")',
      'THREE.sh': '#!/bin/sh\necho "<result>$0</result>"',
    });
    for (const name of ['two', 'THREE.sh']) chmodSync(ray.rig.path(`flow/${name}`), 0o755);
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(Object.keys((await ray.rig.status('r')).steps)).toEqual(['main.1.START', 'main.2.two', 'main.3.THREE']);
  });

  test.each([
    ['large', 200_000],
    ['too large for the journal', 2_000_000],
  ])('with input that is %s are not started, and say why', async (_how, bytes) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.sh': 'echo \'<call return="NEXT.sh">SAY.sh</call>\'',
      'SAY.sh': `echo "<result>$(head -c ${bytes} /dev/zero | tr '\\0' x)</result>"`,
      'NEXT.sh': 'echo "<result>end</result>"',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 1 });
    const message = expect.stringContaining('what it is handed as RAYMOND_INPUT has more than 100 KB');
    expect((await ray.rig.status('r')).steps['main.3.NEXT']).toMatchObject({ error: { message } });
  });

  test('that fail also fail their agent, with their output', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.sh': 'echo "<goto>START.sh</goto>"; echo "no disk" >&2; exit 3' });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('failed: main.1.START (exit 3): no disk');
    expect((await ray.rig.status('r')).steps['main.1.START']).toMatchObject({ error: { code: 3, output: 'no disk' } });
  });
});

describe('questions to people', () => {
  const FLOW = {
    'START.md': '<ask next="NEXT.md">Which one,\nand why?</ask>',
    'NEXT.md': 'They said: {{input}} <result>end</result>',
  };

  test('an answer is the input of the next state, and others work meanwhile', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      ...FLOW,
      'START.md': '<fork next="ASK.md">WORKER.md</fork>',
      'ASK.md': FLOW['START.md'],
      'NEXT.md': 'To {{ask_id}} they said: {{input}} <result>end</result>',
      'WORKER.md': '<goto>WORKED.md</goto>',
      'WORKED.md': '<result>worked</result>',
    });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'gate-asked main.3.ask');
    await ray.rig.decided('r', 'step-done main_worker1.2.WORKED');
    const gates = await ray.rig.meow('gates', '--json');
    expect(JSON.parse(gates.stdout)).toMatchObject([
      { id: 'main.3.ask', prompt: 'Which one,\nand why?', status: 'open' },
    ]);
    const [main] = (await ray.rig.status('r')).agents;
    expect(main).toMatchObject({ id: 'main', state: 'ASK.md', current_step: 'main.3.ask' });
    expect(await ray.rig.meow('answer', 'r', 'the "second" {{state}}')).toMatchObject({ code: 0 });
    expect(await live.ended).toMatchObject({ code: 0 });
    expect(ray.prompt('main.4.NEXT')).toBe('To main.3.ask they said: the "second" {{state}} <result>end</result>');
  });

  test('with --no-wait the run pauses, and continues with an answer that was given meanwhile', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', FLOW);
    const paused = await ray.run('flow', '--no-wait');
    expect(paused.code).toBe(3);
    expect(paused.stdout).toContain('meow answer r');
    expect(await ray.rig.meow('resume', 'r', '--no-wait')).toMatchObject({ code: 3 });
    expect(await ray.rig.meow('answer', 'r', 'the second')).toMatchObject({ code: 0 });
    expect(await ray.rig.meow('resume', 'r', '--no-wait')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.NEXT')).toContain('They said: the second ');
  });

  test.each([
    ['approve', '--notes', 'the third'],
    ['reject', '--reason', 'none of them'],
  ])('meow %s answers with its text', async (verb, flag, words) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', FLOW);
    expect(await ray.run('flow', '--no-wait')).toMatchObject({ code: 3 });
    expect(await ray.rig.meow(verb, 'r', 'main.2.ask', flag, words)).toMatchObject({ code: 0 });
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.NEXT')).toContain(`They said: ${words} `);
  });

  test('without an answer in time, the timeout state follows, or the agent fails', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<ask next="NEXT.md" timeout="50ms" timeout_next="LATE.md">Well?</ask>',
      'LATE.md': '[{{input}}] <ask next="NEXT.md" timeout="50ms">Well?</ask>',
      'NEXT.md': '<result>end</result>',
    });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(ray.prompt('main.3.LATE')).toMatch('[] ');
    expect(stdout).toContain('failed: main.4.ask (timeout');
  });

  test('printed text is shown, and is not a transition', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: '<print>\nhalf done\n</print><print>all \u001B[31mdone</print><result>end</result>' });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).toContain('main.1.START says: half done');
    expect(stdout).toContain('says: all ');
    expect(stdout).not.toContain('\u001B[31m');
  });
});
