// Runs every workflow in examples/ with the built binary, in a folder with only what a user may have there; agents are
// simulated. The last test fails if an example has no test.

import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Live, MEOW, Rig, type RunObject, until } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const STAND_INS = join(EXAMPLES, 'agents/stand-ins');

/** Some examples use a folder outside the project named after the run's id, so the id must be unique. */
function idOf(name: string): string {
  return `${name.replace(/^.*\//, '')}-${process.pid}`;
}

/** Runs the example to its end, which must be the expected one. */
async function run(rig: Rig, name: string, wanted: 'done' | 'failed', ...flags: readonly string[]): Promise<RunObject> {
  const { code, stderr } = await rig.meow('run', join(EXAMPLES, `${name}.meow.toml`), '--id', idOf(name), ...flags);
  expect({ code, stderr }).toEqual({ code: wanted === 'done' ? 0 : 1, stderr: '' });
  const status = await rig.status(idOf(name));
  expect(status.status).toBe(wanted);
  return status;
}

function output({ steps }: RunObject, step: string, name: string): unknown {
  return steps[step]?.outputs[name];
}

test('hello: greets by name, whatever the name is', async () => {
  await using rig = await Rig.setup();
  rig.write('one', '');
  const status = await run(rig, 'hello', 'done', '--var', "name=Ada $(exit) o'Neill");

  expect(output(status, 'greet', 'text')).toBe("Hello, Ada $(exit) o'Neill!");
  expect(output(status, 'count', 'files')).toBe(1);
  const { stdout } = await rig.meow('logs', idOf('hello'), 'card');
  expect(stdout).toContain(" ( o.o )   Hello, Ada $(exit) o'Neill!\n  > ^ <    1 files here, on ");
});

test('checks: summarizes failures and continues', async () => {
  await using rig = await Rig.setup();
  rig.write('good.json', '{}');
  rig.write('deep/bad.json', '{');
  rig.write('deep/script.sh', 'echo fine');
  rig.write('merged.txt', `${'<'.repeat(7)} ours\n`);
  const status = await run(rig, 'checks', 'done');

  expect(output(status, 'summary', 'table')).toBe(
    'FAIL  JSON files\nok    shell scripts\nFAIL  merge conflicts\nok    file sizes',
  );
  expect(status.counts).toMatchObject({ done: 3, failed: 2 });
});

test('checks: fails with strict=true', async () => {
  await using rig = await Rig.setup();
  rig.write('large.txt', 'x'.repeat(3_000));
  const status = await run(rig, 'checks', 'failed', '--var', 'strict=true', '--var', 'kilobytes=1');
  expect(status.steps['check-size']?.status).toBe('failed');
  expect(status.steps['summary']?.status).toBe('failed');
});

test('download: succeeds at the third attempt, and leaves no files', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'download', 'done');

  expect(status.steps['fetch']).toMatchObject({ attempt: 3, outputs: { attempts: 3 } });
  expect(output(status, 'verify', 'report')).toMatch(/^complete after 3 attempts: \d+ \d+$/);
  expect(await rig.shell(`test ! -e "\${TMPDIR:-/tmp}/meow-${idOf('download')}"`)).toMatchObject({ code: 0 });
});

test('download: fails if the server never answers', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'download', 'failed', '--var', 'hang_ups=99');
  expect(status.steps['fetch']).toMatchObject({ status: 'failed', attempt: 5 });
  expect(status.steps['verify']).toMatchObject({ status: 'skipped' });
});

test('backup: archives every file', async () => {
  await using rig = await Rig.setup();
  rig.write('data/a file.txt', 'a');
  rig.write('data/deep/b', 'b');
  const status = await run(rig, 'backup', 'done', '--var', 'source=data');

  expect(output(status, 'inventory', 'files')).toBe(2);
  expect(output(status, 'publish', 'path')).toBe(`backups/backup-${idOf('backup')}.tar`);
  const { stdout } = await rig.shell('tar -tf backups/backup-*.tar | sort');
  expect(stdout).toBe('data/a file.txt\ndata/deep/b\n');
});

