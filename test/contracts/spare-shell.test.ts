// Commands in shells that were ready before it was known what for: nobody can tell, neither the script nor who looks for it.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProcess } from '../../src/drivers/process-table.ts';
import type { Effect, Outcome } from '../../src/ir/effect.ts';
import { appears, CommandRig, from, gone } from './driver-command-rig.ts';
import { start } from './driver.ts';
import { SpareRig } from './spare-rig.ts';

let rig: SpareRig;
beforeEach(async () => {
  rig = await SpareRig.setUp();
});
afterEach(() => rig.close());

/** Never ends, and starts no program. */
const BUSY = 'while :; do :; done';

const pidIn = async (name: string): Promise<number> =>
  Number(await appears(rig.path(name), (text) => text.endsWith('\n')));

/** Has begun, in the shell that was ready. */
async function begun(script: string): Promise<{ effect: Effect; outcome: Promise<Outcome>; pid: number }> {
  const effect = rig.command(`echo $PPID > parent; ${script}`);
  const outcome = start(rig, effect);
  await appears(rig.path('parent'), (text) => text.endsWith('\n'));
  expect(rig.ranInSpare(effect)).toBe(true);
  return { effect, outcome, pid: Number(readFileSync(rig.stepFile(effect, 'status'), 'utf8').split(' ')[0]) };
}

describe('what the script sees', () => {
  test('is the environment, the files and the folder of any command', async () => {
    const script =
      'echo "$0 $# ${A} $MEOW_STEP"; env | grep -v ^_= | sort; ls /proc/self/fd | wc -l; umask; pwd; ls -l /proc/$$/fd/0';
    const wish = { env: { A: "it's $(odd) `x`" }, captures: [from('stdout')], step: 'same' };
    const plain = new CommandRig({ launcher: null });
    const normal = (text: unknown, of: CommandRig): string =>
      String(text)
        .replaceAll(of.runId, 'RUN')
        .replaceAll(/meow-command-\w+/g, 'ROOT')
        .replaceAll(/^.* (?=\/proc)/gm, '')
        .replaceAll(/\/proc\/\d+/g, '/proc/PID');
    const both: string[] = [];
    for (const each of [plain, rig]) {
      const effect = each.command(script, wish);
      const outcome = await start(each, effect);
      both.push(normal(outcome.kind === 'success' ? outcome.outputs['stdout'] : JSON.stringify(outcome), each));
      if (each === rig) expect(rig.ranInSpare(effect)).toBe(true);
    }
    expect(both[1]).toBe(both[0]);
    expect(both[0]).toContain('/proc/PID/fd/0 -> /dev/null');
    await plain.close();
  });

  test.each([
    ['variables that shells do not take over', { env: { IFS: 'x' } }, 'a=axb; echo $a "$IFS" | od -c | head -1'],
    ['names that are none for shells', { env: { 'a-b': 'x' } }, 'env | grep -c a-b'],
    ['flags of the shell', {}, 'echo "flags: $-"'],
    ['a variable of several lines', { env: { A: 'a\nb' } }, 'nosuch 2>&1; echo "$A"'],
    ['variables like those of ours', { env: { meow_go: 'mine' } }, 'echo $meow_go'],
    ['a very long variable', { env: { LONG: 'x'.repeat(50_000) } }, 'echo ${#LONG}'],
  ])('is the same with %s, in a shell of its own', async (_, wish, script) => {
    const plain = new CommandRig({ launcher: null });
    const effect = rig.command(script, { ...wish, captures: [from('stdout')] });
    const outcome = await start(rig, effect);
    expect(rig.ranInSpare(effect)).toBe(false);
    expect(outcome).toEqual(await plain.run(script, { ...wish, captures: [from('stdout')] }));
    await plain.close();
  });

  test('is a folder that has taken the place of another since', async () => {
    await rig.spare();
    renameSync(rig.folder, `${rig.folder}-before`);
    mkdirSync(rig.folder);
    writeFileSync(rig.path('new'), '');
    expect(await rig.printed('ls')).toBe('new');
    rmSync(`${rig.folder}-before`, { recursive: true });
  });

  test('is one that a step names', async () => {
    mkdirSync(rig.path('inner'));
    expect(await rig.printed('pwd', { cwd: 'inner' })).toBe(rig.path('inner'));
    expect(await rig.printed('pwd')).toBe(rig.folder);
  });
});

