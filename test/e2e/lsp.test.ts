import { expect, test } from 'vitest';
import { CURSOR, Editor } from '../rig/editor.ts';
import { Rig } from '../rig/rig.ts';

const MAIN = `[main.variables]
target = { default = "prod", description = "Where to." }

[[main.steps]]
id = "build"
executor = "shell"
command = "echo v1"
outputs = { tag = { source = "stdout", type = "string" } }

[[main.steps]]
id = "ship"
executor = "expand"
template = "other#deploy"
needs = ["build"]

[[main.steps]]
id = "report"
executor = "shell"
command = "echo {{build.outputs.tag}} {{ship.push.outputs.url}} {{target}}"
needs = ["build", "ship.push", "ship.*"]
`;

const OTHER = `[deploy]
description = "Deploys."

[[deploy.steps]]
id = "push"
executor = "shell"
command = "echo {{build.outputs.tag}}"
outputs = { url = "stdout" }
`;

async function twoFiles(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('main.meow.toml', MAIN);
  rig.write('other.meow.toml', OTHER);
  return rig;
}

/** Puts the cursor before the text. */
function at(text: string, before: string): string {
  expect(text).toContain(before);
  return text.replace(before, `${CURSOR}${before}`);
}

const BROKEN = {
  'w.meow.toml':
    '[[main.steps]]\r\nid = "a"\r\nexecutor = "shell"\r\n# 😀\r\ncommand = "echo 😀😀 {{nam}}"\r\nneeds = ["b"]\r\n',
  'flow/START.md': '---\nmodle: small\n---\n😀 Say <goto>NOWHERE</goto> or <goto>END</goto>.\n',
  'w.yaml': 'workflow_id: w\nversion: 1\ndescription: 😀\nentry_step: a\nsteps:\n  - id: a\n    opcode: STOPP\n',
};

test.each(Object.entries(BROKEN))(
  'shows the problems of unsaved text as meow validate reports them: %s',
  async (file, broken) => {
    await using rig = await Rig.setup();
    rig.write('flow/END.md', 'Say <result>x</result>.\n');
    rig.write(file, broken);
    const { stdout } = await rig.meow('validate', '--json', file.replace('/START.md', ''));
    const reported = JSON.parse(stdout) as {
      code: string;
      message: string;
      severity: string;
      line: number;
      column: number;
    }[];
    rig.write(file, file.endsWith('.toml') ? '' : 'states: {}\n');
    await using editor = await Editor.start(rig);
    await editor.type(file, broken);
    const shown = await editor.problems(file);
    // `meow validate` counts characters, and editors count UTF-16 units.
    const columnOf = (line: number, character: number): number =>
      ((broken.split(/\r?\n/)[line] ?? '').slice(0, character).match(/./gsu)?.length ?? 0) + 1;
    expect(reported.length).toBeGreaterThan(0);
    expect(
      shown.map(({ code, message, severity, range: { start } }) => {
        const column = columnOf(start.line, start.character);
        return { code, message, severity, line: start.line + 1, column };
      }),
    ).toEqual(
      reported.map(({ code, message, severity, line, column }) => {
        return { code, message, severity: severity === 'error' ? 1 : 2, line, column };
      }),
    );
  },
);

test('shows problems that end when another open file of the workflow is changed', async () => {
  await using rig = await Rig.setup();
  await using editor = await Editor.start(rig);
  await editor.type('main.meow.toml', MAIN);
  expect((await editor.problems('main.meow.toml')).map(({ code }) => code)).toContain('unknown-template');
  await editor.type('other.meow.toml', OTHER);
  await editor.problems('other.meow.toml');
  await editor.type('main.meow.toml', `${MAIN}\n`);
  expect(await editor.problems('main.meow.toml')).toEqual([]);
});

test('understands URIs in the spelling of the editor', async () => {
  await using rig = await Rig.setup();
  await using editor = await Editor.start(rig);
  editor.spell((uri) => uri.replaceAll('@', '%40').replaceAll('+', '%2B').replaceAll('(', '%28'));
  const folder = 'a@b +(c)';
  await editor.type(`${folder}/main.meow.toml`, MAIN.replace('"build", "ship.push"', '"biuld"'));
  await editor.type(`${folder}/other.meow.toml`, OTHER);
  expect((await editor.problems(`${folder}/main.meow.toml`)).map(({ code }) => code)).toContain('unknown-need');
  const ship = await editor.type(`${folder}/main.meow.toml`, at(MAIN, 'ship"\n'));
  const edit = await editor.rename(`${folder}/main.meow.toml`, ship, 'release');
  expect(editor.edited(`${folder}/main.meow.toml`, edit)).toBe(MAIN.replaceAll('ship', 'release'));
});

