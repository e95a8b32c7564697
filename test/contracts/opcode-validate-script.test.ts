// Script validators: what may be run, with which interpreter, and in which environment.

import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appears } from './driver-command-rig.ts';
import { OpcodeRig, put, type Recorded, recordOf, scriptValidator } from './opcode-rig.ts';

let rig: OpcodeRig;
beforeEach(() => {
  rig = new OpcodeRig();
});
afterEach(async () => {
  await rig.over();
  await rig.close();
});

async function run(...args: Parameters<typeof scriptValidator>): Promise<Recorded> {
  return recordOf(await rig.start(rig.validate([scriptValidator(...args)])));
}

/** Next to the worktree: neither in the run directory nor listed. */
function outside(text = '#!/bin/sh\necho ran > ran\n'): string {
  return put(join(rig.root, 'outside.sh'), text, 0o755);
}

function ran(): boolean {
  return existsSync(join(rig.worktree, 'ran'));
}

const RAN = '#!/bin/sh\necho ran > ran\n';
const inRunDir = '.meow/run/${run_id}/harness.sh';

describe('an entrypoint', () => {
  test('in the artifacts folder, below the id of the run, is in the run directory', async () => {
    put(join(rig.runDir, 'harness.sh'), RAN, 0o755);
    rig.write(`.meow/run/${rig.runId}/harness.sh`, '#!/bin/sh\nexit 9\n', 0o755);
    expect(await run(inRunDir)).toMatchObject({ outcome: 'completed', exit_code: 0 });
    expect(ran()).toBe(true);
  });

  test('that does not exist there is searched at the same path in the worktree', async () => {
    rig.write(`.meow/run/${rig.runId}/harness.sh`, RAN, 0o755);
    expect(await run(inRunDir)).toMatchObject({ outcome: 'completed' });
    expect(ran()).toBe(true);
  });

  test.for(['${run_dir}/harness.sh', './.meow/run/${run_id}/x/../harness.sh'])('may be written %s', async (path) => {
    put(join(rig.runDir, 'harness.sh'), RAN, 0o755);
    expect(await run(path)).toMatchObject({ outcome: 'completed' });
  });

  test('that is missing is an error', async () => {
    expect(await run(inRunDir)).toMatchObject({
      outcome: 'error',
      exit_code: null,
      message: expect.stringContaining('harness.sh does not exist') as string,
    });
  });

  test.for([
    'check.sh',
    'scripts/check.sh',
    `.meow/run/\${run_id}/../../../check.sh`,
    '../outside.sh',
    '/bin/true',
    '',
  ])('elsewhere is not run: "%s"', async (path) => {
    rig.write('check.sh', RAN, 0o755);
    rig.write('scripts/check.sh', RAN, 0o755);
    outside();
    const record = await run(path);
    expect(record).toMatchObject({ outcome: path === '' ? 'error' : 'killed_policy', exit_code: null });
    expect(ran()).toBe(false);
  });

  test('of another run is not run', async () => {
    put(join(rig.root, '.meow/run/wf-other/harness.sh'), RAN, 0o755);
    expect(await run('${run_dir}/../wf-other/harness.sh')).toMatchObject({ outcome: 'killed_policy' });
    expect(await run('.meow/run/wf-other/harness.sh')).toMatchObject({ outcome: 'killed_policy' });
  });

  test.for([
    ['scripts/check.sh', ['scripts/check.sh']],
    ['scripts/check.sh', ['./scripts/*.sh']],
    ['./scripts/deep/../check.sh', ['scripts/**']],
    ['/bin/true', ['/bin/{true,false}']],
  ] as const)('%s is run if %s is listed', async ([path, allowedEntrypoints]) => {
    await rig.close();
    rig = new OpcodeRig({ settings: { allowedEntrypoints } });
    rig.write('scripts/check.sh', RAN, 0o755);
    expect(await run(path)).toMatchObject({ outcome: 'completed' });
  });

  test('that is a link to another place is not run, listed or not', async () => {
    await rig.close();
    rig = new OpcodeRig({ settings: { allowedEntrypoints: ['scripts/**'] } });
    const target = outside();
    symlinkSync(target, join(rig.runDir, 'harness.sh'));
    mkdirSync(join(rig.worktree, 'scripts'));
    symlinkSync(target, join(rig.worktree, 'scripts', 'check.sh'));
    symlinkSync(rig.root, join(rig.runDir, 'up'));
    for (const path of [inRunDir, 'scripts/check.sh', '${run_dir}/up/outside.sh'])
      expect(await run(path)).toMatchObject({
        outcome: 'killed_policy',
        message: expect.stringContaining('link') as string,
      });
    expect(ran()).toBe(false);
  });

  test('that is a folder is an error', async () => {
    mkdirSync(join(rig.runDir, 'harness.sh'));
    expect(await run(inRunDir)).toMatchObject({ outcome: 'error' });
  });

  test('with an unknown placeholder is an error', async () => {
    expect(await run('${nothing}/x')).toMatchObject({
      outcome: 'error',
      message: '${nothing} is not a known placeholder; there are run_id, run_dir, worktree, step_id',
    });
  });
});

describe('a file that is not executable is run', () => {
  test.for([
    ['harness', '#!/bin/sh -e\nfalse\nexit 9\n', 1],
    ['harness.py', 'import sys\nsys.exit(5)\n', 5],
    ['harness.sh', 'exit 6\n', 6],
    ['harness.js', 'process.exit(7)\n', 7],
    ['harness.py', '#! /bin/sh\r\nexit 8\n', 8],
  ] as const)('by its first line, or by its name: %s', async ([name, text, code]) => {
    put(join(rig.runDir, name), text);
    expect(await run(`\${run_dir}/${name}`)).toMatchObject({ outcome: 'error', exit_code: code });
  });

  test('only if its first line or its name defines an interpreter', async () => {
    put(join(rig.runDir, 'harness.txt'), 'exit 0\n');
    expect(await run('${run_dir}/harness.txt')).toMatchObject({
      outcome: 'error',
      message: expect.stringContaining('make it executable') as string,
    });
  });
});