test('backup: removes a partial archive on failure', async () => {
  await using rig = await Rig.setup();
  rig.write('data/a', 'a');
  // A folder is in the place of the file list.
  rig.write(`backups/.list-${idOf('backup')}/in-the-way`, '');
  const status = await run(rig, 'backup', 'failed', '--var', 'source=data');

  expect(status.steps['publish']).toMatchObject({ status: 'skipped' });
  expect(rig.files('backups').filter((path) => path.endsWith('.tar'))).toEqual([]);
  expect(rig.decisions(idOf('backup'))).toContain('cleanup-finished');
});

test('matrix: builds and lists every combination', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'matrix', 'done');

  expect(output(status, 'list', 'sizes')).toEqual({
    en: { readable: 109, compact: 100 },
    de: { readable: 109, compact: 100 },
  });
  expect(rig.files('site')).toEqual(['de.html', 'de.min.html', 'en.html', 'en.min.html', 'sizes.json'].map(inSite));
  expect(rig.read('site/de.html')).toContain("<title>It's &lt;MEOW&gt; &amp; more</title>\n  <p>Guten Morgen</p>");
});

function inSite(name: string): string {
  return `site/${name}`;
}

test('pipeline: passes JSON from step to step', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'pipeline', 'done');

  expect(output(status, 'clean', 'result')).toMatchObject({ kept: 5, dropped: 2 });
  expect(output(status, 'regions', 'totals')).toEqual({ north: 165.5, south: 390, west: 99 });
  expect(output(status, 'large', 'orders')).toEqual({ count: 2, sum: 430 });
  expect(rig.read('report.md')).toContain('5 orders, 2 invalid lines.');
});

test('pipeline: reads a table from a file', async () => {
  await using rig = await Rig.setup();
  rig.write('orders.csv', 'region,amount\neast,500\neast,1\n');
  const flags = ['--var', 'csv=orders.csv', '--var-json', 'thresholds={"large":500}'];
  const status = await run(rig, 'pipeline', 'done', ...flags);
  expect(output(status, 'large', 'orders')).toEqual({ count: 1, sum: 500 });
});

test('release-notes: sorts the commits of a repository', async () => {
  await using rig = await Rig.setup();
  for (const subject of ['Add a door', 'Fix $(reboot) in "quotes"', "Rename it's parts"]) {
    const author = '-c user.name=Ann -c user.email=ann@example.org';
    await rig.shell(`git ${author} commit --quiet --allow-empty -m '${subject.replaceAll("'", String.raw`'\''`)}'`);
  }
  const status = await run(rig, 'release-notes', 'done', '--var', 'version=1.0.0');

  expect(output(status, 'notes', 'text')).toBe(rig.read('RELEASE_NOTES.md').trim());
  expect(rig.read('RELEASE_NOTES.md')).toBe(`## 1.0.0

### Added

- Add a door

### Fixed

- Fix $(reboot) in "quotes"

### Changed

- Rename it's parts
`);
});

test('release-notes: says that there is no history', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'release-notes', 'done');
  expect(output(status, 'notes', 'text')).toBe('## unreleased\n\n(no history here)');
});

