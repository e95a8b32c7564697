// Runs every workflow of lib/ with the built binary, as a user's workflow would: by `lib/NAME#WORKFLOW`, from a project
// without its own lib. The last test fails if a file has no test.
//
// What lib/*.test.toml shows as well, in virtual time, runs here only with MEOW_SWEEP=whole.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Rig, type RunObject, shellStep } from '../rig/rig.ts';
import { IS_WHOLE } from '../rig/sample.ts';

const LIB = join(import.meta.dirname, '../../lib');

/** A project with one commit. */
async function repository(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('README', 'a project\n');
  await rig.shell('git add -A && git -c user.name=Ann -c user.email=ann@example.org commit -qm first');
  return rig;
}

/** Runs a main workflow with these steps to its end, which must be the expected one. */
async function run(rig: Rig, wanted: 'done' | 'failed', steps: string, sim = ''): Promise<RunObject> {
  write(rig, steps, sim);
  const { code, stderr } = await rig.meow('run', 'a.meow.toml', '--id', 'a');
  expect({ code, stderr }).toEqual({ code: wanted === 'done' ? 0 : 1, stderr: '' });
  return rig.status('a');
}

function write(rig: Rig, steps: string, sim = ''): void {
  rig.write('a.meow.toml', `[main]\n${steps}`);
  rig.write('a.sim.toml', sim);
}

/** A step that expands a workflow of the library; its variables as TOML. */
function use(id: string, template: string, variables: string, needs: readonly string[] = []): string {
  return `[[main.steps]]
id = "${id}"
executor = "expand"
template = "lib/${template}"
variables = { ${variables} }
needs = ${JSON.stringify(needs)}
`;
}

const START = '[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "sim"\n';

function work(extra: string): string {
  return `[[main.steps]]\nid = "work"\nexecutor = "agent"\nagent = "worker"\nprompt = "Build it"\nneeds = ["start"]\n${extra}\n`;
}

function stop(need: string): string {
  return `[[main.steps]]\nid = "stop"\nexecutor = "kill"\nagent = "worker"\nneeds = ["${need}"]\n`;
}

describe('lib/worktree', () => {
  test('creates a worktree on its own branch, outputs its path, and creates none twice', async () => {
    await using rig = await repository();
    const steps = [
      use('tree', 'worktree#create', 'name = "w 1"'),
      use('same', 'worktree#create', 'name = "w 1"', ['tree.add']),
      shellStep(
        'look',
        'cd {{tree.add.outputs.path}} && git branch --show-current && cat README',
        'needs = ["same.add"]',
      ),
    ];
    // A branch name cannot contain a space, so the branch is named explicitly.
    const named = steps.map((step) => step.replace('"w 1" }', '"w 1", branch = "feature" }'));
    const { steps: ran } = await run(rig, 'done', named.join(''));

    const path = rig.path('.meow/worktrees/w 1');
    expect(ran['tree.add']?.outputs['path']).toBe(path);
    expect(ran['same.add']).toMatchObject({ attempt: 1, outputs: { path } });
    expect((await rig.meow('logs', 'a', 'look')).stdout).toBe('feature\na project\n');
  });

  test('reuses an existing branch, even if somebody removed the folder', async () => {
    await using rig = await repository();
    await rig.shell('git worktree add -q -b meow/w .meow/worktrees/w && rm -rf .meow/worktrees/w');
    const { steps } = await run(rig, 'done', use('tree', 'worktree#create', 'name = "w"'));
    expect(steps['tree.add']).toMatchObject({ attempt: 1, outputs: { path: rig.path('.meow/worktrees/w') } });
  });

  test('the file itself is a template: track_name becomes a path and a branch', async () => {
    await using rig = await repository();
    const { steps } = await run(rig, 'done', use('tree', 'worktree', 'track_name = "t"'));
    expect(steps['tree.worktree']).toMatchObject({
      outputs: { path: rig.path('.meow/worktrees/t'), branch: 'meow/t' },
    });
  });

  test('creates several worktrees in parallel', async () => {
    await using rig = await repository();
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    await run(rig, 'done', names.map((name) => use(name, 'worktree#create', `name = "${name}"`)).join(''));
    expect((await rig.shell('git worktree list | wc -l')).stdout.trim()).toBe('7');
  });

  test.runIf(IS_WHOLE)('removes a worktree, and succeeds if it is already gone', async () => {
    await using rig = await repository();
    await rig.shell('git worktree add -q -b meow/w .meow/worktrees/w');
    const twice = [
      use('first', 'worktree#remove', 'name = "w"'),
      use('second', 'worktree#remove', 'name = "w"', ['first.*']),
    ];
    await run(rig, 'done', twice.join(''));
    expect(rig.exists('.meow/worktrees/w')).toBe(false);
    expect((await rig.shell('git branch --list meow/w')).stdout).toContain('meow/w');
  });

  test.runIf(IS_WHOLE)('keeps uncommitted work, unless forced', async () => {
    await using rig = await repository();
    await rig.shell('git worktree add -q -b meow/w .meow/worktrees/w && echo precious > .meow/worktrees/w/new');
    const { steps } = await run(rig, 'failed', use('remove', 'worktree#remove', 'name = "w"'));
    expect(steps['remove.remove']?.status).toBe('failed');
    expect(rig.read('.meow/worktrees/w/new')).toBe('precious\n');

    write(rig, use('remove', 'worktree#remove', 'name = "w", force = true'));
    expect((await rig.meow('run', 'a.meow.toml')).code).toBe(0);
    expect(rig.exists('.meow/worktrees/w')).toBe(false);
  });
});

