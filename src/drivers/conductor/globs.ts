// Patterns of paths. picomatch matches names; this file adds what it lacks: linear time, braces with slashes, `reaches`.
//
//   *        any characters within a name               ?      one UTF-16 code unit of a name
//   **       as a whole name: any number of folders; at the end of a pattern: everything below
//   [a-z]    one of these; [!a-z] or [^a-z] none of these  {a,b}  one of these, which may be patterns themselves
//   \        quotes the next character
//
// A leading dot is not special. Parentheses, `!`, `+`, `@`, `|` and quotes are literal, and so are `[` and `{` if they are
// not closed. Matching takes time proportional to the length of the path times the length of the pattern.

import picomatch from 'picomatch';

import { UsageError } from '../../base/errors.ts';

export interface Glob {
  matches(path: string): boolean;
  /** Whether something in this folder, or further down, may match. */
  reaches(folder: string): boolean;
}

/** Throws a UsageError for a pattern with too many alternatives. */
export function glob(pattern: string): Glob {
  const alternatives = expandBraces(pattern).map(namesOf);
  return {
    matches: (path) => alternatives.some((names) => positions(names, path).has(names.length)),
    reaches: (folder) =>
      folder === '' || alternatives.some((names) => [...positions(names, folder)].some((at) => at < names.length)),
  };
}

export function globs(patterns: readonly string[]): (path: string) => boolean {
  const all = patterns.map(glob);
  return (path) => all.some((one) => one.matches(path));
}

/** The only path that a pattern matches; null if it may match several. */
export function literalOf(pattern: string): string | null {
  const tokens = tokensOf(pattern);
  const closings = closingBraces(tokens);
  const isLiteral = tokens.every((token, at) => !isWildcard(token) && !closings.has(at));
  return isLiteral ? tokens.map(unquoted).join('') : null;
}

/** A pattern that matches this text alone. */
export function asGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]{},]/g, String.raw`\$&`);
}

const ALTERNATIVES_MAX = 10_000;
const TOKEN = /\\.|\[(?:[!^]|(?![!^]))(?:\\[^/]|[^\\/])(?:\\[^/]|[^\]\\/])*\]|./gsu;

/** Characters, quoted or not, and whole character classes. */
function tokensOf(pattern: string): readonly string[] {
  return pattern.match(TOKEN) ?? [];
}

function isClass(token: string): boolean {
  return token.length > 1 && token.startsWith('[');
}

function isWildcard(token: string): boolean {
  return token === '*' || token === '?' || isClass(token);
}

function unquoted(token: string): string {
  return token.length > 1 && token.startsWith('\\') ? token.slice(1) : token;
}

/** Index of each opening brace that is closed, and of its closing brace. */
function closingBraces(tokens: readonly string[]): ReadonlyMap<number, number> {
  const open: number[] = [];
  const closed = new Map<number, number>();
  for (const [at, token] of tokens.entries()) {
    if (token === '{') open.push(at);
    const from = token === '}' ? open.pop() : undefined;
    if (from !== undefined) closed.set(from, at);
  }
  return closed;
}

/** All patterns without braces that a pattern stands for. Braces that are left are literal. */
function expandBraces(pattern: string): readonly string[] {
  const tokens = tokensOf(pattern);
  const closings = closingBraces(tokens);
  const expand = (from: number, end: number): ReadonlySet<string> => {
    const options = new Set<string>();
    let here: ReadonlySet<string> = new Set(['']);
    for (let at = from; at < end; at += 1) {
      const token = tokens[at] ?? '';
      const close = closings.get(at);
      if (token === ',' && end < tokens.length) {
        for (const option of here) options.add(option);
        here = new Set(['']);
      } else if (close === undefined) {
        here = new Set([...here].map((text) => text + token));
      } else {
        const inner = [...expand(at + 1, close)];
        if (here.size * inner.length > ALTERNATIVES_MAX) {
          const problem = `${JSON.stringify(pattern)} stands for more than ${ALTERNATIVES_MAX} alternatives`;
          throw new UsageError(`the pattern ${problem}`, 'Write several patterns with fewer braces.');
        }
        here = new Set([...here].flatMap((text) => inner.map((option) => text + option)));
        at = close;
      }
    }
    return new Set([...options, ...here]);
  };
  return [...expand(0, tokens.length)];
}

/** Names of a pattern without braces. `**` matches any number of names. */
type Names = readonly (RegExp | '**')[];

function namesOf(pattern: string): Names {
  const names = [''];
  for (const token of tokensOf(pattern)) {
    if (unquoted(token) === '/') names.push('');
    else names.push(`${names.pop() ?? ''}${token}`);
  }
  // At the end it matches at least one name.
  if (names.at(-1) === '**') names.push('*');
  return names.map((name) => (name === '**' ? name : nameRegExp(name)));
}

/** Every position in the pattern that can be reached by the names of a path. */
function positions(names: Names, path: string): ReadonlySet<number> {
  let here = withSkipped(names, [0]);
  for (const name of path.split('/')) {
    const next: number[] = [];
    for (const at of here) {
      const wanted = names[at];
      if (wanted === '**') next.push(at);
      else if (wanted?.test(name) === true) next.push(at + 1);
    }
    here = withSkipped(names, next);
  }
  return here;
}

/** `**` also matches no name at all. */
function withSkipped(names: Names, positions: readonly number[]): ReadonlySet<number> {
  const all = new Set(positions);
  for (const at of all) if (names[at] === '**') all.add(at + 1);
  return all;
}

/** Backtracking into an earlier `*` never helps, so each `*` but the last becomes atomic: a lookahead and its capture. */
function nameRegExp(name: string): RegExp {
  if (name === '') return /^$/;
  const tokens = tokensOf(name).filter((token, at, all) => token !== '*' || all[at - 1] !== '*');
  try {
    const { source } = picomatch.makeRe(tokens.map(forPicomatch).join(''), OPTIONS);
    const [first = '', ...others] = source.split(ANY);
    const last = others.pop();
    const middle = others.map((part, at) => `(?=(${ANY}${part}))\\${at + 1}`).join('');
    return new RegExp(`${first}${middle}${last === undefined ? '' : `[^/]*${last}`}`, 's');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`the pattern ${JSON.stringify(name)} is not valid: ${error.message}`);
  }
}

/** How picomatch translates `*`. */
const ANY = '[^/]*?';
const OPTIONS = {
  dot: true,
  nonegate: true,
  noext: true,
  nobrace: true,
  noglobstar: true,
  fastpaths: false,
  literalBrackets: false,
  posix: false,
  strictSlashes: true,
  windows: false,
  // Throw for what cannot be compiled, instead of matching nothing.
  debug: true,
};

/** Quotes what only picomatch gives a meaning to. */
function forPicomatch(token: string): string {
  if (isClass(token)) return token.replace(/^\[!/, '[^').replaceAll(/\\([A-Za-z0-9])/g, '$1');
  if (isWildcard(token)) return token;
  const char = unquoted(token);
  // picomatch drops some of several backslashes in a row.
  if (char === '\\') return String.raw`[\\]`;
  return /^[A-Za-z0-9_]$/.test(char) ? char : `\\${char}`;
}
