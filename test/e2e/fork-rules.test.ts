// Which steps a fork keeps, one rule after the other, and what it has from the run that it comes from.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { restoreRecording } from '../journals/recording.ts';
import { Rig, shellStep } from '../rig/rig.ts';

/** The lines that the commands of a fork append to `ran`, sorted. */
async function ranIn(rig: Rig, ...flags: readonly string[]): Promise<readonly string[]> {
  rig.write('ran', '');
  const { code, stderr, stdout } = await rig.meow('fork', 'r', ...flags);
  expect(code, stderr + stdout).toBe(0);
  return rig.read('ran').split('\n').slice(0, -1).toSorted();
}

async function ran(rig: Rig, workflow: string, ...flags: readonly string[]): Promise<void> {
  rig.write('w.meow.toml', workflow);
  const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'r', ...flags);
  expect(code, stderr).toBe(0);
}

async function planOf(rig: Rig): Promise<Readonly<Record<string, string>>> {
  const { stdout } = await rig.meow('plan', 'w.meow.toml', '--since', 'r', '--json');
  const { steps } = JSON.parse(stdout) as { readonly steps: readonly { step: string; kept: boolean; why: string }[] };
  return Object.fromEntries(steps.map(({ step, kept, why }) => [step, kept ? 'kept' : why]));
}

test('what an author calls like a time is a part of what a step asks for, and its own times are not', async () => {
  await using rig = await Rig.setup();
  const step = (more: string, env: string): string =>
    `[main]\n${shellStep('a', 'echo $retry >> ran', `${more}env = { retry = "${env}" }`)}`;
  await ran(rig, step('', '1'));
  rig.write('w.meow.toml', step('timeout = "1h"\nretry = { max_attempts = 2 }\ndescription = "new"\n', '1'));
  expect(await ranIn(rig, '--source', 'w.meow.toml')).toEqual([]);
  rig.write('w.meow.toml', step('', '2'));
  expect(await ranIn(rig, '--source', 'w.meow.toml')).toEqual(['2']);
});

test('a variable counts where a command names it, as a placeholder or in its environment', async () => {
  await using rig = await Rig.setup();
  await ran(
    rig,
    `[main]\nvariables = { who = "ann" }\n${shellStep('a', 'echo a $MEOW_VAR_WHO >> ran')}
${shellStep('b', 'echo b {{who}} >> ran')}${shellStep('c', 'echo c >> ran')}`,
  );
  expect(await ranIn(rig, '--var', 'who=bob', '--id', 'f')).toEqual(['a bob', 'b bob']);
  expect((await rig.meow('why', 'f', 'b')).stdout).toMatch(
    /w\.meow\.toml:12: .*"echo b ann >> ran" to "echo b bob >> ran"/,
  );
});

test('a branch that timed out is kept with the way that it took', async () => {
  await using rig = await Rig.setup();
  await ran(
    rig,
    `[main]
[[main.steps]]
id = "wait"
executor = "branch"
condition = "sleep 60"
timeout = "50ms"
on_true = { inline = [] }
on_timeout = { template = ".late" }
[late]
${shellStep('log', 'echo late >> ran').replace('main.steps', 'late.steps')}`,
  );
  expect(await ranIn(rig, '--id', 'f')).toEqual([]);
  expect((await rig.status('f')).steps).toMatchObject({ 'wait.log': { status: 'done', kept_from: 'r' } });
});

test('an iteration is kept although its list is made again, unless a step before the foreach runs for another reason', async () => {
  await using rig = await Rig.setup();
  const workflow = (list: string, prepare: string): string => `[main]
${shellStep('list', `echo list >> ran; echo '${list}'`, 'outputs = { items = { source = "stdout", type = "json" } }')}
${shellStep('prepare', `echo ${prepare} >> ran`)}
[[main.steps]]
id = "each"
executor = "foreach"
items = "{{list.outputs.items}}"
item_var = "it"
key = "{{it}}"
template = ".one"
needs = ["list", "prepare"]
[one]
${shellStep('build', 'echo {{it}} >> ran').replace('main.steps', 'one.steps')}`;
  await ran(rig, workflow('["api", "web"]', 'p'));
  rig.write('w.meow.toml', workflow('["web", "db", "api"]', 'p'));
  expect(await ranIn(rig, '--source', 'w.meow.toml', '--id', 'f')).toEqual(['db', 'list']);
  expect((await rig.status('f')).steps).toMatchObject({
    each: { kept_from: null },
    'each.api.build': { kept_from: 'r' },
  });
  rig.write('w.meow.toml', workflow('["api", "web"]', 'q'));
  expect(await ranIn(rig, '--source', 'w.meow.toml', '--id', 'g')).toEqual(['api', 'q', 'web']);
});

