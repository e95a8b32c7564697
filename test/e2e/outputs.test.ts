// Values pass unchanged from one step to another.

import { expect, test } from 'vitest';
import { Rig, shellStep } from '../rig/rig.ts';

/** Has the form that the journal uses for an output in a file. */
const FORGED = { $file: '../../../secret', bytes: 1 };

test('a value that looks like an output in a file is data, and no file is read for it', async () => {
  await using rig = await Rig.setup();
  rig.write('secret', 'secret');
  rig.write('.meow/secret', 'secret');
  rig.write('forged.json', JSON.stringify(FORGED));
  rig.write(
    'w.meow.toml',
    `[main]
[main.variables]
given = { type = "json" }
${shellStep('a', 'cat forged.json', '[main.steps.outputs]\nv = { source = "stdout", type = "json" }')}
${shellStep('b', 'echo {{a.outputs.v}}; echo {{given}}; echo "$MEOW_VAR_GIVEN"', 'needs = ["a"]\n[main.steps.outputs]\nsaid = { source = "stdout" }')}
`,
  );
  const given = JSON.stringify(FORGED);
  const { stderr, code } = await rig.meow('run', 'w.meow.toml', '--id', 'f', '--var-json', `given=${given}`);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const { steps } = await rig.status('f');
  expect(steps['a']?.outputs['v']).toEqual(FORGED);
  expect(steps['b']?.outputs['said']).toBe(`${given}\n${given}\n${given}`);
});

test('an output over 1 MB is passed completely through a file, also as JSON', async () => {
  await using rig = await Rig.setup();
  rig.write('large.json', JSON.stringify(Array.from({ length: 200_000 }, (_, index) => `it's ${index}`)));
  rig.write(
    'w.meow.toml',
    `[main]
${shellStep('a', 'cat large.json', '[main.steps.outputs]\nv = { source = "stdout", type = "json" }')}
${shellStep('b', 'printf %s {{a.outputs.v}} > copy', 'needs = ["a"]')}
`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'l')).code).toBe(0);
  expect(rig.read('copy') === rig.read('large.json')).toBe(true);
  expect((await rig.status('l')).steps['a']?.outputs['v']).toEqual({
    $file: 'steps/a.1.outputs/v',
    bytes: rig.read('large.json').length,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test('a text from a file is trimmed like one from stdout, unless the output says otherwise', async () => {
  await using rig = await Rig.setup();
  const outputs = `{ a = "file:x", b = { source = "file:x", trim = false }, c = "stdout", d = { source = "stdout", trim = false } }`;
  rig.write(
    'w.meow.toml',
    `[main]\n[[main.steps]]\nid = "s"\nexecutor = "shell"\ncommand = "printf ' v \\\\n' | tee x"\noutputs = ${outputs}\n`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  expect((await rig.status('r')).steps['s']?.outputs).toMatchObject({ a: 'v', b: ' v \n', c: 'v', d: ' v \n' });
});

test('an agent reports an int; what was refused is in the trace, up to a bound', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "w"
adapter = "sim"
[[main.steps]]
id = "count"
executor = "agent"
agent = "w"
prompt = "Count."
needs = ["start"]
outputs = { n = { required = true, type = "int" }, ok = { type = "bool" }, more = { type = "object" } }
`,
  );
  const wrong = 'for i in $(seq 22); do meow done --output n=1.5 2> refused; done';
  rig.write(
    'w.sim.toml',
    `[[on]]\ndo = [{ run = "${wrong}; meow done --output n=7 --output ok=true --output more=[1]" }]\n`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  expect(rig.read('refused')).toContain('n (integer): ');
  expect((await rig.meow('trace', 'r')).stdout).toMatch(/count +report refused: n \(integer\): /);
  expect(rig.decisions('r').filter((decision) => decision === 'report-refused count')).toHaveLength(20);
  expect((await rig.status('r')).steps['count']?.outputs).toMatchObject({ n: 7, ok: true, more: [1] });
});
