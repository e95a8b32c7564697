// `meow test --from RUN`: a run becomes a test that passes at once, and fails when the workflow loses a step. A sample of the
// examples; with MEOW_SWEEP=whole, all of them.

import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { commitAll } from '../fixtures/conductor/rig.ts';
import { IS_WHOLE } from '../rig/sample.ts';
import { Rig } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

interface Example {
  /** Folder or file below `examples`. */
  readonly path: string;
  readonly flags?: readonly string[];
  /** A gate, and who approves it. */
  readonly approves?: readonly [gate: string, by: string];
  /** To the question of an agent. */
  readonly answers?: string;
  /** How the workflow loses a step; without it, a MEOW workflow loses its last. */
  readonly loses?: { readonly file: string; readonly step: string; readonly to: string };
  readonly isSampled?: true;
}

const SIM = ['--adapter', 'sim'];

const RUNS: readonly Example[] = [
  { path: 'hello.meow.toml', isSampled: true },
  { path: 'pipeline.meow.toml' },
  { path: 'download.meow.toml' },
  { path: 'checks.meow.toml' },
  { path: 'backup.meow.toml' },
  { path: 'matrix.meow.toml' },
  { path: 'release-notes.meow.toml' },
  { path: 'agents/recovery.meow.toml', flags: SIM, isSampled: true },
  { path: 'agents/headless-loop.meow.toml', flags: SIM },
  { path: 'agents/ask-a-program.meow.toml', flags: [...SIM, '--var', 'program=tr a-z A-Z', '--var', 'text=hello'] },
  { path: 'agents/call.meow.toml', flags: SIM },
  { path: 'agents/simple-loop.meow.toml', flags: [...SIM, '--var', 'agent=w'] },
  { path: 'agents/parallel.meow.toml', flags: SIM },
  { path: 'agents/parallel-with-watchdog.meow.toml', flags: [...SIM, '--var', 'task_id=T'] },
  { path: 'agents/context-monitor.meow.toml', flags: [...SIM, '--var', 'worktree=.'] },
  { path: 'agents/deploy.meow.toml', flags: [...SIM, '--var', 'agent=t'], approves: ['approval-gate', 'ann'] },
  { path: 'raymond/ralph', flags: SIM, isSampled: true },
  { path: 'raymond/ask', flags: SIM, answers: 'The second.' },
  { path: 'raymond/composed', flags: [...SIM, '--var', 'input=Where?'] },
  { path: 'raymond/desk', flags: SIM },
  { path: 'raymond/fan-out', flags: SIM },
  { path: 'raymond/poll', flags: SIM },
  { path: 'raymond/release', flags: SIM },
  { path: 'raymond/research', flags: [...SIM, '--var', 'input=Where?'] },
  { path: 'raymond/review-loop', flags: [...SIM, '--var', 'input=a feature'] },
  { path: 'raymond/single.yaml', flags: SIM },
  {
    path: 'conductor/fix-loop',
    flags: SIM,
    loses: { file: 'fix-loop.yaml', step: 'fix', to: 'certify' },
    isSampled: true,
  },
  {
    path: 'conductor/goldens',
    flags: SIM,
    approves: ['review', 'ada'],
    loses: { file: 'goldens.yaml', step: 'review', to: 'accept' },
    isSampled: true,
  },
  {
    path: 'conductor/harness',
    flags: SIM,
    approves: ['golden_gate', 'ada'],
    loses: { file: 'harness.yaml', step: 'golden_gate', to: 'STOP' },
  },
  { path: 'conductor/unsafe', flags: SIM, loses: { file: 'unsafe.yaml', step: 'rollback', to: 'undone' } },
];