test('a plan reads a list as it is now, and says which step below another runs', async () => {
  await using rig = await Rig.setup();
  const workflow = `[main]
[[main.steps]]
id = "each"
executor = "foreach"
items_file = "items.json"
item_var = "it"
key = "{{it}}"
template = ".one"
${shellStep('end', 'echo end >> ran', 'needs = ["each"]')}
[one]
${shellStep('build', 'echo {{it}} >> ran').replace('main.steps', 'one.steps')}`;
  rig.write('items.json', '["api", "web"]');
  await ran(rig, workflow);
  const kept = { each: 'kept', 'each.api.build': 'kept', 'each.web.build': 'kept', end: 'kept' };
  expect(await planOf(rig)).toEqual(kept);
  rig.write('w.meow.toml', workflow.replace('echo {{it}}', 'echo one {{it}}'));
  expect(await planOf(rig)).toMatchObject({
    each: 'each.api.build, which is below it, runs',
    'each.web.build': expect.stringMatching(/^w\.meow\.toml:19: script changed from "echo web/) as string,
    end: 'it depends on each, which runs',
  });
  const { stdout } = await rig.meow('fork', 'r', '--source', 'w.meow.toml', '--dry-run');
  expect(stdout).toContain('would keep 0 of 4 steps');
  expect(await ranIn(rig, '--source', 'w.meow.toml', '--id', 'f')).toEqual(['end', 'one api', 'one web']);
  expect((await rig.meow('why', 'f', 'each')).stdout).toContain('each.api.build, which is below it, runs');
  rig.write('w.meow.toml', workflow);
  rig.write('items.json', '["web"]');
  expect(await planOf(rig)).toMatchObject({ 'each.web.build': 'kept', end: 'it depends on each, which runs' });
});

test('a plan says that nobody is asked again about what a gate has released', async () => {
  await using rig = await Rig.setup();
  const gate = `[[main.steps]]
id = "ask"
executor = "branch"
condition = "meow await-approval release"
on_true = { inline = [{ id = "go", executor = "shell", command = "echo go >> ran" }] }
on_false = { inline = [] }
`;
  rig.write('w.meow.toml', `[main]\n${gate}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r', '--no-wait');
  await rig.meow('approve', 'r', 'release');
  expect((await rig.meow('resume', 'r')).code).toBe(0);
  rig.write('w.meow.toml', `[main]\n${gate.replace('echo go', 'echo went')}`);
  expect((await planOf(rig))['ask']).toContain('nobody is asked again unless --from ask discards it; ask.go');
  expect((await rig.meow('fork', 'r', '--source', 'w.meow.toml', '--id', 'f')).code).toBe(0);
  expect(rig.read('ran')).toBe('go\nwent\n');
  const again = await rig.meow('fork', 'r', '--source', 'w.meow.toml', '--from', 'ask', '--id', 'g', '--no-wait');
  expect(again.stdout).toContain('waiting for a person: gate release');
  rig.write('w.meow.toml', `[main]\nvariables = { new = { required = true } }\n${gate}`);
  expect((await rig.meow('plan', 'w.meow.toml', '--since', 'r')).code).toBe(2);
});

test('a fork has the flags of the run, its files are read again, and it works in the same folder', async () => {
  await using rig = await Rig.setup();
  const steps = `${shellStep('a', 'echo {{spec}} >> ran')}${shellStep('b', 'echo {{stamp}} >> ran')}${shellStep('c', 'pwd >> ran')}`;
  rig.write('spec.txt', 'one');
  await ran(
    rig,
    `[main]\nvariables = { spec = { type = "file", required = true }, stamp = "{{timestamp}}" }\n${steps}`,
    '--var',
    'spec=spec.txt',
    '--budget-usd',
    '2',
    '--permissions',
    'edits',
  );
  mkdirSync(rig.path('below'));
  rig.write('ran', '');
  expect((await rig.meowIn(rig.path('below'), 'resume', 'r', '--reload')).code).toBe(0);
  expect(rig.read('ran'), 'nothing has changed').toBe('');
  rig.write('spec.txt', 'two');
  expect(await ranIn(rig, '--source', 'w.meow.toml', '--id', 'f')).toEqual(['two']);
  const [first = ''] = rig.read('.meow/workflows/f/journal.jsonl').split('\n');
  expect(JSON.parse(first)).toMatchObject({
    input: { request: { permissions: 'edits', allowance: { usd: 2 }, cwd: rig.folder } },
  });
  rig.write('other.txt', 'three');
  expect(await ranIn(rig, '--var', 'spec=other.txt', '--from', 'c'), 'the workflow of the run').toEqual([
    rig.folder,
    'three',
  ]);
});

test('what a kept step printed is shown where it ran, and its row says that it was kept', async () => {
  await using rig = await Rig.setup();
  await ran(rig, `[main]\n${shellStep('a', 'echo hello')}`);
  expect((await rig.meow('fork', 'r', '--id', 'f')).code).toBe(0);
  expect((await rig.meow('fork', 'f', '--id', 'g')).code).toBe(0);
  expect(await rig.meow('logs', 'g', 'a')).toMatchObject({
    stdout: 'hello\n',
    stderr: 'step a was kept from run r; this is its output there\n',
  });
  expect((await rig.meow('status', 'g')).stdout).toMatch(/^✓ a {2}kept$/m);
  expect((await rig.meow('show', 'g', 'a')).stdout).toContain('kept from: f');
  expect((await rig.meow('show', 'g')).stdout).toContain('forked from: f');
  expect((await rig.meow('diff', 'r', 'g')).stdout).toContain('r and g have the same steps, outputs and order');
  const { code, stderr } = await rig.meow('test', '--from', 'g');
  expect([code, stderr]).toEqual([2, expect.stringContaining('a ran in f')]);
  rmSync(rig.path('.meow/workflows/r'), { recursive: true });
  expect(await rig.meow('logs', 'g', 'a')).toMatchObject({ code: 2, stdout: '' });
});

test('a changed script state runs again', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', "echo start >> ran; echo '<goto>NEXT</goto>'");
  rig.write('flow/NEXT.sh', "echo next >> ran; echo '<result>over</result>'");
  expect((await rig.meow('run', 'flow', '--id', 'r')).code).toBe(0);
  rig.write('flow/NEXT.sh', "echo other >> ran; echo '<result>over</result>'");
  expect(await ranIn(rig, '--source', 'flow', '--id', 'f')).toEqual(['other']);
  expect((await rig.meow('why', 'f', 'main.2.NEXT')).stdout).toContain('flow/NEXT.sh:1');
});

test.each(['failed', 'stopped', 'interrupted', 'running'])(
  'of a run (%s), a fork keeps what is done by then',
  async (status) => {
    await using rig = await Rig.setup();
    const end = status === 'failed' ? 'test -e go' : 'touch waiting; until [ -e go ]; do sleep 0.02; done';
    rig.write(
      'w.meow.toml',
      `[main]\n${shellStep('a', 'echo a >> ran')}${shellStep('b', `${end} && echo b >> ran`, 'needs = ["a"]')}`,
    );
    const live = rig.start('run', 'w.meow.toml', '--id', 'r');
    if (status !== 'failed') await rig.appears('waiting');
    if (status === 'stopped') expect((await rig.meow('stop', 'r')).code).toBe(0);
    if (status === 'interrupted') await rig.killAll();
    if (status !== 'running') await live.ended;
    if (status !== 'running') rig.write('go', '');
    const fork = rig.start('fork', 'r', '--id', 'f');
    if (status === 'running') await rig.decided('f', 'step-started b');
    rig.write('go', '');
    expect((await fork.ended).code).toBe(0);
    if (status === 'running') expect((await live.ended).code).toBe(0);
    expect(
      rig
        .read('ran')
        .split('\n')
        .filter((line) => line === 'a'),
    ).toHaveLength(1);
    expect((await rig.status('f')).steps).toMatchObject({
      a: { kept_from: 'r' },
      b: { kept_from: null, status: 'done' },
    });
  },
);

test('a workflow with mistakes makes no run', async () => {
  await using rig = await Rig.setup();
  await ran(rig, `[main]\n${shellStep('a', 'true')}`);
  const before = rig.files('.meow');
  rig.write('w.meow.toml', '[main');
  const { code, stderr } = await rig.meow('fork', 'r', '--source', 'w.meow.toml');
  expect(code, 'as for meow run').toBe(1);
  expect(stderr).toContain('w.meow.toml:1:');
  expect((await rig.meow('fork', 'r', '--adapter', 'sim')).code).toBe(2);
  expect(rig.files('.meow')).toEqual(before);
});

test('a fork of 2,000 steps with one changed command runs that step and what depends on it', {
  timeout: 120_000,
}, async () => {
  await using rig = await Rig.setup();
  const groups = Array.from({ length: 400 }, (_, group) =>
    Array.from({ length: 5 }, (_, part) =>
      shellStep(
        `s${group}-${part}`,
        `echo s${group}-${part} >> ran`,
        part === 0 ? '' : `needs = ["s${group}-${part - 1}"]`,
      ),
    ).join('\n'),
  );
  const workflow = `[main]\n${groups.join('\n')}`;
  await ran(rig, workflow);
  rig.write('w.meow.toml', workflow.replace('echo s77-2 >>', 'echo new >>'));
  const line =
    rig
      .read('w.meow.toml')
      .split('\n')
      .findIndex((text) => text.includes('echo new')) + 1;
  expect(await ranIn(rig, '--source', 'w.meow.toml', '--id', 'f')).toEqual(['new', 's77-3', 's77-4']);
  const { steps } = await rig.status('f');
  const run = Object.entries(steps).filter(([, { kept_from: from }]) => from === null);
  expect(Object.keys(steps)).toHaveLength(2_000);
  expect(run.map(([id]) => id)).toEqual(['s77-2', 's77-3', 's77-4']);
  expect((await rig.meow('why', 'f', 's77-2')).stdout).toContain(`w.meow.toml:${line}: `);
});

test('a Raymond loop whose visit 7 of 12 has changed is kept up to there', async () => {
  await using rig = await Rig.setup();
  const states = Array.from({ length: 12 }, (_, index) => (index === 6 ? 'SEVEN' : index === 0 ? 'START' : 'LOOP'));
  rig.write('flow/START.md', 'Begin.\n<goto>LOOP</goto>\n');
  rig.write('flow/LOOP.md', 'Go round.\n<goto>LOOP</goto>, <goto>SEVEN</goto> or <result>over</result>\n');
  rig.write('flow/SEVEN.md', 'The seventh.\nGo back.\n<goto>LOOP</goto>\n');
  const visits = states.map((state, index) => {
    const say = index === 11 ? '<result>over</result>' : `<goto>${states[index + 1]}</goto>`;
    return `[[on]]\nstep = "main.${index + 1}.${state}"\ndo = [{ cost = { usd = 1.0 } }, { say = "${say}" }]\n`;
  });
  rig.write('flow.sim.toml', visits.join(''));
  expect((await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r')).code).toBe(0);
  rig.write('flow/SEVEN.md', 'The seventh.\nGo back now.\n<goto>LOOP</goto>\n');
  const { code, stdout, stderr } = await rig.meow('resume', 'r', '--reload', '--budget-usd', '6.5', '--json');
  expect(code, stderr).toBe(0);
  const { id } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as { readonly id: string };
  const { steps, cost } = await rig.status(id);
  const kept = Object.values(steps).map(({ kept_from: from }) => from === 'r');
  expect(kept, 'visits 1 to 6').toEqual(states.map((_, index) => index < 6));
  expect(cost, 'kept visits cost nothing').toMatchObject({ usd: 6 });
  expect((await rig.meow('why', id, 'main.7.SEVEN')).stdout).toContain('flow/SEVEN.md:2: ');
});

test.each([
  ['meow/finished', 0, /^A fork of r would keep 8 of 14 steps/],
  ['raymond/failed', 0, /^A fork of r would keep 6 of 7 steps/],
  ['conductor/finished', 2, /^meow: run r was started by another version of meow/],
])('a run of an earlier version (%s) is forked, or refused with the reason', async (path, status, says) => {
  const { rig } = await restoreRecording(join(import.meta.dirname, '../journals/0.1.0-alpha', path));
  await using _ = rig;
  const { code, stdout, stderr } = await rig.meow('fork', 'r', '--dry-run');
  expect([code, stdout + stderr]).toEqual([status, expect.stringMatching(says)]);
});
