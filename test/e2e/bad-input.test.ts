// Responses to bad input: a message with position and fix, the documented exit code, and no trace of a run.

import { chmodSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Rig, shellStep } from '../rig/rig.ts';

const GOOD = `[main]\n${shellStep('a', 'true')}`;

/** stderr contains only the message, stdout is empty, and the project is unchanged. */
async function refuses(rig: Rig, args: readonly string[], stderr: string, code: number): Promise<void> {
  const before = rig.files();
  expect(await rig.meow(...args)).toEqual({ stdout: '', stderr, code });
  expect(rig.files()).toEqual(before);
}

test('all problems of a workflow are reported at once, with position and fix', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'bad.meow.toml',
    `[main]

[[main.steps]]
id = "build"
executor = "shell"
command = "make {{targte}}"
needs = ["biuld"]

[[main.steps]]
id = "build"
executor = "shel"
comand = "true"
`,
  );
  const { stdout, stderr, code } = await rig.meow('run', 'bad.meow.toml');
  expect(stdout).toBe('');
  expect(code).toBe(1);
  const places = [...stderr.matchAll(/^bad\.meow\.toml:(\d+):(\d+): (error|warning) ([a-z-]+):/gm)];
  expect(places.length).toBeGreaterThanOrEqual(3);
  expect(stderr).toMatch(/\n\d+ errors(, \d+ warnings?)?\n$/);
  expect(rig.files()).toEqual(['bad.meow.toml']);

  const validated = await rig.meow('validate', 'bad.meow.toml');
  expect(validated.code).toBe(1);
  expect(validated.stdout).toMatch(/^bad\.meow\.toml:\d+:\d+: error [a-z-]+: /);
  const objects = JSON.parse((await rig.meow('validate', 'bad.meow.toml', '--json')).stdout) as { path: string }[];
  expect(objects.length).toBe([...validated.stdout.matchAll(/^bad\.meow\.toml:\d+:\d+: (error|warning) /gm)].length);
});