describe('with simulated agents', () => {
  /** A repository with a commit, which most examples need. */
  async function repository(): Promise<Rig> {
    const rig = await Rig.setup();
    await rig.shell('git -c user.name=Ann -c user.email=ann@example.org commit --quiet --allow-empty -m first');
    return rig;
  }

  /** Puts `examples/agents/stand-ins`, and a `sleep` that takes almost no time, first on the PATH. */
  function withStandIns(rig: Rig): Readonly<Record<string, string>> {
    rig.write('bin/sleep', '#!/bin/sh\nexec /bin/sleep 0.1\n');
    chmodSync(rig.path('bin/sleep'), 0o755);
    return { PATH: `${rig.path('bin')}:${STAND_INS}:${rig.environment['PATH'] ?? ''}` };
  }

  /** Runs it up to its gate. */
  async function deploy(rig: Rig): Promise<Live> {
    const flags = ['--id', idOf('deploy'), '--adapter', 'sim', '--var', 'agent=t'];
    const args = ['run', join(EXAMPLES, 'agents/deploy.meow.toml'), ...flags];
    const live = new Live(MEOW, args, rig.folder, { ...rig.environment, ...withStandIns(rig) });
    await rig.decided(idOf('deploy'), 'gate-asked approval-gate');
    return live;
  }

  test('simple-loop: does one task after another until none are left', async () => {
    await using rig = await repository();
    const status = await run(rig, 'agents/simple-loop', 'done', '--adapter', 'sim', '--var', 'agent=w');

    const tasks = ['work.1.find-work', 'work.2.find-work', 'work.3.find-work'];
    expect(tasks.map((step) => output(status, step, 'task_id'))).toEqual(['TASK-1', 'TASK-3', 'TASK-5']);
    expect(status.counts).toEqual({ pending: 0, running: 0, done: 9, failed: 0, skipped: 0 });
    // The worktree is cleaned up, and its branch contains the work of three rounds.
    expect(rig.exists('.meow/worktrees/w')).toBe(false);
    expect((await rig.shell('git log --format=%s meow/w')).stdout).toBe(
      'work.3.do-work\nwork.2.do-work\nwork.1.do-work\nfirst\n',
    );
  });

  test('simple-loop: killed in its second round, it continues there and repeats no prompt', async () => {
    await using rig = await repository();
    const id = idOf('simple-loop');
    const flags = ['--id', id, '--adapter', 'sim', '--var', 'agent=w'];
    const killed = rig.start('run', join(EXAMPLES, 'agents/simple-loop.meow.toml'), ...flags);
    await rig.decided(id, 'step-started work.2.do-work');
    process.kill(rig.enginePid(id), 'SIGKILL');
    await killed.ended;

    expect(await rig.meow('resume', id)).toMatchObject({ code: 0 });
    const { counts } = await rig.status(id);
    expect(counts).toEqual({ pending: 0, running: 0, done: 9, failed: 0, skipped: 0 });
    expect((await rig.shell('git show meow/w:worked')).stdout).toBe('work.1.do-work\nwork.2.do-work\nwork.3.do-work\n');
  });

  test('deploy: goes to production after an approval', async () => {
    await using rig = await repository();
    const id = idOf('deploy');
    const live = await deploy(rig);
    expect(rig.read('kubectl.log')).toBe('apply -f k8s/staging/\n');
    expect((await rig.meow('logs', id, 'notify-reviewer')).stdout).toContain(
      `Issues found: true\n\nTo approve: meow approve ${id} approval-gate\n`,
    );

    expect(await rig.meow('approve', id, 'approval-gate', '--notes', 'LGTM', '--as', 'Ann')).toMatchObject({ code: 0 });
    expect((await live.ended).code).toBe(0);
    const status = await rig.status(id);
    expect(rig.read('kubectl.log')).toBe('apply -f k8s/staging/\napply -f k8s/production/\n');
    expect(output(status, 'smoke-test', 'issues')).toEqual([{ page: '/login', problem: 'slow' }]);
    expect(status.steps['approval-gate']?.outputs).toMatchObject({ outcome: 'true', notes: 'LGTM', decided_by: 'Ann' });
    expect(rig.exists('deploy.log')).toBe(false);
  });

  test('deploy: logs a rejection, and does not go to production', async () => {
    await using rig = await repository();
    const id = idOf('deploy');
    const live = await deploy(rig);
    await rig.meow('reject', id, 'approval-gate', '--reason', 'not on a Friday');
    expect((await live.ended).code).toBe(1);
    expect(rig.read('deploy.log')).toBe('Deployment rejected: not on a Friday\n');
    expect(rig.read('kubectl.log')).toBe('apply -f k8s/staging/\n');
    expect(output(await rig.status(id), 'approval-gate', 'reason')).toBe('not on a Friday');
  });

  test('merge-queue: five workers are merged one after another, and one of two that conflict resolves it', async () => {
    await using rig = await Rig.setup();
    rig.write('.gitignore', '.meow/\n');
    rig.write('parts.txt', 'parts: none\n');
    rig.write('check.sh', '! grep -q "^[<=>]" parts.txt\n');
    await rig.shell('git add -A && git -c user.name=a -c user.email=a@b commit -qm first && git branch -M main');
    const { steps } = await run(rig, 'agents/merge-queue', 'done', '--adapter', 'sim');
    const results = ['one', 'two', 'three', 'four', 'five'].map((name) => steps[`each.${name}.merge.result`]?.outputs);
    expect(results.map((outputs) => outputs?.['outcome'])).toEqual(Array.from({ length: 5 }, () => 'merged'));
    expect(results.map((outputs) => Number(outputs?.['attempts'])).toSorted((a, b) => a - b)).toEqual([1, 1, 1, 1, 2]);
    expect((await rig.shell('sort parts.txt && git rev-list --count --first-parent main')).stdout).toBe(
      'parts: four\nparts: two\n6\n',
    );
    expect((await rig.shell('git status --porcelain')).stdout).toBe('');
  });

  test('parallel: two agents build in parallel, and one merges both', async () => {
    await using rig = await repository();
    const status = await run(rig, 'agents/parallel', 'done', '--adapter', 'sim');
    const decisions = rig.decisions(idOf('parallel'));
    expect(decisions.indexOf('step-started backend-work')).toBeLessThan(decisions.indexOf('step-done frontend-work'));
    expect(decisions.indexOf('step-started integration')).toBeGreaterThan(decisions.indexOf('step-done backend-work'));
    const commit = String(output(status, 'integration', 'commit'));
    expect((await rig.shell(`git ls-tree --name-only ${commit}`)).stdout).toBe('api.txt\nui.txt\n');
  });

  test('parallel-with-watchdog: the watchdog runs next to the others, and is stopped when they have finished', async () => {
    await using rig = await repository();
    const flags = ['--adapter', 'sim', '--var', 'task_id=TASK-7'];
    const status = await run(rig, 'agents/parallel-with-watchdog', 'done', ...flags);
    const decisions = rig.decisions(idOf('parallel-with-watchdog'));
    expect(decisions.indexOf('step-done watchdog-patrol')).toBeGreaterThan(decisions.indexOf('step-done plan'));
    expect(decisions.indexOf('step-done cleanup-watchdog')).toBeGreaterThan(decisions.indexOf('step-done integration'));
    expect(output(status, 'plan', 'frontend')).toBe('Build the login form.');
    expect((await rig.shell('git worktree list | wc -l')).stdout.trim()).toBe('1');
  });

  test('context-monitor: the agent is told to compact once, and the loop ends with it', async () => {
    await using rig = await repository();
    const id = idOf('context-monitor');
    const path = join(EXAMPLES, 'agents/context-monitor.meow.toml');
    const flags = ['--id', id, '--adapter', 'sim', '--var', 'worktree=.'];
    const { code } = await rig.meowWith(withStandIns(rig), 'run', path, ...flags);
    expect(code).toBe(0);
    const { steps, counts } = await rig.status(id);
    const compact = 'monitor.1.check-threshold.inject-compact';
    expect(Object.keys(steps).filter((step) => step.endsWith('inject-compact'))).toEqual([compact]);
    expect(steps['monitor.1.get-context']?.outputs['percent']).toBe('86');
    expect(steps['kill-worker']?.status).toBe('done');
    expect(counts).toMatchObject({ pending: 0, running: 0, failed: 0, skipped: 0 });
  });

  test('event-monitor: the loop receives every tool use, and ends with the task', async () => {
    await using rig = await repository();
    const id = idOf('event-monitor');
    const path = join(EXAMPLES, 'agents/event-monitor.meow.toml');
    const live = rig.start('run', path, '--id', id, '--adapter', 'sim', '--var', 'worktree=.');
    await rig.decided(id, 'step-done cleanup');
    // A report is also a tool use, and its hook comes slightly later; otherwise the loop would wait for 30 seconds.
    const inbox = rig.path(`.meow/workflows/${id}/inbox`);
    await rig.shell(
      `MEOW_WORKFLOW=${id} MEOW_AGENT=worker MEOW_INBOX=${inbox} meow event tool-completed --data tool=Bash`,
    );
    expect((await live.ended).code).toBe(0);

    expect(rig.read('.meow/events.log')).toBe('[EVENT] Tool completed for worker\n'.repeat(3));
    const { steps, counts } = await rig.status(id);
    expect(Object.keys(steps).filter((step) => step.endsWith('wait-for-event'))).toHaveLength(3);
    expect(counts).toMatchObject({ pending: 0, running: 0, failed: 0, skipped: 0 });
  });

  test('call: the parent stops for the child, and continues in its own session', async () => {
    await using rig = await repository();
    const status = await run(rig, 'agents/call', 'done', '--adapter', 'sim');
    expect(output(status, 'checkpoint', 'session_id')).toMatch(/./);
    const decisions = rig.decisions(idOf('call'));
    const order = [
      'step-done stop-parent',
      'step-done child-work.write-parser',
      'step-done stop-child',
      'step-done parent-goes-on',
    ];
    expect(decisions.filter((decision) => order.includes(decision))).toEqual(order);
    expect((await rig.shell('git show meow/child:parser.txt')).stdout).toBe('parser\n');
    expect(rig.exists('.meow/worktrees/child')).toBe(false);
  });

  test('headless-loop: one session for all prompts, a fork for another agent, and the total cost', async () => {
    await using rig = await Rig.setup();
    const status = await run(rig, 'agents/headless-loop', 'done', '--adapter', 'sim');
    expect(status.counts).toEqual({ pending: 0, running: 0, done: 10, failed: 0, skipped: 0 });
    expect(['chores.1.do', 'chores.2.do'].map((step) => output(status, step, 'chore'))).toEqual([
      'water the plants',
      'feed the cat',
    ]);
    expect(rig.read('diary.txt')).toBe('I watered the plants and fed the cat.\n');
    // The worker was asked again once; the historian started with that whole session.
    const folder = `.meow/workflows/${idOf('headless-loop')}/sim-sessions`;
    const sessions = rig.files(folder).filter((path) => path.endsWith('.jsonl'));
    const prompts = sessions.map((path) => rig.read(path).split('"prompt":').length - 1);
    expect(prompts.toSorted((a, b) => a - b)).toEqual([3, 4]);
    expect((await rig.meow('status', idOf('headless-loop'), '--json')).stdout).toMatch(
      /"tokens": ?2200,\s*"unknown_turns": ?0/,
    );
  });

  test('ask-a-program: any program can answer, and one agent gets the answer of another', async () => {
    await using rig = await Rig.setup();
    const status = await run(rig, 'agents/ask-a-program', 'done');
    expect(rig.read('answer.txt')).toBe('apple\npear\nquince\n');
    expect(output(status, 'count', 'result')).toBe('3');
  });

  test('ask-a-program: uses the program from the variable', async () => {
    await using rig = await Rig.setup();
    const flags = ['--var', 'program=tr a-z A-Z', '--var', 'text=hello'];
    const status = await run(rig, 'agents/ask-a-program', 'done', ...flags);
    expect(output(status, 'ask', 'result')).toBe('HELLO');
  });

  test('recovery: a new agent does what the first could not', async () => {
    await using rig = await repository();
    const status = await run(rig, 'agents/recovery', 'done', '--adapter', 'sim');
    expect(status.steps['implement-feature']?.status).toBe('failed');
    const retry = 'implement-feature.recover.1.check-retries.retry';
    expect(status.steps[retry]?.status).toBe('done');
    expect((await rig.meow('show', idOf('recovery'), retry)).stdout).toMatch(/previous attempt failed: .*status 1/);
    expect(status.steps['publish']?.status).toBe('done');
  });

  test('recovery: after three failed retries, a person decides', async () => {
    await using rig = await repository();
    // The same workflow with agents that all crash.
    rig.write('recovery.meow.toml', readFileSync(join(EXAMPLES, 'agents/recovery.meow.toml')));
    rig.write('recovery.sim.toml', '[[on]]\ndo = [{ crash = 1 }]\n');
    expect((await rig.meow('run', 'recovery.meow.toml', '--id', 'r', '--adapter', 'sim')).code).toBe(1);
    for (const _ of [1, 2]) expect((await rig.meow('resume', 'r')).code).toBe(1);
    const live = rig.start('resume', 'r');
    await rig.decided('r', 'gate-asked implement-feature.recover.4.check-retries.skip-gate');
    expect((await rig.meow('logs', 'r', 'implement-feature.recover.4.check-retries.notify')).stdout).toContain(
      'Task failed after 3 retries\n',
    );
    await rig.meow('approve', 'r', 'skip-gate');
    expect((await live.ended).code).toBe(0);
    expect((await rig.status('r')).steps['publish']?.status).toBe('done');
  });
});

