// The environment of a script, and its exit: as if it had been run by a plain `sh -c`.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Outcome } from '../../src/ir/effect.ts';
import { CommandRig, from } from './driver-command-rig.ts';

let rig: CommandRig;
beforeEach(() => {
  rig = new CommandRig();
});
afterEach(() => rig.close());

/** Each may be run by the recording shell itself, or by a shell that it starts; both must behave like `sh -c`. */
const SCRIPTS: readonly string[] = [
  'true',
  '',
  '# nothing but a comment',
  'false',
  'exit 7',
  'echo one; echo two >&2',
  'set -e; false; echo not reached',
  'set -eu\nfalse\necho not reached',
  'set -u; echo $NOPE; echo not reached',
  ': ${NOPE:?is not set}; echo not reached',
  'set -x; true; (exit 4)',
  'set -n; echo not reached',
  'set -C; echo a > f; echo b > f',
  'exec true',
  'exec sh -c "exit 5"',
  'e=exec; $e sh -c "exit 6"',
  'eval exit 8',
  'ex"ec" sh -c "exit 9"',
  "trap 'echo bye' EXIT; exit 3",
  "trap 'echo bye; exit 4' EXIT; false",
  "trap '' TERM; kill -TERM $$; echo alive",
  'f() { return 3; }; f',
  'return 4',
  '(exit 9)',
  'exit 256',
  'echo a | (exit 7)',
  '(exit 5) & wait $!',
  'echo "{" one\necho } two',
  'nosuchprogram',
  './nosuchfile',
  '/',
  'echo $0 $# "$@"',
  'umask 077; umask',
  'umask',
  'cat <<END\nhere $((1+1))\nEND',
  'echo() { printf function; }; echo x',
  'cd /; pwd',
  'readonly meow_status=1; true',
  'IFS=0123456789; exit 10',
  'exec >&- 2>&-; echo nowhere',
  'exec 2>/dev/null; nosuch',
  'sh -c "kill -9 \\$\\$"',
  'alias echo=false; echo x',
  'unset PATH; exit 2',
  'command exit 12',
  'command -v sh >/dev/null && exit 13',
  'echo "café" ünïcode 日本 🎉',
  'printf "\\303\\050"',
  'test -t 0; echo $?; cat',
  'if',
  'echo fine\nif',
  'echo fine\n}\necho not reached',
  '# {\n}\necho not reached',
  'echo fine\nfi\necho not reached',
  'echo fine\n}\n{\necho not reached',
  'echo fine;;\n*) echo not reached',
  'echo fine;\\\n;\n*) echo not reached',
  'echo fine\nesac\necho not reached',
  'function greet {\n  echo hi\n}\ngreet\nexit 0',
  'echo a \\',
  'echo "${-}" "${#-}"',
  'case a in a) echo case;; esac',
  'echo "unclosed',
  ')',
  '&& true',
];

describe('a script ends and prints as in a plain sh -c', () => {
  test.for(SCRIPTS)('%j', async (script) => {
    await asInPlainShell(rig, script);
  });

  test('only scripts that never ran leave no exit code', async () => {
    const without: string[] = [];
    for (const script of SCRIPTS) {
      const effect = rig.command(script);
      await new Promise((resolve) => rig.driver.start(effect, resolve));
      if (!existsSync(rig.stepFile(effect, 'status'))) without.push(script);
    }
    expect(without).toEqual([
      'if',
      'echo fine;;\n*) echo not reached',
      'echo fine;\\\n;\n*) echo not reached',
      'echo "unclosed',
      ')',
      '&& true',
    ]);
  });
});

