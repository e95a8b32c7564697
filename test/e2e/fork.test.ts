// A fork is a new run that keeps the finished steps of another one.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rig, shellStep, timeless } from '../rig/rig.ts';

const WORKFLOW = `[main]
${shellStep('a', 'echo a >> ran')}
${shellStep('b', 'echo b >> ran', 'needs = ["a"]')}
${shellStep('c', 'echo c >> ran', 'needs = ["b"]')}
${shellStep('d', 'echo d >> ran', 'needs = ["a"]')}
`;

async function done(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r1')).code).toBe(0);
  rmSync(rig.path('ran'));
  return rig;
}

async function keptIn(rig: Rig, id: string): Promise<Readonly<Record<string, string | null>>> {
  const { forked_from, steps } = JSON.parse((await rig.meow('status', id, '--json')).stdout) as {
    readonly forked_from: string;
    readonly steps: Readonly<Record<string, { readonly kept_from: string | null }>>;
  };
  expect(forked_from).toBe('r1');
  return Object.fromEntries(Object.entries(steps).map(([step, { kept_from }]) => [step, kept_from]));
}

test('a fork runs the changed step and what depends on it, and why names the line', async () => {
  await using rig = await done();
  rig.write('w.meow.toml', `# A comment.\n${WORKFLOW.replace('echo b', 'echo b2')}`);
  const plan = await rig.meow('plan', 'w.meow.toml', '--since', 'r1', '--json');
  const { since, steps } = JSON.parse(plan.stdout) as { since: string; steps: { step: string; kept: boolean }[] };
  expect(since).toBe('r1');
  expect(steps.map(({ step, kept }) => `${step} ${kept}`)).toEqual(['a true', 'b false', 'c false', 'd true']);
  expect((await rig.meow('fork', 'r1', '--source', 'w.meow.toml', '--id', 'f')).code).toBe(0);
  expect(rig.read('ran')).toBe('b2\nc\n');
  expect(await keptIn(rig, 'f')).toEqual({ a: 'r1', b: null, c: null, d: 'r1' });
  expect((await rig.meow('why', 'f', 'b')).stdout).toMatch(/w\.meow\.toml:\d+: .*"echo b >> ran" to "echo b2 >> ran"/);
  expect((await rig.meow('why', 'f', 'c')).stdout).toContain('depends on b');
});

test('--from runs a step again, resume --reload is a new run, and the fork does not need the original', async () => {
  await using rig = await done();
  expect((await rig.meow('fork', 'r1', '--from', 'd', '--id', 'f')).code).toBe(0);
  expect(rig.read('ran')).toBe('d\n');
  expect(await keptIn(rig, 'f')).toEqual({ a: 'r1', b: 'r1', c: 'r1', d: null });
  rig.write('w.meow.toml', WORKFLOW.replace('echo c', 'echo c2'));
  expect((await rig.meow('resume', 'r1', '--reload')).code).toBe(0);
  expect(rig.read('ran')).toBe('d\nc2\n');
  rmSync(rig.path('.meow/workflows/r1'), { recursive: true });
  expect((await rig.meow('fork', 'f', '--id', 'g')).code).toBe(0);
  expect(rig.read('ran'), 'everything was kept').toBe('d\nc2\n');
});

test.each([
  ['an unknown step', ['--from', 'x']],
  ['an id that is taken', ['--id', 'r1']],
  ['another language', ['--source', 'flow']],
])('%s is refused with exit code 2, and no run is made', async (_, flags) => {
  await using rig = await done();
  rig.write('flow/START.md', '<result>over</result>');
  const before = (await rig.meow('list', '--json')).stdout;
  expect((await rig.meow('fork', 'r1', ...flags)).code).toBe(2);
  expect(JSON.parse((await rig.meow('list', '--json')).stdout)).toHaveLength((JSON.parse(before) as unknown[]).length);
});

test('a Raymond fork continues each lane at the discarded visit, with the adapter of the original', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.md', 'Begin.\n<goto>NEXT</goto>\n');
  rig.write('flow/NEXT.md', 'Go on.\n<goto>NEXT</goto> or <result>over</result>\n');
  const next = '[[on]]\nstep = "*.NEXT"\n';
  rig.write(
    'flow.sim.toml',
    `[[on]]\nstep = "*.START"\ndo = [{ say = "<goto>NEXT</goto>" }]
${next}times = 3\ndo = [{ say = "<goto>NEXT</goto>" }]
${next}do = [{ say = "<result>over</result>" }]\n`,
  );
  expect((await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r1')).code).toBe(0);
  const plan = JSON.parse((await rig.meow('plan', 'flow', '--since', 'r1', '--json')).stdout) as {
    readonly steps: readonly { readonly kept: boolean }[];
  };
  expect(plan.steps.map(({ kept }) => kept)).toEqual([true, true, true, true, true]);
  expect((await rig.meow('fork', 'r1', '--from', 'main.4.NEXT', '--id', 'f')).code).toBe(0);
  expect(await keptIn(rig, 'f')).toEqual({
    'main.1.START': 'r1',
    'main.2.NEXT': 'r1',
    'main.3.NEXT': 'r1',
    // The simulated agent has forgotten its visits from here on.
    'main.4.NEXT': null,
    'main.5.NEXT': null,
  });
  rig.write('flow/NEXT.md', 'Go on, please.\n<goto>NEXT</goto> or <result>over</result>\n');
  expect((await rig.meow('fork', 'r1', '--source', 'flow', '--id', 'g')).code).toBe(0);
  expect((await keptIn(rig, 'g'))['main.1.START']).toBe('r1');
  expect((await rig.meow('why', 'g', 'main.2.NEXT')).stdout).toContain('flow/NEXT.md:1');
});

test('the session in the guide is what the program prints', async () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guide.md'), 'utf8');
  const [section = ''] = /^## 9\. Change a workflow[\s\S]*?^## 10/m.exec(guide) ?? [];
  const [, workflow = ''] = /^```toml\n([\s\S]*?)^```$/m.exec(section) ?? [];
  const [, session = ''] = /^```console\n([\s\S]*?)^```$/m.exec(section) ?? [];
  await using rig = await Rig.setup();
  rig.write('release.meow.toml', workflow);
  const printed: string[] = [];
  for (const [, command = ''] of session.matchAll(/^\$ (.*)$/gm)) {
    const { stdout, stderr } = await rig.shell(command);
    printed.push(`$ ${command}\n${stdout}${stderr}`);
  }
  expect(printed.length).toBeGreaterThan(4);
  expect(timeless(printed.join(''))).toBe(timeless(session));
});