describe('lib/claude-events', () => {
  type Hooks = Readonly<
    Record<string, readonly { readonly matcher?: string; readonly hooks: readonly { readonly command: string }[] }[]>
  >;
  const FILE = 'w/.claude/settings.local.json';

  function hooksIn(rig: Rig): Hooks {
    return (JSON.parse(rig.read(FILE)) as { hooks: Hooks }).hooks;
  }

  function setUp(events: string): string {
    return use('hooks', 'claude-events#setup-hooks', `worktree = "w", events = "${events}"`);
  }

  /** The arguments that a hook passes to `meow`, one per line, if it gets this input on stdin. */
  function called(rig: Rig, command: string, input: string): string {
    rig.write('bin/meow', '#!/bin/sh\nprintf "%s\\n" "$@" >> called\n');
    const { PATH = '' } = rig.environment;
    const env = { ...rig.environment, PATH: `${rig.path('bin')}:${PATH}` };
    spawnSync('chmod', ['+x', rig.path('bin/meow')]);
    const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
      input,
      env,
      cwd: rig.folder,
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
    return rig.exists('called') ? rig.read('called') : '';
  }

  test.each([
    ['all', ['PostToolUse', 'PreToolUse', 'Stop', 'StopFailure']],
    ['stop-only', ['Stop', 'StopFailure']],
    ['tools-only', ['PostToolUse', 'PreToolUse']],
  ])('events = "%s" sets up %j, each as groups of hooks', async (events, wanted) => {
    await using rig = await repository();
    rig.write('w/x', '');
    await run(rig, 'done', setUp(events));
    const hooks = hooksIn(rig);
    expect(Object.keys(hooks).toSorted()).toEqual(wanted);
    for (const [event, [group, ...more]] of Object.entries(hooks)) {
      expect(more).toEqual([]);
      expect(group?.matcher).toBe(event.endsWith('ToolUse') ? '*' : undefined);
      expect(group?.hooks).toEqual([{ type: 'command', command: expect.any(String) as string, timeout: 10 }]);
    }
  });

  test.runIf(IS_WHOLE)('keeps the contents of the file and replaces its own hooks, however often it runs', async () => {
    await using rig = await repository();
    const theirs = { matcher: 'Bash', hooks: [{ type: 'command', command: 'echo mine' }] };
    rig.write(FILE, JSON.stringify({ permissions: { allow: ['Bash'] }, hooks: { PreToolUse: [theirs], Other: [{}] } }));
    write(rig, setUp('all'));
    for (const _ of [1, 2]) expect((await rig.meow('run', 'a.meow.toml')).code).toBe(0);
    expect(hooksIn(rig)['PreToolUse']).toHaveLength(2);

    await run(rig, 'done', setUp('stop-only'));
    expect(JSON.parse(rig.read(FILE))).toMatchObject({ permissions: { allow: ['Bash'] } });
    expect(hooksIn(rig)).toMatchObject({ PreToolUse: [theirs], Other: [{}] });
    expect(Object.keys(hooksIn(rig)).toSorted()).toEqual(['Other', 'PreToolUse', 'Stop', 'StopFailure']);
    expect((await rig.shell('git -C w status --porcelain --ignored=no -- .claude')).stdout).toBe('');
    expect((await rig.shell('grep -c settings.local .git/info/exclude')).stdout).toBe('1\n');
  });

  test.runIf(IS_WHOLE)('does not change a file that is not valid JSON', async () => {
    await using rig = await repository();
    rig.write(FILE, '{ // mine\n}');
    await run(rig, 'failed', setUp('all'));
    expect((await rig.meow('logs', 'a', 'hooks.configure')).stderr).toContain('settings.local.json is not valid JSON');
    expect(rig.read(FILE)).toBe('{ // mine\n}');
  });

  test('refuses unknown events', async () => {
    await using rig = await repository();
    rig.write('w/x', '');
    await run(rig, 'failed', setUp('some'));
    expect(rig.exists(FILE)).toBe(false);
  });

  test('a hook sends the name of the tool, whatever the tool’s input is', async () => {
    await using rig = await repository();
    rig.write('w/x', '');
    await run(rig, 'done', setUp('all'));
    const command = hooksIn(rig)['PostToolUse']?.[0]?.hooks[0]?.command ?? '';
    const given = {
      session_id: 's',
      tool_name: 'mcp__git__log',
      tool_input: { tool_name: 'no', text: '"tool_name":"' },
    };
    // More than a pipe can hold.
    const long = JSON.stringify({ ...given, tool_response: 'x'.repeat(200_000) });
    expect(called(rig, command, long)).toBe('event\ntool-completed\n--data\ntool=mcp__git__log\n');
  });

  test('a hook does no harm without input, without meow, and outside a run', async () => {
    await using rig = await repository();
    rig.write('w/x', '');
    await run(rig, 'done', setUp('all'));
    for (const { command } of Object.values(hooksIn(rig)).flatMap((groups) => groups.flatMap(({ hooks }) => hooks))) {
      for (const path of ['/usr/bin:/bin', `${join(LIB, '../bin')}:${rig.environment['PATH'] ?? ''}`]) {
        const env = { ...rig.environment, PATH: path };
        const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
          input: '',
          env,
          cwd: rig.folder,
          encoding: 'utf8',
        });
        expect({ status, said: `${stdout}${stderr}` }).toEqual({ status: 0, said: '' });
      }
    }
  });

  test('the run receives an event when an agent uses a tool', async () => {
    await using rig = await repository();
    rig.write('w/x', '');
    const listen = `[[main.steps]]
id = "hear"
executor = "branch"
condition = "meow await-event tool-completed --filter agent=worker --filter tool=Write --timeout 5m"
needs = ["start"]
`;
    // The agent calls its own hook, like Claude Code.
    const hook = `node -e 'console.log(JSON.parse(require("fs").readFileSync("${FILE}")).hooks.PostToolUse[0].hooks[0].command)'`;
    const sim = `[[on]]
do = [{ run = ${JSON.stringify(`printf '{"tool_name":"Write"}' | sh -c "$(${hook})"`)} }, { done = true }]
`;
    const start = START.replace('adapter', 'needs = ["hooks.*"]\nadapter');
    const { steps } = await run(rig, 'done', [setUp('all'), start, work(''), listen, stop('work')].join(''), sim);
    expect(steps['hear']?.outputs['outcome']).toBe('true');
  });
});

