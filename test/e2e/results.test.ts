// What a run has come to: its work, its result, and who decided what.

import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { ConductorRig, evaluate, gate, says, validate, work } from '../fixtures/conductor/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';
import { Rig, shellStep } from '../rig/rig.ts';

describe('the work of a Conductor run', () => {
  const FLOW = {
    work: work('check'),
    check: validate('judge', ['tests']),
    judge: evaluate(says('needs_human'), { needs_human: 'ask', success: 'STOP' }),
    ask: gate({ gate_approved: 'STOP', gate_rejected: 'STOP' }),
  };

  test('is named at its gate, in its status and at its end, with what to do with it', async () => {
    await using made = await ConductorRig.setup({
      'package.json': '{ "scripts": { "test": "exit 3" } }',
      'a.txt': 'a\n',
    });
    made.agents({ work: 'echo b >> a.txt; git commit -qam more; echo c >> a.txt; echo new > n.txt' });
    made.workflow(FLOW);
    const { stdout } = await made.run('--no-wait');
    const base = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: made.rig.folder, encoding: 'utf8' }).trim();
    const [tree, short] = ['.meow/worktrees/r', base.slice(0, 12)];
    const named = [
      `work: branch meow/run-r in ${tree}: 1 commit, 2 uncommitted files, 1 file changed, 2 insertions(+)`,
      `  show: git -C ${tree} diff ${short} · commit: git -C ${tree} add -A && git -C ${tree} commit · ` +
        'merge: git merge meow/run-r · discard: meow gc r --force',
    ];
    for (const text of [stdout, (await made.rig.meow('status', 'r')).stdout, (await made.rig.meow('gates')).stdout])
      for (const line of named) expect(text.split('\n')).toContain(line);
    const status = { ...(await made.rig.status('r')) } as unknown as Readonly<Record<string, unknown>>;
    expect(status['workspace']).toEqual({
      branch: 'meow/run-r',
      worktree: made.rig.path(tree),
      base,
      commits: 1,
      uncommitted: 2,
      diffstat: '1 file changed, 2 insertions(+)',
    });

    await made.rig.meow('approve', 'r', 'ask', '--as', 'ada', '--notes', 'well done');
    const resumed = await made.rig.meow('resume', 'r');
    expect(resumed.code).toBe(0);
    for (const line of named) expect(resumed.stdout.split('\n')).toContain(line);
    // The check failed, and a route of the workflow followed.
    expect(resumed.stdout).not.toMatch(/^failed:/m);
    expect((await made.rig.meow('status', 'r')).stdout).not.toMatch(/^failed:/m);
    expect((await made.rig.meow('why', 'r', 'ask#1')).stdout).toContain('Gate ask was approved by ada: well done.\n');
  });

  test('is null for other runs, and once it is discarded', async () => {
    await using made = await ConductorRig.setup({ 'a.txt': 'a\n' });
    made.agents({ work: 'echo b >> a.txt' });
    made.workflow({ work: work('STOP') });
    expect((await made.run()).stdout).toContain('work: branch meow/run-r in .meow/worktrees/r: 1 uncommitted file');
    await made.rig.meow('gc', 'r', '--force');
    expect(await made.rig.status('r')).toMatchObject({ workspace: null });
    made.rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}`);
    await made.rig.meow('run', 'w.meow.toml', '--id', 'm');
    expect(await made.rig.status('m')).toMatchObject({ workspace: null });
  });
});

test('a Raymond run shows its transitions and its result', async () => {
  await using ray = await RaymondRig.setup();
  ray.folder('flow', {
    'START.sh': `echo '<call return="C.sh">B.sh</call>'`,
    'B.sh': `echo '<result>found</result>'`,
    'C.sh': `echo '<goto>D.sh</goto>'`,
    'D.sh': `echo '<result>all good</result>'`,
  });
  const { stdout } = await ray.run('flow');
  for (const text of [stdout, (await ray.rig.meow('trace', 'r')).stdout]) {
    const moves = text.split('\n').flatMap((line) => /main\S+ +(?:goes|calls|returns) .*/.exec(line)?.[0] ?? []);
    expect(moves.map((move) => move.replaceAll(/ +/g, ' '))).toEqual([
      'main.1.START calls main.2.B',
      'main.2.B returns "found"',
      'main.2.B goes to main.3.C',
      'main.3.C goes to main.4.D',
      'main.4.D returns "all good"',
    ]);
  }
  expect(stdout).toMatch(/^result: all good$/m);
  expect((await ray.rig.meow('status', 'r')).stdout).toMatch(/^result: all good$/m);
});

test('the output `result` of the last step is the result of a MEOW run', async () => {
  await using rig = await Rig.setup();
  const outputs = `outputs = { result = { source = "stdout" } }`;
  rig.write(
    'w.meow.toml',
    `[main]\n${shellStep('a', 'echo one', outputs)}${shellStep('b', 'echo two', `needs = ["a"]\n${outputs}`)}${shellStep('c', 'true', 'needs = ["b"]')}`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).stdout).toMatch(/^result: two$/m);
  expect(await rig.status('r')).toMatchObject({ result: 'two' });
});

test('a false condition and a rejected gate have marks of their own, and why says who decided', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]
[[main.steps]]
id = "is-it"
executor = "branch"
condition = "exit 4"
[[main.steps]]
id = "ok"
executor = "branch"
condition = "meow await-approval review"
on_false = { inline = [] }
`,
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.decided('r', 'gate-asked ok');
  await rig.meow('reject', 'r', 'review', '--as', 'ada', '--reason', 'no tests');
  await run.ended;
  const { stdout } = await rig.meow('status', 'r');
  expect(stdout).toMatch(/^◇ is-it .* condition false$/m);
  expect(stdout).toMatch(/^⊘ ok .* rejected by ada: no tests$/m);
  expect((await rig.meow('why', 'r', 'ok')).stdout).toContain('Gate review was rejected by ada: no tests.\n');
  expect((await rig.meow('why', 'r', 'is-it')).stdout).toContain(
    'Its condition was false: the command exited with status 4.\n',
  );
});
