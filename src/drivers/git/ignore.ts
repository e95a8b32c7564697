// Rules of `.gitignore` files. Pure.
//
// Git's own answer is not asked for: it depends on configuration, attributes and an index that agents can change, and git
// waits forever for a `.gitignore` that is a pipe. Names have one character for each byte (worktree-paths.ts).

import { glob } from '../conductor/globs.ts';

/** Rules of one file; the last one that matches decides. */
export type IgnoreRules = readonly Rule[];

interface Rule {
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
  /** `path`: relative to the folder of the file. */
  readonly matches: (path: string, name: string) => boolean;
}

export function readIgnoreRules(text: string): IgnoreRules {
  return text
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .split('\n')
    .slice(0, RULES_MAX)
    .flatMap((line) => ruleOf(line) ?? []);
}

/** Null if no rule matches. */
export function isIgnored(rules: IgnoreRules, path: string, isFolder: boolean): boolean | null {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const rule = rules.findLast(({ isForFolders, matches }) => (isFolder || !isForFolders) && matches(path, name));
  return rule === undefined ? null : !rule.isNegated;
}

/** More are ignored: they would cost time without end. */
const RULES_MAX = 10_000;

function ruleOf(line: string): Rule | null {
  if (line.startsWith('#')) return null;
  const text = withoutTrailingSpaces(line.replace(/\r$/, ''));
  const isNegated = text.startsWith('!');
  const written = isNegated ? text.slice(1) : text;
  const isForFolders = written.endsWith('/');
  const pattern = isForFolders ? written.slice(0, -1) : written;
  if (pattern === '') return null;
  const isAnchored = pattern.includes('/');
  return { isNegated, isForFolders, matches: matcher(pattern.replace(/^\//, ''), isAnchored) };
}

/** Most rules are a plain name or `*.end`. */
function matcher(pattern: string, isAnchored: boolean): Rule['matches'] {
  const end = /^\*([^*?[\\{}]+)$/.exec(pattern)?.[1];
  if (!isAnchored && end !== undefined) return (_path, name) => name.endsWith(end);
  if (!/[*?[\\]/.test(pattern)) return (path, name) => (isAnchored ? path : name) === pattern;
  // Braces are ordinary characters here.
  const one = glob(
    pattern.replaceAll(/(\\.)|([{},])/gs, (_whole, quoted?: string, brace = '') => quoted ?? `\\${brace}`),
  );
  return (path, name) => one.matches(isAnchored ? path : name);
}

function withoutTrailingSpaces(line: string): string {
  return line.replace(/((?:\\.|[^\\ ])?) +$/s, (whole, last: string) => (last === '\\ ' ? whole.slice(0, 2) : last));
}