describe('a script', () => {
  test('gets its arguments unchanged, with placeholders filled in', async () => {
    const args = ['--report', '${run_dir}/r.json', "it's $HOME `x` *", '', '${step_id}'];
    const script = rig.harness(`printf '%s\\n' "$@" > args`, { args });
    await rig.start(rig.validate([script]));
    expect(readFileSync(join(rig.worktree, 'args'), 'utf8').split('\n')).toEqual([
      '--report',
      `${rig.runDir}/r.json`,
      "it's $HOME `x` *",
      '',
      'check',
      '',
    ]);
  });

  test('runs in the worktree, or in its cwd', async () => {
    mkdirSync(join(rig.worktree, 'sub'));
    const pwd = 'pwd -P > "$MEOW_RUN_DIR/pwd"';
    const seen: string[] = [];
    for (const cwd of [null, 'sub', '${run_dir}', '${worktree}/sub']) {
      await rig.start(rig.validate([rig.harness(pwd, { cwd })]));
      seen.push(rig.artifact('pwd').trim());
    }
    const sub = join(rig.worktree, 'sub');
    expect(seen).toEqual([rig.worktree, sub, rig.runDir, sub]);
  });

  test('sees no environment variables that it was not given', async () => {
    await rig.close();
    const environment = { SECRET: 's', TOKEN: 't', LANG: 'C.UTF-8', MEOW_ADAPTERS: 'x', 'odd-name': 'o' };
    rig = new OpcodeRig({ environment, envAllow: ['TOKEN', 'ABSENT'] });
    const outcome = await rig.start(rig.validate([rig.harness('env > seen')]));
    expect(recordOf(outcome)).toMatchObject({ outcome: 'completed' });
    const seen = Object.fromEntries(
      readFileSync(join(rig.worktree, 'seen'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    // Shells set these themselves.
    for (const name of ['PWD', 'OLDPWD', 'SHLVL', '_']) delete seen[name];
    expect(seen).toEqual({
      TRACEPARENT: expect.stringMatching(/^00-/) as unknown,
      PATH: process.env['PATH'],
      HOME: join(rig.runFolder, 'scratch'),
      LANG: 'C.UTF-8',
      TMPDIR: tmpdir(),
      TOKEN: 't',
      MEOW_RUN_DIR: rig.runDir,
      MEOW_RUN: `${rig.runId}.m:check#1.harness.run#1`,
    });
    expect(existsSync(join(rig.runFolder, 'scratch'))).toBe(true);
  });

  test('has no network except its own loopback, if the system can isolate it', async () => {
    const devices = 'cat /proc/net/dev > "$MEOW_RUN_DIR/devices"';
    const record = recordOf(await rig.start(rig.validate([rig.harness(devices)])));
    expect(record.network_reason).not.toBe('');
    if (record.network === 'open') return;
    // Interfaces that every network namespace has, and that lead nowhere.
    const inner = /^(?:lo|tunl0|sit0|gre.*|erspan0|ip6?_vti0|ip6.*)$/;
    const seen = [...rig.artifact('devices').matchAll(/^\s*(\S+):/gm)].map(([, name = '']) => name);
    expect(seen.filter((name) => !inner.test(name))).toEqual([]);
    if (record.network_reason.includes('without a loopback')) return;
    put(
      join(rig.runDir, 'talk.js'),
      `const { connect, createServer } = require('node:net');
      const server = createServer((socket) => socket.end('hello'));
      server.listen(0, '127.0.0.1', () => connect(server.address().port, '127.0.0.1').once('data', () => process.exit(5)));`,
    );
    expect(await run('${run_dir}/talk.js')).toMatchObject({ exit_code: 5 });
  });

  test('runs even if the system cannot isolate it, and that is recorded', async () => {
    const bin = join(rig.root, 'bare-bin');
    mkdirSync(bin);
    symlinkSync('/bin/sh', join(bin, 'sh'));
    const whole = rig;
    rig = new OpcodeRig({ environment: { PATH: bin } });
    const record = recordOf(await rig.start(rig.validate([rig.harness('echo ran > ran')])));
    expect(record).toMatchObject({ outcome: 'completed', network: 'open' });
    expect(record.network_reason).toContain('unshare');
    await whole.close();
  });

  test('is killed with all its descendants at its timeout', async () => {
    const script = rig.harness(`setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 600; done' & sleep 600`, {
      timeoutMs: 600,
    });
    const outcome = await rig.start(rig.validate([script]));
    expect(recordOf(outcome).outcome).toBe('killed_timeout');
    expect(existsSync(join(rig.worktree, 'pid'))).toBe(true);
    expect(rig.left()).toEqual([]);
  });

  test('that deleted itself while running is found again after a restart', async () => {
    const script = rig.harness(`rm "$0"; ${rig.holding('held')}; exit 4`);
    const effect = rig.validate([script]);
    void rig.start(effect);
    await appears(join(rig.worktree, 'held'));
    rig.nextLife();
    const outcome = rig.find(effect);
    await rig.letGo('held');
    expect(recordOf(await outcome)).toMatchObject({ exit_code: 4 });
    expect(readFileSync(join(rig.worktree, 'held'), 'utf8')).toBe('x\n');
  });
});
