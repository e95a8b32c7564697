// The promise under test: a value reaches the command as the data it is, in every place of a script, or is refused. The
// proof is a real shell: scripts are filled with hostile values, run by every shell of this machine, and must print the
// values unchanged.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { quote } from '../../ir/quote.ts';
import { shellContexts } from './shell-context.ts';
import { HOLE } from './shell-heredoc.ts';

interface Position {
  readonly name: string;
  /** @ is the hole. `show X` prints X and a NUL. */
  readonly script: string;
  /** What must be printed, without the last NUL. */
  readonly prints: (value: string) => string;
}

const position = (name: string, script: string, prints: (value: string) => string = (value) => value): Position => ({
  name,
  script,
  prints,
});

const POSITIONS: readonly Position[] = [
  position('a word', 'show @'),
  position('the end of a word', 'show --x=@', (v) => `--x=${v}`),
  position('the beginning of a word', 'show @/x', (v) => `${v}/x`),
  position('the middle of a word', 'show a@b', (v) => `a${v}b`),
  position('twice in a word', 'show @@', (v) => `${v}${v}`),
  position('beside quotes', `show "a"@'b'`, (v) => `a${v}b`),
  position('after a tilde', 'show ~@', (v) => `~${v}`),
  position('before a redirection', 'show @>&1'),
  position('after an escaped line end', 'show \\\n@'),
  position('after an escaped backslash', 'show \\\\@', (v) => `\\${v}`),
  position('an assignment', 'v=@; show "$v"'),
  position('an exported assignment', 'export v=@; show "$v"'),
  position('a list of words', 'for i in @; do show "$i"; done'),
  position('a list in a condition', 'if [ x = x ] && show @; then :; fi'),
  position('a subshell', '(show @)'),
  position('a group', '{ show @; }'),
  position('a function', 'f() { show @; }; f'),
  position('a redirection target', 'show x > /dev/null; cat < /dev/null; show @'),
  position('double quotes', 'show "@"'),
  position('double quotes with text', 'show "a @ b"', (v) => `a ${v} b`),
  position('escaped quotes in double quotes', String.raw`show "\"@\""`, (v) => `"${v}"`),
  position('double quotes behind a status', 'show "$?@"', (v) => `0${v}`),
  position('double quotes after a braced variable', 'x=a; show "${x}@"', (v) => `a${v}`),
  position('single quotes', "show '@'"),
  position('single quotes with text', `show 'a "@" b'`, (v) => `a "${v}" b`),
  position('behind a comment with a quote', "# it's\nshow @"),
  position('behind a hash within a word', 'show a#"@"', (v) => `a#${v}`),
  position('behind a count of arguments', 'show "$#@"', (v) => `0${v}`),
  position('a comment', ': # @\nshow x', () => 'x'),
  position('$(…), a word', 'show "$(printf %s_ @)"', (v) => `${v}_`),
  position('$(…), double quotes in double quotes', 'show "$(printf %s_ "@")"', (v) => `${v}_`),
  position('$(…), single quotes in double quotes', `show "$(printf %s_ '@')"`, (v) => `${v}_`),
  position('$(…) in $(…)', 'show "$(printf %s_ "$(printf %s. "@")")"', (v) => `${v}._`),
  position('$(…) with a comment', 'show "$(printf %s_ "@" # it is ) (@\n)"', (v) => `${v}_`),
  position('$(…) with a case', 'show "$(case x in a|b) : ;; (x) printf %s_ @ ;; esac)@"', (v) => `${v}_${v}`),
  position(
    '$(…) with a case in a case',
    'show "$(case x in x) case y in y) printf %s_ "@";; esac;; esac)"',
    (v) => `${v}_`,
  ),
  position('case subject and pattern', 'case @ in @) show yes;; *) show no;; esac', () => 'yes'),
  position('case pattern in quotes', 'case "@" in "@") show yes;; *) show no;; esac', () => 'yes'),
  position('backticks, a word', 'show "`printf %s_ @`"', (v) => `${v}_`),
  position('backticks outside of quotes', 'x=`printf %s_ @`; show "$x"', (v) => `${v}_`),
  position('backticks, single quotes', 'x=`printf %s_ \'@\'`; show "$x"', (v) => `${v}_`),
  position('backticks, double quotes', 'x=`printf %s_ "@"`; show "$x"', (v) => `${v}_`),
  position('backticks in double quotes, escaped quotes', 'show "`printf %s_ \\"@\\"`"', (v) => `${v}_`),
  position('backticks in double quotes, quotes', 'show "`printf %s_ "@"`"', (v) => `${v}_`),
  position('backticks in backticks', 'x=`printf %s_ "\\`printf %s. \'@\'\\`"`; show "$x"', (v) => `${v}._`),
  position('${x:-…}', 'unset x; y=${x:-@}; show "$y"'),
  position('${x:-…} as a word', 'unset x; show ${x:-@}'),
  position('${x-…} with text', 'unset x; y=${x-a@b}; show "$y"', (v) => `a${v}b`),
  position('${x:+…}', 'x=1; y=${x:+@}; show "$y"'),
  position('${x:=…}', 'unset x; : "${x:=@}"; show "$x"'),
  position('${x:=…} outside of quotes', 'unset x; set -f; : ${x:=@}; set +f; show "$x"'),
  position('${x:-"…"}', 'unset x; y=${x:-"@"}; show "$y"'),
  position("${x:-'…'}", 'unset x; y=${x:-\'@\'}; show "$y"'),
  position('"${x:-…}"', 'unset x; show "${x:-@}"'),
  position('"${x:-a … b}"', 'unset x; show "${x:-a @ b}"', (v) => `a ${v} b`),
  position('"${x:-$(…)}"', 'unset x; show "${x:-$(printf %s_ "@")}"', (v) => `${v}_`),
  position('${x#…}', 'x="@"END; y=${x#@}; show "$y"', () => 'END'),
  position('${x%…}', 'x=BEGIN"@"; y=${x%@}; show "$y"', () => 'BEGIN'),
  position('behind "${x%"${x##*/}"}"', 'x=a/b; show "${x%"${x##*/}"}@"', (v) => `a/${v}`),
  position('behind "${x#"$y"}"', 'x=ab y=a; show "${x#"$y"}@${x%"b"}"', (v) => `b${v}a`),
  position('behind "${x:-"$y"}"', 'unset x; y=a; show "${x:-"$y"}""@"', (v) => `a${v}`),
  position('a here-document', 'cat <<EOF\n[@]\nEOF\nprintf "\\0"', (v) => `[${v}]\n`),
  position('a line of a here-document', 'cat <<EOF\n@\nEOF\nprintf "\\0"', (v) => `${v}\n`),
  position('completing a line of a here-document', 'cat <<EOF\nE@\nEOF\nprintf "\\0"', (v) => `E${v}\n`),
  position('before the rest of a delimiter', "cat <<'EOF'\n@F\nEOF\nprintf '\\0'", (v) => `${v}F\n`),
  position('before text that is not ASCII', "cat <<'EOF'\n@é\nEOF\nprintf '\\0'", (v) => `${v}é\n`),
  position('quotes in a here-document', `cat <<EOF\n"@" '@'\nEOF\nprintf "\\0"`, (v) => `"${v}" '${v}'\n`),
  position('a quoted here-document', "cat <<'EOF'\n$x @ `\nEOF\nprintf '\\0'", (v) => `$x ${v} \`\n`),
  position('a double-quoted delimiter', 'cat <<"E F"\n@\nE F\nprintf "\\0"', (v) => `${v}\n`),
  position('an escaped delimiter', 'cat <<\\EOF\n@\nEOF\nprintf "\\0"', (v) => `${v}\n`),
  position('<<-', 'cat <<-EOF\n\t[@]\n\tEOF\nprintf "\\0"', (v) => `[${v}]\n`),
  position("<<-'…'", "cat <<-'EOF'\n\t@\n\tEOF\nprintf '\\0'", (v) => `${v}\n`),
  position('two here-documents', '{ cat; cat <&3; } <<A 3<<B\n[@]\nA\n(@)\nB\nprintf "\\0"', (v) => `[${v}]\n(${v})\n`),
  position('behind a here-document', 'cat >/dev/null <<EOF; show @\nit\'s "\nEOF\nshow @', (v) => `${v}\0${v}`),
  position('$(…) in a here-document', 'cat <<EOF\n$(printf %s_ "@")\nEOF\nprintf "\\0"', (v) => `${v}_\n`),
  position('backticks in a here-document', 'cat <<EOF\n`printf %s_ @`\nEOF\nprintf "\\0"', (v) => `${v}_\n`),
  position(
    '$(…) in ${…} in a here-document',
    'unset x; cat <<EOF\n${x:-$(printf %s_ "@")}\nEOF\nprintf "\\0"',
    (v) => `${v}_\n`,
  ),
  position('a here-document in $(…)', 'x=$(cat <<EOF\n[@]\nEOF\n); show "$x"', (v) => `[${v}]`),
  position('a here-document in $(…) in quotes', 'show "$(cat <<\'EOF\'\n[@]\nEOF\n)@"', (v) => `[${v}]${v}`),
  position('a here-document in backticks', 'x=`cat <<EOF\n[@]\nEOF\n`; show "$x"', (v) => `[${v}]`),
  position('beside joined lines of a here-document', 'cat <<EOF\na\\\nb\n@\nEOF\nprintf "\\0"', (v) => `ab\n${v}\n`),
];

