// `meow serve`: what it starts and resumes, whatever is killed meanwhile.

import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { type Live, Rig, shellStep, until, waitingStep } from '../rig/rig.ts';
import { attempts } from '../rig/sample.ts';

interface Served {
  readonly live: Live;
  readonly url: string;
  readonly pid: number;
}

async function serve(rig: Rig, environment: Readonly<Record<string, string>> = {}): Promise<Served> {
  const live = rig.startWith(environment, 'serve', '--port', '0', '--json');
  await live.line(/^\{.*\}\n/);
  const { url, pid } = JSON.parse(live.printed.split('\n')[0] ?? '') as { url: string; pid: number };
  return { live, url, pid };
}

function runsOf(rig: Rig, schedule: string): readonly string[] {
  if (!rig.exists('.meow/workflows')) return [];
  const names = readdirSync(rig.path('.meow/workflows'));
  return names.filter((name) => name.startsWith(`${schedule}-`) && !name.includes('.')).toSorted();
}

/** The seconds of the slots, as numbers. */
function slotsOf(rig: Rig, schedule: string): readonly number[] {
  return runsOf(rig, schedule)
    .map((id) => id.slice(schedule.length + 1))
    .map((text) => Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z')) / 1_000)
    .toSorted((a, b) => a - b);
}

test('each slot starts one run, with two of them and one killed again and again', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', shellStep('a', 'echo x >> ran'));
  rig.write('.meow/schedules/tick.toml', 'cron = "* * * * * *"\npath = "w.meow.toml"\noverlap = "allow"\n');
  // Another user of the project: the lock of the first does not keep it away.
  const other = await serve(rig, { HOME: rig.path('other-home') });
  for (let kills = 0; kills < 4; kills += 1) {
    const { live } = await serve(rig);
    const before = runsOf(rig, 'tick').length;
    await until(() => runsOf(rig, 'tick').length > before, 'a slot');
    live.kill('SIGKILL');
    await live.ended;
  }
  const { live } = await serve(rig);
  const before = slotsOf(rig, 'tick').length;
  await until(() => slotsOf(rig, 'tick').length > before + 1, 'two more slots');
  live.kill('SIGTERM');
  other.live.kill('SIGTERM');
  expect((await live.ended).code).toBe(143);
  await other.live.ended;
  const slots = slotsOf(rig, 'tick');
  const [first = 0] = slots;
  expect(slots).toEqual(slots.map((_, index) => first + index));
  for (const id of runsOf(rig, 'tick')) {
    if (!rig.exists(`.meow/workflows/${id}/journal.jsonl`)) continue;
    await rig.decided(id, 'run-ended');
  }
  expect(rig.read('ran').trim().split('\n')).toHaveLength(slots.length);
});

test('a second one of the same user is refused and names the first', async () => {
  await using rig = await Rig.setup();
  const { pid } = await serve(rig);
  const second = await rig.meow('serve', '--port', '0');
  expect(second.code).toBe(2);
  expect(second.stderr).toContain(`meow serve is already running (pid ${pid}, since `);
  const status = await rig.meow('serve', '--status');
  expect(status.stdout).toMatch(new RegExp(`^running \\(pid ${pid}, .*; not installed\n$`));
});

test('runs whose engine died are resumed while it is killed itself; stopped and paused ones are not', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', waitingStep('hold'));
  rig.write('gate.meow.toml', '[[main.steps]]\nid = "g"\nexecutor = "branch"\ncondition = "meow await-approval g"\n');
  const ids = Array.from({ length: attempts(20) }, (_, index) => `r${index + 1}`);
  for (const id of ids) {
    const run = rig.start('run', 'w.meow.toml', '--id', id);
    await rig.decided(id, 'step-started hold');
    run.kill('SIGKILL');
    await run.ended;
  }
  expect((await rig.meow('run', 'gate.meow.toml', '--id', 'paused', '--no-wait')).code).toBe(3);
  const engines = (): number => ids.filter((id) => rig.decisions(id).includes('run-resumed')).length;
  for (let kills = 0; engines() < ids.length; kills += 1) {
    const before = engines();
    const { live } = await serve(rig);
    // Every second one is killed while it begins to work.
    if (kills % 2 === 0) await until(() => engines() > before, 'a run to be resumed');
    live.kill('SIGKILL');
    await live.ended;
    expect(kills).toBeLessThan(2 * ids.length);
  }
  rig.write('hold.go', '');
  for (const id of ids) await rig.decided(id, 'run-ended');
  for (const id of ids) expect((await rig.status(id)).status).toBe('done');
  expect(rig.read('ran')).toBe('hold\n'.repeat(ids.length));
  expect((await rig.status('paused')).status).toBe('paused');
  expect(rig.decisions('paused')).not.toContain('run-resumed');
});

