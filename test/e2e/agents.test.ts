// Agents with custom adapters, as a user may write them: small shell programs, in terminals and headless.

import { describe, expect, test } from 'vitest';
import { isAlive, MEOW, type Result, Rig, until } from '../rig/rig.ts';

/** In a terminal: runs the script `orders` in its working directory for each prompt. */
const FOX = `#!/bin/sh
echo "fox $*"
while :; do
  printf 'fox> '
  IFS= read -r line || exit 0
  # The last line of a prompt.
  case $line in *'meow done'*) . ./orders ;; esac
done
`;

/** Until then the prompt is still being delivered, and a report would be about nothing. */
const UNTIL_ACCEPTED = 'echo heard; while ! grep -q accepted .meow/workflows/r/journal.jsonl; do sleep 0.05; done';

const ADAPTER = `[adapter]
name = "fox"
[spawn]
command = "sh ./fox begins {{session_id}}"
resume_command = "sh ./fox goes on {{session_id}}"
[ready]
patterns = ['^fox>']
`;

function spawnStep(adapter: string): string {
  return `[main]\n[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "${adapter}"\n`;
}

const WORK = '[[main.steps]]\nid = "work"\nexecutor = "agent"\nagent = "worker"\nprompt = "Go."\nneeds = ["start"]\n';
const END = '[[main.steps]]\nid = "end"\nexecutor = "kill"\nagent = "worker"\nneeds = ["work"]\n';

async function setup(orders = 'meow done'): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', ADAPTER);
  rig.write('fox', FOX);
  rig.write('orders', orders);
  return rig;
}

function withAdapter(rig: Rig, name: string, rest: string): void {
  rig.write(`.meow/adapters/${name}/adapter.toml`, `[adapter]\nname = "${name}"\n${rest}`);
}

async function agentsOf(rig: Rig, ...args: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const { stdout } = await rig.meow('agents', '--json', ...args);
  return JSON.parse(stdout) as readonly Record<string, unknown>[];
}

async function errorOf(rig: Rig, run: string, step: string): Promise<Record<string, unknown>> {
  const { steps } = await rig.status(run);
  return (steps[step] as unknown as { error: Record<string, unknown> }).error;
}

describe('a step with a retry whose agent dies', () => {
  const WORKFLOW = `${spawnStep('fox')}${WORK}retry = { max_attempts = 2, delay = "10ms" }\n${END}`;
  const DIES_ONCE = 'if [ -e died ]; then meow done; else touch died; exit 7; fi';

  test('starts the agent again, in its session', async () => {
    await using rig = await setup(`${UNTIL_ACCEPTED}\n${DIES_ONCE}`);
    rig.write('w.meow.toml', WORKFLOW);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 0 });
    expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', attempt: 2 });
    const printed = (await rig.meow('logs', 'r', 'work')).stdout;
    expect(printed).toMatch(/^fox goes on \S+\r\n/);
  });

  test('starts the agent without memory if its adapter cannot resume', async () => {
    await using rig = await setup(DIES_ONCE);
    rig.write('.meow/adapters/fox/adapter.toml', ADAPTER.replace(/^resume_command.*\n/m, ''));
    rig.write('w.meow.toml', WORKFLOW);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 0 });
    expect((await rig.meow('logs', 'r', 'work')).stdout).toMatch(/^fox begins \S+\r\n/);
  });

  test('fails with the cause of the last death', async () => {
    await using rig = await setup('echo "no more memory"; exit 7');
    rig.write('w.meow.toml', WORKFLOW);
    const { stdout, code } = await rig.meow('run', 'w.meow.toml', '--id', 'r');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^failed: work \(agent_crashed, attempt 2\): agent worker .* status 7: .*no more memory$/m);
  });
});

describe('an agent that cannot be started', () => {
  const run = (rig: Rig, adapter: string): Promise<Result> => {
    rig.write('w.meow.toml', `${spawnStep(adapter)}${WORK}`);
    return rig.meow('run', 'w.meow.toml', '--id', adapter);
  };

  test.each(['spawn', 'acp', 'headless'])(
    'because its program is missing: the error names the program and the adapter ([%s])',
    async (way) => {
      await using rig = await Rig.setup();
      withAdapter(rig, 'ghost', `[${way}]\ncommand = "no-such-ghost --haunt"\n`);
      const { stdout, code } = await run(rig, 'ghost');
      expect(code).toBe(1);
      expect(stdout).toContain(
        'could not be started: no-such-ghost, which the adapter ghost starts, was not found; all that it starts: meow adapter show ghost\n',
      );
    },
  );

  test('suggests meow doctor if doctor knows its program', async () => {
    await using rig = await Rig.setup();
    withAdapter(rig, 'ghost', '[program]\nname = "no-such-ghost"\n[spawn]\ncommand = "no-such-ghost --haunt"\n');
    expect((await run(rig, 'ghost')).stdout).toContain(
      'agent worker could not be started: no-such-ghost, which the adapter ghost starts, is not on PATH; meow doctor says',
    );
  });

  test('fails with the last lines that it printed', async () => {
    await using rig = await Rig.setup();
    withAdapter(rig, 'brief', '[spawn]\ncommand = "echo hello; echo there is no key; exit 3"\n');
    expect((await run(rig, 'brief')).stdout).toContain(
      'failed: start (spawn_failed): agent worker exited with status 3 before it was ready: there is no key\n',
    );
  });
});

