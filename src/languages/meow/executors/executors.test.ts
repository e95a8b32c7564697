// Values reach a condition as they reach a command. How a place is quoted is shown by shell-context.test.ts; here, that
// every text which a shell reads goes that way, and what arrives.

import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { ok } from '../../../base/errors.ts';
import type { CommandSpec } from '../../../ir/effect.ts';
import { fillText, type Text } from '../../../ir/text.ts';
import { compileMeow } from '../compile.ts';
import { attempts } from '../../../../test/rig/sample.ts';

/** @ is the hole. */
const SCRIPTS = [
  'show @',
  'show a@b --x=@',
  'show "a @ b"',
  "show 'a @ b'",
  'show "$(printf %s @)x"',
  'v=@; show "$v"',
  'if [ @ = @ ]; then show yes; fi',
  'cat <<EOF\n- @ -\nEOF',
  'show x # @',
  'show $(( @ + 1 ))',
  'test -n @ && show @ || show empty',
];

interface Place {
  readonly name: string;
  readonly workflow: (script: string) => string;
  readonly find: (commands: readonly CommandSpec<Text>[]) => CommandSpec<Text> | undefined;
}

const literal = (script: string): string => `'''\n${script}'''`;
const isCondition = ({ verdict }: CommandSpec<Text>): boolean => verdict === 'condition';
const PLACES: readonly Place[] = [
  {
    name: 'a command',
    workflow: (script) => `[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = ${literal(script)}\n`,
    find: (commands) => commands[0],
  },
  {
    name: 'a condition',
    workflow: (script) => `[[main.steps]]\nid = "a"\nexecutor = "branch"\ncondition = ${literal(script)}\n`,
    find: (commands) => commands.find(isCondition),
  },
  {
    name: 'a condition inline in a branch',
    workflow: (script) =>
      `[[main.steps]]\nid = "a"\nexecutor = "branch"\ncondition = "true"\n[main.steps.on_false]\n` +
      `inline = [{ id = "b", executor = "branch", condition = ${literal(script)} }]\n`,
    find: (commands) => commands.filter(isCondition)[1],
  },
  {
    name: 'a cleanup script',
    workflow: (script) =>
      `[main]\ncleanup_on_stop = ${literal(script)}\n[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "true"\n`,
    find: (commands) => commands.at(-1),
  },
];

/** The script with its holes, as the place has it. */
function scriptAt({ workflow, find }: Place, script: string): Text {
  const text = `${workflow(script.replaceAll('@', '{{x}}'))}[main.variables]\nx = ""\n`;
  const { program, diagnostics } = compileMeow({ file: 'a', text, workflow: null, given: [] });
  expect(diagnostics).toEqual([]);
  const acts = Object.values(program?.blocks ?? {}).flatMap(({ steps }) => steps.map(({ act }) => act));
  const effects = acts.flatMap((act) => (act.kind === 'effect' && act.effect.kind === 'command' ? [act.effect] : []));
  const found = find([...effects, ...(program?.cleanup.stop ? [program.cleanup.stop] : [])]);
  return found?.script ?? expect.fail();
}

describe.each(PLACES)('in $name', (place) => {
  test.each(SCRIPTS)('%j is quoted as in a command', (script) => {
    const [command = expect.fail()] = PLACES;
    expect(scriptAt(place, script)).toEqual(scriptAt(command, script));
  });

  test('a hostile value arrives as data, and decides nothing', { timeout: 60_000 }, () => {
    const compiled = scriptAt(place, 'printf %s @; printf %s "@"; [ @ = "@" ]');
    const pieces = fc.constantFrom(
      "'",
      '"',
      '$(echo x)',
      '`',
      '\\',
      ';',
      '&&',
      '|',
      '\n',
      ' ',
      '*',
      '#',
      '!',
      '-',
      'a',
      '=',
    );
    const value = fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(value, (hostile) => {
        const filled = fillText(compiled, () => ok(hostile));
        if (!filled.ok || typeof filled.value !== 'string') return expect.fail();
        const { status, stdout } = spawnSync('sh', ['-c', filled.value], { encoding: 'utf8' });
        expect({ status, stdout }).toEqual({ status: 0, stdout: hostile + hostile });
      }),
      { numRuns: attempts(40) },
    );
  });
});
