// `meow test --faults`: worlds in which things go wrong, and what is printed about a violation.

import { describe, expect, test } from 'vitest';

import { Rig, shellStep } from '../rig/rig.ts';

interface Line {
  readonly kind: string;
  readonly seed?: number;
  readonly exit?: number;
  readonly failures?: readonly {
    readonly expect: string;
    readonly faults?: number;
    readonly seed?: number;
    readonly test?: string;
  }[];
}

async function linesOf(rig: Rig, ...args: readonly string[]): Promise<readonly Line[]> {
  const { stdout, stderr } = await rig.meow('test', '--json', ...args);
  expect(stderr).toBe('');
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line.replace(/"real_ms":\d+/, '"real_ms":0')) as Line);
}

/** The first repair fails only after the build failed; what is done then must never be done. */
const TWO_FAULTS = `[main]
${shellStep('build', 'make')}on_error = ".repair"
${shellStep('publish', 'make publish')}needs = ["build"]
[repair]
internal = true
[[repair.steps]]
id = "clean"
executor = "shell"
command = "make clean"
on_error = ".reset"
[reset]
internal = true
[[reset.steps]]
id = "wipe"
executor = "shell"
command = "rm -rf /srv"
`;

const TWO_FAULTS_TEST = `[[defaults.command]]
step = "build"
[[test]]
name = "published"
command = [{ step = "publish" }]
[test.expect]
never = ["*.wipe"]
`;

describe('meow test --faults', () => {
  test('a violation that needs two faults in order is found, shrunk to them, and fails in the same way when pasted', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', TWO_FAULTS);
    rig.write('w.test.toml', TWO_FAULTS_TEST);
    const [line, last] = await linesOf(rig, '--faults', '200', '--seed', '11');
    expect(last).toMatchObject({ seed: 11, exit: 1 });
    const [failure] = line?.failures ?? [];
    expect(line?.failures).toHaveLength(1);
    expect(failure).toMatchObject({ expect: 'never.0', faults: 2, seed: 11 });

    rig.write('w.test.toml', failure?.test ?? '');
    const [alone] = await linesOf(rig);
    expect(alone?.failures?.map(({ expect: path }) => path)).toEqual(['never.0']);
    rig.write('w.test.toml', `${TWO_FAULTS_TEST}\n${failure?.test ?? ''}`);
    const [first, pasted] = await linesOf(rig);
    expect(first?.failures).toEqual([]);
    expect(pasted?.failures?.map(({ expect: path }) => path)).toEqual(['never.0']);
  });

  test('the same seed gives the same lines, and a drawn seed is printed', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', TWO_FAULTS);
    rig.write('w.test.toml', TWO_FAULTS_TEST);
    const drawn = await linesOf(rig, '--faults', '40');
    const seed = drawn.at(-1)?.seed ?? -1;
    expect(seed).toBeGreaterThanOrEqual(0);
    expect(await linesOf(rig, '--faults', '40', '--seed', String(seed))).toEqual(drawn);
  });

  test('a broken claim fails with its number, and its test fails without the claim as well', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', TWO_FAULTS);
    rig.write('w.test.toml', `[[claim]]\nnever = "*.wipe"\n${TWO_FAULTS_TEST.replace(/\[test.expect\][^]*/, '')}`);
    const [line] = await linesOf(rig, '--faults', '200', '--seed', '3');
    const [failure] = line?.failures ?? [];
    expect(failure).toMatchObject({ expect: 'claim.0', faults: 2 });
    rig.write('w.test.toml', failure?.test ?? '');
    const [alone] = await linesOf(rig);
    expect(alone?.failures?.map(({ expect: path }) => path)).toEqual(['never.0']);
  });

  test('an agent of a state machine that breaks keeps a run from a state that it must always reach', async () => {
    await using rig = await Rig.setup();
    rig.write('w/START.md', 'Review.\n\n<goto>END.md</goto>\n');
    rig.write('w/END.md', '---\nallowed_transitions:\n  - { tag: result }\n---\nEnd.\n\n<result>fine</result>\n');
    rig.write('w.test.toml', '[[test]]\nname = "a"\n[[claim]]\nalways = "END"\n');
    const [line] = await linesOf(rig, '--faults', '100', '--seed', '1');
    expect(line?.failures?.map(({ expect: path }) => path)).toEqual(['claim.0']);
    expect(line?.failures?.[0]?.faults).toBeLessThanOrEqual(3);
  });

  test('two late decisions in a row lead a state machine astray, and the printed test does the same', async () => {
    await using rig = await Rig.setup();
    const asking = (next: string, late: string): string =>
      `---\nallowed_transitions:\n  - { tag: ask, next: ${next}, timeout: 12h, timeout_next: ${late} }\n---\nAsk.\n`;
    rig.write('dock/START.md', asking('SAIL.md', 'AGAIN.md'));
    rig.write('dock/AGAIN.md', asking('SAIL.md', 'MUTINY.md'));
    rig.write('dock/SAIL.md', 'Sail. <result>ok</result>\n');
    rig.write('dock/MUTINY.md', 'Mutiny. <result>lost</result>\n');
    const asks =
      '[[defaults.on]]\nstep = "*"\nprompt = "Ask."\ndo = [{ say = \'<ask next="SAIL.md">May we?</ask>\' }]\n';
    const answered = 'gate = [{ gate = "*", after = "1h", decide = "answer", answer = "yes" }]\n';
    const tests = `${asks}[[test]]\nname = "sails"\n${answered}[test.expect]\nnever = ["*.MUTINY"]\n`;
    rig.write('dock.test.toml', tests);
    const [line] = await linesOf(rig, '--faults', '200', '--seed', '5');
    const [failure] = line?.failures ?? [];
    expect(failure).toMatchObject({ expect: 'never.0', faults: 2, seed: 5 });
    rig.write('dock.test.toml', `${tests}\n${failure?.test ?? ''}`);
    const [calm, pasted] = await linesOf(rig);
    expect(calm?.failures).toEqual([]);
    expect(pasted?.failures?.map(({ expect: path }) => path)).toEqual(['never.0']);
  });

  test('commands that really run are executed once, and answered in faulty worlds', async () => {
    await using rig = await Rig.setup();
    rig.write(
      'w.meow.toml',
      `[main]\n${shellStep('count', `echo x >> ${rig.path('count')}; echo 5`)}outputs = { n = { source = "stdout" } }\n${shellStep('use', 'make')}needs = ["count"]\n`,
    );
    rig.write('w.test.toml', '[[test]]\nname = "a"\nrun = ["count"]\ncommand = [{ step = "use" }]\n');
    const [line] = await linesOf(rig, '--faults', '20', '--seed', '1');
    expect(line?.failures).toEqual([]);
    expect(rig.read('count')).toBe('x\n');
  });

  test('--seed without --faults is refused', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', TWO_FAULTS);
    rig.write('w.test.toml', TWO_FAULTS_TEST);
    const { code, stderr } = await rig.meow('test', '--seed', '3');
    expect([code, stderr.includes('--seed is for --faults')]).toEqual([2, true]);
  });
});