test('a turn that is killed from outside counts as a crash, for every observer', async () => {
  await using rig = await Rig.setup();
  withAdapter(rig, 'turns', '[headless]\ncommand = "echo $$ > pid; exec sleep 600"\n');
  rig.write('w.meow.toml', `${spawnStep('turns')}${WORK}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('pid');
  await until(() => /\d\n/.test(rig.read('pid')), 'the pid');
  const pid = Number(rig.read('pid').trim());
  expect(pid).toBeGreaterThan(1);
  process.kill(pid, 'SIGKILL');
  expect((await run.ended).code).toBe(1);
  expect(await errorOf(rig, 'r', 'work')).toMatchObject({ type: 'agent_crashed', code: 137 });
});

describe('meow agents', () => {
  test('lists agents that are still alive after their run, and no others of ended runs', async () => {
    await using rig = await setup();
    rig.write('w.meow.toml', `${spawnStep('fox')}${WORK}`);
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'left')).code).toBe(0);
    withAdapter(rig, 'turns', '[headless]\ncommand = "cat"\n');
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'turns', '--adapter', 'turns')).code).toBe(0);
    expect((await rig.meow('agents')).stdout).toMatch(/^RUN .*\nleft \(done\) +worker +idle +fox +meow-left-worker\n$/);
    expect(await agentsOf(rig, '--workflow', 'turns')).toMatchObject([{ status: 'stopped' }]);

    const list = `eval "$(meow attach left worker | sed s/attach-session/list-panes/)" -F "'#{pane_pid}'"`;
    const pid = Number((await rig.shell(list)).stdout.trim() || Number.NaN);
    expect(pid).toBeGreaterThan(1);
    process.kill(pid, 'SIGKILL');
    await until(() => !isAlive(pid), 'the agent to end');
    expect(await agentsOf(rig, '--workflow', 'left')).toMatchObject([{ status: 'gone' }]);
    expect(await rig.status('left')).toMatchObject({ agents: [{ status: 'gone' }] });
    const none = await rig.meow('agents');
    expect(none).toMatchObject({ code: 0, stdout: '' });
    expect(none.stderr).toContain('no agents');
  });

  test('is correct even after an engine was killed', async () => {
    await using rig = await setup('sleep 600');
    rig.write('w.meow.toml', `${spawnStep('fox')}${WORK}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.decided('r', 'step-started work');
    run.kill('SIGKILL');
    await run.ended;
    expect(await agentsOf(rig)).toMatchObject([{ status: 'active', current_step: 'work' }]);
    await rig.killAll();
    expect(await agentsOf(rig)).toMatchObject([{ status: 'gone' }]);
  });
});

test('a run inside a run inherits nothing of the outer agent and step', async () => {
  await using rig = await Rig.setup();
  const inner = '[main]\n[[main.steps]]\nid = "look"\nexecutor = "shell"\ncommand = "env | grep ^MEOW_ | sort"\n';
  rig.write('inner.meow.toml', inner);
  rig.write(
    'w.meow.toml',
    `[main]\n[main.variables]\nsecret = "s"\n[[main.steps]]\nid = "outer"\nexecutor = "shell"\ncommand = "MEOW_AGENT=a MEOW_HOOKS=/h ${MEOW} run inner.meow.toml --id inner"\n`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'outer')).code).toBe(0);
  const names = (await rig.meow('logs', 'inner', 'look')).stdout.replaceAll(/=.*/g, '').trim().split('\n');
  expect(names.filter((name) => name !== 'MEOW_RIG')).toEqual([
    'MEOW_ATTEMPT',
    'MEOW_INBOX',
    'MEOW_ORCH_SOCK',
    'MEOW_RUN',
    'MEOW_STEP',
    'MEOW_WORKFLOW',
  ]);
});

test('a message of a terminal agent without a step is about its current step', async () => {
  await using rig = await setup(`${UNTIL_ACCEPTED}
{ env | grep -c ^MEOW_STEP=; meow step-status work; meow prime; meow session-id
meow event hello --data a=b; meow await-event hello --timeout 5m; meow await-approval go; meow done --notes fine; } > said 2>&1`);
  rig.write('w.meow.toml', `${spawnStep('fox')}${WORK}${END}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await run.line(/work +waits for a decision on gate go/);
  expect((await rig.meow('approve', 'r', 'go', '--notes', 'yes')).code).toBe(0);
  expect((await run.ended).code).toBe(0);
  expect(rig.read('said')).toMatch(/^0\nrunning\nGo\.\n[^]*\n[0-9a-f-]{36}\na=b\nyes\nComplete\n$/);
  expect((await rig.status('r')).steps['work']).toMatchObject({ status: 'done', notes: 'fine' });
});