test('offers a hint that is a correction as a quick fix', async () => {
  await using rig = await Rig.setup();
  await using editor = await Editor.start(rig);
  const text = MAIN.replace('template = "other#deploy"', 'template = ".later"').replace(
    '"build", "ship.push"',
    '"biuld"',
  );
  await editor.type('w.meow.toml', `${text}\n[[later.steps]]\nid = "push"\nexecutor = "shel"\ncommand = "true"\n`);
  const fixes = await editor.fixes('w.meow.toml');
  expect(fixes.map(({ title }) => title)).toEqual(['Change "biuld" to "build"', 'Change "shel" to "shell"']);
  expect(editor.edited('w.meow.toml', fixes[0]?.edit ?? {})).toContain('needs = ["build", "ship.*"]');
});

test.each([
  ['variables and steps after {{', 'command = "echo v1 {{¦"', ['target', 'ship', 'report'], ['build']],
  ['outputs of a step', 'command = "echo {{report.outputs.¦"', ['outcome', 'exit_code'], ['tag']],
  ['executors', 'executor = "¦', ['shell', 'foreach'], []],
  ['keys of the executor that are still missing', 'comm¦', ['timeout', 'workdir'], ['condition', 'id']],
  ['other steps in needs', 'needs = ["¦', ['ship', 'report'], ['build']],
  ['workflows as templates', 'template = "¦"', ['.main', 'other#deploy'], []],
])('completes %s', async (_, line, offered, left) => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  const labels = await editor.complete('main.meow.toml', MAIN.replace('command = "echo v1"', line));
  expect(labels).toEqual(expect.arrayContaining(offered));
  for (const label of left) expect(labels).not.toContain(label);
});

test('completes outputs with the text as it is typed', async () => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  expect(await editor.complete('main.meow.toml', MAIN.replace('{{target}}"', '{{build.outputs.¦'))).toEqual([
    'outcome',
    'exit_code',
    'tag',
  ]);
});

test('explains a step, a variable and a key', async () => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  const step = await editor.type('main.meow.toml', at(MAIN, 'build.outputs.tag'));
  expect(await editor.hover('main.meow.toml', step)).toBe(
    'step `build` (shell)\n\nOutputs:\n\n- `outcome`: string\n- `exit_code`: integer\n- `tag`: string',
  );
  const variable = await editor.type('main.meow.toml', at(MAIN, 'target}}'));
  expect(await editor.hover('main.meow.toml', variable)).toBe('variable `target`: any, default `"prod"`\n\nWhere to.');
  const key = await editor.type('main.meow.toml', at(MAIN, 'needs = ["build"]'));
  expect(await editor.hover('main.meow.toml', key)).toMatch(/^`needs`: [A-Z]/);
});

test('finds definitions and uses in other files', async () => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  const use = await editor.type('main.meow.toml', at(MAIN, 'push.outputs.url'));
  expect(await editor.definition('main.meow.toml', use)).toEqual(['other.meow.toml:5:7']);
  const step = await editor.type('main.meow.toml', at(MAIN, 'build"\nexecutor'));
  expect((await editor.references('main.meow.toml', step)).toSorted()).toEqual([
    'main.meow.toml:14:11',
    'main.meow.toml:19:19',
    'main.meow.toml:20:11',
    'main.meow.toml:5:7',
    'other.meow.toml:7:19',
  ]);
});

test('renames a step in all files, from either of them', async () => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  const push = await editor.type('other.meow.toml', at(OTHER, 'push"'));
  const edit = await editor.rename('other.meow.toml', push, 'upload');
  expect(editor.edited('other.meow.toml', edit)).toBe(OTHER.replace('push', 'upload'));
  expect(editor.edited('main.meow.toml', edit)).toBe(MAIN.replaceAll('ship.push', 'ship.upload'));
  const ship = await editor.type('main.meow.toml', at(MAIN, 'ship"\n'));
  const second = await editor.rename('main.meow.toml', ship, 'release');
  expect(editor.edited('main.meow.toml', second)).toBe(MAIN.replaceAll('ship', 'release'));
  await expect(editor.rename('main.meow.toml', ship, 'build')).rejects.toThrow('there is already a step "build"');
  await expect(editor.rename('main.meow.toml', ship, 'a b')).rejects.toThrow('not a valid name');
});

