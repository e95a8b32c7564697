// Runs every workflow in examples/conductor with the built binary and simulated agents, as its README says. The last
// test fails if an example has no test.

import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';
import { commitAll, events, outcomes, userTree } from '../fixtures/conductor/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/conductor');

/** A repository with the example in it. */
async function setup(name: string): Promise<Rig> {
  const rig = await Rig.setup();
  cpSync(join(EXAMPLES, name), rig.folder, { recursive: true });
  await commitAll(rig);
  return rig;
}

function run(rig: Rig, name: string, ...flags: readonly string[]) {
  return rig.meow('run', `${name}.yaml`, '--adapter', 'sim', '--id', 'r', ...flags);
}

test('harness: the engine runs a generated harness, and a person accepts the outputs that it proposes', async () => {
  await using rig = await setup('harness');
  const before = userTree(rig);
  expect(await run(rig, 'harness', '--no-wait')).toMatchObject({ code: 3, stderr: '' });
  expect(await rig.meow('approve', 'r', 'golden_gate', '--as', 'ada')).toMatchObject({ code: 0 });
  expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0, stderr: '' });
  expect(await outcomes(rig)).toEqual([
    'synthesize#1 completed',
    'execute_harness#1 error',
    'evaluate#1 partial',
    'fix#1 completed',
    'execute_harness#2 completed',
    'evaluate#2 needs_human',
    'golden_gate#1 gate_approved',
    'STOP#1 completed',
  ]);
  const report = (visit: number): unknown =>
    JSON.parse(rig.read(`.meow/run/r/artifacts/execute_harness/${visit}/generated_harness/harness_report.json`));
  expect(report(1)).toMatchObject({ summary: { passed: 2, failed: 1 }, proposed_goldens: [] });
  expect(report(2)).toMatchObject({ summary: { passed: 3, failed: 0 }, proposed_goldens: ['expected/help.txt'] });
  const { steps } = await rig.status('r');
  expect(steps['evaluate#2']?.outputs).toMatchObject({ status: 'needs_human', planner_status: 'success' });
  expect(rig.read('.meow/run/r/artifacts/fix/1/prompt.md')).toContain('must print capitals');
  expect(rig.read('.meow/run/r/diff.patch')).toContain('+  echo "Hello, $2!" | tr a-z A-Z\n');
  expect(userTree(rig)).toEqual(before);
});

test('fix-loop: problems that the tests find are fixed, and a witness confirms the end', async () => {
  await using rig = await setup('fix-loop');
  const before = userTree(rig);
  expect(await run(rig, 'fix-loop')).toMatchObject({ code: 0, stderr: '' });
  expect(await outcomes(rig)).toEqual([
    'implement#1 completed',
    'validate#1 error',
    'evaluate#1 partial',
    'fix#1 completed',
    'validate#2 completed',
    'evaluate#2 success',
    'certify#1 completed',
    'STOP#1 completed',
  ]);
  const { steps } = await rig.status('r');
  expect(steps['evaluate#1']?.outputs['contradictions']).toEqual([
    'implement#1 ended as completed, and the validator tests failed in validate#1 (error, exit code 1)',
  ]);
  expect(steps['certify#1']?.outputs['witness']).toMatchObject({ exit_code: 0, touched: [] });
  expect(userTree(rig)).toEqual(before);
  expect((await rig.shell('cd .meow/worktrees/r && node --test')).code).toBe(0);
});