describe('long scripts', () => {
  const long = (end: string): string => `${'# filler\n'.repeat(25_000)}${end}`;

  test('a script that is too long for an argument still runs', async () => {
    const script = long('echo $0 $#; exit 3');
    expect(script.length).toBeGreaterThan(200_000);
    const effect = rig.command(script, { captures: [from('stdout')] });
    const outcome = await new Promise<Outcome>((resolve) => rig.driver.start(effect, resolve));
    expect(outcome).toMatchObject({ failure: { code: 3, outputs: { stdout: 'sh 0' } } });
    expect(readFileSync(rig.stepFile(effect, 'script'), 'utf8')).toBe(script);
  });

  test('it records its exit code however it ends', async () => {
    const effect = rig.command(long('exec sh -c "exit 9"'));
    await new Promise((resolve) => rig.driver.start(effect, resolve));
    expect(readFileSync(rig.stepFile(effect, 'status'), 'utf8')).toMatch(/\nexit 9\n$/);
  });
});

describe('another shell', () => {
  test('interprets the script itself', async () => {
    await using bash = disposable(new CommandRig({ shell: 'bash' }));
    expect(await bash.rig.printed('a=(one two); echo "${a[1]}" $0 $# "${BASH_VERSION:+bash}"')).toBe('two bash 0 bash');
  });

  test('is killed without recording a wrong exit code', async () => {
    await using bash = disposable(new CommandRig({ shell: 'bash' }));
    const effect = bash.rig.command('kill -TERM $$; sleep 100');
    const outcome = await new Promise<Outcome>((resolve) => bash.rig.driver.start(effect, resolve));
    expect(outcome).toMatchObject({ failure: { kind: 'signal', code: 143 } });
    bash.rig.nextLife();
    expect(await bash.rig.find(effect)).toMatchObject(outcome);
  });

  test('may be anything that accepts -c', async () => {
    const shell = rig.path('mine');
    writeFileSync(shell, '#!/bin/sh\necho "mine: $1 $2"\n');
    chmodSync(shell, 0o755);
    await using mine = disposable(new CommandRig({ shell }));
    expect(await mine.rig.printed('hello world')).toBe('mine: -c hello world');
  });

  test('that does not exist is a failure that names it', async () => {
    await using none = disposable(new CommandRig({ shell: 'nosuchshell' }));
    expect(await none.rig.run('true')).toMatchObject({
      failure: { kind: 'not-started', message: expect.stringContaining('nosuchshell') as unknown },
    });
  });
});

describe('the environment', () => {
  test('is that of the caller, then variables, then the step, then ours', async () => {
    await using own = disposable(
      new CommandRig({
        environment: {
          PATH: process.env['PATH'] ?? '',
          A: 'caller',
          B: 'caller',
          MEOW_VAR_NAME: 'caller',
          MEOW_STEP: 'x',
        },
      }),
    );
    const step = 'a.step#2';
    const script =
      'echo $A; echo $B; echo $MEOW_VAR_NAME; echo $MEOW_VAR_TASK_ID_1; ' +
      'echo $MEOW_WORKFLOW; echo $MEOW_STEP; echo $MEOW_ATTEMPT; echo $MEOW_RUN';
    const printed = await own.rig.printed(script, {
      step,
      attempt: 3,
      env: { B: 'step', MEOW_STEP: 'lie', MEOW_RUN: 'lie' },
      variables: { name: 'variable', 'task.id-1': { deep: [1, null] } },
    });
    expect(printed.split('\n')).toEqual([
      'caller',
      'step',
      'variable',
      '{"deep":[1,null]}',
      own.rig.runId,
      step,
      '3',
      `${own.rig.runId}.m:${step}#3`,
    ]);
  });

  test('has our folder first in PATH', async () => {
    const bin = join(rig.folder, 'bin');
    execFileSync('mkdir', [bin]);
    writeFileSync(join(bin, 'meow'), '#!/bin/sh\necho purr\n');
    chmodSync(join(bin, 'meow'), 0o755);
    await using own = disposable(new CommandRig({ binFolder: bin }));
    expect(await own.rig.printed('meow')).toBe('purr');
    expect(await own.rig.printed('meow', { env: { PATH: '/usr/bin:/bin' } })).toBe('purr');
  });

  test('omits variables that no environment can hold', async () => {
    const variables = {
      small: 'x',
      large: 'x'.repeat(200_000),
      nul: 'a\0b',
      ...Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`many${index}`, 'x'.repeat(90_000)])),
    };
    const names = await rig.printed('env | grep -o "^MEOW_VAR_[A-Z]*[0-9]*" | sort', { variables });
    expect(names.split('\n')).toEqual([...Array.from({ length: 5 }, (_, i) => `MEOW_VAR_MANY${i}`), 'MEOW_VAR_SMALL']);
  });

  test.for([
    [{ A: 'a\0b' }, 'A contains a NUL byte'],
    [{ 'A=B': 'x' }, '"A=B" cannot be the name'],
    [{ '': 'x' }, '"" cannot be the name'],
    [{ A: 'x'.repeat(3_000_000) }, 'too long for this system'],
  ] as const)('that is invalid is a failure: %#', async ([env, message]) => {
    expect(await rig.run('true', { env })).toMatchObject({
      failure: { kind: 'not-started', message: expect.stringContaining(message) as unknown },
    });
  });
});

