// Results of finished commands: outcome, outputs, quoted text.

import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { type Outcome, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import { CommandRig, from, fromFile } from './driver-command-rig.ts';

let rig: CommandRig;
beforeEach(() => {
  rig = new CommandRig();
});
afterEach(() => rig.close());

describe('a command', () => {
  test('that exits with 0 succeeds', async () => {
    expect(await rig.run('true')).toEqual(success({ exit_code: 0, outcome: 'true' }));
  });

  test('that exits with another code fails, with the end of its output', async () => {
    expect(await rig.run('echo said; echo complained >&2; exit 3')).toEqual({
      kind: 'failure',
      failure: failure('exit-nonzero', 'the command exited with status 3', {
        code: 3,
        output: 'complained',
        outputs: { exit_code: 3, outcome: 'false' },
      }),
    });
    expect(await rig.run('echo said; exit 3')).toMatchObject({ failure: { output: 'said' } });
    expect(await rig.run('echo said; echo " " >&2; exit 3')).toMatchObject({ failure: { output: 'said' } });
    expect(await rig.run('exit 3')).toMatchObject({ failure: { output: null } });
  });

  test('with much output is quoted from its end, in whole characters', async () => {
    const outcome = await rig.run('yes é | head -c 10001 >&2; echo the end >&2; exit 1');
    const output = outcome.kind === 'failure' ? (outcome.failure.output ?? '') : '';
    expect(output).toMatch(/^é?\n(é\n)+.*the end$/s);
    expect(Buffer.byteLength(output)).toBeGreaterThan(4_000);
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(4_096);
  });

  test('that is killed fails with that signal', async () => {
    for (const script of ['kill -KILL $$', 'sh -c \'kill -KILL "$$"\'', 'kill -KILL 0']) {
      expect(await rig.run(script)).toMatchObject({
        failure: { kind: 'signal', code: 137, message: expect.stringContaining('SIGKILL') as unknown },
      });
    }
  });
});

describe('a condition', () => {
  const verdict = 'condition';

  test('takes the route of its exit code', async () => {
    expect(await rig.run('true', { verdict })).toMatchObject({
      route: 'true',
      outputs: { outcome: 'true', exit_code: 0 },
    });
    expect(await rig.run('exit 9', { verdict })).toMatchObject({
      route: 'false',
      outputs: { outcome: 'false', exit_code: 9 },
    });
  });

  test('has outputs on both routes', async () => {
    const captures = [from('stdout')];
    expect(await rig.run('echo yes', { verdict, captures })).toMatchObject({ outputs: { stdout: 'yes' } });
    expect(await rig.run('echo no; false', { verdict, captures })).toMatchObject({ outputs: { stdout: 'no' } });
  });

  test.for(['nosuchprogram', '/', 'exit 126', 'kill -KILL $$', 'sh -c "kill -TERM \\$\\$"'])(
    'that could not be evaluated is a failure: %s',
    async (script) => {
      expect(await rig.run(script, { verdict })).toMatchObject({ failure: { kind: 'condition-error' } });
    },
  );
});

describe('outputs', () => {
  test('are the printed text, trimmed', async () => {
    const captures = [from('stdout'), from('stderr'), from('exit-code')];
    const script = String.raw`printf '\n\t  two\n words \r\n\n'; echo ' err ' >&2`;
    expect(await rig.run(script, { captures })).toMatchObject({
      outputs: { stdout: 'two\n words', stderr: 'err', 'exit-code': 0 },
    });
    expect(await rig.run('printf "\\n \\n"', { captures })).toMatchObject({ outputs: { stdout: '', stderr: '' } });
  });

  test('survive bytes that are not text', async () => {
    const outcome = await rig.printed(String.raw`printf 'a\303\050\377\000z\n'`);
    expect(outcome).toBe('a\u{fffd}(\u{fffd}\0z');
  });

  test('have their declared types', async () => {
    const take = (script: string, type: 'integer' | 'number' | 'boolean' | 'json' | 'string') =>
      rig.run(script, { captures: [from('stdout', { name: 'x', type })] });
    expect(await take('echo 42', 'integer')).toMatchObject({ outputs: { x: 42 } });
    expect(await take('echo 4.5', 'number')).toMatchObject({ outputs: { x: 4.5 } });
    expect(await take('echo false', 'boolean')).toMatchObject({ outputs: { x: false } });
    expect(await take(`echo '{"a": [1, null]}'`, 'json')).toMatchObject({ outputs: { x: { a: [1, null] } } });
    expect(await take('echo 42', 'string')).toMatchObject({ outputs: { x: '42' } });
    expect(await take('echo many', 'number')).toMatchObject({
      failure: {
        kind: 'output-invalid',
        code: 0,
        message: expect.stringContaining('output x: expected a number') as unknown,
      },
    });
  });

  test('come from files relative to the command’s working directory', async () => {
    const captures = [
      fromFile('made.txt', { name: 'text' }),
      fromFile('made.json', { name: 'data', type: 'json' }),
      fromFile('count', { name: 'count', type: 'integer' }),
      fromFile(rig.path('made.txt'), { name: 'absolute', type: 'string' }),
    ];
    const script = `cd /; echo ' kept as it is ' > "$OLDPWD/made.txt"; cd - >/dev/null; echo '[1]' > made.json; echo 7 > count`;
    expect(await rig.run(script, { captures })).toMatchObject({
      outputs: { text: ' kept as it is \n', data: [1], count: 7, absolute: ' kept as it is \n' },
    });
  });

  test('whose file is missing fail the step, unless they are optional', async () => {
    const captures = [fromFile('nope', { name: 'a' }), from('stdout')];
    expect(await rig.run('echo hi', { captures })).toMatchObject({
      failure: {
        kind: 'output-missing',
        message: expect.stringContaining(`output a: there is no file ${rig.path('nope')}`) as unknown,
        outputs: { stdout: 'hi', exit_code: 0 },
      },
    });
    const optional = [fromFile('nope', { name: 'a', required: false })];
    expect(await rig.run('true', { captures: optional })).toMatchObject({
      kind: 'success',
      outputs: { exit_code: 0, outcome: 'true' },
    });
  });

  test.for(['.', '', 'a\0b', 'pipe'])('that cannot be read are missing: %j', async (path) => {
    const outcome = await rig.run('mkfifo pipe', { captures: [fromFile(path)] });
    expect(outcome).toMatchObject({ failure: { kind: 'output-missing' } });
  });

  test('are captured as far as possible if the command failed', async () => {
    const captures = [from('stdout'), fromFile('nope', { name: 'a' }), from('stderr', { type: 'json' })];
    expect(await rig.run('echo some; echo no json >&2; exit 2', { captures })).toMatchObject({
      failure: { kind: 'exit-nonzero', code: 2, outputs: { stdout: 'some', exit_code: 2, outcome: 'false' } },
    });
  });
});

describe('large outputs', () => {
  test('are not limited, and not read unless requested', async () => {
    const effect = rig.command('head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2');
    expect(await new Promise((resolve) => rig.driver.start(effect, resolve))).toMatchObject({ kind: 'success' });
    expect(statSync(rig.stepFile(effect, 'stdout')).size).toBe(50_000_000);
    expect(statSync(rig.stepFile(effect, 'stderr')).size).toBe(50_000_000);
  });

  test('stay in a file, trimmed, and their value names the file', async () => {
    const script = `printf '\\n %.0s' $(seq 50000); head -c 50000000 /dev/zero | tr '\\0' x; printf '\\n %.0s' $(seq 50000)`;
    const outcome = await rig.run(script, { captures: [from('stdout', { name: 'big' })], step: 'make' });
    expect(outcome).toMatchObject({
      outputs: { big: { $file: 'steps/make.1.outputs/big', bytes: 50_000_000 } },
      kept: ['big'],
    });
    const kept = readFileSync(join(rig.runFolder, 'steps/make.1.outputs/big'));
    expect(kept.every((byte) => byte === 0x78)).toBe(true);
  });

  test('may be only white space', async () => {
    const outcome = await rig.run(`head -c 3000000 /dev/zero | tr '\\0' ' '`, {
      captures: [from('stdout')],
      step: 'blank',
    });
    expect(outcome).toMatchObject({ outputs: { stdout: { $file: 'steps/blank.1.outputs/stdout', bytes: 0 } } });
  });

  test('of files are stored unchanged', async () => {
    const captures = [fromFile('big', { name: 'a/b' })];
    const outcome = await rig.run('{ echo; head -c 2000000 /dev/zero; } > big', { captures, step: 'make' });
    expect(outcome).toMatchObject({ outputs: { 'a/b': { bytes: 2_000_001 } } });
    const value = outcome.kind === 'success' ? (outcome.outputs['a/b'] as { $file: string }) : { $file: '' };
    expect(statSync(join(rig.runFolder, value.$file)).size).toBe(2_000_001);
  });

  test('are also stored if the command failed', async () => {
    const outcome = await rig.run('yes | head -c 2000000; exit 3', { captures: [from('stdout')] });
    expect(outcome).toMatchObject({
      failure: { code: 3, kept: ['stdout'], outputs: { stdout: { bytes: 1_999_999 } } },
    });
  });

  test('a value that has the same form is data', async () => {
    const forged = { $file: '../../secret', bytes: 1 };
    const captures = [from('stdout', { type: 'json' })];
    expect(await rig.run(`echo '${JSON.stringify(forged)}'`, { captures })).toMatchObject({
      outputs: { stdout: forged },
      kept: [],
    });
  });

  test('of JSON are stored after validation', async () => {
    const captures = [fromFile('big', { type: 'json' })];
    const script = (end: string): string =>
      `{ printf '\n["'; yes | tr -d '\\n' | head -c 2000000; printf '${end}'; } > big`;
    expect(await rig.run(script('"]\\n'), { captures, step: 'make' })).toMatchObject({
      outputs: { file: { $file: 'steps/make.1.outputs/file', bytes: 2_000_004 } },
      kept: ['file'],
    });
    expect(await rig.run(script('"'), { captures })).toMatchObject({ failure: { kind: 'output-invalid', kept: [] } });
  });

  test('cannot be numbers', async () => {
    const captures = [fromFile('big', { type: 'integer' })];
    expect(await rig.run(`head -c 2000000 /dev/zero | tr '\\0' 1 > big`, { captures })).toMatchObject({
      failure: { kind: 'output-invalid', message: expect.stringContaining('got 2000000 bytes') as unknown },
    });
  });

  test('of world-readable files are private, and may be stored again', async () => {
    const effect = rig.command('yes | head -c 2000000 > big; chmod 444 big', { captures: [fromFile('big')] });
    const first = await new Promise<Outcome>((resolve) => rig.driver.start(effect, resolve));
    expect(statSync(rig.stepFile(effect, 'outputs/file')).mode & 0o777).toBe(0o600);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(first);
  });

  test('are the same for an engine that finds them', async () => {
    const effect = rig.command(`head -c 2000000 /dev/zero; echo`, { captures: [from('stdout')] });
    const first = await new Promise<Outcome>((resolve) => rig.driver.start(effect, resolve));
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(first);
  });

  test('can be used in another command', async () => {
    const made = await rig.run(`yes | head -c 2000000`, { captures: [from('stdout', { name: 'big' })] });
    const value = made.kind === 'success' ? (made.outputs['big'] as { $file: string }) : { $file: '' };
    const used = await rig.printed(['printf %s ', { file: value.$file, quote: [{ kind: 'bare' }] }, ' | wc -c']);
    expect(used).toBe('1999999');
  });

  test('of many gigabytes cost nothing if nobody requests them', async () => {
    const effect = rig.command('exit 1');
    await new Promise((resolve) => rig.driver.start(effect, resolve));
    // A sparse file: as large as a command's output could be, without the time to write it.
    truncateSync(rig.stepFile(effect, 'stdout'), 6_000_000_000);
    writeFileSync(rig.stepFile(effect, 'stderr'), 'why');
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject({ failure: { code: 1, output: 'why' } });
    expect(existsSync(rig.stepFile(effect, 'outputs'))).toBe(false);
  });
});
