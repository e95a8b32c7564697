// Loops, as a user runs them: their rounds, their end, and what a resume does.

import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

/** Each round writes its number to the file `round`. */
function loop(keys: string): string {
  return `[main]
[[main.steps]]
id = "fix"
executor = "loop"
${keys}
inline = [{ id = "work", executor = "shell", command = "echo {{round}} | tee round", outputs = { n = { source = "stdout", type = "int" } } }]

[[main.steps]]
id = "after"
executor = "shell"
command = "echo {{fix.outputs.rounds}} rounds, {{fix.outputs.outcome}}, the last left {{fix.outputs.work.n}}"
needs = ["fix"]
`;
}

test('a loop ends when its condition is true, and the tree shows the last round only', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', loop('until = "test $(cat round) = 3"\nmax_rounds = 5'));
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  expect((await rig.meow('logs', 'r', 'after')).stdout).toBe('3 rounds, true, the last left 3\n');
  const tree = (await rig.meow('status', 'r')).stdout.replaceAll(/ +\d+ms| +[\d.]+s/g, '');
  expect(tree).toBe('r w.meow.toml#main  done  8 done\n✓ fix  3 rounds\n  ✓ 3.work\n  ✓ 3.until\n✓ after\n');
});

test('a loop that is not over after its last round fails, and a resume allows as many rounds again', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', loop('until = "test -e fixed"\nmax_rounds = 2'));
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(1);
  const failed = await rig.status('r');
  expect(failed.error).toEqual({
    type: 'rounds_exhausted',
    message: 'the loop is not over after 2 rounds',
    step: 'fix',
  });
  expect(failed.steps['fix']?.outputs).toMatchObject({ rounds: 2, outcome: 'exhausted', work: { n: 2 } });

  rig.write('fixed', '');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  expect((await rig.meow('logs', 'r', 'after')).stdout).toBe('3 rounds, true, the last left 3\n');
});

test('a failure in a round fails the loop, and a resume goes on in that round', async () => {
  await using rig = await Rig.setup();
  const work = 'command = "echo {{round}}; test {{round}} = 1 || test -e fixed"';
  rig.write(
    'w.meow.toml',
    loop('until_output = "work.outputs.over"\nmax_rounds = 3')
      .replace(/command = "echo \{\{round[^"]*"/, work)
      .replace('outputs = {', 'outputs = { over = "stdout",'),
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(1);
  expect((await rig.status('r')).steps['fix']).toMatchObject({ error: { type: 'child_failed' } });
  expect((await rig.meow('why', 'r', 'fix')).stdout).toContain('It began with fix.2.work');

  rig.write('fixed', '');
  expect((await rig.meow('resume', 'r')).code).toBe(1);
  const { steps } = await rig.status('r');
  expect(['fix.1.work', 'fix.2.work', 'fix.3.work'].map((id) => steps[id]?.attempt)).toEqual([1, 2, 1]);
  expect(steps['fix']).toMatchObject({ error: { type: 'rounds_exhausted' } });
});

test('a gate as the condition: a rejection begins another round, which knows the reason', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]
[[main.steps]]
id = "draft"
executor = "loop"
until = "meow await-approval review"
max_rounds = 5
inline = [{ id = "write", executor = "shell", command = "echo 'because: {{previous.until.outputs.reason}}'", outputs = { text = { source = "stdout" } } }]
`,
  );
  const live = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.decided('r', 'gate-asked draft.1.until');
  await rig.meow('reject', 'r', 'review', '--reason', 'too long');
  await rig.decided('r', 'gate-asked draft.2.until');
  await rig.meow('approve', 'r', 'review', '--as', 'Ann');
  expect((await live.ended).code).toBe(0);
  expect((await rig.status('r')).steps['draft']?.outputs).toMatchObject({
    rounds: 2,
    write: { text: 'because: too long' },
    until: { decided_by: 'Ann' },
  });
});
