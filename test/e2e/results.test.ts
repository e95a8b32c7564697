// What a run has come to: its work, its result, and who decided what.

import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { ConductorRig, evaluate, gate, leadsTo, says, validate, work } from '../fixtures/conductor/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';
import { Rig, shellStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';

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
    const { workspace } = (await made.rig.status('r')) as unknown as { readonly workspace: { readonly tree: string } };
    const named = [
      `work: branch meow/run-r in ${tree}: 1 commit, 2 uncommitted files, 2 files changed, 3 insertions(+)`,
      `  show: git --no-pager diff --no-ext-diff --no-textconv ${short} ${workspace.tree.slice(0, 12)}`,
      `  commit: git -C ${tree} add -A && git -C ${tree} commit`,
      '  merge: git merge meow/run-r',
      '  discard: meow gc r --force',
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
      diffstat: '2 files changed, 3 insertions(+)',
      from: base,
      tree: expect.stringMatching(/^[0-9a-f]{40}$/),
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

  test('is named where a person is asked: in the lines of a run, and in its tree', async () => {
    await using made = await ConductorRig.setup({ 'a.txt': 'a\n' });
    made.agents({ work: 'echo b >> a.txt' });
    made.workflow({ work: work('ask'), ask: gate({ gate_approved: 'STOP', gate_rejected: 'STOP' }) });
    const named = 'work: branch meow/run-r in .meow/worktrees/r: 1 uncommitted file, 1 file changed, 1 insertion(+)';
    const run = made.rig.start('run', 'w.yaml', '--id', 'r');
    await run.line(/^ {4}show: git --no-pager diff --no-ext-diff --no-textconv \w+ \w+$/m);
    await made.rig.meow('approve', 'r', 'ask');
    const { stdout } = await run.ended;
    expect(stdout).toMatch(/ask#1 +waits for a decision on gate ask\n {2}decide: meow approve r ask\n/);
    expect(stdout).toContain(`\n  ${named}\n    show: git`);

    using terminal = new Terminal(made.rig, { columns: 110, rows: 24 });
    terminal.type('meow run w.yaml --id t');
    await terminal.shows(
      /^\? ask waits for you: .* meow approve t ask\nwork: branch meow\/run-t in \.meow\/worktrees\/t: 1 uncommitted file, .*\n {2}show: git --no-pager diff/m,
    );
    await made.rig.meow('approve', 't', 'ask');
    await terminal.shows(/^t w\.yaml {2}done /m);
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

test('a run that a rejected gate ended names the gate, and not a check that failed before', async () => {
  await using made = await ConductorRig.setup({
    'package.json': '{ "scripts": { "test": "echo tested; test -e ok" } }',
  });
  made.agents({ fix: 'touch ok' });
  made.workflow({
    check: { opcode: 'RUN_VALIDATION', run: ['tests'], routes: leadsTo('ask', 'fix') },
    fix: work('check'),
    ask: gate({ gate_approved: 'STOP', gate_rejected: 'end' }),
    end: { opcode: 'STOP', verdict: 'failure', reason: 'not wanted' },
  });
  const run = made.rig.start('run', 'w.yaml', '--id', 'r');
  await made.rig.decided('r', 'gate-asked ask#1');
  await made.rig.meow('reject', 'r', 'ask', '--as', 'ada', '--reason', 'too late');
  const { stdout, code } = await run.ended;
  expect(code).toBe(1);
  const blamed = /^failed: ask#1 \(gate_rejected\): rejected by ada at \S+Z: too late$/m;
  for (const text of [stdout, (await made.rig.meow('status', 'r')).stdout]) {
    expect(text).toMatch(blamed);
    expect(text).not.toMatch(/^failed: check/m);
    expect(text).toMatch(/^next: meow why r ask#1$/m);
  }
  expect((await made.rig.meow('status', 'r')).stdout).toMatch(/^↷ check#1 .* {2}routed$/m);
  expect(await made.rig.status('r')).toMatchObject({
    error: { type: null, step: null, message: 'not wanted' },
  });
  const why = await made.rig.meow('why', 'r');
  expect(why.stderr).toMatch(/^step ask#1 \(done\); /);
  expect(why.stdout).toContain(
    '  Gate ask was rejected by ada: too late.\n  Its outcome ended the run as failed (not wanted).\n',
  );
  const logs = await made.rig.meow('logs', 'r');
  expect(logs.stderr).toMatch(/^step check#2 \(done\), since ask#1 \(done\) has no output of its own; /);
  expect(logs.stdout).toContain('tested\n');
  for (const decide of [
    ['approve', 'r'],
    ['answer', 'r', 'yes'],
  ])
    expect(await made.rig.meow(...decide)).toEqual({
      stdout: '',
      stderr: 'meow: run r has ended: it is failed\n  meow status r shows it\n',
      code: 2,
    });
});

test('a failure that a parent handles leaves no trace at the end of a run that is done', async () => {
  await using rig = await Rig.setup();
  const inOther = (block: string, step: string): string =>
    `[${block}]\n${step.replaceAll('main.steps', `${block}.steps`)}`;
  rig.write(
    'w.meow.toml',
    `[main]
[[main.steps]]
id = "b"
executor = "branch"
condition = "true"
on_true = { inline = [{ id = "x", executor = "shell", command = "exit 1" }] }
on_error = ".rec"
[[main.steps]]
id = "each"
executor = "foreach"
items = "[1, 2]"
item_var = "n"
on_error = "continue"
template = ".one"
[[main.steps]]
id = "loop"
executor = "loop"
until = "true"
max_rounds = 3
on_error = "continue"
template = ".one"
${inOther('one', shellStep('x', 'exit 1'))}
${inOther('rec', shellStep('y', 'true'))}`,
  );
  const { stdout, code } = await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(code).toBe(0);
  const status = (await rig.meow('status', 'r')).stdout;
  for (const text of [stdout, status]) {
    expect(text).not.toMatch(/^(?:failed|next):/m);
    expect(text).toContain('failed (handled)');
  }
  expect(status).not.toContain('✗');
  expect(status).toMatch(/^↷ b .* {2}recovered$/m);
  expect(status).toMatch(/^↷ each .* {2}continued$/m);
});

test('a turn without a price leaves a lower bound of the cost, everywhere', async () => {
  await using ray = await RaymondRig.setup();
  ray.folder('flow', { 'START.md': 'Begin.', 'NEXT.md': 'End.' });
  ray.answers(
    { to: 'Begin', says: '<goto>NEXT.md</goto>', usd: 24.69, tokens: 6_000 },
    { to: 'End', says: '<result>end</result>', usd: null, tokens: 4_000 },
  );
  const known = '≥ $24.69, 10.0k tokens';
  expect((await ray.run('flow')).stdout).toContain(` for ${known}: 2 done`);
  for (const view of [['status', 'r'], ['show', 'r'], ['list']])
    expect((await ray.rig.meow(...view)).stdout, view[0]).toContain(known);
  expect(await ray.rig.status('r')).toMatchObject({ cost: { usd: null, tokens: 10_000, unknown_turns: 1 } });
});