describe('lib/approval', () => {
  const ASK = use('ask', 'approval#ask', 'gate = "release", question = "May it go?", timeout = "1h"');
  const AFTER = shellStep(
    'after',
    'echo {{ask.decision.outputs.outcome}} {{ask.decision.outputs.notes}}',
    'needs = ["ask.decision"]',
  );

  test('continues after an approval, and passes on the notes', async () => {
    await using rig = await repository();
    write(rig, ASK + AFTER);
    const live = rig.start('run', 'a.meow.toml', '--id', 'a');
    await rig.decided('a', 'gate-asked ask.decision');
    expect((await rig.meow('logs', 'a', 'ask.tell')).stdout).toBe(
      "May it go?\nto approve: meow approve a release\nto reject:  meow reject a release --reason '...'\n",
    );
    await rig.meow('approve', 'a', 'release', '--notes', 'well done');
    expect((await live.ended).code).toBe(0);
    expect((await rig.meow('logs', 'a', 'after')).stdout).toBe('true well done\n');
  });

  test.runIf(IS_WHOLE)('fails after a rejection', async () => {
    await using rig = await repository();
    write(rig, ASK + AFTER);
    const live = rig.start('run', 'a.meow.toml', '--id', 'a');
    await rig.decided('a', 'gate-asked ask.decision');
    await rig.meow('reject', 'a', 'release', '--reason', "it's $(late)", '--as', 'Ann');
    expect((await live.ended).code).toBe(1);
    expect((await rig.meow('logs', 'a', 'ask.decision.rejected')).stderr).toBe(
      "release was rejected by Ann: it's $(late)\n",
    );
    expect((await rig.status('a')).steps['after']?.status).toBe('skipped');
  });

  test.runIf(IS_WHOLE)('continues after a rejection if told to', async () => {
    await using rig = await repository();
    write(rig, ASK.replace('timeout', 'otherwise = "continue", timeout') + AFTER);
    const live = rig.start('run', 'a.meow.toml', '--id', 'a');
    await rig.decided('a', 'gate-asked ask.decision');
    await rig.meow('reject', 'a', 'release', '--reason', 'no');
    expect((await live.ended).code).toBe(0);
    expect((await rig.meow('logs', 'a', 'after')).stdout).toBe('false no\n');
  });

  test.runIf(IS_WHOLE)('fails without a decision in time', async () => {
    await using rig = await repository();
    const { steps } = await run(rig, 'failed', ASK.replace('1h', '200ms'));
    expect(steps['ask.decision.too-late']?.status).toBe('failed');
    expect((await rig.meow('logs', 'a', 'ask.decision.too-late')).stderr).toBe('nobody decided release within 200ms\n');
  });

  test.runIf(IS_WHOLE)('notifies people with a command, and continues if that fails', async () => {
    await using rig = await repository();
    const notify = `notify = 'echo "$QUESTION $APPROVE" > told; exit 1', timeout`;
    await run(rig, 'failed', ASK.replace('timeout', notify).replace('1h', '300ms'));
    expect(rig.read('told')).toBe('May it go? meow approve a release\n');
  });
});

