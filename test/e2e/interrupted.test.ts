// Runs whose engine is gone: what is shown of them, and what does not count as their time.

import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatDuration } from '../../src/base/time.ts';
import { Rig, type RunObject, shellStep, until, waitingStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';

const GATED = `[main]\n${shellStep('gate', 'meow await-approval review')}${shellStep('after', 'true', 'needs = ["gate"]')}`;

const PAUSED = `workflow_id: w
version: 1
description: a test
entry_step: ask
steps:
  - id: ask
    opcode: GATE
    gate: requires_approval
    routes: { gate_approved: STOP, gate_rejected: STOP }
`;

/** Kills the engine of the run `r` after a decision. */
async function interrupted(workflow: string, decision: string): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('w.meow.toml', workflow);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.decided('r', decision);
  run.kill('SIGKILL');
  await run.ended;
  return rig;
}

async function statusOf(rig: Rig): Promise<RunObject & Readonly<Record<string, unknown>>> {
  return { ...(await rig.status('r')) };
}

test('a run without its engine is interrupted, and its clocks stand still', async () => {
  await using rig = await interrupted(`[main]\n${waitingStep('hold')}`, 'step-started hold');
  expect(await statusOf(rig)).toMatchObject({ status: 'running', engine: null, interrupted: true });
  const first = await rig.meow('status', 'r');
  expect(first.stdout).toMatch(
    /^r w\.meow\.toml#main {2}interrupted {2}\d+ms .*\n {2}its engine is gone; resume it: meow resume r\n/,
  );
  const listed = (await rig.meow('list')).stdout;
  expect(listed).toMatch(/^r +interrupted .* w\.meow\.toml#main {2}\(resume it: meow resume r\)$/m);
  const [row] = JSON.parse((await rig.meow('list', '--json')).stdout) as object[];
  expect(row).toMatchObject({ status: 'running', engine: null, interrupted: true, ended_at: null });
  // A second of waiting would show in a clock that runs.
  await until(() => Date.now() > statSync(rig.path('.meow/workflows/r/journal.jsonl')).mtimeMs + 1_500, 'some time');
  expect(await rig.meow('status', 'r')).toEqual(first);
  expect((await rig.meow('list', '--status', 'interrupted')).stdout).toMatch(/^r +interrupted +\S+ ago +\d+ms /m);
  expect((await rig.meow('list', '--status', 'running')).stderr).toBe('no running runs\n');

  rig.write('hold.go', '');
  const resumed = rig.start('resume', 'r');
  await resumed.ended;
  expect(await statusOf(rig)).toMatchObject({ status: 'done', interrupted: false });
});

test('a live, a paused and a stopped run are not interrupted', async () => {
  await using rig = await Rig.setup();
  rig.write('gate.meow.toml', GATED);
  rig.write('hold.meow.toml', `[main]\n${waitingStep('hold')}`);
  await rig.meow('run', 'gate.meow.toml', '--id', 'r', '--no-wait');
  expect(await statusOf(rig)).toMatchObject({ status: 'paused', interrupted: false });
  const live = rig.start('run', 'hold.meow.toml', '--id', 'live');
  await rig.appears('hold.began');
  expect((await rig.meow('list')).stdout).toMatch(/^live +running .*\n[^]*^r +paused /m);
  await rig.meow('stop', 'live');
  await live.ended;
  expect((await rig.meow('list')).stdout).toMatch(/^live +stopped /m);
});

test('a gate that was approved without an engine is shown as approved, and takes effect on resume', async () => {
  await using rig = await interrupted(GATED, 'gate-asked gate');
  expect(await statusOf(rig)).toMatchObject({ status: 'waiting', interrupted: true, gates: [{ status: 'open' }] });
  expect((await rig.meow('status', 'r')).stdout).toContain('? review waits for you  meow approve r review\n');
  await rig.meow('approve', 'r', 'review', '--as', 'ada', '--notes', 'looks good');
  const decided = { id: 'review', status: 'approved', decided_by: 'ada', notes: 'looks good' };
  expect(await statusOf(rig)).toMatchObject({ interrupted: true, gates: [decided] });
  const { stdout } = await rig.meow('status', 'r');
  expect(stdout).toContain('✓ review approved by ada: looks good; takes effect on resume\n');
  expect(stdout).not.toContain('waits for you');
  expect(await rig.meow('gates')).toMatchObject({ stdout: '', stderr: 'no gate is open\n' });
  expect((await rig.meow('why', 'r', 'gate')).stdout).toContain(
    'Gate review was approved by ada: looks good. That takes effect when the run is resumed.',
  );
  expect((await rig.meow('resume', 'r')).code).toBe(0);
});

test('the same holds for a paused run', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GATED);
  await rig.meow('run', 'w.meow.toml', '--id', 'r', '--no-wait');
  await rig.meow('reject', 'r', 'review', '--as', 'ada', '--reason', 'no tests');
  const { stdout } = await rig.meow('status', 'r');
  expect(stdout).toContain('⊘ review rejected by ada: no tests; takes effect on resume\n');
  expect(stdout).toContain('next: meow resume r\n');
  expect(await statusOf(rig)).toMatchObject({ status: 'paused', gates: [{ status: 'rejected', notes: 'no tests' }] });
});