test('a TOML syntax error', async () => {
  await using rig = await Rig.setup();
  rig.write('syntax.meow.toml', '[main]\nname = "never closed\n');
  const { stderr, code } = await rig.meow('run', 'syntax.meow.toml');
  expect(stderr).toMatch(/^syntax\.meow\.toml:2:\d+: error [a-z-]+: .*\n {2}2 \| name = "never closed\n/);
  expect(stderr).toMatch(/\n1 error\n$/);
  expect(code).toBe(1);
  expect(rig.files()).toEqual(['syntax.meow.toml']);
});

test('an empty file, a file of another type, bytes that are not text', async () => {
  await using rig = await Rig.setup();
  rig.write('empty.meow.toml', '');
  rig.write('nul.meow.toml', `${GOOD}\0`);
  rig.write(
    'latin1.meow.toml',
    Buffer.concat([Buffer.from('[main]\nname = "'), Buffer.from([0xe9]), Buffer.from('"\n')]),
  );
  rig.write('cut.meow.toml', Buffer.from('# é \uFFFD\n# €').subarray(0, 13));
  rig.write('wide.meow.toml', Buffer.from('\uFEFF[main]\n', 'utf16le'));
  rig.write('byte.meow.toml', Buffer.from([0xff]));
  rig.write('states.yaml', Buffer.from('states:\n  A: \xFF\n', 'latin1'));
  rig.write('machine/START.md', 'Begin.\n');
  rig.write('notes.txt', 'hello\n');

  const empty = await rig.meow('run', 'empty.meow.toml');
  expect(empty.stderr).toMatch(/^empty\.meow\.toml:1:1: error no-workflow: there is no workflow in this file\n/);
  expect(empty.code).toBe(1);
  const nul = await rig.meow('run', 'nul.meow.toml');
  expect(nul.stderr).toMatch(/^nul\.meow\.toml:\d+:\d+: error nul-byte: the file contains a NUL byte\n/);
  expect(nul.code).toBe(1);
  const latin1 = `latin1.meow.toml:2:9: error not-utf8: the file is not UTF-8 text (byte 0xE9 at offset 15)
  2 | name = "\uFFFD"
    |         ^
  hint: Save it as UTF-8, for example: iconv -f LATIN1 -t UTF-8 latin1.meow.toml > new; is it the right file?
1 error
`;
  for (const command of ['run', 'graph']) await refuses(rig, [command, 'latin1.meow.toml'], latin1, 1);
  const cut = 'cut.meow.toml:2:3: error not-utf8: the file is not UTF-8 text (byte 0xE2 at offset 11)\n';
  expect((await rig.meow('run', 'cut.meow.toml')).stderr).toContain(cut);
  const wide = await rig.meow('run', 'wide.meow.toml');
  expect(wide.stderr).toContain('(byte 0xFF at offset 0)\n');
  expect(wide.stderr).toContain('\n  hint: Save it as UTF-8, for example: iconv -f UTF-16 ');
  const validated = await rig.meow('validate', 'byte.meow.toml', 'nul.meow.toml', 'states.yaml');
  expect(validated).toMatchObject({ stderr: '', code: 1 });
  expect(validated.stdout).toMatch(/^byte\.meow\.toml:1:1: error not-utf8: [^]*\nstates\.yaml:2:6: error not-utf8: /);
  expect(validated.stdout).toMatch(/\n3 errors\n$/);
  const [told] = JSON.parse((await rig.meow('validate', 'latin1.meow.toml', '--json')).stdout) as object[];
  expect(told).toMatchObject({ code: 'not-utf8', path: 'latin1.meow.toml', line: 2, column: 9, severity: 'error' });
  const unknown = 'meow: cannot tell the language of notes.txt\n  name it NAME.meow.toml, or say --language meow\n';
  await refuses(rig, ['run', 'notes.txt'], unknown, 2);
});

test('a file of 50 MB', async () => {
  await using rig = await Rig.setup();
  rig.write('huge.meow.toml', Buffer.alloc(50_000_000, '# nothing\n'));
  const { stderr, code } = await rig.meow('run', 'huge.meow.toml');
  expect(stderr).toMatch(
    /^huge\.meow\.toml:1:1: error file-too-large: the file has 50\.0 MB; at most 10 MB are read\n/,
  );
  expect(stderr.length).toBeLessThan(1_000);
  expect(code).toBe(1);
});

test('CRLF and a BOM are accepted', async () => {
  await using rig = await Rig.setup();
  rig.write('dos.meow.toml', `\uFEFF${GOOD.replaceAll('\n', '\r\n')}`);
  expect((await rig.meow('run', 'dos.meow.toml')).code).toBe(0);
});

test('a file that does not exist or is not readable', async () => {
  await using rig = await Rig.setup();
  rig.write('deploy.meow.toml', GOOD);
  rig.write('.meow/templates/release.meow.toml', GOOD);
  const none =
    'meow: there is no file depoly.meow.toml\n  did you mean deploy.meow.toml? A bare name is also searched in .meow/templates/\n';
  await refuses(rig, ['run', 'depoly.meow.toml'], none, 2);
  const path = 'meow: there is no file ./nothing\n  check the path; an example to begin with: meow init\n';
  await refuses(rig, ['run', './nothing'], path, 2);
  await refuses(
    rig,
    ['run', 'relaese'],
    'meow: there is no workflow relaese\n  did you mean release? Searched here, in .meow/templates/, .meow/workflows/, ~/.meow/templates/, ~/.meow/workflows/\n',
    2,
  );
  await refuses(
    rig,
    ['run', '/dev/null'],
    'meow: cannot tell the language of /dev/null\n  name it NAME.meow.toml, or say --language meow\n',
    2,
  );
  await refuses(
    rig,
    ['run', '/dev/null', '--language', 'meow'],
    'meow: /dev/null is not a regular file\n  write the workflow to a file\n',
    2,
  );
  if (process.getuid?.() !== 0) {
    chmodSync(rig.path('deploy.meow.toml'), 0);
    await refuses(
      rig,
      ['run', 'deploy.meow.toml'],
      'meow: cannot read deploy.meow.toml (EACCES)\n  make it readable: chmod u+r deploy.meow.toml\n',
      2,
    );
  }
});

test('a workflow that the file does not contain', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  await refuses(
    rig,
    ['run', 'w.meow.toml#mian'],
    'w.meow.toml:1:1: error unknown-workflow: this file has no workflow "mian"\n  1 | [main]\n    | ^~~~~~\n  hint: Did you mean "main"?\n1 error\n',
    1,
  );
  await refuses(
    rig,
    ['run', 'w.meow.toml#'],
    'meow: "w.meow.toml#" names no workflow after #\n  write w.meow.toml, or w.meow.toml#main\n',
    2,
  );
});

