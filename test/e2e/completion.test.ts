// `meow completion`: the script is sourced by a real shell, in a project with a run.

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const WORKFLOW = `[main]
name = "w"

[[main.steps]]
id = "build"
executor = "shell"
command = "true"
`;

/** What bash offers for the last of these words. */
function offered(rig: Rig, script: string, ...words: readonly string[]): readonly string[] {
  const list = words.map((word) => `'${word}'`).join(' ');
  const ask = `COMP_WORDS=(${list}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _meow; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['-c', `${script}\n${ask}`], { cwd: rig.folder, encoding: 'utf8' });
  return output.split('\n').filter((line) => line !== '');
}

test('bash completes commands, flags, runs and steps', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'first')).code).toBe(0);
  const { stdout, code } = await rig.meow('completion', 'bash');
  expect(code).toBe(0);
  expect(offered(rig, stdout, 'meow', 'val')).toEqual(['validate']);
  expect(offered(rig, stdout, 'meow', 'logs', '--fol')).toEqual(['--follow']);
  expect(offered(rig, stdout, 'meow', 'logs', 'fi')).toEqual(['first']);
  expect(offered(rig, stdout, 'meow', 'logs', 'first', '')).toEqual(['build']);
});

test('every shell has a script, and another one is refused', async () => {
  await using rig = await Rig.setup();
  expect((await rig.meow('completion', 'zsh')).stdout).toContain('#compdef meow');
  expect((await rig.meow('completion', 'fish')).stdout).toContain('complete -c meow');
  const { code, stderr } = await rig.meow('completion', 'powershell');
  expect(code).toBe(2);
  expect(stderr).toContain('it is one of bash, zsh, fish');
});
