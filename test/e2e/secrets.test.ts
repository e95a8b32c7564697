// Secrets are in nothing that meow writes, shows or exports, and steps see their values: drivers/guard-secrets.ts.

import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formsOf } from '../../src/sys/secret-forms.ts';
import { ConductorRig, evaluate, says, validate, work } from '../fixtures/conductor/rig.ts';
import { OtlpReceiver } from '../rig/otlp-receiver.ts';
import { Rig, shellStep, until } from '../rig/rig.ts';
import { attempts } from '../rig/sample.ts';
import { Ui } from '../rig/ui.ts';
import { accept, WebhookReceiver } from '../rig/webhook-receiver.ts';

/** Characters that shells, JSON, URLs and TOML treat in their own ways. */
const ODD = [
  "'",
  '"',
  '$',
  '`',
  '\\',
  ' ',
  '&',
  '%',
  '+',
  '=',
  '/',
  'ü',
  '•',
  '{{x}}',
  '$(id)',
  '\n',
  '\t',
  '<b>',
  '!',
];

function secret(): string {
  const pieces = Array.from(randomBytes(6), (byte) => ODD[byte % ODD.length] ?? '');
  return `S${randomBytes(5).toString('hex')}${pieces.join(randomBytes(1).toString('hex'))}E`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Everything that meow has written: not the logs of programs, nor their own files. */
function written(rig: Rig): readonly string[] {
  const below = (folder: string): readonly string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return OTHERS.test(`${path}/`) ? [] : below(path);
      return entry.isFile() && !LOGS.test(path) ? [path] : [];
    });
  return [rig.path('.meow'), join(rig.home, '.meow')].flatMap(below);
}

const LOGS = /[./](?:stdout|stderr)$/;
const OTHERS = /\.meow\/(?:worktrees|adapters)\//;

function formsIn(text: string, values: readonly string[]): readonly string[] {
  return values.flatMap((value) =>
    [...formsOf(value)].flatMap(([form, written]) => (text.includes(written) ? [`${value}: ${form}`] : [])),
  );
}

function leaks(rig: Rig, values: readonly string[], printed: readonly string[]): readonly string[] {
  const inFiles = written(rig).flatMap((path) =>
    [path, ...formsIn(readFileSync(path, 'utf8'), values).map((found) => `${path} has ${found}`)].slice(1),
  );
  const names = written(rig).flatMap((path) => formsIn(path, values));
  return [...inFiles, ...names, ...printed.flatMap((text) => formsIn(text, values).map((found) => `printed ${found}`))];
}

/** Prints how many processes have a secret in their arguments. */
const LOOK = `
const fs = require('fs');
const values = Object.entries(process.env).filter(([name]) => name.startsWith('PLANTED') || name.endsWith('_TOKEN'));
let count = 0;
for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
  let line = '';
  try { line = fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8'); } catch { continue; }
  if (values.some(([, value]) => line.includes(value) || line.includes(value.replaceAll("'", "'\\\\''")))) count += 1;
}
fs.appendFileSync(process.argv[2], count + '\\n');
`;

async function views(rig: Rig): Promise<readonly string[]> {
  const commands = [
    ['status', 'r', '--json'],
    ['show', 'r', '--steps'],
    ['trace', 'r', '--json'],
    ['logs', 'r'],
    ['status', 'r'],
    ['list', '--json'],
  ];
  const printed: string[] = [];
  // Those who look need not have the secrets.
  for (const args of commands) {
    const { stdout, stderr } = await rig.meow(...args);
    printed.push(stdout, stderr);
  }
  return printed;
}

/** What the page shows of the changes in a run's worktree. */
async function pageDiff(rig: Rig): Promise<string> {
  await using ui = await Ui.start(rig);
  const { text } = await ui.request('/data/run/project/r/diff');
  expect(text).toContain('work.txt');
  return text;
}

const VARIABLES = `[main.variables]
given = { secret = true, env = "PLANTED_GIVEN" }
plain = ""
`;

