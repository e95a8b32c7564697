// `meow completion`: real shells load the script, in a project with a run that waits at a gate.

import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const [hasZsh, hasFish] = ['zsh', 'fish'].map((shell) => {
  const isInstalled = spawnSync(shell, ['-c', 'true']).status === 0;
  if (!isInstalled)
    process.stderr.write(`${shell} is not installed, so its test is skipped; npm run setup installs it\n`);
  return isInstalled;
});

/** A project with the run `first`, which waits at the gate `review`. */
async function project(): Promise<Rig> {
  const rig = await Rig.setup();
  await rig.meow('init', '--template', 'gate');
  expect((await rig.meow('run', 'gate', '--id', 'first', '--no-wait')).code).toBe(3);
  return rig;
}

interface Offer {
  readonly line: string;
  readonly words: readonly string[];
}

/** Command lines, the last word of which is completed. */
const OFFERS: readonly Offer[] = [
  { line: 'meow val', words: ['validate'] },
  { line: 'meow logs --fol', words: ['--follow'] },
  { line: 'meow logs fi', words: ['first'] },
  { line: 'meow logs first d', words: ['draft', 'draft.1.until', 'draft.1.write'] },
  { line: 'meow logs --attempt 1 first pu', words: ['publish'] },
  { line: 'meow logs --follow fir pu', words: ['publish'] },
  { line: 'meow attach first ', words: ['writer'] },
  { line: 'meow approve first ', words: ['review'] },
  { line: 'meow reject --as ann first ', words: ['review'] },
  { line: 'meow fork first --from pub', words: ['publish'] },
  { line: 'meow plan x --since ', words: ['first'] },
  { line: 'meow run ga', words: ['gate'] },
  { line: 'meow prove ga', words: ['gate'] },
  { line: 'meow diff first fi', words: ['first'] },
  { line: 'meow schema co', words: ['conductor', 'config'] },
  { line: 'meow init --template wo', words: ['work-loop'] },
  { line: 'meow adapter show cl', words: ['claude'] },
  { line: 'meow list --status fa', words: ['failed'] },
  { line: 'meow help fo', words: ['fork'] },
  { line: 'meow ui ex', words: ['export'] },
  { line: 'meow ui export fi', words: ['first'] },
  { line: 'meow logs none ', words: [] },
  { line: 'meow version ', words: [] },
];

describe('completes commands, flags, runs, steps, gates, agents and workflows', () => {
  test('in bash', async () => {
    await using rig = await project();
    const script = (await rig.meow('completion', 'bash')).stdout;
    expect(bash(rig, `${script}\ncomplete -p meow`)).toEqual(['complete -F _meow meow']);
    for (const { line, words } of OFFERS) expect([line, inBash(rig, script, line)]).toEqual([line, words]);
    expect(inBash(rig, script, 'meow init --template = wo')).toEqual(['work-loop']);
    rig.write('deploy.meow.toml', '');
    expect(inBash(rig, script, 'meow run dep')).toEqual(['deploy.meow.toml']);
    rig.write('sub/x', '');
    expect(bash(rig, `cd sub\n${script}\n${asked('meow logs fi')}`)).toEqual(['first']);
  });

  test.skipIf(hasZsh !== true)('in zsh', async () => {
    await using rig = await project();
    rig.write('_meow', (await rig.meow('completion', 'zsh')).stdout);
    // _describe is where zsh shows what was found.
    const load = 'compdef() { :; }; . ./_meow; _describe() { printf "%s\\n" "${(@)found%%:*}"; }; _files() { :; }';
    for (const { line, words } of OFFERS) {
      const ask = `words=(${quotedWords(line)}); CURRENT=\${#words}; _meow`;
      const output = execFileSync('zsh', ['-f', '-c', `${load}\n${ask}`], { cwd: rig.folder, encoding: 'utf8' });
      const found = output.split('\n').filter((word) => word !== '' && word.startsWith(line.split(' ').at(-1) ?? ''));
      expect([line, found.toSorted()]).toEqual([line, words]);
    }
  });

  test.skipIf(hasFish !== true)('in fish', async () => {
    await using rig = await project();
    rig.write('meow.fish', (await rig.meow('completion', 'fish')).stdout);
    for (const { line, words } of OFFERS) {
      const ask = `source meow.fish; complete -C '${line}'`;
      const output = execFileSync('fish', ['--no-config', '-c', ask], { cwd: rig.folder, encoding: 'utf8' });
      const found = output.split('\n').flatMap((each) => (each === '' ? [] : [each.replace(/\t.*/, '')]));
      expect([line, found.toSorted()]).toEqual([line, words]);
    }
  });
});

test('every command and every flag of the help is completed', async () => {
  await using rig = await Rig.setup();
  const script = (await rig.meow('completion', 'bash')).stdout;
  const help = (await rig.meow('help')).stdout;
  const groups = help.slice(help.indexOf('\nRunning\n'), help.indexOf('\nStart here:'));
  const commands = [...groups.matchAll(/^ {2}([a-z-]+) /gm)].map(({ 1: name = '' }) => name);
  expect(commands.length).toBeGreaterThan(30);
  expect(inBash(rig, script, 'meow ')).toEqual([...commands, 'ls'].toSorted());
  for (const command of commands) {
    const { stdout } = await rig.meow('help', command);
    const shown = [...stdout.matchAll(/^ {2}(-\S+?)(?:, (--\S+))?(?: [<[].*)?(?: {2}|$)/gm)];
    const flags = shown.flatMap(({ 1: one = '', 2: other }) => (other === undefined ? [one] : [one, other]));
    expect([command, inBash(rig, script, `meow ${command} -`)]).toEqual([command, flags.toSorted()]);
  }
});

test('another shell is refused', async () => {
  await using rig = await Rig.setup();
  const { code, stderr } = await rig.meow('completion', 'powershell');
  expect(code).toBe(2);
  expect(stderr).toContain('it is one of bash, zsh, fish');
});

/** What bash offers for the last word. */
function inBash(rig: Rig, script: string, line: string): readonly string[] {
  return bash(rig, `${script}\n${asked(line)}`).toSorted();
}

function asked(line: string): string {
  const complete = 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _meow; printf "%s\\n" "${COMPREPLY[@]}"';
  return `COMP_WORDS=(${quotedWords(line)}); ${complete}`;
}

function quotedWords(line: string): string {
  return line
    .split(' ')
    .map((word) => `'${word}'`)
    .join(' ');
}

function bash(rig: Rig, commands: string): readonly string[] {
  const output = execFileSync('bash', ['-c', commands], { cwd: rig.folder, encoding: 'utf8' });
  return output.split('\n').filter((line) => line !== '');
}