test('a command that ended without an engine has the time of its real end', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  rig.write('hold.go', '');
  const record = rig.files('.meow/workflows/r/steps').find((file) => file.endsWith('status')) ?? '';
  await until(() => rig.read(record).includes('exit 0'), 'the command to end');
  const ended = Math.round(statSync(rig.path(record)).mtimeMs);
  // The difference shows in the first moment after the end.
  await until(() => Date.now() > ended + 50, 'some time');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  const step = (await statusOf(rig)).steps['hold'] as unknown as { finished_at: string; started_at: string };
  expect(Date.parse(step.finished_at)).toBe(ended);
  const [attempt] = (JSON.parse((await rig.meow('show', 'r', 'hold', '--json')).stdout) as { attempts: object[] })
    .attempts;
  expect(attempt).toMatchObject({ finished_at: step.finished_at, duration_ms: ended - Date.parse(step.started_at) });
  expect(rig.decisions('r')).toContain('effect-ended hold');
});

test('meow stop of a crashed run keeps the real end of a command, and leaves out the time without an engine', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  rig.write('hold.go', '');
  const record = rig.files('.meow/workflows/r/steps').find((file) => file.endsWith('status')) ?? '';
  await until(() => rig.read(record).includes('exit 0'), 'the command to end');
  const ended = Math.round(statSync(rig.path(record)).mtimeMs);
  await until(() => Date.now() > ended + 1_500, 'some time');
  await rig.meow('stop', 'r');
  const { steps } = await statusOf(rig);
  const step = steps['hold'] as unknown as { status: string; finished_at: string; started_at: string };
  expect(step.status).toBe('done');
  expect(Date.parse(step.finished_at)).toBe(ended);
  const shown = JSON.parse((await rig.meow('show', 'r', '--json')).stdout) as {
    readonly duration_ms: number;
    readonly started_at: string;
    readonly ended_at: string;
  };
  expect(shown.duration_ms).toBeLessThanOrEqual(Date.parse(shown.ended_at) - Date.parse(shown.started_at) - 1_500);
});

test('the gates of an interrupted or paused run do not wait on, and say that it is interrupted', async () => {
  await using rig = await interrupted(GATED, 'gate-asked gate');
  rig.write('p.yaml', PAUSED);
  await rig.shell('git config user.name Ann && git config user.email a@b.c && git add -A && git commit -qm first');
  await rig.meow('run', 'p.yaml', '--id', 'p', '--no-wait');
  const seen = Date.now();
  const gates = await rig.meow('gates');
  expect(gates.stdout).toMatch(/^r +review +gate +\d+ms \(interrupted\)$/m);
  expect(gates.stdout).toMatch(/^p +ask +ask#1 +\d+ms +w asks for a decision: ask$/m);
  const status = (await rig.meow('status', 'p')).stdout;
  expect(status).toMatch(/^\? ask waits for you: w asks for a decision: ask {2}meow approve p ask$/m);
  await until(() => Date.now() > seen + 1_500, 'some time');
  expect(await rig.meow('gates')).toEqual(gates);
  expect((await rig.meow('status', 'p')).stdout).toBe(status);
  expect(JSON.parse((await rig.meow('gates', '--run', 'r', '--json')).stdout)).toMatchObject([{ interrupted: true }]);
});

test('time without an engine at a gate does not count', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GATED);
  await rig.meow('run', 'w.meow.toml', '--id', 'r', '--no-wait');
  const paused = Date.now();
  await until(() => Date.now() > paused + 1_500, 'some time');
  await rig.meow('approve', 'r', 'review');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  const run = JSON.parse((await rig.meow('show', 'r', '--json')).stdout) as Record<string, string> & {
    duration_ms: number;
  };
  const between = Date.parse(run['ended_at'] ?? '') - Date.parse(run['started_at'] ?? '');
  expect(run.duration_ms).toBeLessThanOrEqual(between - 1_500);
  // Everybody tells the same.
  const lasted = formatDuration(run.duration_ms);
  expect((await rig.meow('list')).stdout).toMatch(new RegExp(`^r +done +\\S+ ago +${lasted} `, 'm'));
  expect((await rig.meow('trace', 'r')).stdout).toContain(` run done after ${lasted}\n`);
  expect((await rig.meow('show', 'r')).stdout).toMatch(new RegExp(` lasted: +${lasted}\n`));
  expect((await rig.meow('status', 'r')).stdout).toContain(`  done  ${lasted}  2 done\n`);
});

test('a live tree shows that the engine is gone, and that it is back', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow status r --watch');
  await terminal.shows(/^r w\.meow\.toml#main {2}running .*\n● hold/m);
  run.kill('SIGKILL');
  await terminal.shows(
    /^r w\.meow\.toml#main {2}interrupted .*\n {2}its engine is gone; resume it: meow resume r\n● hold/m,
  );
  const again = rig.start('resume', 'r');
  await terminal.shows(/^r w\.meow\.toml#main {2}running .*\n● hold/m);
  rig.write('hold.go', '');
  expect((await again.ended).code).toBe(0);
  await terminal.shows(/^r w\.meow\.toml#main {2}done .*\n✓ hold/m);
});
