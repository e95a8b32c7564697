// A fleet: runs in PostgreSQL, created by `meow run --fleet` and driven by `meow worker`.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { FleetAddress } from '../../src/stores/postgres/address.ts';
import { nameFleet } from '../rig/fleet.ts';
import { HAS_POSTGRES, sayWithout, TestPostgres } from '../rig/postgres.ts';
import { type Live, Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

sayWithout();
describe.skipIf(!HAS_POSTGRES)('a fleet', () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  afterAll(() => server?.dispose());

  /** A project on a machine of its own, that knows the address of the fleet. */
  async function machineIn(address: FleetAddress): Promise<Rig> {
    const rig = await Rig.setup();
    nameFleet(rig, server.urlFor(address));
    return rig;
  }

  const worker = async (rig: Rig, ...flags: readonly string[]): Promise<Live> => {
    const live = rig.startWith({ PLANTED_TOKEN: 'planted-secret-value' }, 'worker', ...flags);
    await live.line(/^working for /m);
    return live;
  };

  const statusOf = async (rig: Rig, id: string): Promise<string> => (await rig.meow('status', id, '--fleet')).stdout;

  const becomes = async (rig: Rig, id: string, status: string): Promise<void> => {
    for (let tries = 0; tries < 400; tries++) {
      const { stdout } = await rig.meow('status', id, '--fleet', '--json');
      if ((JSON.parse(stdout) as { status: string }).status === status) return;
    }
    throw new Error(`run ${id} is not ${status}: ${await statusOf(rig, id)}`);
  };

  test('a run waits for a worker, and then ends as it does without a fleet', async () => {
    await using rig = await machineIn(await server.namespace());
    const [one, two] = [
      shellStep('one', 'echo hello; echo $PLANTED_TOKEN'),
      shellStep('two', 'exit 3', 'needs = ["one"]'),
    ];
    rig.write('a.meow.toml', `[main]\nname = "a"\n${one}${two}`);
    expect((await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a')).stdout).toBe('a\n');
    expect(await statusOf(rig, 'a')).toContain('waits for a worker: no machine has it yet');
    expect((await rig.meow('list', '--fleet')).stdout).toMatch(/^a +interrupted/m);
    expect(rig.files()).toEqual(['a.meow.toml']);

    const live = await worker(rig);
    await live.line(/^a: failed$/m);
    await rig.meow('run', 'a.meow.toml', '--id', 'b');
    const shown = async (...args: readonly string[]): Promise<unknown> => {
      const { steps, status } = JSON.parse((await rig.meow('status', ...args, '--json')).stdout) as {
        status: string;
        steps: Readonly<Record<string, { status: string; attempt: number }>>;
      };
      return { status, steps: Object.entries(steps).map(([id, step]) => [id, step.status, step.attempt]) };
    };
    expect(await shown('a', '--fleet')).toEqual(await shown('b'));
    expect((await rig.meow('logs', 'a', 'one', '--fleet')).stdout).toBe('hello\n•••PLANTED_TOKEN\n');
    expect((await rig.meow('trace', 'a', '--fleet')).stdout).toMatch(/two failed/);
    expect((await rig.meow('why', 'a', 'two', '--fleet')).stdout).toContain('two is failed');
    expect(await server.dump()).not.toContain('planted-secret-value');
    live.kill('SIGTERM');
    expect((await live.ended).code).toBe(0);
  });

  test('a killed worker is noticed, and a new one finds the running step: no attempt is repeated', async () => {
    await using rig = await machineIn(await server.namespace());
    rig.write(
      'a.meow.toml',
      `[main]\nname = "a"\n${waitingStep('one')}${shellStep('two', 'echo two >> ran', 'needs = ["one"]')}`,
    );
    await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a');
    const first = await worker(rig);
    await rig.appears('one.began');
    expect(await statusOf(rig, 'a')).toContain('driven on ');
    first.kill('SIGKILL');
    await first.ended;
    expect(await statusOf(rig, 'a')).toMatch(/interrupted[^]*waits for the machine .* start meow worker there/);
    const second = await worker(rig);
    await second.line(/^a: resumed/m);
    rig.write('one.go', '');
    await second.line(/^a: done$/m);
    expect(rig.read('ran')).toBe('one\ntwo\n');
    expect(rig.read('one.began').trim().split('\n')).toHaveLength(1);
  });

  test('without the database, running steps continue; when it is back, nothing is lost or repeated', async () => {
    await using rig = await machineIn(await server.namespace());
    rig.write(
      'a.meow.toml',
      `[main]\nname = "a"\n${waitingStep('one')}${shellStep('two', 'echo two >> ran', 'needs = ["one"]')}`,
    );
    await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a');
    const live = await worker(rig);
    await rig.appears('one.began');
    await server.halt();
    try {
      await live.line(/does not answer.*running steps continue, and nothing new starts/);
      rig.write('one.go', '');
      await rig.appears('ran');
      const { stderr, code } = await rig.meow('status', 'a', '--fleet');
      expect([code, stderr]).toEqual([2, expect.stringContaining('does not answer')]);
    } finally {
      await server.start();
    }
    await live.line(/^a: done$/m);
    expect(rig.read('ran')).toBe('one\ntwo\n');
  });

  test('a run is stopped and resumed from anywhere', async () => {
    const address = await server.namespace();
    await using rig = await machineIn(address);
    await using elsewhere = await machineIn(address);
    rig.write('a.meow.toml', `[main]\nname = "a"\n${waitingStep('one')}`);
    await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a');
    const live = await worker(rig);
    await rig.appears('one.began');
    expect((await elsewhere.meow('stop', 'a', '--fleet')).stdout).toMatch(/^stopping a /);
    await live.line(/^a: stopped$/m);
    await becomes(elsewhere, 'a', 'stopped');
    expect((await elsewhere.meow('stop', 'a', '--fleet')).code).toBe(2);
    rig.write('one.go', '');
    expect((await elsewhere.meow('resume', 'a', '--fleet')).stdout).toMatch(/^a waits for the worker on /);
    await live.line(/^a: done$/m);
  });

  test('a run stays on the machine that has its files; commands there work with it, but do not drive it', async () => {
    const address = await server.namespace();
    await using rig = await machineIn(address);
    await using elsewhere = await machineIn(address);
    rig.write(
      'a.meow.toml',
      `[main]\nname = "a"\n[[main.steps]]\nid = "look"\nexecutor = "branch"\ncondition = "meow await-approval look"\n`,
    );
    await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a');
    const live = await worker(rig);
    const folder = /its runs: (.*)/.exec(await live.firstLine())?.[1] ?? '';
    await becomes(rig, 'a', 'waiting');
    const other = await worker(elsewhere);
    expect((await rig.meowIn(folder, 'stop', 'a')).stderr).toContain('meow stop a --fleet');
    live.kill('SIGKILL');
    await live.ended;
    expect((await rig.meowIn(folder, 'resume', 'a')).stderr).toContain('run a belongs to a fleet');
    const again = await worker(rig);
    await again.line(/^a: resumed/m);
    expect((await rig.meowIn(folder, 'approve', 'a', 'look')).code).toBe(0);
    await again.line(/^a: done$/m);
    expect(other.printed).not.toMatch(/^a: /m);
    expect((await elsewhere.meow('fleet', 'status')).stdout).toMatch(/working[^]*working/);
  });

  test('a run is taken to another machine by request: what was running is lost, and runs again as another attempt', async () => {
    const address = await server.namespace();
    await using rig = await machineIn(address);
    await using elsewhere = await machineIn(address);
    rig.write(
      'a.meow.toml',
      `[main]\nname = "a"\n${shellStep('one', 'echo one >> ran')}${waitingStep('two', 'needs = ["one"]')}`,
    );
    await rig.meow('run', 'a.meow.toml', '--fleet', '--id', 'a');
    const live = await worker(rig);
    await rig.appears('two.began');
    const refused = await elsewhere.meow('resume', 'a', '--fleet', '--here');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('run a is locked by another engine')]);
    live.kill('SIGKILL');
    await live.ended;
    expect((await elsewhere.meow('resume', 'a', '--fleet', '--here')).stdout).toContain(
      'waits for the worker on this machine',
    );
    const other = await worker(elsewhere);
    await other.line(/^a: resumed/m);
    await until(() => rig.read('two.began').trim().split('\n').length === 2, 'the second attempt to begin');
    const again = await worker(rig);
    rig.write('two.go', '');
    await other.line(/^a: done$/m);
    expect(again.printed).not.toMatch(/^a: /m);
    const trace = (await rig.meow('trace', 'a', '--fleet')).stdout;
    expect(trace).toMatch(/moved from .* to /);
    expect(trace).toContain('two lost on another machine — runs again');
    expect((await rig.status('a', '--fleet')).steps['two']).toMatchObject({ status: 'done', attempt: 2 });
    expect((await rig.status('a', '--fleet')).steps['one']).toMatchObject({ status: 'done', attempt: 1 });
  });

  test('one worker drives many runs, as many at once as there is room for', async () => {
    await using rig = await machineIn(await server.namespace());
    rig.write('a.meow.toml', `[main]\nname = "a"\n${shellStep('one', 'echo x >> ran')}`);
    for (let run = 0; run < 6; run++) await rig.meow('run', 'a.meow.toml', '--fleet', '--id', `r${run}`);
    const live = await worker(rig, '--room', '2', '--drain', '60s');
    await until(() => [...live.printed.matchAll(/: done$/gm)].length === 6, 'six runs to end');
    expect(rig.read('ran')).toBe('x\n'.repeat(6));
    expect((await rig.meow('list', '--fleet')).stdout.match(/ done /g)).toHaveLength(6);
  });

  test('a second worker of a machine is refused, and names the first', async () => {
    await using rig = await machineIn(await server.namespace());
    const live = await worker(rig);
    const { code, stderr } = await rig.meow('worker');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`is already connected: process ${live.process.pid} on`),
    ]);
  });

  test('an operator creates a namespace, gives roles, and checks it', async () => {
    await using rig = await Rig.setup();
    nameFleet(rig, server.url);
    expect((await rig.meow('fleet', 'init', '--namespace', 'team')).stdout).toMatch(
      /^namespace team in .*: created\n$/,
    );
    expect((await rig.meow('fleet', 'init', '--namespace', 'team')).stdout).toContain('is up to date');
    expect((await rig.meow('fleet', 'role', 'viewer', 'eve', '--namespace', 'team')).stdout).toMatch(/^eve is viewer/);
    nameFleet(rig, `${server.url.replace('user=meow', 'user=eve')}&namespace=team`);
    const checks = (await rig.meow('fleet', 'check')).stdout;
    expect(checks).toContain('warning  fsync: off: if the machine of the database crashes');
    expect(checks).toMatch(/failed +runs: the user eve has no right/);
    rig.write('a.meow.toml', `[main]\nname = "a"\n${shellStep('one', 'true')}`);
    expect((await rig.meow('run', 'a.meow.toml', '--fleet')).code).toBe(2);
    expect((await rig.meow('list', '--fleet')).code).toBe(0);
  });

  test.each([
    ['no address', null, 'no fleet is named'],
    ['no URL', 'localhost', 'is not a URL of PostgreSQL'],
    ['another scheme', 'http://localhost/x', 'is not a URL of PostgreSQL'],
    ['no host', 'postgres:///x', 'names no host'],
    ['no database', 'postgres://localhost', 'names no database'],
    ['an unknown parameter', 'postgres://localhost/x?a=b', 'unknown parameter: a'],
    ['a wrong namespace', 'postgres://localhost/x?namespace=A-B', 'is not a namespace'],
    ['a network without verified TLS', 'postgres://db.example/x?sslmode=disable', 'does not verify the server'],
    ['a host that cannot be resolved', 'postgres://no-such-host.invalid/x', 'no-such-host.invalid'],
  ])('%s is refused, with a cure', async (_title, url, message) => {
    await using rig = await Rig.setup();
    if (url !== null) nameFleet(rig, url);
    for (const args of [['list', '--fleet'], ['worker']]) {
      const { code, stdout, stderr } = await rig.meow(...args);
      expect(`${stdout}${stderr}`).toContain(message);
      expect(code).toBe(2);
    }
  });

  test.each([
    ['a missing namespace', 'namespace=none', 'has no namespace none'],
    ['a wrong user', 'user=nobody_known', 'refuses the user nobody_known'],
  ])('%s is refused, with a cure', async (_title, change, message) => {
    await using rig = await Rig.setup();
    const url = new URL(server.url);
    const [key = '', value = ''] = change.split('=');
    url.searchParams.set(key, value);
    nameFleet(rig, url.href);
    for (const args of [['list', '--fleet'], ['worker']]) {
      const { code, stderr } = await rig.meow(...args);
      expect(stderr).toContain(message);
      expect(code).toBe(2);
    }
  });

  test('a worker waits for a database that does not answer, and other commands say so', async () => {
    await using rig = await Rig.setup();
    nameFleet(rig, 'postgres:///x?host=/nowhere');
    const { code, stderr } = await rig.meow('list', '--fleet');
    expect([code, stderr]).toEqual([2, expect.stringContaining('does not answer')]);
    const live = rig.start('worker');
    await live.line(/does not answer: .*; waiting for it$/m);
    live.kill('SIGTERM');
    expect((await live.ended).code).toBe(0);
  });

  test('an address that others may read is refused', async () => {
    await using rig = await Rig.setup();
    nameFleet(rig, server.url);
    chmodSync(join(rig.home, '.meow/fleet.url'), 0o644);
    expect((await rig.meow('list', '--fleet')).stderr).toContain('may be read by others');
  });
});