test('goldens: the expected output changes only after one of two people approves', async () => {
  await using rig = await setup('goldens');
  expect(await run(rig, 'goldens', '--no-wait')).toMatchObject({ code: 3, stderr: '' });
  expect(await rig.meow('approve', 'r', 'review', '--as', 'bob')).toMatchObject({ code: 2 });
  expect(rig.read('.meow/worktrees/r/expected/page.html')).toBe(rig.read('expected/page.html'));
  expect(await rig.meow('approve', 'r', 'review', '--as', 'grace')).toMatchObject({ code: 0 });
  expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0, stderr: '' });
  expect((await outcomes(rig)).slice(2)).toEqual([
    'judge#1 needs_human',
    'review#1 gate_approved',
    'accept#1 completed',
    'check#2 completed',
    'judge#2 success',
    'STOP#1 completed',
  ]);
  expect(rig.read('.meow/run/r/artifacts/accept/1/prompt.md')).toContain('grace has approved the proposed page.');
  expect(rig.read('.meow/worktrees/r/expected/page.html')).toBe('<h1>Hello, Ada!</h1>\n');
});

test('goldens: a rejected change is rolled back', async () => {
  await using rig = await setup('goldens');
  expect(await run(rig, 'goldens', '--no-wait')).toMatchObject({ code: 3 });
  expect(await rig.meow('reject', 'r', 'review', '--as', 'ada', '--reason', 'too short')).toMatchObject({ code: 0 });
  expect(await rig.meow('resume', 'r')).toMatchObject({ code: 1 });
  expect((await outcomes(rig)).slice(3)).toEqual(['review#1 gate_rejected', 'undo#1 completed', 'kept#1 completed']);
  expect(rig.read('.meow/worktrees/r/page.mjs')).toBe(rig.read('page.mjs'));
});

test('unsafe: the work is rolled back whatever agent and planner say, and remains available for inspection', async () => {
  await using rig = await setup('unsafe');
  const before = userTree(rig);
  expect(await run(rig, 'unsafe')).toMatchObject({ code: 1 });
  expect(await outcomes(rig)).toEqual([
    'implement#1 killed_policy',
    'validate#1 completed',
    'evaluate#1 unsafe',
    'rollback#1 completed',
    'undone#1 completed',
  ]);
  expect((await rig.shell('cd .meow/worktrees/r && git status --porcelain && git diff master')).stdout).toBe('');
  const undone = events(rig).find(({ event_type: type }) => type === 'rollback_completed');
  expect((await rig.shell(`git show ${undone?.undone_ref}:deploy/production.yaml`)).stdout).toBe('replicas: 0\n');
  expect(userTree(rig)).toEqual(before);
});

test('merge: a conflict with the work of somebody else goes back to the agent, then the work is merged', async () => {
  await using rig = await setup('merge');
  const user = '-c user.name=Ann -c user.email=ann@example.org';
  await rig.shell('git branch -M main');
  // Somebody commits to main after the run has begun.
  const theirs = `cd '${rig.folder}' && echo 'parts: theirs' >parts.txt && git ${user} commit -qam theirs`;
  const script = rig.read('merge.sim.toml');
  rig.write('merge.sim.toml', script.replace('{ say = "Done." }', `{ run = "${theirs}" }, { say = "Done." }`));
  await rig.shell(`git ${user} commit -qam script`);
  expect(await run(rig, 'merge')).toMatchObject({ code: 0, stderr: '' });
  expect(await outcomes(rig)).toEqual([
    'implement#1 completed',
    'offer#1 partial',
    'fix#1 completed',
    'offer#2 success',
    'STOP#1 completed',
  ]);
  const { stdout } = await rig.shell(
    'git log --first-parent --format=%s main && git status --porcelain && cat parts.txt',
  );
  expect(stdout).toMatch(/^Merge offer r\/offer#2.*\ntheirs\nscript\n.*\nparts: theirs\nparts: ours\n$/);
});

test('meow validate finds no problems in any example', async () => {
  for (const name of examples()) {
    await using rig = await setup(name);
    const { code, stdout, stderr } = await rig.meow('validate', `${name}.yaml`);
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' });
    expect(stdout).not.toMatch(/: (error|warning) /);
  }
});

test('every example has a test', () => {
  const tests = readFileSync(import.meta.filename, 'utf8');
  for (const name of examples()) expect(tests, name).toContain(`test('${name}:`);
});

function examples(): readonly string[] {
  return readdirSync(EXAMPLES).filter((name) => name !== 'README.md');
}