function meowWorkflow(): string {
  return `[main]
${VARIABLES}
${shellStep('look', 'node look.cjs looked')}
${shellStep(
  'say',
  `printf '%s' "$API_TOKEN"; printf '{"a":["%s"],"n":1}' x >&2; printf '%s' {{given}} > got-given; printf '%s' "a {{plain}} b" > got-plain
node -e 'require("fs").writeFileSync("out.json", JSON.stringify({ list: [process.env.API_TOKEN], [process.env.API_TOKEN]: 1 }))'`,
  'shell_outputs = { token = { source = "stdout" }, map = { source = "file:out.json", type = "json" } }',
)}
${shellStep(
  'use',
  `printf '%s' '{{say.outputs.token}}' > got-output; cat <<EOF > got-here
{{say.outputs.map}}
EOF
GOT="$MEOW_VAR_PLAIN" node look.cjs looked`,
  'needs = ["say"]\nenv = { MINE = "x{{say.outputs.token}}y" }',
)}
${shellStep('name', 'true', 'needs = ["say"]\nshell_outputs = { f = { source = "file:{{given}}/nothing" } }\non_error = "continue"')}
${shellStep('fail', 'printf "failed with %s and %s" "$API_TOKEN" "$PLANTED_GIVEN" >&2; exit 3', 'on_error = "continue"')}
${shellStep('event', 'meow event told --data token="$API_TOKEN" && meow await-event told --timeout 100s > got-event', '')}
[[main.steps]]
id = "start"
executor = "spawn"
agent = "a"
adapter = "command"
channel = "headless"
needs = ["use", "name", "fail", "event"]
env = { IN_AGENT = "{{given}}" }
[[main.steps]]
id = "ask"
executor = "agent"
agent = "a"
prompt = "Say {{say.outputs.token}} and {{given}}."
needs = ["start"]
${shellStep('after', `printf '%s' "{{ask.outputs.result}}" > got-answer`, 'needs = ["ask"]')}
`;
}

async function plant(rig: Rig): Promise<{ readonly environment: Record<string, string>; readonly values: string[] }> {
  rig.write('look.cjs', LOOK);
  rig.write(
    'agent.sh',
    `cat > got-prompt; node look.cjs looked; printf '%s' "$IN_AGENT" > got-env; printf 'It is %s' "$API_TOKEN"\n`,
  );
  const environment = {
    API_TOKEN: secret(),
    PLANTED_GIVEN: secret(),
    OTHER_SECRET: secret(),
    MEOW_COMMAND: 'sh ./agent.sh',
  };
  const values = [environment.API_TOKEN, environment.PLANTED_GIVEN, environment.OTHER_SECRET];
  return Promise.resolve({ environment, values });
}

