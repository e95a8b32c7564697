// Output of the inspecting commands for Conductor runs, and what `meow gc` removes and keeps.

import { describe, expect, test } from 'vitest';
import { ConductorRig, evaluate, gate, leadsTo, says, userTree, validate, work } from '../fixtures/conductor/rig.ts';

const FLOW = {
  work: work('check'),
  check: validate('judge', ['tests']),
  judge: evaluate(says('needs_human', { risk_flags: ['taste'] }), { needs_human: 'ask', success: 'STOP' }),
  ask: gate({ gate_approved: 'STOP', gate_rejected: 'STOP' }, { reason: 'Is it good?' }),
};

/** Waits at its gate, without an engine. */
async function waiting(): Promise<ConductorRig> {
  const made = await ConductorRig.setup({
    'package.json': '{ "scripts": { "test": "echo one failed; exit 3" } }',
    'a.txt': 'a\n',
  });
  made.agents({ work: 'echo b >> a.txt; echo "I am done."' });
  made.workflow(FLOW);
  const { code, stdout, stderr } = await made.run('--no-wait');
  expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
  expect(stdout).toMatch(/work#1 +done/);
  expect(stdout).not.toContain('work#1.turn');
  return made;
}

test('a visit is shown with its outcome, in the words of the workflow', async () => {
  await using made = await waiting();
  const { rig } = made;
  const status = await rig.status('r');
  expect(status).toMatchObject({ language: 'conductor', source: 'w.yaml', status: 'paused' });
  expect(await made.outcomes()).toEqual(['work#1 completed', 'check#1 error', 'judge#1 needs_human', 'ask#1 null']);
  expect(status.steps['check#1']).toMatchObject({ executor: 'run_validation', status: 'failed', error: { code: 3 } });
  expect((await rig.meow('status', 'r')).stdout).toMatch(/^\? ask#1 [\s\S]*meow approve r ask/m);

  expect((await rig.meow('logs', 'r', 'work#1')).stdout).toContain('I am done.\n');
  expect((await rig.meow('logs', 'r', 'check#1')).stdout).toContain('one failed\n');
  expect((await rig.meow('logs', 'r', 'judge#1')).stdout).toContain('"risk_flags":["taste"]');
  const shown = (await rig.meow('show', 'r', 'judge#1')).stdout;
  for (const said of ['judge#1', 'needs_human', 'taste']) expect(shown).toContain(said);
  expect((await rig.meow('why', 'r', 'ask#1')).stdout).toContain('It waits for a person to decide gate ask');
  expect((await rig.meow('why', 'r', 'check#1')).stdout).toMatch(
    /It failed at .*: tests: the command exited with status 3/,
  );
  expect((await rig.meow('trace', 'r')).stdout).toMatch(/ask#1 +waits for a decision on gate ask/);
});

test('the parts of a visit are steps, but a visit is shown as one step', async () => {
  await using made = await waiting();
  const { rig } = made;
  expect(Object.keys((await rig.status('r')).steps)).toEqual(['work#1', 'check#1', 'judge#1', 'ask#1']);
  expect((await rig.meow('status', 'r')).stdout).not.toContain('work#1.turn');
  expect((await rig.meow('logs', 'r', 'work#1.turn')).stdout).toBe('I am done.\n');
  expect((await rig.meow('logs', 'r', 'check#1.tests.run')).stdout).toContain('one failed\n');
  expect((await rig.meow('logs', 'r', 'check#1', '--follow')).stdout).toContain('one failed\n');
  expect((await rig.meow('why', 'r', 'check#1.tests.run')).stdout).toMatch(
    /failed at .*: the command exited with status 3/,
  );
  const shown = (await rig.meow('show', 'r', 'work#1.turn')).stdout;
  for (const said of ['adapter', 'fake', 'prompt', 'Your working directory is']) expect(shown).toContain(said);
  const dry = (await rig.meow('run', 'w.yaml', '--dry-run')).stdout;
  expect(dry).toContain('work  (run_agent; may enter check');
  expect(dry).not.toContain('snapshot');
  const trace = (await rig.meow('trace', 'r')).stdout;
  for (const part of ['work#1.policy', 'check#1.tests.run', 'judge#1.ask']) {
    expect(trace).toMatch(new RegExp(`${part} +started`));
  }
});

test('the transcript contains all answers and decisions', async () => {
  await using made = await waiting();
  await made.rig.meow('approve', 'r', 'ask', '--as', 'ada', '--notes', 'well done');
  expect(await made.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  const text = made.rig.read('.meow/run/r/transcript.md');
  expect(text).toMatch(/## work#1: completed\n\nI am done\.\n/);
  expect(text).toMatch(/## check#1: error\n\n- tests: error, exit code 3: /);
  expect(text).toMatch(/## judge#1: needs_human\n\n- work#1 ended as completed, and .*\n- taste\n/);
  expect(text).toMatch(/## ask#1: gate_approved\n\nada: well done\n/);
});

test('a graph shows the routes as written', async () => {
  await using made = await waiting();
  const { stdout } = await made.rig.meow('graph', 'w.yaml', '--format', 'text');
  expect(stdout).toMatch(/work +run_agent\n +→ completed: check\n +→ error: STOP/);
  for (const key of ['killed_policy: ', 'needs_human: ask', 'gate_approved: STOP', 'gate_rejected: STOP']) {
    expect(stdout).toContain(`→ ${key}`);
  }
  expect(stdout).not.toMatch(/exit-nonzero|agent-crashed|approved: ask/);
  expect((await made.rig.meow('graph', 'r', '--format', 'text')).stdout).toMatch(/check#1 +run_validation +failed/);
});

test('meow validate reports the command of each validator, and every problem with its position', async () => {
  await using made = await waiting();
  expect((await made.rig.meow('validate', 'w.yaml')).stdout).toMatch(/tests: npm run --silent test \(package\.json/);
  made.workflow({ ...FLOW, work: { ...work('chekc'), promt: 'x' } });
  const { code, stdout } = await made.rig.meow('validate', 'w.yaml');
  expect(code).toBe(1);
  expect(stdout.match(/^w\.yaml:\d+:\d+: error \S+:/gm)?.length).toBeGreaterThan(1);
  for (const said of ['"chekc"', '"promt"', '"check"', '"prompt"']) expect(stdout).toContain(said);
});

describe('meow gc', () => {
  test('keeps live runs and work that would be lost, and says why', async () => {
    await using made = await waiting();
    const { rig } = made;
    const before = userTree(rig);
    expect((await rig.meow('gc')).stdout).toMatch(/^r: kept\n {2}.*\n/);
    await rig.meow('approve', 'r', 'ask');
    expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    const kept = await rig.meow('gc');
    expect(kept).toMatchObject({ code: 0, stderr: '' });
    expect(kept.stdout).toMatch(/^r: kept\n {2}.*(changes|committed)[\s\S]*meow gc r --force\n$/);
    expect(rig.exists('.meow/worktrees/r/a.txt')).toBe(true);
    expect(await rig.meow('gc', '--force')).toMatchObject({ code: 2 });
    expect((await rig.meow('gc', 'r', '--force', '--dry-run')).stdout).toMatch(/^r: would be removed\n/);
    expect(rig.exists('.meow/worktrees/r/a.txt')).toBe(true);
    expect((await rig.meow('gc', 'r', '--force')).stdout).toBe('r: removed\n');
    expect(
      (await rig.shell('git worktree list | wc -l; git branch --list "meow/*"; git for-each-ref refs/meow')).stdout,
    ).toBe('1\n');
    expect(rig.exists('.meow/worktrees/r')).toBe(false);
    expect(userTree(rig)).toEqual(before);
    expect((await rig.meow('status', 'r')).code, 'what is told of the run stays').toBe(0);
    expect((await rig.meow('gc')).stdout).toBe('nothing to remove\n');
  });

  test('removes runs with nothing to lose, and keeps a run with an engine', async () => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    made.agents({ work: 'while [ ! -e "$AGENT_FOLDER/go" ]; do sleep 0.02; done; echo nothing' });
    made.workflow({ work: work('STOP', { routes: leadsTo('STOP') }) });
    const live = rig.start('run', 'w.yaml', '--id', 'r');
    await rig.appears('.meow/worktrees/r/.git');
    expect((await rig.meow('gc', 'r', '--force')).stdout).toMatch(/^r: kept\n/);
    rig.write('.agent/go', '');
    expect(await live.ended).toMatchObject({ code: 0 });
    expect((await rig.meow('gc', '--json')).stdout).toBe('[{"run":"r","removed":true,"bytes":null,"reasons":[]}]\n');
    const unknown = await rig.meow('gc', 'r');
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.stderr).toContain('run r has left nothing in this repository');
  });
});