describe('lib/retry', () => {
  const STEPS = START + work('on_error = "lib/retry#fresh-agent"') + shellStep('after', 'echo on', 'needs = ["work"]');
  const CRASH = 'do = [{ crash = 1 }]';

  test('a new agent with the same name is told what went wrong, and continues', async () => {
    await using rig = await repository();
    const { steps, counts } = await run(rig, 'done', STEPS, `[[on]]\ntimes = 1\n${CRASH}\n`);
    expect(steps['work']?.status).toBe('failed');
    expect(steps['work.recover.1.first.again']).toMatchObject({ status: 'done', agent: 'worker' });
    expect(counts).toMatchObject({ failed: 1, skipped: 0 });
    const { stdout } = await rig.meow('show', 'a', 'work.recover.1.first.again');
    expect(stdout).toContain('Build it');
    expect(stdout).toMatch(/failed: .*exited with status 1/);
  });

  test.runIf(IS_WHOLE)('after three failures a person is asked, and may let the run continue', async () => {
    await using rig = await repository();
    write(rig, STEPS, `[[on]]\n${CRASH}\n`);
    const live = rig.start('run', 'a.meow.toml', '--id', 'a');
    const asker = 'work.recover.1.first.again.recover.1.again.recover.1.decision';
    await rig.decided('a', `gate-asked ${asker}`);
    const gate = asker.replace(/\.recover\.1\.decision$/, '');
    expect(JSON.parse((await rig.meow('gates', '--json')).stdout)).toMatchObject([{ id: gate, status: 'open' }]);
    await rig.meow('approve', 'a', gate);
    expect((await live.ended).code).toBe(0);
    expect((await rig.status('a')).steps['after']?.status).toBe('done');
  });

  test.runIf(IS_WHOLE)('a person may let it fail', async () => {
    await using rig = await repository();
    write(rig, shellStep('build', 'exit 7', 'on_error = "lib/retry#escalate"'));
    const live = rig.start('run', 'a.meow.toml', '--id', 'a');
    await rig.decided('a', 'gate-asked build.recover.1.decision');
    expect((await rig.meow('logs', 'a', 'build.recover.1.tell')).stdout).toContain('meow approve a build\n');
    await rig.meow('reject', 'a', 'build');
    expect((await live.ended).code).toBe(1);
  });

  test('respawn works in custom recoveries, whose outputs replace the missing ones', async () => {
    await using rig = await repository();
    const steps = `${START}${work('on_error = ".mine"\noutputs = { file = { required = true } }')}
${shellStep('after', 'echo got {{work.outputs.file}}', 'needs = ["work"]')}
[mine]
[[mine.steps]]
id = "fresh"
executor = "expand"
template = "lib/retry#respawn"
variables = { worker = "{{_failed_step.agent}}" }

[[mine.steps]]
id = "again"
executor = "agent"
agent = "{{_failed_step.agent}}"
prompt = "{{_failed_step.prompt}}"
outputs = { file = { required = true } }
needs = ["fresh.start"]
`;
    await run(rig, 'done', steps, `[[on]]\ntimes = 1\n${CRASH}\n[[on]]\ndo = [{ done = { file = "x.ts" } }]\n`);
    expect((await rig.meow('logs', 'a', 'after')).stdout).toBe('got x.ts\n');
  });
});