test('shows the outline of a file that cannot be read whole', async () => {
  await using rig = await twoFiles();
  await using editor = await Editor.start(rig);
  await editor.type('main.meow.toml', `${MAIN}\n[[main.steps]]\nid = "last"\nneeds = ["`);
  const [main] = await editor.outline('main.meow.toml');
  expect(main?.children?.map(({ name }) => name)).toEqual(['target', 'build', 'ship', 'report', 'last']);
});

test('completes, finds and renames states of a Raymond folder', async () => {
  await using rig = await Rig.setup();
  const start =
    '---\nallowed_transitions:\n  - { tag: goto, target: REVIEW.md }\n---\nWork, then say <goto>REVIEW.md</goto>.\n';
  rig.write('flow/START.md', start);
  rig.write('flow/REVIEW.md', 'Look. Then <goto>START</goto> or <result>done</result>.\n');
  rig.write('README.md', 'Not a state: <goto>NOWHERE</goto>\n');
  await using editor = await Editor.start(rig);
  expect(await editor.complete('flow/START.md', start.replace('REVIEW.md</goto>', '¦'))).toEqual([
    'REVIEW.md',
    'START.md',
  ]);
  const tag = await editor.type('flow/START.md', at(start, 'REVIEW.md<'));
  expect(await editor.definition('flow/START.md', tag)).toEqual(['flow/REVIEW.md:1:1']);
  const edit = await editor.rename('flow/START.md', tag, 'CHECK');
  expect(editor.edited('flow/START.md', edit)).toBe(start.replaceAll('REVIEW', 'CHECK'));
  expect(edit.documentChanges?.at(-1)).toEqual({
    kind: 'rename',
    oldUri: editor.uri('flow/REVIEW.md'),
    newUri: editor.uri('flow/CHECK.md'),
  });
  await editor.type('flow/START.md', start.replace('<goto>REVIEW.md', '<goto>REVEW.md'));
  expect((await editor.problems('flow/START.md')).map(({ code }) => code)).toContain('missing-target');
  await editor.type('README.md', 'Not a state: <goto>NOWHERE</goto>\n');
  expect(await editor.problems('README.md')).toEqual([]);
});

test('completes and renames states of a Raymond file', async () => {
  await using rig = await Rig.setup();
  const text = 'states:\n  START:\n    prompt: Say <goto>END</goto>.\n  END:\n    prompt: Say <result>x</result>.\n';
  rig.write('flow.yaml', text);
  await using editor = await Editor.start(rig);
  const tag = await editor.type('flow.yaml', at(text, 'END<'));
  expect(editor.edited('flow.yaml', await editor.rename('flow.yaml', tag, 'LAST'))).toBe(
    text.replaceAll('END', 'LAST'),
  );
  expect(await editor.complete('flow.yaml', text.replace('END</goto>', '¦'))).toEqual(['START', 'END']);
});

test('completes and renames steps of a Conductor workflow', async () => {
  await using rig = await Rig.setup();
  const text = `workflow_id: w
version: 1
description: Try it.
entry_step: check
steps:
  - id: check
    opcode: RUN_VALIDATION
    run: [tests]
    routes:
      completed: STOP
      error: check
  - id: ask
    opcode: GATE
    routes: { gate_approved: check, gate_rejected: STOP }
`;
  rig.write('w.yaml', text);
  await using editor = await Editor.start(rig);
  const step = await editor.type('w.yaml', at(text, 'check\n    opcode'));
  expect(editor.edited('w.yaml', await editor.rename('w.yaml', step, 'test'))).toBe(text.replaceAll('check', 'test'));
  expect(await editor.complete('w.yaml', text.replace('error: check', 'error: ¦'))).toEqual(['check', 'ask', 'STOP']);
  expect(await editor.complete('w.yaml', text.replace('opcode: GATE', 'opcode: ¦'))).toContain('RUN_AGENT');
  expect(await editor.complete('w.yaml', text.replace('      error: check', '      ¦'))).toContain('killed_timeout');
  expect(await editor.complete('w.yaml', text.replace('    run: [tests]', '    ¦'))).toContain('witness');
});

test('renames a step in the tests of its workflow', async () => {
  await using rig = await twoFiles();
  const tests = '[[test]]\nname = "ships"\nrun = ["*"]\n[test.expect]\norder = ["build < ship.push"]\n';
  rig.write('main.test.toml', tests);
  await using editor = await Editor.start(rig);
  const push = await editor.type('other.meow.toml', at(OTHER, 'push"'));
  const edit = await editor.rename('other.meow.toml', push, 'upload');
  expect(editor.edited('main.test.toml', edit)).toBe(tests.replace('push', 'upload'));
});