describe('0 of the planted secrets are found in anything of ours, and steps got the values', () => {
  const RUNS = attempts(100);

  test('MEOW: environment, variables, outputs, prompts, answers, file names, events, errors', async () => {
    for (let run = 0; run < RUNS; run++) {
      await using rig = await Rig.setup();
      const { environment, values } = await plant(rig);
      const [token = '', given = '', other = ''] = values;
      rig.write('w.meow.toml', meowWorkflow());
      const ran = await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r', '--var', `plain=${other}`);
      expect(ran, JSON.stringify(environment)).toMatchObject({ code: 0 });
      expect(rig.read('got-given')).toBe(given);
      expect(rig.read('got-plain')).toBe(`a ${other} b`);
      // Standard output is trimmed.
      expect(rig.read('got-output')).toBe(token.trim());
      expect(JSON.parse(rig.read('got-here'))).toEqual({ list: [token], [token]: 1 });
      expect(rig.read('got-prompt')).toBe(`Say ${token.trim()} and ${given}.`);
      expect(rig.read('got-env')).toBe(given);
      expect(rig.read('got-answer')).toBe(`It is ${token}`.trim());
      expect(rig.read('got-event')).toContain(token);
      const printed = [ran.stdout, ran.stderr, ...(run % 10 === 0 ? await views(rig) : [])];
      expect(leaks(rig, values, printed)).toEqual([]);
      expect(new Set(rig.read('looked').trim().split('\n'))).toEqual(new Set(['0']));
    }
  }, 600_000);

  test('Raymond: scripts, inputs, prompts, answers, results', async () => {
    for (let run = 0; run < RUNS; run++) {
      await using rig = await Rig.setup();
      const { environment, values } = await plant(rig);
      const token = environment['API_TOKEN'] ?? '';
      // Tags have their own rules for these characters.
      const plain = token.replaceAll(/[<>&"\n]/g, '');
      const planted = { ...environment, API_TOKEN: plain };
      rig.write('flow/START.sh', `node look.cjs looked; printf '<goto input="%s">ASK.md</goto>' "$API_TOKEN"\n`);
      rig.write('flow/ASK.md', 'Say {{input}} <goto>END.sh</goto>');
      rig.write(
        'agent.sh',
        `cat > got-prompt; node look.cjs looked; printf '%s <goto input="%s">END.sh</goto>' "$API_TOKEN" "$API_TOKEN"\n`,
      );
      rig.write('flow/END.sh', `printf '%s' "$RAYMOND_INPUT" > got-input; printf '<result>%s</result>' "$API_TOKEN"\n`);
      const ran = await rig.meowWith(planted, 'run', 'flow', '--id', 'r', '--adapter', 'command');
      expect(ran, JSON.stringify(planted)).toMatchObject({ code: 0 });
      expect(rig.read('got-prompt')).toContain(`Say ${plain}`);
      const all = [plain, ...values.slice(1)];
      const printed = [ran.stdout, ran.stderr, ...(run % 10 === 0 ? await views(rig) : [])];
      expect(leaks(rig, all, printed)).toEqual([]);
      expect(new Set(rig.read('looked').trim().split('\n'))).toEqual(new Set(['0']));
    }
  }, 600_000);

  test('Conductor: agents, validators, evaluators, their artifacts and files', async () => {
    for (let run = 0; run < RUNS; run++) {
      await using made = await ConductorRig.setup(
        {},
        `[validators.check]\ncommand = '''printf "found %s" "$API_TOKEN"; printf "bad %s" "$OTHER_SECRET" >&2; exit 1'''\n`,
      );
      const { rig } = made;
      const environment = { API_TOKEN: secret(), OTHER_SECRET: secret() };
      const values = Object.values(environment);
      rig.write('TASK.md', 'Do it.\n');
      made.agents({
        build: `printf '%s' "$API_TOKEN" > ${rig.path('got-agent')}; printf '%s' "$API_TOKEN" > work.txt; printf "I have %s" "$API_TOKEN"`,
      });
      made.workflow({
        build: work('check'),
        check: validate('judge', ['check']),
        judge: evaluate(says('success'), { success: 'STOP' }),
      });
      const ran = await rig.meowWith(environment, 'run', 'w.yaml', '--id', 'r');
      expect([0, 1], ran.stderr).toContain(ran.code);
      expect(rig.read('got-agent')).toBe(environment.API_TOKEN);
      const printed = [ran.stdout, ran.stderr, ...(run % 10 === 0 ? [...(await views(rig)), await pageDiff(rig)] : [])];
      expect(leaks(rig, values, printed)).toEqual([]);
    }
  }, 600_000);
});

test('0 of the planted secrets arrive in a notification or a trace', async () => {
  for (let run = 0; run < attempts(12); run++) {
    await using rig = await Rig.setup();
    await using hook = await WebhookReceiver.start(accept);
    await using traces = await OtlpReceiver.start();
    const environment = { API_TOKEN: secret(), PLANTED_GIVEN: secret(), SIGNING_SECRET: secret() };
    const kind = `ghp_${hash(environment.API_TOKEN).slice(0, 36)}`;
    const format = run % 2 === 0 ? 'json' : 'slack';
    rig.write(
      '.meow/config.toml',
      `[notify]
on = ["gate", "failed", "done"]
webhook = { url = "${hook.url}", format = "${format}", secret = "$SIGNING_SECRET" }
command = '''cat >> told; printf %s "$MEOW_TEXT" >> told'''
[telemetry]
otlp = "${traces.url}"
`,
    );
    rig.write('kind', kind);
    const say = shellStep('say', `printf '%s' "$API_TOKEN"`, 'shell_outputs = { t = { source = "stdout" } }');
    const gate = `[[main.steps]]\nid = "gate"\nexecutor = "branch"\nneeds = ["say"]
condition = '''meow await-approval release --prompt "Use $API_TOKEN, {{say.outputs.t}}, {{given}} or $(cat kind)?"'''\n`;
    const fail = shellStep(
      'fail',
      'printf "no %s" "$API_TOKEN" >&2',
      'needs = ["gate"]\nshell_outputs = { f = { source = "file:{{given}}/{{say.outputs.t}}" } }',
    );
    rig.write('w.meow.toml', `[main]\n${VARIABLES}${say}${gate}${fail}`);
    const running = rig.startWith(environment, 'run', 'w.meow.toml', '--id', 'r');
    const early = await Promise.race([running.ended, until(() => hook.all.length > 0, 'the gate')]);
    expect(early).toBeUndefined();
    // Who decides has none of the secrets.
    expect((await rig.meow('approve', 'r', 'release')).code).toBe(0);
    expect((await running.ended).code).toBe(1);
    await until(() => rig.processes().length === 0, 'the sender to end');
    expect(hook.all).toHaveLength(2);
    expect(hook.all[0]?.body).toContain('•••API_TOKEN');
    expect(hook.all[1]?.body).toContain('•••PLANTED_GIVEN');
    expect(traces.spans.map(({ name }) => name)).toContain('step fail');
    expect(traces.spans.find(({ name }) => name === 'step fail')?.message).toContain('•••PLANTED_GIVEN');
    const sent = [
      ...hook.all.map(({ headers, body }) => `${JSON.stringify(headers)}\n${body}`),
      ...traces.requests.map(({ headers, body }) => `${JSON.stringify(headers)}\n${Buffer.from(body).toString()}`),
      rig.read('told'),
    ];
    const values = [...Object.values(environment), kind];
    expect(leaks(rig, values, sent), JSON.stringify(environment)).toEqual([]);
  }
}, 600_000);

describe('a secret', () => {
  const WITH_ENV = `[main]\n[main.variables]\nx = { secret = true, env = "PLANTED_X" }\n`;

  test('is not taken from the command line, but from a variable of the environment', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `${WITH_ENV}${shellStep('a', `printf '%s' {{x}} > got`)}`);
    const environment = { PLANTED_X: 'first value', PLANTED_Y: 'second value' };
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--var', 'x=abc')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('write --var-env x=NAME') as string,
    });
    expect(await rig.meow('run', 'w.meow.toml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PLANTED_X, which is not in the environment') as string,
    });
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--var-env', 'x=PLANTED_Z')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no environment variable PLANTED_Z') as string,
    });
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--var-env', 'x=PLANTED_Y')).toMatchObject({
      code: 0,
    });
    expect(rig.read('got')).toBe('second value');
  });

  test('must be there when its run is resumed', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `${WITH_ENV}${shellStep('a', `printf '%s' {{x}} > got; [ -e go ]`)}`);
    const environment = { PLANTED_X: 'a value with $x' };
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 1 });
    rig.write('go', '');
    expect(await rig.meow('resume', 'r')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('run r needs the value of PLANTED_X') as string,
    });
    expect(await rig.meowWith({ PLANTED_X: 'another value' }, 'resume', 'r')).toMatchObject({ code: 0 });
    expect(rig.read('got')).toBe('another value');
  });

  test('is in no record of a run that was killed, nor after the run is resumed', async () => {
    await using rig = await Rig.setup();
    const environment = { API_TOKEN: secret(), MEOW_COMMAND: 'sh ./agent.sh' };
    rig.write(
      'agent.sh',
      `cat > got-prompt; touch began; while [ ! -e go ]; do sleep 0.02; done; printf %s "$API_TOKEN"\n`,
    );
    const say = shellStep('say', `printf '%s' "$API_TOKEN"`, 'shell_outputs = { t = { source = "stdout" } }');
    const spawn = '[[main.steps]]\nid = "s"\nexecutor = "spawn"\nagent = "a"\nadapter = "command"\nneeds = ["say"]\n';
    const ask =
      '[[main.steps]]\nid = "ask"\nexecutor = "agent"\nagent = "a"\nprompt = "{{say.outputs.t}}"\nneeds = ["s"]\n';
    rig.write('w.meow.toml', `[main]\n${say}${spawn}${ask}`);
    const first = rig.startWith(environment, 'run', 'w.meow.toml', '--id', 'r');
    await rig.appears('began');
    first.kill('SIGKILL');
    await first.ended;
    rig.write('go', '');
    expect(await rig.meowWith(environment, 'resume', 'r')).toMatchObject({ code: 0 });
    expect(rig.read('got-prompt')).toBe(environment.API_TOKEN.trim());
    expect(leaks(rig, [environment.API_TOKEN], [])).toEqual([]);
  });

  test('need not be there for a dry run, a plan or a proof', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `${WITH_ENV}${shellStep('a', 'test {{x}} != y')}`);
    expect(await rig.meowWith({ PLANTED_X: 'a value' }, 'run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 0 });
    for (const args of [
      ['run', 'w.meow.toml', '--dry-run'],
      ['prove', 'w.meow.toml'],
      ['plan', 'w.meow.toml', '--since', 'r'],
      ['fork', 'r', '--dry-run'],
    ])
      expect(await rig.meow(...args), args.join(' ')).toMatchObject({ code: 0, stderr: '' });
    expect(await rig.meow('plan', 'w.meow.toml', '--since', 'r')).toMatchObject({
      stdout: expect.stringContaining('would keep 1 of 1') as string,
    });
  });

  test('that an agent reports is in no record, and later steps get it', async () => {
    await using rig = await Rig.setup();
    const environment = { API_TOKEN: secret() };
    const spawn = '[[main.steps]]\nid = "s"\nexecutor = "spawn"\nagent = "a"\nadapter = "sim"\n';
    const ask = `[[main.steps]]
id = "ask"
executor = "agent"
agent = "a"
prompt = "Say it."
needs = ["s"]
outputs = { said = { required = true, type = "string" } }
`;
    const use = shellStep('use', `printf '%s' {{ask.outputs.said}} > got`, 'needs = ["ask"]');
    rig.write('w.meow.toml', `[main]\n${spawn}${ask}${use}`);
    // The second report is the same, and accepted.
    const report = 'meow done --output said="It is $API_TOKEN."';
    rig.write('w.sim.toml', `[[on]]\nstep = "ask"\ndo = [{ run = '''${report} && ${report} && touch twice''' }]\n`);
    const ran = await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r');
    expect(ran, JSON.stringify(environment)).toMatchObject({ code: 0 });
    expect(rig.read('got')).toBe(`It is ${environment.API_TOKEN}.`);
    expect(leaks(rig, [environment.API_TOKEN], [ran.stdout, ran.stderr])).toEqual([]);
  });

  test('is in no test that is written from a run, and the test passes', async () => {
    await using rig = await Rig.setup();
    const environment = { API_TOKEN: secret() };
    const say = shellStep('say', `printf '%s' "$API_TOKEN"`, 'shell_outputs = { t = { source = "stdout" } }');
    rig.write('w.meow.toml', `[main]\n${say}${shellStep('use', `test {{say.outputs.t}} != x`, 'needs = ["say"]')}`);
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 0 });
    // The test is written without the secret in the environment.
    expect(await rig.meow('test', '--from', 'r', '-o', 'w.test.toml')).toMatchObject({ code: 0 });
    expect(rig.read('w.test.toml')).toContain('stdout = "•••API_TOKEN"');
    expect(await rig.meow('test')).toMatchObject({ code: 0 });
  });

  test('of a known kind that no variable has stays masked, with a warning, and is not accepted as input', async () => {
    await using rig = await Rig.setup();
    const token = `ghp_${hash('x').slice(0, 36)}`;
    rig.write('token', token);
    const say = shellStep('say', 'cat token', 'shell_outputs = { t = { source = "stdout" } }');
    rig.write(
      'w.meow.toml',
      `[main]\n${say}${shellStep('use', `printf '%s' {{say.outputs.t}} > got`, 'needs = ["say"]')}`,
    );
    const ran = await rig.meow('run', 'w.meow.toml', '--id', 'r');
    expect(ran).toMatchObject({ code: 0 });
    expect(`${ran.stdout}${ran.stderr}`).toContain('a secret (GITHUB) that no environment variable has is masked');
    expect(rig.read('got')).toBe('•••GITHUB');
    expect(leaks(rig, [token], [ran.stdout, ran.stderr])).toEqual([]);
    rig.write('v.meow.toml', `[main]\n[main.variables]\nv = ""\n${shellStep('a', 'true')}`);
    expect(await rig.meow('run', 'v.meow.toml', '--var', `v=${token}`)).toMatchObject({ code: 2 });
  });

  test('is masked by the patterns of the configuration, in logs that only their owner can read', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/config.toml', '[secrets]\nenv = ["MY_PIN_*"]\n');
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo "$MY_PIN_1 $API_TOKEN"; touch done')}`);
    const environment = { MY_PIN_1: '1234567890', API_TOKEN: 'not a secret' };
    expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r')).toMatchObject({ code: 0 });
    await until(() => rig.exists('done'), 'the step');
    const log = rig.path('.meow/workflows/r/steps/a.1.stdout');
    expect(readFileSync(log, 'utf8')).toBe('1234567890 not a secret\n');
    expect(statSync(log).mode & 0o777).toBe(0o600);
    expect(await rig.meow('logs', 'r')).toMatchObject({
      stdout: expect.stringContaining('•••MY_PIN_1 not a') as string,
    });
  });
});
