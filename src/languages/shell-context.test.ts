// The promise under test: a value reaches the command as the data it is, in every place of a script, or is refused. The
// proof is a real shell: scripts are filled with hostile values, run by every shell of this machine, and must print the
// values unchanged.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { quote } from '../ir/quote.ts';
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
  position('an exported assignment in quotes', 'export "v=@" w=1; show "$v"'),
  position('a constant', '(readonly v=@; show "$v")'),
  position('a local variable', 'f() { local v=@ w="@"; show "$v$w"; }; f', (v) => v + v),
  position('an assignment before a command', 'v="a b" w=@ sh -c \'printf "%s\\0" "$w"\''),
  position('a comparison of texts', 'if [ @ = @ ]; then show yes; fi', () => 'yes'),
  position('a format of printf', "printf '%s\\0' @"),
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

/** What only bash can read. */
const BASH_POSITIONS: readonly Position[] = [
  position('[[ … ]], texts', 'if [[ @ == @ && ! @ != "@" ]]; then show yes; fi', () => 'yes'),
  position('[[ … ]], order', '[[ ( x@ < xx@ || x@ > x ) || -n @ ]] && show "@"'),
  position('[[ … ]], a part of a pattern', '[[ "a@b" == a@* ]]&&show yes', () => 'yes'),
  position('[[ … ]], a part of an expression', 'x="@"; [[ "<$x>" =~ ^(<|x)@.$ ]];show yes', () => 'yes'),
  position('[[ … ]] over lines', '[[ -n x &&\n @ == @\n]]\nshow @'),
  position('a list', 'l=(a @ "@"); l+=(@); show "${l[1]}${l[2]}${l[3]}"', (v) => v + v + v),
  position('a list over lines', 'l=(\n  @ # it\'s @\n  @)\nshow "${l[1]}"'),
  position('an element of a list', 'l[1]=@; show "${l[1]}"'),
  position('elements of a list', 'l=([2]=@ [1]="@"); show "${l[1]}${l[2]}"', (v) => v + v),
  position('a declared list', 'declare -A m=([a]=@); show "${m[a]}"'),
  position('a declaration', '(declare -x v=@ w="@"; show "$v$w")', (v) => v + v),
  position('a declaration beside a list', 'f() { local w=@; local -a l=("$w"); show "$w"; }; f'),
  position('a process', 'IFS= read -rd \'\' x < <(show @); show "$x"'),
  position('behind a process', "cat <(show @) <(:) | cat; show '@'", (v) => `${v}\0${v}`),
  position('a here-string', 'cat <<< @; printf "\\0"', (v) => `${v}\n`),
  position('both outputs', 'show x &> /dev/null; show @ 2>&1'),
  position('a descriptor', 'exec {fd}>&1; show @ >&"$fd"; exec {fd}>&-'),
  position('a loop in braces', 'for ((i = 0; i < 1; i++)) { show @; }'),
];