test.each(RUNS.filter(({ isSampled }) => IS_WHOLE || isSampled === true))('a run of $path', async (example) => {
  await using rig = await Rig.setup();
  const { path, flags = [], approves, answers } = example;
  const name = basename(path).replace(/\.meow\.toml$|\.yaml$/, '');
  const workflow = await layOut(rig, path);
  const id = `${name}-${process.pid}`;
  const meow = (...args: readonly string[]) => rig.meowWith(withStandIns(rig), ...args);
  const run = await meow('run', workflow, ...flags, '--id', id, '--no-wait');
  const waits = approves !== undefined || answers !== undefined;
  expect(run.code, run.stderr).toBe(waits ? 3 : Math.min(1, run.code));
  if (answers !== undefined) {
    expect(await meow('answer', id, answers)).toMatchObject({ code: 0 });
    expect(await meow('resume', id)).toMatchObject({ code: 0 });
  }
  if (approves !== undefined) {
    const [gate, by] = approves;
    expect(await meow('approve', id, gate, '--as', by)).toMatchObject({ code: 0 });
    expect(await meow('resume', id)).toMatchObject({ code: 0 });
  }

  const file = `${name}.test.toml`;
  expect(await rig.meow('test', '--from', id, '-o', file)).toMatchObject({ stderr: '', code: 0 });
  const { stdout, code } = await rig.meow('test', file);
  expect({ stdout, code }).toMatchObject({ code: 0 });

  loseStep(rig, workflow, example, rig.read(file));
  const without = await rig.meow('test', file);
  expect(without.code).toBe(1);
  expect(without.stdout).toContain('✗');
});

/** Puts the example into the rig, in a repository; returns the path of its workflow. */
async function layOut(rig: Rig, path: string): Promise<string> {
  const isFolder = path.startsWith('conductor/');
  if (isFolder) cpSync(join(EXAMPLES, path), rig.folder, { recursive: true });
  else {
    const base = path.replace(/\.meow\.toml$|\.yaml$/, '');
    for (const each of [path, `${base}.sim.toml`].filter((file) => existsSync(join(EXAMPLES, file))))
      cpSync(join(EXAMPLES, each), rig.path(basename(each)), { recursive: true });
    if (path === 'raymond/composed')
      cpSync(join(EXAMPLES, 'raymond/research'), rig.path('research'), { recursive: true });
  }
  mkdirSync(rig.path('inbox'));
  for (const name of ['one', 'two']) rig.write(`inbox/${name}`, '');
  for (const each of readdirSync(rig.folder)) if (each.endsWith('.test.toml')) rmSync(rig.path(each));
  await commitAll(rig);
  return isFolder ? `${basename(path)}.yaml` : basename(path);
}

/** The programs that the example for deployments needs, and a `sleep` that takes almost no time. */
function withStandIns(rig: Rig): Readonly<Record<string, string>> {
  rig.write('.git/bin/sleep', '#!/bin/sh\nexec /bin/sleep 0.1\n');
  chmodSync(rig.path('.git/bin/sleep'), 0o755);
  const path = [rig.path('.git/bin'), join(EXAMPLES, 'agents/stand-ins'), rig.environment['PATH'] ?? ''];
  return { PATH: path.join(':') };
}

