// No twin, nothing left behind: whichever process of an attempt or an agent is killed, what it leaves is stopped before the
// next attempt, or the next life of the agent, begins.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isAlive, type Live, Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

/**
 * Writes its pid to `pids`. The first works until it is killed, and nothing but KILL ends it; a later one writes the file
 * `twin` if an earlier one is alive.
 */
const WORKER = `trap '' HUP INT TERM
for earlier in $(cat pids 2>/dev/null); do
  case $(cut -d' ' -f3 /proc/$earlier/stat 2>/dev/null) in ''|Z|X) ;; *) echo $earlier >> twin ;; esac
done
echo $$ >> pids
`;
const WORKS_ON = 'while :; do sleep 0.1; done\n';
const FIRST_WORKS_ON = `[ $(wc -l < pids) -gt 1 ] && exit 0\n${WORKS_ON}`;
const RETRY = 'retry = { max_attempts = 2, delay = "1ms" }';

function pids(rig: Rig): readonly number[] {
  return rig.exists('pids') ? (rig.read('pids').match(/\d+(?=\n)/g) ?? []).map(Number) : [];
}

/** The pid of the first worker. */
async function worker(rig: Rig): Promise<number> {
  await until(() => pids(rig).length > 0, 'the worker to begin');
  return pids(rig)[0] ?? 0;
}

/** Fields of /proc/PID/stat: the parent, and the process that leads the session. */
function familyOf(pid: number): { readonly parent: number; readonly leader: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [, parent, , leader] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { parent: Number(parent), leader: Number(leader) };
}

async function killed(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(pid), `process ${pid} to end`);
}

/** Kills the engine, so that another one must find what it left. */
async function crash(engine: Live): Promise<void> {
  engine.kill('SIGKILL');
  await engine.ended;
}

async function commands(worker: string, extra: string): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('worker', `${WORKER}${worker}`);
  rig.write('w.meow.toml', `[main]\n${shellStep('work', 'sh ./worker; true', extra)}`);
  return rig;
}