test('a script of many lines is read to its end', async () => {
  const lines = Array.from({ length: 500 }, (_, n) => `test ${n} -ge 0 # line ${n} of many`);
  const effect = rig.command(`echo $?\n${lines.join('\n')}\nnosuch; echo end; exit 3`, {
    captures: [from('stdout')],
  });
  expect(await start(rig, effect)).toMatchObject({ failure: { code: 3, outputs: { stdout: '0\nend' } } });
  expect(rig.ranInSpare(effect)).toBe(true);
  expect(readFileSync(rig.stepFile(effect, 'stderr'), 'utf8')).toBe('sh: 502: nosuch: not found\n');
});

describe('the next engine', () => {
  test('finds it at work, waits for it, and takes its result', async () => {
    const effect = rig.effect('holds');
    void start(rig, effect);
    await rig.begun(effect);
    expect(rig.ranInSpare(effect)).toBe(true);
    rig.nextLife();
    const found = rig.find(effect);
    await rig.release(effect);
    expect(await found).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('stops it, and what it has started without a program', async () => {
    const { effect, pid } = await begun(`(sh -c 'echo $PPID' > inner; ${BUSY}) & ${BUSY}`);
    const inner = await pidIn('inner');
    rig.nextLife();
    const found = rig.find(effect);
    rig.driver.stop(effect.id, { force: true, why: 'timeout' });
    expect(await found).toMatchObject({ failure: { kind: 'stopped' } });
    expect([pid, inner].map(findProcess)).toEqual([null, null]);
  });

  test('clears away what it has left, where it is gone without a word', async () => {
    const { effect, pid } = await begun(`(sh -c 'echo $PPID' > inner; ${BUSY}) & ${BUSY}`);
    const inner = await pidIn('inner');
    process.kill(pid, 'SIGKILL');
    await gone(pid);
    expect(findProcess(inner)).not.toBe(null);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject({ failure: { kind: 'lost' } });
    expect(findProcess(inner)).toBe(null);
  });

  test('does not take a later shell of the run for it', async () => {
    const { effect, pid } = await begun(BUSY);
    const status = readFileSync(rig.stepFile(effect, 'status'), 'utf8');
    writeFileSync(rig.stepFile(effect, 'status'), status.replace(/ \S+ /, ' 0.01 '));
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject({ failure: { kind: 'lost' } });
    expect(findProcess(pid)).not.toBe(null);
    process.kill(pid, 'SIGKILL');
  });
});

test('interrupted, it waits for its child, as any shell with a script does', async () => {
  const effect = rig.command("sh -c 'kill -INT $PPID; sleep 0.2; echo child'; echo not reached");
  expect(await start(rig, effect)).toMatchObject({ failure: { kind: 'signal', code: 130, output: 'child' } });
  expect(rig.ranInSpare(effect)).toBe(true);
});

test('it is stopped with all that it has started', async () => {
  const { effect, outcome, pid } = await begun(`(sh -c 'echo $PPID' > inner; ${BUSY}) & sleep 1000`);
  const inner = await pidIn('inner');
  rig.driver.stop(effect.id, { force: false, why: 'timeout' });
  expect(await outcome).toMatchObject({ failure: { kind: 'stopped' } });
  expect([pid, inner].map(findProcess)).toEqual([null, null]);
});

test('one that cannot wait is followed by another when the next command has begun, not before', async () => {
  mkdirSync(rig.path('inner'));
  await rig.printed('true', { cwd: 'inner' });
  await rig.printed('true', { cwd: 'inner' });
  const spare = await rig.spare();
  rmSync(rig.path('inner'), { recursive: true });
  process.kill(spare, 'SIGKILL');
  const other = new CommandRig({ launcher: rig.launcher });
  const seen = new Set<string>();
  const { pid } = rig.launcher;
  const look = setInterval(() => {
    for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')) seen.add(child);
  }, 5);
  await other.run('sleep 0.5');
  clearInterval(look);
  expect(seen.size).toBeLessThan(6);
  await other.close();
});

test('spares end with the launcher, and nobody is left', async () => {
  const effect = rig.effect('succeeds');
  await rig.prepare(effect);
  const spare = rig.prepared.get(effect.id) ?? 0;
  process.kill(rig.launcher.pid, 'SIGTERM');
  await gone(spare);
  expect(rig.timesBegun(effect)).toBe(0);
});