/** `recorded`: the test, which names the steps of the run. */
function loseStep(rig: Rig, workflow: string, { path, loses }: Example, recorded: string): void {
  if (loses !== undefined) {
    const { file, step, to } = loses;
    const [, before = '', after = ''] =
      new RegExp(`^([^]*)\\n  - id: ${step}\\n[^]*?(\\n  - id: [^]*|$)$`).exec(rig.read(file)) ?? [];
    expect(before).not.toBe('');
    rig.write(file, `${before}${after}`.replaceAll(new RegExp(`(?<=[:[,] )${step}(?=[,\\s\\]])`, 'g'), to));
  } else if (path.endsWith('.toml')) {
    const text = rig.read(workflow);
    const [{ index: from } = { index: 0 }] = [...text.matchAll(/\n\[\[(?:main\.)?steps\]\]/g)].slice(-1);
    const rest = text.slice(from + 1);
    const end = rest.search(/\n\[(?!(?:main\.)?steps\.)/);
    rig.write(workflow, text.slice(0, from + 1) + (end < 0 ? '' : rest.slice(end + 1)));
  } else if (path.endsWith('.yaml')) {
    rig.write(workflow, rig.read(workflow).replace(/\n {2}(\w+):\n(?![^]*\n {2}\w+:\n)[^]*$/, '\n'));
  } else {
    const wasVisited = (file: string): boolean => recorded.includes(`.${file.replace(/\.\w+$/, '')}" = "done"`);
    const states = readdirSync(rig.path(workflow));
    const isFirst = (file: string): boolean => file.includes('START');
    const state = states.find((each) => wasVisited(each) && !isFirst(each)) ?? states.find(isFirst) ?? '';
    rmSync(rig.path(`${workflow}/${state}`));
  }
}

test('decisions about one gate, in their order', async () => {
  await using rig = await Rig.setup();
  await rig.meow('init', '--template', 'gate');
  const run = rig.shell('meow run gate --id g >/dev/null');
  const decide = async (draft: string, ...decision: readonly string[]): Promise<void> => {
    const ready = `until grep -qs "${draft}" ANNOUNCEMENT.md && meow gates | grep -q review; do sleep 0.1; done`;
    await rig.shell(`${ready}; meow ${decision[0]} g review ${decision.slice(1).join(' ')}`);
  };
  await decide('Draft 1', 'reject', '--reason', "'too short'");
  await decide('Draft 2', 'approve', '--notes', 'fine');
  expect((await run).code).toBe(0);

  const { stdout } = await rig.meow('test', '--from', 'g', '--name', 'as it was', '-o', 'g.test.toml');
  expect(stdout).toBe('wrote g.test.toml\n');
  expect(rig.read('g.test.toml')).toContain('notes = "too short"');
  expect(await rig.meow('test', 'g.test.toml')).toMatchObject({ code: 0 });
});

test('a decision that a longer script waits for is part of what the script answers', async () => {
  await using rig = await Rig.setup();
  const command = 'meow await-approval ship && echo shipped';
  rig.write('w.meow.toml', `[main]\n[[main.steps]]\nid = "one"\nexecutor = "shell"\ncommand = "${command}"\n`);
  expect(await rig.meow('run', 'w.meow.toml', '--id', 'w', '--no-wait')).toMatchObject({ code: 3 });
  await rig.meow('approve', 'w', 'ship');
  expect(await rig.meow('resume', 'w')).toMatchObject({ code: 0 });
  await rig.meow('test', '--from', 'w', '-o', 'w.test.toml');
  expect(rig.read('w.test.toml')).not.toContain('[[test.gate]]');
  const { stdout, code } = await rig.meow('test');
  expect({ stdout, code }).toMatchObject({ code: 0 });
});

test('the test fails when a step of the workflow is removed', async () => {
  await using rig = await Rig.setup();
  const step = (id: string): string => `[[main.steps]]\nid = "${id}"\nexecutor = "shell"\ncommand = "echo ${id}"\n`;
  rig.write('w.meow.toml', `[main]\nname = "w"\n\n${step('one')}\n${step('two')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'w');
  await rig.meow('test', '--from', 'w', '-o', 'w.test.toml');
  expect(rig.read('w.test.toml')).not.toContain('workflow =');
  expect(await rig.meow('test')).toMatchObject({ code: 0 });

  rig.write('w.meow.toml', `[main]\nname = "w"\n\n${step('one')}`);
  const { stdout, code } = await rig.meow('test');
  expect(code).toBe(1);
  expect(stdout).toContain('no step two exists');
});

test('an existing file is kept, and an unknown run is refused', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', '[main]\nname = "w"\n\n[[main.steps]]\nid = "one"\nexecutor = "shell"\ncommand = "true"\n');
  await rig.meow('run', 'w.meow.toml', '--id', 'w');
  rig.write('w.test.toml', 'mine');
  expect(await rig.meow('test', '--from', 'w', '-o', 'w.test.toml')).toMatchObject({ code: 2 });
  expect(rig.read('w.test.toml')).toBe('mine');
  expect(await rig.meow('test', '--from', 'nothing')).toMatchObject({ stdout: '', code: 2 });
  expect(await rig.meow('test', '--name', 'x')).toMatchObject({ stdout: '', code: 2 });
});