describe('a command whose child works on', () => {
  test.for(['leader', 'parent'] as const)('is stopped before the retry, if its shell is killed (%s)', async (whom) => {
    // `exec 3>&1` makes the recording shell start another one for the script.
    const above = whom === 'parent' ? 'exec 3>&1; sh ./worker; true' : 'sh ./worker; true';
    await using rig = await commands(FIRST_WORKS_ON, RETRY);
    rig.write('w.meow.toml', `[main]\n${shellStep('work', above, RETRY)}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    const first = await worker(rig);
    await killed(familyOf(first)[whom]);
    expect((await run.ended).code).toBe(0);
    expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', attempt: 2 });
    expect(rig.exists('twin')).toBe(false);
    expect(pids(rig)).toHaveLength(2);
    expect(await rig.left()).toEqual([]);
  });

  test('is stopped before the retry, if its shell and the engine are killed', async () => {
    await using rig = await commands(FIRST_WORKS_ON, RETRY);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    const first = await worker(rig);
    await crash(run);
    await killed(familyOf(first).leader);
    expect((await rig.meow('resume', 'r')).code).toBe(0);
    expect(rig.exists('twin')).toBe(false);
    expect(await rig.left()).toEqual([]);
  });

  test('does not outlive a run without a retry', async () => {
    await using rig = await commands(WORKS_ON, '');
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    const first = await worker(rig);
    await killed(familyOf(first).leader);
    expect((await run.ended).code).toBe(1);
    expect(isAlive(first)).toBe(false);
  });

  test('is stopped before the retry, though the command itself ended and left it in a session of its own', async () => {
    await using rig = await Rig.setup();
    rig.write('worker', `${WORKER}${FIRST_WORKS_ON}`);
    const command =
      'if [ -e pids ]; then sh ./worker; else setsid sh ./worker & while [ ! -s pids ]; do sleep 0.02; done; exit 1; fi';
    rig.write('w.meow.toml', `[main]\n${shellStep('work', command, RETRY)}`);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
    expect(rig.exists('twin')).toBe(false);
    expect(await rig.left()).toEqual([]);
  });

  test('is stopped at once when the run is stopped by force meanwhile', async () => {
    await using rig = await commands(WORKS_ON, RETRY);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    const first = await worker(rig);
    await killed(familyOf(first).leader);
    expect((await rig.meow('stop', 'r', '--force')).code).toBe(0);
    await run.ended;
    expect(isAlive(first)).toBe(false);
    expect(await rig.left()).toEqual([]);
  });
});

test('a process of a run with the same id in another project is left alone, and so is one that only names the marker', async () => {
  await using one = await commands(FIRST_WORKS_ON, RETRY);
  await using other = await commands(WORKS_ON, RETRY);
  const runs = [one, other].map((rig) => rig.start('run', 'w.meow.toml', '--id', 'r'));
  const [first, foreign] = [await worker(one), await worker(other)];
  const marker = /MEOW_RUN=([^\0]+)/.exec(readFileSync(`/proc/${first}/environ`, 'latin1'))?.[1] ?? '';
  expect(marker).toMatch(/^r\..+:work#1$/);
  const alike = `MEOW_NOTE="MEOW_RUN=${marker}" setsid sh -c 'echo $$ > alike; while :; do sleep 0.1; done' MEOW_RUN=${marker} >/dev/null 2>&1 &`;
  expect((await one.shell(`${alike}\nwhile [ ! -s alike ]; do sleep 0.02; done`)).code).toBe(0);
  const bystander = Number(one.read('alike'));
  await killed(familyOf(first).leader);
  expect((await runs[0]?.ended)?.code).toBe(0);
  expect(one.exists('twin')).toBe(false);
  expect(isAlive(first)).toBe(false);
  expect([isAlive(foreign), isAlive(bystander)]).toEqual([true, true]);
});

describe('an agent that lives on', () => {
  const SPAWN = '[main]\n[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "fox"\n';
  const WORK = `[[main.steps]]\nid = "work"\nexecutor = "agent"\nagent = "worker"\nprompt = '[{"run": "sh ./orders"}]'\nneeds = ["start"]\n${RETRY}\n`;
  const END = '[[main.steps]]\nid = "end"\nexecutor = "kill"\nagent = "worker"\nneeds = ["work"]\n';
  /** The first agent never reports; the next one does. */
  const ORDERS = 'echo >> asked; if [ $(wc -l < pids) -gt 1 ]; then meow done; else while :; do sleep 0.1; done; fi\n';
  const ACP = fileURLToPath(new URL('../fixtures/acp/agent.mjs', import.meta.url));
  const CHANNELS = {
    terminal: `[spawn]\ncommand = "sh ./fox; true"\n[ready]\npatterns = ['^fox>']\n`,
    headless: `[headless]\ncommand = "sh ./turn; true"\n`,
    acp: `[acp]\ncommand = "sh ./speaks; true"\n[environment]\nRECEIVED = "received"\nCAPABILITIES = '{"loadSession": true}'\n`,
  };

  async function agents(channel: keyof typeof CHANNELS): Promise<Rig> {
    const rig = await Rig.setup();
    rig.write('.meow/adapters/fox/adapter.toml', `[adapter]\nname = "fox"\n${CHANNELS[channel]}`);
    rig.write('orders', ORDERS);
    const loop = `while :; do printf 'fox> '; IFS= read -r line || sleep 0.1; case $line in *'meow done'*) . ./orders ;; esac; done\n`;
    rig.write('fox', `${WORKER}${loop}`);
    rig.write('turn', `${WORKER}. ./orders\n`);
    rig.write('speaks', `${WORKER}${process.execPath} ${ACP}\n`);
    rig.write('w.meow.toml', `${SPAWN}${WORK}${END}`);
    return rig;
  }

  test.for(['terminal', 'headless', 'acp'] as const)(
    'when the shell above it and the engine are killed is stopped before its next life begins (%s)',
    async (channel) => {
      await using rig = await agents(channel);
      const run = rig.start('run', 'w.meow.toml', '--id', 'r');
      const first = await worker(rig);
      await rig.appears('asked');
      await crash(run);
      await killed(familyOf(first).leader);
      expect(isAlive(first)).toBe(true);
      expect((await rig.meow('resume', 'r')).code).toBe(0);
      expect(rig.exists('twin')).toBe(false);
      expect(pids(rig)).toHaveLength(2);
      expect(isAlive(first)).toBe(false);
    },
  );

  test.for(['leader', 'parent'] as const)(
    'when a shell above it is killed is stopped before its next life begins (%s)',
    async (whom) => {
      await using rig = await agents('terminal');
      const run = rig.start('run', 'w.meow.toml', '--id', 'r');
      const first = await worker(rig);
      await rig.appears('asked');
      await killed(familyOf(first)[whom]);
      expect((await run.ended).code).toBe(0);
      expect(rig.exists('twin')).toBe(false);
      expect(isAlive(first)).toBe(false);
    },
  );

  test('does not outlive a run that needs it no more', async () => {
    await using rig = await agents('terminal');
    rig.write('w.meow.toml', `${SPAWN}${waitingStep('rest', 'needs = ["start"]')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    const first = await worker(rig);
    await rig.appears('rest.began');
    await crash(run);
    await killed(familyOf(first).leader);
    rig.write('rest.go', '');
    expect((await rig.meow('resume', 'r')).code).toBe(0);
    expect(rig.exists('twin')).toBe(false);
    expect(isAlive(first)).toBe(false);
  });
});