test('variables: missing, unknown, of the wrong type, without "="', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'v.meow.toml',
    `[main]
[main.variables]
env = { required = true, description = "Where to deploy" }
count = { required = true, type = "int", description = "How many" }
${shellStep('a', 'echo {{env}} {{count}}')}`,
  );
  const missing = await rig.meow('run', 'v.meow.toml');
  expect(missing.code).toBe(2);
  expect(missing.stderr).toMatch(/error missing-variable: [^\n]*"env"[^]*Where to deploy[^]*--var env=VALUE/);
  expect(missing.stderr).toMatch(
    /error missing-variable: [^\n]*"count"[^]*How many[^]*--var count=VALUE[^]*\n2 errors\n$/,
  );
  await refuses(
    rig,
    ['run', 'v.meow.toml', '--var', 'env=x', '--var', 'count=many'],
    'meow: --var count: expected an integer, got "many"\n  v.meow.toml#main declares its variables and their types\n',
    2,
  );
  const several = await rig.meow('run', 'v.meow.toml', '--var', 'env', '--var', '=x', '--var-json', 'count={');
  // The wording of the parser differs between versions of Node.
  expect(several.stderr.replace(/ \(.*\)$/m, ' (…)')).toBe(`meow: --var env has no "="
      --var =x has no name before its "="
      --var-json count: expected JSON, got "{" (…)
  write --var NAME=VALUE, or --var-json NAME=JSON
`);
  expect(several.code).toBe(2);
  const unknown = await rig.meow('run', 'v.meow.toml', '--var', 'env=x', '--var', 'count=1', '--var', 'cuont=2');
  expect(unknown.stderr).toMatch(
    /warning unused-variable: --var cuont is given, and used nowhere[^]*Did you mean "count"\?[^]*\n1 warning\n$/,
  );
  expect(unknown.code).toBe(0);
});

test('a .meow that is a file, and a project folder that is not writable', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  rig.write('.meow', 'mine\n');
  await refuses(
    rig,
    ['run', 'w.meow.toml'],
    `meow: ${rig.path('.meow')} is a file, but meow needs a folder of that name\n  move the file away\n`,
    2,
  );
  // Nobody can create a folder there, not even root.
  const readOnly = await rig.meowIn('/proc', 'run', rig.path('w.meow.toml'), '--id', 'x');
  expect(readOnly.stdout).toBe('');
  expect(readOnly.stderr).toMatch(/^meow: cannot create the run x: .* \(E[A-Z]+: \/proc\/\.meow[^)]*\)\n {2}\S.*\n$/);
  expect(readOnly.code).toBe(2);
});

test('a .meow/workflows that is a file', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  rig.write('.meow/workflows', 'mine\n');
  await refuses(
    rig,
    ['run', 'w.meow.toml', '--id', 'x'],
    `meow: cannot create the run x: something else is in its place (EEXIST: ${rig.path('.meow/workflows')})\n  move it away: .meow and .meow/workflows must be folders\n`,
    2,
  );
});