test('the first workflow of the documentation: killed in its second round, resumed, approved', async () => {
  await using rig = await Rig.setup();
  const text = readFileSync(join(import.meta.dirname, '../../docs/first-workflow.md'), 'utf8');
  const [prepare = '', kill = ''] = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(({ 1: script = '' }) => script)
    .filter((script) => /^(mkdir|kill)/.test(script));
  const workflows = [...text.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(({ 1: workflow = '' }) => workflow);
  await rig.shell(prepare.replace('mkdir play && cd play\n', ''));
  rig.write('chores.meow.toml', workflows[0] ?? '');
  expect((await rig.meow('run', 'chores.meow.toml', '--id', 'one')).code).toBe(0);
  expect(rig.exists('done.txt')).toBe(false);

  rig.write('chores.sim.toml', /^```sim\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? '');
  rig.write('chores.meow.toml', workflows[1] ?? '');
  expect((await rig.meow('validate', 'chores.meow.toml')).stdout).toBe('no problems\n');
  const killed = rig.start('run', 'chores.meow.toml', '--id', 'chores');
  // A recorded decision is not yet carried out: wait until the agent has its second prompt.
  const said = '.meow/workflows/chores/agents/worker/start#1/stdout';
  await until(() => rig.exists(said) && rig.read(said).split('> Do the next chore').length > 2, 'the second prompt');
  await rig.shell(kill);
  expect((await killed.ended).code).toBe(137);
  await until(() => rig.read('done.txt') === 'water the plants\nfeed the cat\n', 'the cat to be fed');

  const resumed = rig.start('resume', 'chores');
  await rig.decided('chores', 'gate-asked review');
  expect((await rig.meow('gates')).stdout).toMatch(/^chores +review +review /m);
  expect((await rig.meow('approve', 'chores', 'review', '--notes', 'thank you')).stdout).toBe('review is approved\n');
  expect((await resumed.ended).code).toBe(0);
  expect((await rig.meow('logs', 'chores', 'review.publish')).stdout).toBe(
    'water the plants\nfeed the cat\npost the letter\n',
  );
  const { steps } = await rig.status('chores');
  expect(['all.1.do', 'all.2.do', 'all.3.do'].map((step) => steps[step]?.attempt)).toEqual([1, 1, 1]);
});

test('every example is tested', () => {
  const names = readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).flatMap(
    (file) => /^(.*)\.meow\.toml$/.exec(file)?.[1] ?? [],
  );
  const tried = readFileSync(import.meta.filename, 'utf8').matchAll(
    /run\(rig, '([\w/-]+)'|'(agents\/[\w-]+)\.meow\.toml'/g,
  );
  const named = [...tried].map(([, ran, read]) => ran ?? read ?? '');
  expect([...new Set(named)].toSorted()).toEqual(names.toSorted());
});