test('a signed call of a hook starts one run, also if it is repeated', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main.variables]\nbody = { required = true }\n${shellStep('a', 'cat > got <<EOF\n{{body}}\nEOF')}`,
  );
  rig.write(
    '.meow/schedules/deploy.toml',
    'path = "w.meow.toml"\n[trigger]\nhook = "deploy"\nsecret = "$S"\nrate = "2/h"\n',
  );
  const { url } = await serve(rig, { S: 'secret' });
  const call = async (
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<readonly [number, unknown]> => {
    const signature = `sha256=${createHmac('sha256', 'secret').update(body).digest('hex')}`;
    const signed = { 'x-hub-signature-256': signature, ...headers };
    const response = await fetch(`${url}hooks/deploy`, { method: 'POST', body, headers: signed });
    return [response.status, await response.json()];
  };
  const [status, first] = await call('one');
  expect(status).toBe(202);
  const { run } = first as { run: string };
  await rig.decided(run, 'run-ended');
  expect(rig.read('got')).toBe('one\n');
  expect(await call('one')).toEqual([200, { run, duplicate: true }]);
  expect((await call('one', { 'x-hub-signature-256': 'sha256=00' }))[0]).toBe(401);
  expect((await call('x'.repeat(1_100_000)))[0]).toBe(413);
  const large = 'y'.repeat(400_000);
  const [accepted, second] = await call(large, { 'x-meow-delivery': 'd1' });
  expect(accepted).toBe(202);
  expect(await call('other body', { 'x-meow-delivery': 'd1' })).toEqual([
    200,
    { ...(second as object), duplicate: true },
  ]);
  const limited = await call('three');
  expect(limited[0]).toBe(429);
  expect((await fetch(`${url}hooks/deploy`)).status).toBe(405);
  expect((await fetch(`${url}hooks/none`, { method: 'POST' })).status).toBe(404);
});

test('changed files start a run, and what that run changes starts none', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', shellStep('a', 'echo built >> src/out.txt; echo x >> ran'));
  rig.write('src/a.txt', '1');
  rig.write('.meow/schedules/build.toml', 'path = "w.meow.toml"\n[trigger]\nwatch = ["src/**"]\nsettle = "100ms"\n');
  await serve(rig);
  rig.write('other.txt', '1');
  rig.write('src/a.txt', '2');
  await rig.appears('ran');
  const [first = ''] = runsOf(rig, 'build');
  await rig.decided(first, 'run-ended');
  rig.write('src/a.txt', '3');
  await until(() => rig.read('ran') === 'x\nx\n', 'the second run');
});

test('a schedule whose workflow is gone is reported once, and the others go on', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', shellStep('a', 'echo x >> ran'));
  rig.write('.meow/schedules/bad.toml', 'cron = "* * * * * *"\npath = "gone.meow.toml"\n');
  rig.write('.meow/schedules/good.toml', 'cron = "* * * * * *"\npath = "w.meow.toml"\n');
  const live = rig.start('serve', '--port', '0');
  await until(() => runsOf(rig, 'good').length >= 3, 'three slots');
  live.kill('SIGTERM');
  const { stdout } = await live.ended;
  expect(stdout.match(/schedule bad: there is no file gone\.meow\.toml/g)).toHaveLength(1);
  expect(runsOf(rig, 'bad')).toEqual([]);
});

test('variables of ~/.meow/env reach the runs, and the file must be private', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', shellStep('a', 'echo $FROM_FILE > got'));
  rig.write('.meow/schedules/tick.toml', 'cron = "* * * * * *"\npath = "w.meow.toml"\n');
  await rig.shell('mkdir -p ~/.meow && echo FROM_FILE=yes > ~/.meow/env && chmod 644 ~/.meow/env');
  const refused = await rig.meow('serve', '--port', '0');
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/env may be read by others.*\n {2}chmod 600 /);
  await rig.shell('chmod 600 ~/.meow/env');
  await serve(rig);
  await until(() => rig.exists('got') && rig.read('got') !== '', 'the run');
  expect(rig.read('got')).toBe('yes\n');
});

test('it is installed as a service of the user, and removed', async () => {
  await using rig = await Rig.setup();
  rig.write('bin/systemctl', '#!/bin/sh\necho "$@" >> systemctl.log\n');
  rig.write('bin/launchctl', '#!/bin/sh\necho "$@" >> systemctl.log\n');
  await rig.shell('chmod +x bin/*');
  const environment = { PATH: `${rig.path('bin')}:${rig.environment['PATH'] ?? ''}` };
  const installed = await rig.meowWith(environment, 'serve', '--install', '--port', '7999');
  expect(installed.stderr).toBe('');
  expect(rig.read('systemctl.log')).toContain('enable --now meow-serve.service');
  const unit = await rig.shell('cat ~/.config/systemd/user/meow-serve.service');
  expect(unit.stdout).toMatch(/^ExecStart=".*" ".*meow\.cjs" "serve" "--listen" "127\.0\.0\.1" "--port" "7999"$/m);
  expect((await rig.meowWith(environment, 'serve', '--uninstall')).code).toBe(0);
  expect((await rig.shell('ls ~/.config/systemd/user')).stdout).toBe('');
});

test('metrics are for those who have the token, and count from its start', async () => {
  await using rig = await Rig.setup();
  const cost = 'do = [{ say = "<result>x</result>" }, { cost = { usd = 0.5, tokens = 100 } }]';
  rig.write('flow/START.md', 'Answer. <result>x</result>\n');
  rig.write('flow.sim.toml', `[[on]]\n${cost}\n`);
  rig.write('w.meow.toml', `${shellStep('bad', 'exit 1')}${shellStep('next', 'true', 'needs = ["bad"]')}`);
  rig.write('gate.meow.toml', '[[main.steps]]\nid = "g"\nexecutor = "branch"\ncondition = "meow await-approval g"\n');
  // Before its start.
  await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'old');
  const { live } = await serve(rig);
  const { url, token_file: file } = JSON.parse(live.printed.split('\n')[0] ?? '') as {
    url: string;
    token_file: string;
  };
  const { origin } = new URL(url);
  const token = readFileSync(file, 'utf8').trim();
  const read = (authorization: string, method = 'GET'): Promise<Response> =>
    fetch(`${origin}/metrics`, { method, headers: { authorization } });
  expect((await fetch(`${origin}/metrics`)).status).toBe(401);
  expect((await read('Bearer wrong')).status).toBe(401);
  expect((await read(`Bearer ${token}`, 'POST')).status).toBe(405);

  await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'new');
  await rig.meow('run', 'w.meow.toml', '--id', 'w');
  await rig.meow('run', 'gate.meow.toml', '--id', 'g', '--no-wait');
  let text = '';
  const expected = [
    'meow_runs{status="done"} 2',
    'meow_runs{status="failed"} 1',
    'meow_runs{status="paused"} 1',
    'meow_steps_total{outcome="done"} 1',
    'meow_steps_total{outcome="failed"} 1',
    'meow_steps_total{outcome="skipped"} 1',
    'meow_turns_total{adapter="sim"} 1',
    'meow_tokens_total{kind="total"} 100',
    'meow_cost_usd_total 0.5',
    'meow_unknown_cost_turns_total 0',
    'meow_gates_open 1',
    'meow_notifications_pending 0',
  ];
  for (let tries = 0; tries < 600 && !expected.every((line) => text.includes(`${line}\n`)); tries += 1) {
    text = await (await read(`Bearer ${token}`)).text();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(text.split('\n').filter((line) => !line.startsWith('#'))).toEqual(expect.arrayContaining(expected));
  live.kill('SIGTERM');
  await live.ended;
});
