// What runs leave, and what removes it: doctor --fix, gc, export, import and report.

import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ConductorRig, work } from '../fixtures/conductor/rig.ts';
import { isAlive, Rig, shellStep, until, waitingStep } from '../rig/rig.ts';
import { attempts } from '../rig/sample.ts';

interface Orphan {
  readonly kind: string;
  readonly id: string;
  readonly run: string | null;
  readonly since: string | null;
  readonly cure: string;
}

async function orphans(rig: Rig, ...flags: readonly string[]): Promise<{ code: number; left: readonly Orphan[] }> {
  const { stdout, code } = await rig.meow('doctor', '--json', ...flags);
  return { code, left: (JSON.parse(stdout) as { orphans: readonly Orphan[] }).orphans };
}

function shown(left: readonly Orphan[]): readonly string[] {
  return left.map(({ kind, id }) => `${kind} ${id}`).toSorted();
}

const SERVER = "setsid sh -c 'echo $$ > ID.server; while :; do sleep 1; done' >/dev/null 2>&1 &";

function git(rig: Rig, ...args: readonly string[]): readonly string[] {
  return execFileSync('git', ['-C', rig.folder, ...args], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
}

/** Found without meow: in the file system, in git and among the processes. */
function actuallyLeft(rig: Rig, over: ReadonlySet<string>, live: ReadonlySet<string>): readonly string[] {
  const runs = rig.path('.meow/workflows');
  const found: string[] = [];
  for (const name of rig.files('.meow/workflows')) {
    // A killed process may have been writing it.
    if (/\.(?:new|tmp)$/.test(name) && !live.has(name.split('/')[2] ?? '')) found.push(`tmp ${rig.path(name)}`);
  }
  for (const name of readdirSync(runs)) {
    const lock = /^(.+)\.yaml\.lock$/.exec(name)?.[1];
    if (lock !== undefined && !live.has(lock)) found.push(`lock ${join(runs, name)}`);
    if (existsSync(join(runs, name, 'sock')) && !live.has(name)) found.push(`socket ${join(runs, name, 'sock')}`);
  }
  for (const file of rig.files().filter((each) => /^[^/]*\.server$/.test(each))) {
    const pid = Number(rig.read(file));
    if (over.has(file.replace('.server', '')) && isAlive(pid)) {
      // The server and the `sleep` that it may be running now.
      found.push(`process ${pid}`);
    }
  }
  const refs = git(rig, 'for-each-ref', '--format=%(refname)', 'refs/meow', 'refs/heads/meow');
  const isOver = (run: string | undefined): boolean => run !== undefined && over.has(run);
  for (const ref of refs) {
    if (ref.startsWith('refs/heads/') && isOver(/run-(.+)$/.exec(ref)?.[1])) found.push(`branch ${ref.slice(11)}`);
    if (ref.startsWith('refs/meow/') && isOver(ref.split('/')[2])) found.push(`ref ${ref}`);
  }
  for (const line of git(rig, 'worktree', 'list', '--porcelain')) {
    const run = /^worktree .*\/\.meow\/worktrees\/(.+)$/.exec(line)?.[1];
    if (isOver(run)) found.push(`worktree ${line.slice(9)}`);
  }
  return found.toSorted();
}

describe('meow doctor', () => {
  test('names exactly what runs of all languages have left, and removes it without touching what looks alike', async () => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    const write = (id: string): void => {
      const server = SERVER.replace('ID', id);
      rig.write(`${id}.meow.toml`, `[main]\n${shellStep('a', server)}${waitingStep(`hold-${id}`, 'needs = ["a"]')}`);
      rig.write(`${id}/START.sh`, `${server}\ntouch ${id}.began; echo '<result>ok</result>'\n`);
    };
    made.agents({ build: 'true' });
    made.workflow({ build: work('STOP') });
    const over = new Set<string>();
    const live = new Set<string>();
    const starts: Promise<unknown>[] = [];
    const count = attempts(200);
    for (let at = 0; at < count; at++) {
      const id = `r${at}`;
      write(id);
      const language = at % 4;
      const isKilled = at % 3 === 0;
      if (language === 3) {
        starts.push(rig.meow('run', 'w.yaml', '--id', id));
        over.add(id);
      } else if (language === 2) {
        starts.push(rig.meow('run', id, '--id', id));
        over.add(id);
      } else {
        const run = rig.start('run', `${id}.meow.toml`, '--id', id);
        starts.push(
          rig.appears(`hold-${id}.began`).then(async () => {
            if (isKilled) {
              // With everything around it.
              run.kill('SIGKILL');
              await run.ended;
              for (const file of [`hold-${id}.began`, `${id}.server`]) {
                await until(() => rig.exists(file) && rig.read(file).endsWith('\n'), file);
                process.kill(Number(rig.read(file)), 'SIGKILL');
              }
            } else {
              rig.write(`hold-${id}.go`, '');
              await run.ended;
              over.add(id);
            }
          }),
        );
      }
      if (starts.length >= 4) await Promise.all(starts.splice(0));
    }
    await Promise.all(starts);
    // A run that goes on, one whose folder is gone, and one that has ended and has a worktree with work.
    write('live');
    const running = rig.start('run', 'live.meow.toml', '--id', 'live');
    await rig.appears('hold-live.began');
    live.add('live');
    write('gone');
    const lost = rig.start('run', 'gone.meow.toml', '--id', 'gone');
    await rig.appears('hold-gone.began');
    await until(() => rig.exists('gone.server') && rig.read('gone.server').endsWith('\n'), 'the server of gone');
    lost.kill('SIGKILL');
    await lost.ended;
    process.kill(Number(rig.read('hold-gone.began')), 'SIGKILL');
    rmSync(rig.path('.meow/workflows/gone'), { recursive: true });
    over.add('gone');
    // They only look alike: of a run with the same id and another mark, and without its folder.
    const [marker = ''] = /MEOW_RUN=[^\0]+/.exec(environmentOf(Number(rig.read('live.server')))) ?? [];
    const inbox = (id: string): string => rig.path(`.meow/workflows/${id}/inbox`);
    const alike = [
      { MEOW_RUN: marker.replace('MEOW_RUN=live.', 'r1.'), MEOW_INBOX: inbox('r1') },
      { MEOW_RUN: 'r1.aaaaaaaa:a#1' },
      { MEOW_INBOX: inbox('r1') },
      { MEOW_RUN: 'r1.aaaaaaaa:a#1', MEOW_INBOX: '/nowhere/.meow/workflows/r1/inbox' },
    ].map((environment) => {
      const child = spawn('sleep', ['1000'], { env: { ...rig.environment, ...environment }, stdio: 'ignore' });
      return child.pid ?? 0;
    });
    writeFileSync(rig.path('.meow/workflows/live/notes.txt'), 'mine');

    const left = actuallyLeft(rig, over, live);
    expect(left.length).toBeGreaterThan(count / 2);
    const found = await orphans(rig);
    // A shell that waits starts a `sleep` now and then, which is its process too.
    const servers = new Set(left);
    const others = (kinds: readonly string[]): readonly string[] =>
      kinds.filter((each) => !each.startsWith('process ') || servers.has(each) || !isSleep(Number(each.slice(8))));
    expect(others(shown(found.left))).toEqual(left);
    expect(found.code).toBe(1);
    for (const { since, cure } of found.left) {
      expect(cure).not.toBe('');
      expect(since === null || !Number.isNaN(Date.parse(since))).toBe(true);
    }

    const without = await rig.meow('doctor', '--fix');
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') as string });
    expect(await orphans(rig, '--fix', '--yes')).toEqual({ code: 0, left: [] });
    expect(await orphans(rig)).toEqual({ code: 0, left: [] });
    expect(actuallyLeft(rig, over, live)).toEqual([]);
    for (const pid of alike) expect(isAlive(pid)).toBe(true);
    expect(isAlive(Number(rig.read('live.server')))).toBe(true);
    rig.write('hold-live.go', '');
    expect(await running.ended).toMatchObject({ code: 0 });
    for (const pid of alike) process.kill(pid, 'SIGKILL');
  }, 600_000);

  test('ends the terminals of a run whose folder is gone, and leaves those of a run that can be resumed', async () => {
    await using rig = await Rig.setup();
    const echo = `sh -c 'printf "> "; while read -r line; do echo $line; printf "> "; done'`;
    rig.write(
      '.meow/adapters/cat/adapter.toml',
      `[adapter]\nname = "cat"\ndescription = "repeats"\n[spawn]\ncommand = ${JSON.stringify(echo)}\n`,
    );
    const spawned =
      '[[main.steps]]\nid = "s"\nexecutor = "spawn"\nagent = "a"\nadapter = "cat"\nchannel = "terminal"\n';
    rig.write('w.meow.toml', `[main]\n${spawned}${waitingStep('hold', 'needs = ["s"]')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.appears('hold.began');
    run.kill('SIGKILL');
    await run.ended;
    const kinds = async (): Promise<readonly string[]> => [
      ...new Set((await orphans(rig)).left.flatMap(({ kind }) => (kind === 'tmp' ? [] : [kind]))),
    ];
    expect(await kinds()).toEqual(['socket', 'lock']);
    rmSync(rig.path('.meow/workflows/r'), { recursive: true });
    expect(await kinds()).toEqual(['process', 'tmux', 'lock']);
    expect(await orphans(rig, '--fix', '--yes')).toEqual({ code: 0, left: [] });
    // What ran below tmux ends a moment after it.
    await expect.poll(() => rig.left(), { timeout: 60_000 }).toEqual([]);
  });

  test('keeps uncommitted work and unmerged commits', async () => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    made.agents({ build: 'echo work > work.txt' });
    made.workflow({ build: work('STOP') });
    expect((await made.run()).code).toBe(0);
    await orphans(rig, '--fix', '--yes');
    expect(rig.read('.meow/worktrees/r/work.txt')).toBe('work\n');
  });
});

function environmentOf(pid: number): string {
  return readFileSync(`/proc/${pid}/environ`, 'latin1');
}

function isSleep(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('sleep');
  } catch {
    return true; // It has ended.
  }
}

describe('meow gc with a selection', () => {
  async function three(rig: Rig): Promise<void> {
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo said; [ ! -e fail ]')}`);
    for (const id of ['one', 'two']) expect((await rig.meow('run', 'w.meow.toml', '--id', id)).code).toBe(0);
    rig.write('fail', '');
    expect((await rig.meow('run', 'w.meow.toml', '--id', 'three')).code).toBe(1);
  }

  async function gc(rig: Rig, ...flags: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { stdout, stderr, code } = await rig.meow('gc', '--json', ...flags);
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    return JSON.parse(stdout) as readonly Readonly<Record<string, unknown>>[];
  }

  const names = (rig: Rig): readonly string[] => readdirSync(rig.path('.meow/workflows')).toSorted();

  test('removes whole runs by status, age and number, and nothing in a dry run', async () => {
    await using rig = await Rig.setup();
    await three(rig);
    const before = names(rig);
    const [would] = await gc(rig, '--status', 'failed', '--dry-run');
    expect(would).toMatchObject({ run: 'three', removed: true, reasons: [] });
    expect(would?.['bytes']).toBeGreaterThan(0);
    expect(names(rig)).toEqual(before);
    expect(await gc(rig, '--older-than', '1d')).toEqual([]);
    expect((await gc(rig, '--keep', '2')).map(({ run }) => run)).toEqual(['one']);
    expect(names(rig)).toEqual(['three', 'three.yaml', 'two', 'two.yaml']);
    expect(await gc(rig, '--status', 'failed')).toMatchObject([{ run: 'three', removed: true }]);
    expect(await gc(rig, '--logs-only')).toMatchObject([{ run: 'two', removed: true }]);
    expect(rig.files('.meow/workflows/two').filter((file) => file.endsWith('stdout'))).toEqual([]);
    expect((await rig.status('two')).status).toBe('done');
  });

  test('keeps runs that go on, and the newest of each schedule', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
    rig.write('v.meow.toml', `[main]\n${shellStep('a', 'true')}`);
    for (const slot of ['20260101T000000Z', '20260102T000000Z'])
      await rig.meow(
        'run',
        'v.meow.toml',
        '--id',
        `nightly-${slot}`,
        '--meta',
        'schedule=nightly',
        '--meta',
        `slot=${slot}`,
      );
    const live = rig.start('run', 'w.meow.toml', '--id', 'live');
    await rig.appears('hold.began');
    const verdicts = await gc(rig, '--keep', '0');
    expect(verdicts.find(({ run }) => run === 'nightly-20260102T000000Z')).toMatchObject({
      removed: false,
      reasons: ['it is the newest of its schedule'],
    });
    expect(verdicts.find(({ run }) => run === 'nightly-20260101T000000Z')).toMatchObject({ removed: true });
    expect(await gc(rig, 'live', '--keep', '0')).toMatchObject([{ run: 'live', removed: false }]);
    rig.write('hold.go', '');
    expect(await live.ended).toMatchObject({ code: 0 });
  });

  test('refuses what is no selection', async () => {
    await using rig = await Rig.setup();
    await three(rig);
    for (const flags of [
      ['--older-than', 'soon'],
      ['--keep', 'x'],
      ['--status', 'running'],
      ['nobody', '--keep', '0'],
    ])
      expect(await rig.meow('gc', ...flags), flags.join(' ')).toMatchObject({ code: 2 });
    expect(names(rig)).toContain('one');
  });
});