const folder = mkdtempSync(join(tmpdir(), 'meow-quote-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** The script with the value in its holes; null where it is refused. */
function fill(script: string, value: string): string | null {
  const text = script.replaceAll('@', HOLE);
  const contexts = shellContexts(text);
  const [first = '', ...rest] = text.split(HOLE);
  let filled = first;
  for (const [index, tail] of rest.entries()) {
    const context = contexts[index];
    if (context?.kind !== 'placed') throw new Error(`refused at compile time: ${context?.reason ?? 'no context'}`);
    const quoted = quote(value, context.layers);
    if (!quoted.ok) return null;
    filled += quoted.value + tail;
  }
  return filled;
}

function run(shell: string, script: string): string {
  const file = join(folder, 'script');
  writeFileSync(file, `show() { printf '%s\\0' "$1"; }\n${script}`);
  const { stdout, stderr } = spawnSync(shell, [file], {
    encoding: 'utf8',
    maxBuffer: 1e8,
    env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', HOME: '/nowhere' },
  });
  return stdout + stderr;
}

const isInstalled = (shell: string): boolean => spawnSync(shell, ['-c', ':']).status === 0;
const SHELLS = ['sh', 'bash'].filter(isInstalled);

/** Runs all in one shell; where that does not print what it must, finds the one that is to blame. */
function check(shell: string, values: readonly string[], positions: readonly Position[]): void {
  const cases = positions.flatMap((at) =>
    values.flatMap((value) => {
      const script = fill(at.script, value);
      return script === null ? [] : [{ name: at.name, value, script: `${script}\n`, prints: `${at.prints(value)}\0` }];
    }),
  );
  const all = run(shell, cases.map(({ script }) => script).join(''));
  if (all === cases.map(({ prints }) => prints).join('')) return;
  for (const { name, value, script, prints } of cases) {
    expect(run(shell, script), `${name} in ${shell}, value ${JSON.stringify(value)}:\n${script}`).toBe(prints);
  }
  expect.fail('cases fail together that do not fail alone');
}

const SPECIAL = [
  ...' \t\n\r\'"`$\\(){}[]<>|&;!#*?~=%+-_.,:@/^'.split(''),
  '0',
  '7',
  'a',
  'if',
  'do',
  'EOF',
  'E',
  'OF',
  'A',
  'B',
  'é',
  '😀',
  '\u0081',
  '\u0001',
  '\u007f',
];
const hostile = fc.array(fc.constantFrom(...SPECIAL), { maxLength: 8 }).map((parts) => parts.join(''));
const anything = fc.string({ unit: 'binary', maxLength: 20 }).map((text) => text.replaceAll('\0', ''));
const PLAIN = [
  '',
  ' ',
  '2',
  '-n',
  'a=b',
  'if',
  "it's",
  '$(touch pwned)',
  '`touch pwned`',
  "'; touch pwned; '",
  '"',
  '\\',
  '\n',
  'EOF',
  'OF',
  'EO',
  'Eötvös',
  'x\nE',
  'x\nEOF\ny',
  '\tx',
  'a\n\tb',
  '}',
  '*',
  '~',
  '#x',
  '!!',
  '-',
  '\r\n',
  '\\\n',
];

describe.each(SHELLS)('in %s a value arrives as data', (shell) => {
  test.each(POSITIONS)('$name', (at) => {
    check(shell, PLAIN, [at]);
  });

  test('in every position, whatever it is', { timeout: 60_000 }, () => {
    const values = fc.array(fc.oneof({ weight: 3, arbitrary: hostile }, anything), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(values, (batch) => {
        check(shell, batch, POSITIONS);
      }),
      { numRuns: 3 },
    );
  });

  test('integers are calculated with as they are', () => {
    for (const [value, result] of [
      ['5', '7'],
      ['-3', '-1'],
      ['+4', '6'],
      ['010', '12'],
      ['08', '10'],
      [' 1 ', '3'],
    ] as const) {
      check(
        shell,
        [value],
        [
          position('arithmetic', 'show $((@ + 2))', () => result),
          position('after an operator', 'show $((2-(-1*@)))', () => result),
        ],
      );
      check(shell, [value], [position('a bracket of its own', 'show "$(( (@) +2 ))"', () => result)]);
    }
  });
});

describe('a place is refused', () => {
  const reasonsFor = (script: string): readonly (string | null)[] =>
    shellContexts(script.replaceAll('@', HOLE)).map((context) => (context.kind === 'refused' ? context.reason : null));

  test.each([
    ['behind a backslash', 'echo \\@', /backslash/],
    ['behind a backslash in backticks', "echo `echo '\\@'`", /backslash within backticks/],
    ['behind a sign in two lines', 'cat <\\\n<EOF\n@\nEOF\n', /cut in two/],
    ['behind a name in two lines', 'echo "$na\\\nme@"', /cut in two/],
    ['behind brackets in quotes in arithmetic', 'echo $(( "))" )) @', /quotes in/],
    ['behind quotes in ${…} in a here-document', 'cat <<E\n${x:-"}"}\n@\nE\n', /quotes within/],
    ['behind a backslash in double quotes', 'echo "\\@"', /backslash/],
    ['behind a backslash in a here-document', 'cat <<E\nx\\@\nE\n', /backslash/],
    ['behind a dollar', 'echo $@', /expansion/],
    ['behind a dollar in double quotes', 'echo "$@"', /expansion/],
    ['as the name of an expansion', 'echo ${@}', /expansion|told/],
    ['behind a name', 'echo $home@', /part of the name \$home/],
    ['behind a numbered argument', 'echo "$1@"', /part of the name \$1/],
    ["in $'…'", "echo $'@'", /shells read differently/],
    ["behind an escaped quote in $'…'", "echo $'\\'' @", /shells read differently/],
    ['as a delimiter', 'cat <<@\nx\n@\n', /delimiter/],
    ['where another could complete it', 'cat <<EOF\n@@\nEOF\n', /could make the line that ends/],
    ['where a joined line could complete it', 'cat <<EOF\n@\\\nx\nEOF\n', /could make the line that ends/],
    ['in ${x/…}', 'echo ${x/a/@}', /told/],
    ['in a pattern in double quotes', 'echo "${x#@}"', /told/],
    ['in ${…} in a here-document', 'cat <<E\n${x:-@}\nE\n', /told/],
    ['in quotes in "${…}"', 'echo "${x:-"@"}" "${x#"@"}"', /quotes within/],
    ['in double quotes without end', 'echo "@', /never closed/],
    ['in single quotes without end', "echo '@", /never closed/],
    ['in $( without end', 'echo $(echo @', /never closed/],
    ['in $(( without end', 'echo $((1 + @', /never closed/],
    ['in ${ without end', 'echo ${x:-@', /never closed/],
    ['in backticks without end', 'echo `echo @', /never closed/],
    ['in a here-document without end', 'cat <<EOF\n@\n', /without its last line/],
    ['behind a ) too many', 'echo a) @', /closes nothing/],
    ['in brackets that could be arithmetic', 'x=$((echo @) | cat)', /two brackets/],
    ['in a line with a here-document and quotes over lines', 'cat <<E "a\nb" @\nE\n', /here-document/],
  ])('%s', (_name, script, reason) => {
    const reasons = reasonsFor(script);
    expect(reasons).toEqual(reasons.map(() => expect.stringMatching(reason)));
  });

  test('without taking the others with it', () => {
    expect(reasonsFor('echo @ \\@ "@"').map((reason) => reason === null)).toEqual([true, false, true]);
  });

  test('in scripts nested without bound, without running out of stack', () => {
    for (const opening of ['$(', '`', '"$(', '${x:-', '$((', '(', '<<A ']) {
      expect(reasonsFor(`${opening.repeat(20_000)}@`)).toHaveLength(1);
    }
  });
});