const folder = mkdtempSync(join(tmpdir(), 'meow-quote-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** The script with the value inserted; null if it is refused. */
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
    cwd: folder,
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
  'x\nEOF)',
  '\nEOF y)\nz',
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

  test('even if it is made to be evaluated', () => {
    check(shell, EVALUATED, POSITIONS);
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
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

/** What bash runs where it evaluates a word, however well it is quoted. */
const EVALUATED = [
  'a[$(touch pwned)]',
  '$(touch pwned)',
  '($(touch pwned))',
  '([$(touch pwned)]=1)',
  '-va[$(touch pwned)]',
  '-pa[$(touch pwned)]',
  'x -v a[$(touch pwned)]',
  'a[$(touch pwned)]=1',
];

test.runIf(SHELLS.includes('bash'))('in what only bash can read a value arrives as data', { timeout: 60_000 }, () => {
  check('bash', [...PLAIN, ...EVALUATED], BASH_POSITIONS);
  // Two control characters that bash doubles in quotes in a list.
  const value = fc
    .oneof({ weight: 3, arbitrary: hostile }, anything)
    .map((text) => text.replaceAll('\u0001', '').replaceAll('\u007f', ''));
  fc.assert(
    fc.property(fc.array(value, { minLength: 8, maxLength: 8 }), (batch) => {
      check('bash', batch, BASH_POSITIONS);
    }),
    { numRuns: 3 },
  );
  expect(existsSync(join(folder, 'pwned'))).toBe(false);
});

describe('where bash evaluates words without their quotes', () => {
  const contextsOf = (script: string): ReturnType<typeof shellContexts> => shellContexts(script.replaceAll('@', HOLE));

  /** As a value would be put in there, if it were not refused. */
  const runs = (script: string, value: string): boolean => {
    const word = `'${value}'`;
    const filled = script.replaceAll(/"@"|'@'/g, word).replaceAll('@', word);
    run('bash', `a=(1); x=abc; ${filled}\nwait`);
    const pwned = join(folder, 'pwned');
    const ran = existsSync(pwned);
    rmSync(pwned, { force: true });
    return ran;
  };

  test.each([
    ['-v in [[ … ]]', '[[ -v @ ]]'],
    ['-v in quotes in [[ … ]]', '[[ x == x && ( ! -v "@" ) ]]'],
    ['-v over lines in [[ … ]]', '[[ x &&\n -v @ ]]'],
    ['test -v', 'test -v @'],
    ['[ -v ]', '[ x = x -a ! -v @ ]'],
    ['[ -v ], written otherwise', '"test" \'-v\' @'],
    ['[ -v ], from a variable', 'op=-v; [ $op @ ]'],
    ['printf -v', 'printf -v @ x'],
    ['printf -vNAME', 'printf @ x'],
    ['printf -vNAME behind -v', 'printf -v x "@" x'],
    ['the subscript of an assignment', 'a[@]=1'],
    ['the subscript of an assignment, in quotes', 'a["@"]+=1'],
    ['the subscript of an assignment, with spaces', 'a[ @ ]=1'],
    ['a subscript in a subscript', 'a[b[0]=@]=1'],
    ['the subscript of an element', 'a=([@]=1)'],
    ['the subscript of a descriptor', 'exec {a[@]}>/dev/null'],
    ['the subscript of an expansion', 'show ${a[@]}'],
    ['the subscript of an expansion, in quotes', 'show ${a["@"]}'],
    ['a part of a text', 'show ${x:@}'],
    ['a part of a text, in quotes', "show ${x:'@'}"],
    ['a part of a text, within another', 'show ${x:${nothing:-@}}'],
    ['declare', 'declare @=1'],
    ['declare, in quotes', 'declare "@"'],
    ['declare -i', 'declare -i x=@'],
    ['what was declared an integer', 'declare -i n; n=@'],
    ['declare -n', 'declare -n r=@; show "$r"'],
    ['declare -a', 'declare -a y=@'],
    ['what is declared for an array', 'y=(1); declare y=@'],
    ['what is declared for what is read as an array', 'read -ra y <<< 1; declare y=@'],
    ['what is declared for an element', 'y[0]=1; typeset y=@'],
    ['what is declared for lines', 'mapfile -t y <<< 1; declare "y=@"'],
    ['what is declared for what is declared elsewhere', '$(declare -a z); f() { local -a y=(1); local x=1 y=@; }; f'],
    ['typeset', 'typeset @'],
    ['local', 'f() { local @; }; f'],
    ['let', 'let @'],
    ['let, with a name', 'let y=@'],
    ['unset', 'unset @'],
    ['unset, the subscript', 'unset "a[@]"'],
    ['read', 'read -r @ <<< 1'],
    ['wait', 'sleep 0 & wait -n @'],
    ['a variable that is calculated', 'RANDOM=@'],
    ['a variable that is expanded', 'PS4=@; set -x; :'],
    ['a file that a shell begins with', 'export BASH_ENV=@; bash -c :'],
    ['>&', 'show x >& @'],
    ['old arithmetic', 'show $[@]'],
    ['old arithmetic in quotes', 'show "$[a[0] + @]"'],
    ['behind a function', 'function f { let @; }; f'],
    ['behind a condition', 'if [[ x ]] then let @; fi'],
    ['behind a group', 'if { :; } then let @; fi'],
    ['behind a loop', 'set 1; for i do let @; done'],
    ['behind a loop in braces', 'for ((;;)) { let @; break; }'],
    ['behind an assignment', 'y="a b" z=(c) let @'],
    ['behind a redirection', '{fd}>/dev/null 2>/dev/null let @'],
    ['behind an expansion', '$nothing let @'],
    ['behind command', 'command -p builtin let @'],
    ['behind time', 'time -p let @'],
    ['behind time behind a redirection', 'show "$(2>/dev/null time let @)"'],
    ['behind an expansion in the same word', '$(:)command $(:)let @'],
    ['in a process', 'cat < <(let @)'],
    ['behind a process', 'test <(:) = x -o -v @'],
    ['in a coprocess', 'coproc let @'],
    ['in $(…) in a here-document', 'cat <<E\n$(let @)\nE'],
  ])('a value is refused: %s', (_name, script) => {
    expect(contextsOf(script).some(({ kind }) => kind === 'refused')).toBe(true);
    // And for a reason.
    if (SHELLS.includes('bash')) expect(EVALUATED.some((value) => runs(script, value))).toBe(true);
  });

  test.each([
    'export @',
    'export @=1',
    'readonly @',
    'getopts ab @',
    'mapfile @',
    'readarray -t "@"',
    'for @ in a; do :; done',
    'select @ in a; do :; done',
    '[[ -R @ ]]',
    'declare -A m=([@]=1)',
    'compgen -W @',
    'SECONDS=@',
    'declare $options v=@',
    'declare -a "$name"; declare v=@',
    'declare -a "x$name"; declare v=@',
    'export "$name"=@',
  ])('a value is refused to be safe: %s', (script) => {
    expect(contextsOf(script).some(({ kind }) => kind === 'refused')).toBe(true);
  });

  describe.each([
    '[[ @ -gt 3 ]]',
    '[[ x && ( 3 -lt "@" ) ]]',
    "[[ '@' -ne 2 ]]",
    '[[ ${nothing:-@} -ge 4 ]]',
    '(( @ > 3 ))',
  ])('only an integer goes in: %s', (condition) => {
    const script = `${condition} && show yes || show no`;

    test.each(EVALUATED)('and not %s', (value) => {
      expect(fill(script, value)).toBeNull();
    });

    test.runIf(SHELLS.includes('bash'))('and is compared', () => {
      check('bash', ['4', ' 010 ', '+5'], [position('greater', script, () => 'yes')]);
      const isUnequal = condition.includes('-ne');
      check('bash', ['-4', '2', '-0'].slice(isUnequal ? 1 : 0, isUnequal ? 2 : 3), [
        position('not', script, () => 'no'),
      ]);
    });
  });

  test('numbers are left to `test`, which does not evaluate', () => {
    for (const script of ['test @ -lt 3', '[ "@" -ge 80 ]', "[ '@' -eq @ ]"]) {
      expect(contextsOf(script).every(({ kind }) => kind === 'placed')).toBe(true);
      if (SHELLS.includes('bash')) for (const value of EVALUATED) expect(runs(script, value)).toBe(false);
    }
  });

  test('the environment is not named as a cure, where bash would evaluate it too', () => {
    for (const script of ['[[ -v @ ]]', 'a[@]=1', 'printf -v @ x', 'let @', 'declare -i x=@', 'show >& @']) {
      expect(contextsOf(script)).toMatchObject([{ kind: 'refused', hint: expect.any(String) }]);
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
    ['in [[ without end', '[[ @ == x', /never closed/],
    ['in [[ that a ; ends', '[[ @; ]]', /with a ;/],
    ['in a list without end', 'x=(@', /never closed/],
    ['in a [[ that is no word of the shell', 'x=1 [[ a || let @ ]]', /do not take/],
    ['in a case that is no word of the shell', 'echo "$(x=1 case x in x) echo @;; esac)"', /do not take/],
    ['in a case behind a redirection', 'echo "$(>x case x in x) echo @;; esac)"', /do not take/],
    ['in a case behind time in $(…)', 'echo "$(time -p case x in x) echo @;; esac)"', /do not take/],
    ['in brackets behind time in $(…)', 'echo "$(time (case x in x) echo @;; esac))"', /time/],
    ['behind a bracket that could be a pattern', '!(echo # @\n)', /read differently/],
    ['behind a # that could be text', '[[ x == +(a|# @\n) ]]', /after a #/],
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
    for (const opening of [
      '$(',
      '`',
      '"$(',
      '${x:-',
      '$((',
      '(',
      '<<A ',
      'x=(',
      '<(',
      '[[ ',
      '[[ ( ',
      '$x ',
      'printf -v x ',
      'a=1 ',
    ]) {
      expect(reasonsFor(`${opening.repeat(20_000)}@`)).toHaveLength(1);
    }
  });
});