test('an invalid configuration', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  rig.write('.meow/config.toml', '[limits]\nmax_total_step = 5\nmax_workflow_file_size = "much"\n');
  const { stderr, code } = await rig.meow('run', 'w.meow.toml');
  expect(stderr).toMatch(/^\.meow\/config\.toml:2:1: warning [a-z-]+: .*max_total_step/);
  expect(stderr).toMatch(/^\.meow\/config\.toml:3:26: error invalid-size: /m);
  expect(stderr).toMatch(/\n1 error, 1 warning\n$/);
  expect(code).toBe(1);
  expect(rig.files('.meow')).toEqual(['.meow/config.toml']);
});

test('unknown commands and flags, and wrong arguments', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  const refusals: readonly (readonly [readonly string[], string])[] = [
    [['rnu'], 'meow: unknown command "rnu"\n  did you mean meow run? all commands: meow help\n'],
    [['help', 'statsu'], 'meow: unknown command "statsu"\n  did you mean meow status? all commands: meow help\n'],
    [['run'], 'meow: meow run needs a workflow\n  meow run PATH[#WORKFLOW]; to start with an example: meow init\n'],
    [
      ['run', 'w.meow.toml', '--jsno'],
      "meow: unknown option '--jsno'\n  did you mean --json? its flags: meow help run\n",
    ],
    [['run', 'w.meow.toml', '--var'], 'meow: option --var <k=v> needs a value\n  its flags: meow help run\n'],
    [
      ['run', 'a', 'b'],
      "meow: too many arguments for 'run'. Expected 1 argument but got 2\n  its flags: meow help run\n",
    ],
    [
      ['run', 'w.meow.toml', '--id', 'a/b'],
      'meow: "a/b" is not a run id\n  a run id has 1 to 40 letters, digits, "-" and "_"\n',
    ],
    [
      ['run', 'w.meow.toml', '--max-agents', '0'],
      "meow: option '--max-agents <n>' argument '0' is invalid. It must be a whole number, 1 or more\n  its flags: meow help run\n",
    ],
    [
      ['run', 'w.meow.toml', '--language', 'go'],
      'meow: there is no language "go"\n  --language is one of meow, raymond, conductor\n',
    ],
    [
      ['run', 'w.meow.toml', '--only-pending'],
      'meow: --only-pending is for resuming\n  meow resume ID --only-pending\n',
    ],
    ...['run', 'validate', 'graph'].map(
      (command) =>
        [
          [command, ''],
          'meow: "" names no workflow\n  name a file, a folder or a workflow; this folder is named .\n',
        ] as const,
    ),
    [['logs'], "meow: missing required argument 'id'\n  its flags: meow help logs\n"],
    [
      ['list', '--status', 'don'],
      'meow: unknown status "don"\n  did you mean done? --status is one of pending, running, waiting, paused, cleaning_up, done, failed, stopped, interrupted, unreadable\n',
    ],
    [
      ['graph', 'w.meow.toml', '--format', 'png'],
      "meow: option '--format <f>' argument 'png' is invalid. It must be text, mermaid, dot, svg or json\n  its flags: meow help graph\n",
    ],
    [['status'], 'meow: there are no runs here yet\n  start with: meow run FILE (an example: meow init)\n'],
    [['status', 'x'], 'meow: there is no run x\n  there are no runs here yet; start with: meow run FILE\n'],
  ];
  for (const [args, stderr] of refusals) await refuses(rig, args, stderr, 2);
});

test('a run id that begins with a dash and is parsed as a flag', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'false')}`);
  const { stdout } = await rig.meow('run', 'w.meow.toml', '--id', '-x');
  expect(stdout).toContain('next: meow logs -- -x a · meow resume -- -x');
  await refuses(
    rig,
    ['resume', '-x', '--only-pending'],
    "meow: unknown option '-x'\n  put an id that begins with - last, after --: meow resume -- -x · its flags: meow help resume\n",
    2,
  );
  expect((await rig.meow('status', '--json', '--', '-x')).code).toBe(0);
  await refuses(rig, ['resume', '-y'], "meow: unknown option '-y'\n  its flags: meow help resume\n", 2);
});