describe('an exported run', () => {
  async function exported(rig: Rig): Promise<string> {
    const say = shellStep('say', 'echo "the token is $API_TOKEN"', 'shell_outputs = { t = { source = "stdout" } }');
    rig.write('w.meow.toml', `[main]\n${say}${shellStep('fail', 'exit 1', 'needs = ["say"]')}`);
    await rig.meowWith({ API_TOKEN: 'abcdefgh12345' }, 'run', 'w.meow.toml', '--id', 'r');
    expect(await rig.meow('export', 'r', '-o', 'r.tar.gz')).toMatchObject({ code: 0, stdout: 'r.tar.gz\n' });
    return rig.path('r.tar.gz');
  }

  test('is read elsewhere, without secrets, but not resumed', async () => {
    await using rig = await Rig.setup();
    await using other = await Rig.setup();
    const file = await exported(rig);
    expect(gunzipSync(readFileSync(file)).includes('abcdefgh12345')).toBe(false);
    expect(execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).split('\n')).toEqual(
      expect.arrayContaining(['meow-run.json', 'r.yaml', 'r/journal.jsonl', 'r/program.json', 'r/steps/say.1.stdout']),
    );
    expect(await other.meow('import', file)).toMatchObject({ code: 0, stdout: 'r\n' });
    expect((await other.status('r')).steps['say']?.outputs['t']).toBe('the token is •••API_TOKEN');
    expect((await other.meow('logs', 'r', 'say')).stdout).toContain('the token is •••API_TOKEN');
    expect(await other.meow('resume', 'r')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('was imported') as string,
    });
    expect(await other.meow('import', file)).toMatchObject({ code: 2 });
  });

  test('is refused while an engine works on it', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.appears('hold.began');
    expect(await rig.meow('export', 'r')).toMatchObject({ code: 2 });
    rig.write('hold.go', '');
    await run.ended;
    expect(await rig.meow('export', 'r', '--no-logs')).toMatchObject({ code: 0, stdout: 'r.tar.gz\n' });
    expect(execFileSync('tar', ['-tzf', rig.path('r.tar.gz')], { encoding: 'utf8' })).not.toContain('stdout');
  });

  test('leaves nothing if its archive is damaged, or leads outside', async () => {
    await using rig = await Rig.setup();
    await using other = await Rig.setup();
    const bytes = gunzipSync(readFileSync(await exported(rig)));
    const attempt = async (name: string, content: Uint8Array): Promise<void> => {
      writeFileSync(other.path('bad.tar.gz'), content);
      expect(await other.meow('import', 'bad.tar.gz'), name).toMatchObject({ code: 2 });
      expect(
        other.files().filter((path) => path.startsWith('.meow/workflows/') && path !== '.meow/workflows/'),
        name,
      ).toEqual([]);
    };
    await attempt('no archive', Buffer.from('hello'));
    await attempt('cut off', gzipSync(bytes.subarray(0, bytes.length - 2048)));
    const flipped = Buffer.from(bytes);
    const at = flipped.indexOf('"decisions"');
    flipped[at + 3] = (flipped[at + 3] ?? 0) ^ 1;
    await attempt('a wrong checksum in the journal', gzipSync(flipped));
    const header = Buffer.from(bytes);
    header[5] = (header[5] ?? 0) ^ 1;
    await attempt('a wrong checksum of tar', gzipSync(header));
    // Made by tar itself.
    const make = (name: string, script: string): Uint8Array => {
      rig.write(`${name}/meow-run.json`, '{"format":1,"id":"r"}');
      for (const part of ['journal.jsonl', 'program.json'])
        rig.write(`${name}/r/${part}`, rig.read(`.meow/workflows/r/${part}`));
      execFileSync('sh', ['-c', script], { cwd: rig.path(name), stdio: 'ignore' });
      return readFileSync(rig.path(`${name}/out.tgz`));
    };
    await attempt(
      'an absolute path',
      make(
        'a',
        'echo x > /tmp/meow-absolute-$$; tar -Pczf out.tgz meow-run.json r /tmp/meow-absolute-$$; rm /tmp/meow-absolute-$$',
      ),
    );
    await attempt('a path with ..', make('b', 'echo x > ../up; tar -Pczf out.tgz meow-run.json r r/../../up'));
    symlinkSync('/etc/passwd', join(rig.path(''), 'link'));
    await attempt('a link', make('c', 'ln -s /etc/passwd r/link; tar -czf out.tgz meow-run.json r'));
    await attempt('a pipe', make('d', 'mkfifo r/pipe; tar -czf out.tgz meow-run.json r'));
    await attempt('another file', make('e', 'echo x > x; tar -czf out.tgz meow-run.json r x'));
    await attempt('without a journal', make('f', 'rm r/journal.jsonl; tar -czf out.tgz meow-run.json r'));
  });
});

test('a report is one page without scripts, references and secrets', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('say', 'echo "<script>alert(1)</script> $API_TOKEN"')}`);
  await rig.meowWith({ API_TOKEN: 'abcdefgh12345' }, 'run', 'w.meow.toml', '--id', 'r');
  expect(await rig.meow('report', 'r', '-o', 'r.html')).toMatchObject({ code: 0, stdout: 'r.html\n' });
  const page = rig.read('r.html');
  expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt; •••API_TOKEN');
  expect(page).not.toMatch(/<script|https?:|src=|href=|abcdefgh12345/);
  expect(await rig.meow('report', 'r')).toMatchObject({ code: 2 });
  expect(await rig.meow('report', 'nobody', '-o', 'x.html')).toMatchObject({ code: 2 });
  expect(lstatSync(rig.path('r.html')).mode & 0o777).toBe(0o600);
  utimesSync(rig.path('r.html'), 0, 0);
});
