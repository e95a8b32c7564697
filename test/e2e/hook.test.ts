import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { MEOW, type Result, Rig, until } from '../rig/rig.ts';

const HOOK = join(dirname(MEOW), 'hook.sh');
const SILENCE = { stdout: '', stderr: '', code: 0 };

/** A shell command line in which `$HOOK` is the program that hooks call. */
function shell(rig: Rig, environment: Readonly<Record<string, string>>, script: string): Promise<Result> {
  const variables = Object.entries({ HOOK, ...environment }).map(([name, value]) => `export ${name}='${value}'; `);
  return rig.shell(`${variables.join('')}${script}`);
}

/** A rig with a folder for hook files, and its path in the environment. */
async function setup(): Promise<{ rig: Rig; environment: Readonly<Record<string, string>> }> {
  const rig = await Rig.setup();
  rig.write('hooks/.keep', '');
  return { rig, environment: { MEOW_HOOKS: rig.path('hooks') } };
}

function left(rig: Rig): readonly string[] {
  return rig.files('hooks').filter((name) => name !== 'hooks/.keep');
}

test('the input of a hook is stored completely, in a file that only its user can read', async () => {
  const { rig, environment } = await setup();
  await using _ = rig;
  const payload = Buffer.from(Array.from({ length: 3_000_000 }, (_byte, at) => (at * 7919 + (at >> 8)) % 256));
  rig.write('payload', payload);
  expect(await shell(rig, environment, '"$HOOK" PostToolUse < payload')).toEqual(SILENCE);
  const [file = '', ...others] = left(rig);
  expect(others).toEqual([]);
  expect(file).toMatch(/^hooks\/\d{10}(\.\d+)?-\d{10}-PostToolUse\.json$/);
  expect(readFileSync(rig.path(file)).equals(payload)).toBe(true);
  expect(statSync(rig.path(file)).mode & 0o777).toBe(0o600);
});

test('the names of hook files are in chronological order', async () => {
  const { rig, environment } = await setup();
  await using _ = rig;
  const events = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Notification', 'SessionEnd'];
  const script = events.map((event) => `echo ${event} | "$HOOK" ${event}`).join('; sleep 0.02; ');
  expect(await shell(rig, environment, script)).toEqual(SILENCE);
  expect(left(rig).map((file) => rig.read(file).trim())).toEqual(events);
});

test.each([
  ['outside a run', '', 'Stop'],
  ['if the folder is gone', 'gone', 'Stop'],
  ['if it is not a folder', 'file', 'Stop'],
  ['if its path is relative', './hooks', 'Stop'],
  ['if the event has no name', 'hooks', ''],
  ['if the event has an invalid name', 'hooks', '../Stop'],
])('%s a hook reads its input and does nothing', async (_when, folder, event) => {
  const { rig } = await setup();
  await using _ = rig;
  rig.write('file', '');
  const place = folder === '' || folder.startsWith('.') ? folder : rig.path(folder);
  // SIGPIPE would show that nobody reads the input.
  const script = `{ head -c 3000000 /dev/zero; echo $? > wrote; } | "$HOOK" '${event}'`;
  expect(await shell(rig, { MEOW_HOOKS: place }, script)).toEqual(SILENCE);
  expect(rig.read('wrote')).toBe('0\n');
  expect(left(rig)).toEqual([]);
  expect(rig.exists('gone')).toBe(false);
});

const WORKFLOW = `
[main]
[[main.steps]]
id = "spawn"
executor = "spawn"
agent = "worker"
adapter = "sim"
[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Write the thing."
needs = ["spawn"]
[main.steps.outputs]
summary = { required = true, type = "string" }
[[main.steps]]
id = "hold"
executor = "shell"
command = "while [ ! -e go ]; do sleep 0.02; done"
needs = ["work"]
`;

test('an agent that stops during its step is told to continue, and one that has reported is not', async () => {
  const { rig, environment } = await setup();
  await using _ = rig;
  rig.write('w.meow.toml', WORKFLOW);
  rig.write('w.sim.toml', '[[on]]\ndo = [{ hang = true }]\n');
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.decided('r', 'step-started work');
  const journal = '.meow/workflows/r/journal.jsonl';
  await until(() => rig.read(journal).includes('"delivery":"accepted"'), 'the prompt to be accepted');
  const folder = rig.path('.meow/workflows/r');
  const address = { MEOW_ORCH_SOCK: `${folder}/sock`, MEOW_INBOX: `${folder}/inbox` };
  const within = { ...environment, MEOW_WORKFLOW: 'r', MEOW_AGENT: 'worker', ...address };

  const { stdout, stderr, code } = await shell(rig, within, 'echo {} | "$HOOK" Stop');
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const { decision, reason } = JSON.parse(stdout) as { decision: string; reason: string };
  expect(stdout.indexOf('\n')).toBe(stdout.length - 1);
  expect(decision).toBe('block');
  expect(reason).toMatch(
    /^You stopped before this step was reported: .* meow done \(or the tool done\) .*\n\nWrite the/,
  );
  expect(reason).toContain('meow done --output summary=<string>');
  expect(left(rig)).toHaveLength(1);

  expect(await shell(rig, within, 'echo {} | "$HOOK" PostToolUse')).toEqual(SILENCE);
  expect(await shell(rig, { ...within, MEOW_HOOKS: '' }, 'echo {} | "$HOOK" Stop')).toEqual(SILENCE);
  expect((await rig.meowWith(within, 'done', '--output', 'summary=fine')).code).toBe(0);
  expect(await shell(rig, within, 'echo {} | "$HOOK" Stop')).toEqual(SILENCE);
  rig.write('go', '');
  expect((await run.ended).code).toBe(0);
  expect(await shell(rig, within, 'echo {} | "$HOOK" Stop')).toEqual(SILENCE);
  expect(left(rig)).toHaveLength(4);
});
