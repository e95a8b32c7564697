// Artifacts of validators: which files are accepted or refused, and what happens to harness reports.

import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appears } from './driver-command-rig.ts';
import { builtin, OpcodeRig, outputsOf, put, type Recorded, recordOf, recordsOf } from './opcode-rig.ts';

let rig: OpcodeRig;
beforeEach(() => {
  rig = new OpcodeRig();
});
afterEach(async () => {
  await rig.over();
  await rig.close();
});

const REPORT = { suite_id: 'smoke', cases: [{ id: 'a', status: 'passed' }], summary: { passed: 1 } };

/** A command that writes these files. */
function leaves(files: Readonly<Record<string, unknown>>): string {
  const commands = Object.entries(files).map(([path, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `mkdir -p "$(dirname '${path}')"; printf '%s' '${text}' > '${path}'`;
  });
  return [':', ...commands].join('; ');
}

async function run(command: string, artifacts: readonly string[], cwd: string | null = null): Promise<Recorded> {
  return recordOf(await rig.pass([builtin('tests', command, { artifacts, cwd })]));
}

function sources({ artifacts }: Recorded): readonly string[] {
  return artifacts.map(({ source }) => source);
}

function inRunDir(path: string): boolean {
  return existsSync(join(rig.runDir, path));
}

describe('artifacts', () => {
  test('are stored with the visit, and under their own paths in the run directory', async () => {
    const files = { 'report.txt': 'r', 'logs/a/b.log': 'l', 'shots/x/y.png': 'p', 'shots/z.jpg': 'no' };
    const artifacts = ['report.txt', 'logs/**', 'shots/**/*.png', 'none/*'];
    const outcome = await rig.start(rig.validate([builtin('tests', leaves(files), { artifacts })]));
    const record = recordOf(outcome);
    expect(record.outcome).toBe('completed');
    expect(record.artifacts).toEqual(
      ['report.txt', 'logs/a/b.log', 'shots/x/y.png'].map((source) => ({
        path: `artifacts/check/1/tests/${source}`,
        source,
        created: true,
      })),
    );
    for (const { path, source } of record.artifacts) expect(rig.artifact(path)).toBe(rig.artifact(source));
    expect(inRunDir('shots/z.jpg')).toBe(false);
    const named = outputsOf(outcome)['artifacts'];
    expect(named).toContainEqual({
      role: 'validation_report',
      path: 'artifacts/check/1/tests/report.txt',
      media_type: 'text/plain',
      required: true,
    });
    expect(named).toContainEqual({
      role: 'validation_report',
      path: 'artifacts/check/1/tests/shots/x/y.png',
      media_type: 'image/png',
      required: false,
    });
  });

  test('are relative to the working directory of the validator', async () => {
    mkdirSync(join(rig.worktree, 'sub'));
    const record = await run(leaves({ 'out.txt': 'o' }), ['./out.txt'], 'sub');
    expect(sources(record)).toEqual(['sub/out.txt']);
    expect(rig.artifact('out.txt')).toBe('o');
  });

  test('may be in the run directory, where they stay', async () => {
    expect((await run('echo x > out.txt', ['out.txt'], '${run_dir}')).outcome).toBe('completed');
    expect(rig.artifact('out.txt')).toBe('x\n');
    expect(rig.artifact('artifacts/check/1/tests/out.txt')).toBe('x\n');
    // They are removed before the next pass.
    expect((await run(':', ['out.*'], '${run_dir}')).outcome).toBe('completed');
    expect(inRunDir('out.txt')).toBe(false);
    expect(inRunDir('artifacts/check/1/tests/out.txt')).toBe(true);
  });

  test('are an error if one without wildcards is missing', async () => {
    const outcome = await rig.start(rig.validate([builtin('tests', ':', { artifacts: ['report.txt', 'x/*'] })]));
    expect(outcome).toMatchObject({
      failure: { kind: 'output-missing', message: 'tests: the artifact report.txt is absent' },
    });
    expect(recordOf(outcome)).toMatchObject({ outcome: 'error', exit_code: 0 });
  });

  test('are also stored for a validator that fails or is killed', async () => {
    expect(sources(await run(`${leaves({ a: '1' })}; exit 2`, ['a']))).toEqual(['a']);
    const late = builtin('late', `${leaves({ b: '1' })}; sleep 600`, { artifacts: ['b', 'c'], timeoutMs: 300 });
    const record = recordOf(await rig.start(rig.validate([late])));
    expect(record).toMatchObject({
      outcome: 'killed_timeout',
      message: expect.stringContaining('c is absent') as string,
    });
    expect(sources(record)).toEqual(['b']);
  });

  test.for(['../x', 'a/../../x', '/etc/passwd', '{a,..}/x', String.raw`\../x`, '', '${nothing}/x', '${run_dir}/x'])(
    'that leave the folder are refused, and nothing is started: "%s"',
    async (pattern) => {
      const record = await run('echo ran > ran', [pattern]);
      expect(record).toMatchObject({ outcome: 'error', exit_code: null });
      expect(existsSync(join(rig.worktree, 'ran'))).toBe(false);
    },
  );

  test('of a pattern whose folder is a link out of the tree are refused', async () => {
    put(join(rig.root, 'outside/secret'), 's');
    const before = await run('ln -s ../outside out', ['out/*']);
    expect(before.message).toContain('the artifact out/* is refused: out is a link out of the tree');
    const record = await run('echo ran > ran', ['./out/**/s*']);
    expect(record).toMatchObject({ outcome: 'error', exit_code: null });
    expect(record.message).toContain('out is a link out of the tree');
    expect(existsSync(join(rig.worktree, 'ran'))).toBe(false);
  });

  test('that are links out of the tree are refused', async () => {
    put(join(rig.root, 'secret'), 's');
    const command =
      'ln -s ../secret direct; ln -s .. up; mkdir d; ln -s ../../secret d/x; echo i > inner; ln -s inner within';
    const record = await run(command, ['direct', 'up/secret', 'd/*', 'within']);
    expect(record.message?.match(/is refused: it is a link out of the tree/g)).toHaveLength(3);
    expect(sources(record)).toEqual(['within']);
    expect(rig.artifact('within')).toBe('i\n');
  });

  test('are not written through a link in the run directory', async () => {
    mkdirSync(join(rig.root, 'elsewhere'));
    symlinkSync(join(rig.root, 'elsewhere'), join(rig.runDir, 'logs'));
    put(join(rig.root, 'mine.txt'), 'mine');
    symlinkSync(join(rig.root, 'mine.txt'), join(rig.runDir, 'out.txt'));
    const record = await run(leaves({ 'logs/a': '1', 'out.txt': 'o' }), ['logs/a', 'out.txt']);
    expect(record.outcome).toBe('completed');
    expect(existsSync(join(rig.root, 'elsewhere', 'a'))).toBe(false);
    expect(rig.artifact('logs/a')).toBe('1');
    expect(rig.artifact('out.txt')).toBe('o');
    expect(rig.artifact('../../../mine.txt')).toBe('mine');
  });

  test('do not replace a folder in the run directory', async () => {
    put(join(rig.runDir, 'harness', 'harness.py'), 'h');
    const record = await run(leaves({ harness: 'x' }), ['harness']);
    expect(record.outcome).toBe('completed');
    expect(rig.artifact('harness/harness.py')).toBe('h');
  });

  test('never replace files of the engine', async () => {
    put(join(rig.runDir, 'status.json'), 'engine');
    put(join(rig.runDir, 'artifacts/check/1/manifest.json'), 'engine');
    await run(leaves({ 'status.json': 's', 'artifacts/check/1/manifest.json': 'm' }), ['status.json', 'artifacts/**']);
    expect(rig.artifact('status.json')).toBe('engine');
    expect(rig.artifact('artifacts/check/1/tests/status.json')).toBe('s');
    expect(rig.artifact('artifacts/check/1/manifest.json')).toBe('engine');
  });

  test('exclude files of git and of the engine, unless requested', async () => {
    const command = leaves({ '.git/x.json': '{}', '.meow/run/y/x.json': '{}', 'a/x.json': '{}' });
    expect(sources(await run(command, ['**/*.json']))).toEqual(['a/x.json']);
    expect(sources(await run(command, ['.meow/run/**']))).toEqual(['.meow/run/y/x.json']);
  });

  test('are regular files', async () => {
    const record = await run('mkfifo pipe; mkdir folder', ['pipe', 'folder', 'p*']);
    expect(record.message).toBe(
      'the artifact pipe is not a regular file; the artifact folder is a folder: write folder/**',
    );
  });

  test('may have any bytes as names and contents', async () => {
    const record = await run(String.raw`printf '\377' > "$(printf 'a\nb')"; printf x > "$(printf '\377')"`, ['*']);
    expect(sources(record)).toEqual(['a\nb']);
    expect(rig.artifact('a\nb')).toBe('\xff');
  });
});

describe('a file from before', () => {
  test('is not an artifact if the validator has not written it', async () => {
    rig.write('report.json', JSON.stringify(REPORT));
    rig.write('package.json', '{}');
    const named = await run(':', ['report.json']);
    expect(named).toMatchObject({
      outcome: 'error',
      message: 'the artifact report.json was there before, and the validator has not written it',
    });
    const matched = await run(leaves({ 'new.json': {} }), ['*.json']);
    expect(sources(matched)).toEqual(['new.json']);
    expect(existsSync(join(rig.worktree, 'package.json'))).toBe(true);
  });

  test('is an artifact if it was written again', async () => {
    rig.write('report.txt', 'old');
    const record = await run(leaves({ 'report.txt': 'new' }), ['*.txt']);
    expect(record.artifacts).toMatchObject([{ source: 'report.txt', created: false }]);
    expect(rig.artifact('report.txt')).toBe('new');
  });

  test('that an earlier pass left is removed, and nothing else', async () => {
    rig.write('logs/kept.log', 'k');
    const files = { 'harness_report.json': REPORT, 'logs/a.log': '1', 'logs/kept.log': '2' };
    const artifacts = ['harness_report.json', 'logs/**'];
    expect((await run(leaves(files), artifacts)).outcome).toBe('completed');
    expect(inRunDir('harness_report.json')).toBe(true);

    const second = await run(':', artifacts);
    expect(second).toMatchObject({ outcome: 'error', message: 'the artifact harness_report.json is absent' });
    expect(second.artifacts).toEqual([]);
    for (const path of ['harness_report.json', 'logs/a.log', 'logs/kept.log']) expect(inRunDir(path)).toBe(false);
    expect(existsSync(join(rig.worktree, 'logs/a.log'))).toBe(false);
    expect(existsSync(join(rig.worktree, 'logs/kept.log'))).toBe(true);
    // Artifacts of an earlier pass stay.
    expect(inRunDir('artifacts/check/1/tests/harness_report.json')).toBe(true);
  });

  test('that this attempt wrote stays, also after a restart of the engine', async () => {
    const artifacts = ['harness_report.json'];
    await rig.pass([builtin('tests', leaves({ 'harness_report.json': REPORT }), { artifacts })]);
    const command = `${leaves({ 'harness_report.json': { ...REPORT, suite_id: 'second' } })}; ${rig.holding('held')}`;
    const effect = rig.validate([builtin('tests', command, { artifacts })]);
    void rig.start(effect);
    await appears(join(rig.worktree, 'held'));
    rig.nextLife();
    await rig.letGo('held');
    const outcome = await rig.find(effect);
    expect(outcome).toMatchObject({ kind: 'success' });
    expect(outputsOf(outcome)['report_summary']).toMatchObject({ suite_id: 'second' });
    rig.nextLife();
    expect(await rig.find(effect)).toEqual(outcome);
  });
});

describe('a harness report', () => {
  test('is checked, stored completely, and summarized', async () => {
    const report = { ...REPORT, version: '1', extra: [1], proposed_goldens: ['golden/a.png', 'golden/b.png'] };
    const script = rig.harness(leaves({ 'harness_report.json': report }), { artifacts: ['harness_report.json'] });
    const outcome = await rig.start(rig.validate([builtin('lint', ':'), script]));
    expect(outcome).toMatchObject({ kind: 'success' });
    expect(outputsOf(outcome)).toMatchObject({
      harness_report: 'artifacts/check/1/harness/harness_report.json',
      report_summary: { suite_id: 'smoke', summary: { passed: 1 }, statuses: { passed: 1 } },
      proposed_goldens: ['golden/a.png', 'golden/b.png'],
    });
    expect(JSON.parse(rig.artifact('artifacts/check/1/harness/harness_report.json'))).toEqual(report);
    expect(JSON.parse(rig.artifact('harness_report.json'))).toEqual(report);
  });

  test('that is invalid is an error, whatever the exit code', async () => {
    const command = leaves({ 'harness_report.json': '{"suite_id": 1' });
    const outcome = await rig.start(rig.validate([builtin('tests', command, { artifacts: ['harness_report.json'] })]));
    expect(outcome).toMatchObject({ failure: { kind: 'output-invalid' } });
    expect(recordOf(outcome)).toMatchObject({
      exit_code: 0,
      message:
        'artifacts/check/1/tests/harness_report.json is not a harness report: it is not JSON from line 1, column 15 on',
    });
    expect(outputsOf(outcome)).toMatchObject({ harness_report: null });
    expect(recordOf(outcome).artifacts).toHaveLength(1);
  });

  test('counts even if its harness failed, and whatever its file name', async () => {
    const report = { ...REPORT, proposed_goldens: ['a.png'] };
    const command = `${leaves({ 'out/result.json': report })}; exit 1`;
    const outcome = await rig.start(rig.validate([builtin('tests', command, { artifacts: ['out/**'] })]));
    expect(outcome).toMatchObject({ failure: { kind: 'exit-nonzero' } });
    expect(outputsOf(outcome)).toMatchObject({
      harness_report: 'artifacts/check/1/tests/out/result.json',
      proposed_goldens: ['a.png'],
    });
  });

  test('of each of several validators counts', async () => {
    const one = { ...REPORT, proposed_goldens: ['a.png'] };
    const two = { ...REPORT, suite_id: 'two', proposed_goldens: ['a.png', 'b.png'] };
    const outcome = await rig.start(
      rig.validate([
        builtin('one', leaves({ 'one_harness_report.json': one }), { artifacts: ['one_harness_report.json'] }),
        builtin('two', leaves({ 'two_harness_report.json': two }), { artifacts: ['*.json'] }),
      ]),
    );
    expect(recordsOf(outcome).map((record) => sources(record))).toEqual([
      ['one_harness_report.json'],
      ['two_harness_report.json'],
    ]);
    expect(outputsOf(outcome)).toMatchObject({
      report_summary: { suite_id: 'smoke' },
      proposed_goldens: ['a.png', 'b.png'],
    });
  });
});
