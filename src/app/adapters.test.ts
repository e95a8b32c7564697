import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Adapters, claimPermissionNote } from './adapters.ts';

let base: string;
let places: { readonly cwd: string; readonly meow: string; readonly shared: string };

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-adapters-')));
  places = { cwd: join(base, 'project'), meow: join(base, 'project/.meow'), shared: join(base, 'home/.meow') };
});
afterEach(() => rmSync(base, { recursive: true }));

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), text);
};
const fox = (command: string): string => `[adapter]\nname = "fox"\n[headless]\ncommand = "${command}"\n`;
const commandOf = (name: string): unknown => {
  const found = new Adapters(places).named(name);
  return found.ok ? found.value.headless?.command : found.error;
};

test("the project's own stands before the user's, and both before those that come with meow", () => {
  expect(commandOf('fox')).toMatch(/^there is no adapter "fox"\. Available: "aider", /);
  write('home/.meow/adapters/fox/adapter.toml', fox('of-the-user'));
  expect(commandOf('fox')).toBe('of-the-user');
  write('project/.meow/adapters/fox/adapter.toml', fox('of-the-project'));
  expect(commandOf('fox')).toBe('of-the-project');
  write('project/.meow/adapters/sim/adapter.toml', fox('of-the-project').replace('fox', 'sim'));
  const adapters = new Adapters(places);
  expect(adapters.find('sim')).toMatchObject({ origin: 'project', shadows: ['built in'] });
  expect(
    adapters
      .all()
      .filter(({ origin }) => origin !== 'built in')
      .map(({ name }) => name),
  ).toEqual(['fox', 'sim']);
});

test('each is read once', () => {
  write('project/.meow/adapters/fox/adapter.toml', fox('before'));
  const adapters = new Adapters(places);
  const [before] = [adapters.named('fox')];
  write('project/.meow/adapters/fox/adapter.toml', fox('after'));
  expect(adapters.named('fox')).toEqual(before);
});

test('in the home folder there is one place less', () => {
  write('home/.meow/adapters/fox/adapter.toml', fox('x'));
  const adapters = new Adapters({ ...places, meow: places.shared });
  expect(adapters.find('fox')).toMatchObject({ origin: 'user', shadows: [] });
});

test('one with an error names the place', () => {
  write('project/.meow/adapters/fox/adapter.toml', fox('x {{nothing}}'));
  expect(commandOf('fox')).toBe(
    'the adapter "fox" has an error: .meow/adapters/fox/adapter.toml:4:14: {{nothing}} is not a known placeholder',
  );
  write('project/.meow/adapters/fox/adapter.toml', fox('x').replace('fox', 'wolf'));
  expect(commandOf('fox')).toContain('is named "wolf", but its folder "fox"');
  write('project/.meow/adapters/fox/adapter.toml', '\xff');
  expect(commandOf('fox')).toMatch(/has an error: .meow\/adapters\/fox\/adapter.toml:1:1/);
});

test('what has no file, or no name that an adapter can have, is none', () => {
  write('project/.meow/adapters/fox/README.md', '');
  write('project/.meow/adapters/.new-x/adapter.toml', fox('x'));
  expect(new Adapters(places).all().every(({ origin }) => origin === 'built in')).toBe(true);
  for (const name of ['fox', '../adapters/fox', '.new-x', '', 'a/b', 'constructor']) {
    expect(new Adapters(places).named(name).ok, name).toBe(false);
  }
});

test('a name that is nearly right is guessed', () => {
  expect(new Adapters(places).refusal('comand')?.hint).toMatch(/^Did you mean "command"\? Available: /);
});

test('there is a default, and it can be used', () => {
  const adapters = new Adapters(places);
  expect(adapters.refusal(adapters.default())).toBeNull();
});

test('built-in adapters permit only the commands that report to the run, whatever the permissions', () => {
  const permitted = new Adapters(places)
    .all()
    .flatMap(({ folder }) => [...readFileSync(join(folder, 'adapter.toml'), 'utf8').matchAll(/Bash\((.*?)\)/g)])
    .map(([, rule = '']) => rule.replace(/ \*$/, ''));
  const commands = ['await-approval', 'await-event', 'done', 'event', 'prime', 'session-id', 'step-status'];
  expect([...new Set(permitted)].toSorted()).toEqual(commands.map((command) => `meow ${command}`));
});

test('a person is told once in each project what agents may do, and again if that cannot be recorded', () => {
  const other = { ...places, meow: join(base, 'other/.meow') };
  expect([places, places, other].map(claimPermissionNote)).toEqual([true, false, true]);
  write('file', '');
  const unusable = { ...places, shared: join(base, 'file') };
  expect([unusable, unusable].map(claimPermissionNote)).toEqual([true, true]);
});