describe('the working directory of a command', () => {
  test('is that of the run, or the given one, relative to it', async () => {
    execFileSync('mkdir', ['-p', rig.path('sub')]);
    expect(await rig.printed('pwd')).toBe(rig.folder);
    expect(await rig.printed('pwd', { cwd: 'sub' })).toBe(rig.path('sub'));
    expect(await rig.printed('pwd', { cwd: '/' })).toBe('/');
  });

  test('must exist', async () => {
    writeFileSync(rig.path('file'), '');
    for (const [cwd, words] of [
      ['nowhere', 'does not exist'],
      ['file', 'is not a folder'],
      ['a\0b', 'NUL byte'],
    ] as const) {
      expect(await rig.run('true', { cwd })).toMatchObject({
        failure: { kind: 'not-started', message: expect.stringContaining(words) as unknown },
      });
    }
    expect(await rig.run('true', { cwd: 'nowhere' })).toMatchObject({
      failure: { message: expect.stringContaining(rig.path('nowhere')) as unknown },
    });
  });
});

describe('texts with parts in files', () => {
  test('are read and quoted as their places require', async () => {
    const value = `it's "$HOME" \`x\` \\ end`;
    const file = kept(value);
    expect(await rig.printed(['printf %s ', { file, quote: [{ kind: 'bare' }] }])).toBe(value);
    expect(await rig.printed('printf %s "$A"', { env: { A: [{ file, quote: [] }] } })).toBe(value);
  });

  test('may be in the folder of a step, as version 0.1.0-alpha stored them', async () => {
    const file = kept('old', 'steps/a/1/outputs');
    expect(await rig.printed(['printf %s ', { file, quote: [{ kind: 'bare' }] }])).toBe('old');
  });

  test('may be large', async () => {
    const file = kept('x'.repeat(3_000_000));
    expect(await rig.printed(['printf %s ', { file, quote: [{ kind: 'bare' }] }, ' | wc -c'])).toBe('3000000');
  });

  test.for([
    '../secret',
    'steps/a.1.outputs/../../../secret',
    'steps/a.1.outputs/link',
    'steps/link.1.outputs/secret',
    'steps/link/1/outputs/secret',
    'steps/a.1.stdout',
    'journal.jsonl',
  ])('are read only from stored outputs of the run: %s', async (file) => {
    kept('mine');
    const secret = join(rig.runFolder, '../secret');
    writeFileSync(secret, 'secret');
    writeFileSync(join(rig.runFolder, 'journal.jsonl'), 'secret');
    writeFileSync(join(rig.runFolder, 'steps/a.1.stdout'), 'secret');
    symlinkSync(secret, join(rig.runFolder, 'steps/a.1.outputs/link'));
    mkdirSync(join(rig.runFolder, '../elsewhere/1/outputs'), { recursive: true });
    writeFileSync(join(rig.runFolder, '../elsewhere/1/outputs/secret'), 'secret');
    symlinkSync(join(rig.runFolder, '../elsewhere'), join(rig.runFolder, 'steps/link'));
    symlinkSync(join(rig.runFolder, '../elsewhere/1/outputs'), join(rig.runFolder, 'steps/link.1.outputs'));
    expect(await rig.run(['echo ', { file, quote: [] }, ' > said'])).toMatchObject({
      failure: {
        kind: 'not-started',
        message: expect.stringContaining('is not a stored output of this run') as unknown,
      },
    });
    expect(existsSync(rig.path('said'))).toBe(false);
  });

  test('whose file is missing are a failure that names it', async () => {
    expect(await rig.run(['echo ', { file: 'nope', quote: [] }])).toMatchObject({
      failure: { kind: 'not-started', message: expect.stringContaining('nope') as unknown },
    });
  });

  test('with a NUL byte are refused', async () => {
    expect(await rig.run('echo a\0b')).toMatchObject({
      failure: { kind: 'not-started', message: expect.stringContaining('NUL') as unknown },
    });
  });
});