describe('lib/context-monitor', () => {
  // The agent works until it is told to compact, and reports its context usage in a file.
  const SIM = `[[on]]
step = "work"
do = [{ run = "echo 90 > full; until meow step-status monitor.guard.1.tell --is done; do sleep 0.1; done; echo 20 > full" }, { done = true }]
`;

  function watch(extra: string): string {
    return use('monitor', 'context-monitor#watch', `agent = "worker", interval = "200ms", rest = "1s", ${extra}`, [
      'start',
    ]);
  }

  test('tells the agent to compact when its context is full, and ends with the agent', async () => {
    await using rig = await repository();
    const steps = [START, work(''), watch('probe = "cat full"'), stop('work')].join('');
    const { steps: ran } = await run(rig, 'done', steps, SIM);
    expect(ran['monitor.guard']).toMatchObject({ status: 'done', outputs: { rounds: 1, outcome: 'true' } });
    expect(ran['monitor.guard.1.tell']?.status).toBe('done');
  });

  test.runIf(IS_WHOLE)('does not disturb an agent whose context is not full or unknown', async () => {
    await using rig = await repository();
    const sim = '[[on]]\nstep = "work"\ndo = [{ wait = "1s" }, { done = true }]\n';
    const { steps } = await run(rig, 'done', [START, work(''), watch('probe = "echo 84"'), stop('work')].join(''), sim);
    expect(steps['monitor.guard']).toMatchObject({ status: 'done', outputs: { rounds: 0 } });
  });

  test('does not delay the end of a failing run', async () => {
    await using rig = await repository();
    const sim = '[[on]]\nstep = "work"\ndo = [{ wait = "500ms" }, { crash = 1 }]\n';
    const steps = [START, work(''), watch('probe = "echo 0"').replace('200ms', '1h'), stop('work')].join('');
    const { steps: ran } = await run(rig, 'failed', steps, sim);
    expect(ran['work']?.status).toBe('failed');
  });
});

describe('lib/merge-queue', () => {
  test('merges work, and returns a failing check to the agent', async () => {
    await using rig = await repository();
    await rig.shell('git branch -M main && git worktree add -q -b w .meow/worktrees/w');
    const commit = 'git add -A && git -c user.name=Ann -c user.email=ann@example.org commit -qm work';
    const sim = `[[on]]
step = "work"
do = [{ run = "cd .meow/worktrees/w && touch broken && ${commit}" }, { done = true }]
[[on]]
step = "*.fix"
prompt = "test ! -e broken"
do = [{ run = "cd .meow/worktrees/w && rm broken && touch fixed && ${commit}" }, { done = true }]
`;
    const variables = 'worktree = ".meow/worktrees/w", check = "test ! -e broken", agent = "worker"';
    const steps = [START, work(''), use('merge', 'merge-queue#offer', variables, ['work']), stop('merge.result')].join(
      '',
    );
    const { steps: ran } = await run(rig, 'done', steps, sim);
    const { outcome, commit: merged, attempts } = ran['merge.result']?.outputs ?? {};
    expect({ outcome, attempts }).toEqual({ outcome: 'merged', attempts: 2 });
    expect((await rig.shell('git log -1 --format=%H%n%B main')).stdout).toContain(
      `${String(merged)}\nMerge offer a/merge\n`,
    );
    expect(rig.exists('fixed')).toBe(true);
  });
});

test('every file of the library is tested', () => {
  const names = readdirSync(LIB).flatMap((file) => /^(.*)\.meow\.toml$/.exec(file)?.[1] ?? []);
  const tried = readFileSync(import.meta.filename, 'utf8').matchAll(/^describe\('lib\/([\w-]+)'/gm);
  expect([...tried].map(({ 1: name = '' }) => name).toSorted()).toEqual(names.toSorted());
});