test('the files of a step are private to its user, and the command keeps the umask', async () => {
  const effect = rig.command('umask; touch made; head -c 1100000 /dev/zero', { captures: [from('stdout')] });
  await new Promise((resolve) => rig.driver.start(effect, resolve));
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  for (const name of ['stdout', 'stderr', 'status', 'outputs/stdout']) {
    expect([name, mode(rig.stepFile(effect, name))]).toEqual([name, '600']);
  }
  for (const name of ['.', '..']) {
    expect([name, mode(join(rig.stepFile(effect, 'outputs'), name))]).toEqual([name, '700']);
  }
  expect(mode(rig.path('made'))).toBe((0o666 & ~process.umask()).toString(8));
});

test('a step id that is too long for a file name still has its own files', async () => {
  const long = 'x'.repeat(300);
  for (const step of [`${long}.a`, `${long}.b`, '../../evil', 'a/b', 'a_b']) {
    expect(await rig.printed('echo "$MEOW_STEP"', { step })).toBe(step);
  }
  expect(existsSync(join(rig.runFolder, '../evil'))).toBe(false);
});

/** A stored output of an earlier step, as a text refers to it. */
function kept(value: string, folder = 'steps/a.1.outputs'): string {
  mkdirSync(join(rig.runFolder, folder), { recursive: true });
  writeFileSync(join(rig.runFolder, folder, 'value'), value);
  return `${folder}/value`;
}

function disposable(made: CommandRig): { readonly rig: CommandRig } & AsyncDisposable {
  return { rig: made, [Symbol.asyncDispose]: () => made.close() };
}

async function asInPlainShell(of: CommandRig, script: string): Promise<void> {
  const plain = spawnSync('sh', ['-c', script], {
    cwd: of.folder,
    input: '',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  if (existsSync(of.path('f'))) execFileSync('rm', [of.path('f')]);
  const effect = of.command(script);
  const outcome = await new Promise<Outcome>((resolve) => of.driver.start(effect, resolve));
  const status = plain.status ?? -1;
  if (status === 0) expect(outcome).toMatchObject({ kind: 'success', outputs: { exit_code: 0, outcome: 'true' } });
  else expect(outcome).toMatchObject({ kind: 'failure', failure: { code: status, outputs: { exit_code: status } } });
  expect(readFileSync(of.stepFile(effect, 'stdout'))).toEqual(plain.stdout);
  expect(readFileSync(of.stepFile(effect, 'stderr'), 'utf8')).toBe(plain.stderr.toString());

  // Another engine would find the same.
  if (existsSync(of.stepFile(effect, 'status'))) {
    of.nextLife();
    expect(await of.find(effect)).toMatchObject(outcome);
  }
}
