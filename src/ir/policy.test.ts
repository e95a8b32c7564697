import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { Policy } from './conductor.ts';
import { globCovers, NO_RESTRICTIONS, pathsWithoutEffect, tighten } from './policy.ts';

const policy = (more: Partial<Policy>): Policy => ({ ...NO_RESTRICTIONS, ...more });
const allowing = (...allowedPaths: readonly string[]): Policy => policy({ allowedPaths });

describe('tighten', () => {
  test('takes the stricter value of each field', () => {
    const outer = policy({
      name: 'all',
      text: 'Be careful.',
      forbiddenPaths: ['a', 'b'],
      forbiddenOperations: ['delete'],
      network: 'deny',
      onPrompt: 'fail',
    });
    const inner = policy({
      name: 'one',
      text: 'Be quick.',
      forbiddenPaths: ['b', 'c'],
      forbiddenOperations: ['commit'],
      access: 'read_only',
      lockfiles: 'deny',
    });
    expect(tighten(outer, inner)).toEqual({
      name: 'one',
      text: 'Be careful.\n\nBe quick.',
      allowedPaths: null,
      forbiddenPaths: ['a', 'b', 'c'],
      forbiddenOperations: ['delete', 'commit'],
      network: 'deny',
      access: 'read_only',
      onPrompt: 'fail',
      lockfiles: 'deny',
    });
  });

  test('an empty policy changes nothing', () => {
    const outer = policy({ name: 'x', text: 'X.', allowedPaths: ['a'], network: 'deny', access: 'read_only' });
    expect(tighten(outer, NO_RESTRICTIONS)).toEqual(outer);
    expect(tighten(NO_RESTRICTIONS, outer)).toEqual(outer);
    expect(tighten(outer, outer)).toEqual(outer);
  });

  test.each([
    ['a step may allow less', ['src/**'], ['src/ir/**'], ['src/ir/**']],
    ['a step may not allow more', ['src/ir/**'], ['src/**'], ['src/ir/**']],
    ['what the step leaves out is forbidden', ['src/**', 'docs/**'], ['docs/**'], ['docs/**']],
    ['two that do not meet allow nothing', ['src/**'], ['docs/**'], []],
    ['a plain name is all that is below it', ['docs'], ['docs/api/**', 'docs/a.md'], ['docs/api/**', 'docs/a.md']],
    ['and is not covered by what is right in a folder', ['src/*'], ['src/a.ts'], ['{src/a.ts}']],
    ['nothing is kept of what overlaps in part', ['src/*.ts'], ['src/a*'], []],
    ['everything is within everything', ['**'], ['a/*.md', 'b'], ['a/*.md', 'b']],
  ])('%s', (_sentence, outer, inner, both) => {
    expect(tighten(allowing(...outer), allowing(...inner)).allowedPaths).toEqual(both);
  });

  test('reports paths without effect', () => {
    expect(pathsWithoutEffect(allowing('src/**'), allowing('docs/**', 'src/a', '**'))).toEqual(['docs/**']);
    expect(pathsWithoutEffect(NO_RESTRICTIONS, allowing('docs/**'))).toEqual([]);
  });
});

describe('a glob covers', () => {
  test.each([
    ['*.md', 'a.md'],
    ['**', 'a/b'],
    ['**/*.md', 'a.md'],
    ['**/*.md', 'a/b/c.md'],
    ['src/**', 'src/a/b'],
    ['src/**', 'src/**'],
    ['src/**', 'src/{a,b}/c'],
    ['a/**/b', 'a/b'],
    ['*', 'a?'],
  ])('%s: %s', (glob, path) => {
    expect(globCovers(glob, path)).toBe(true);
  });

  test.each([
    ['*.md', 'a/b.md'],
    ['src/**', 'src'],
    ['src/**', 'srca/b'],
    ['src/*', 'src/**'],
    ['src/*/*', 'src/{a/b,c}'],
    ['a?', 'a*'],
    ['[ab]', 'a'],
    ['a/b', 'a'],
    ['a', 'a/b'],
  ])('%s, and not %s', (glob, path) => {
    expect(globCovers(glob, path)).toBe(false);
  });
});

/** As the engine reads them: names of few letters, so that they meet. */
const segment = fc.oneof(fc.constantFrom('a', 'b', 'ab', '*', 'a*', '*b', '**'));
const glob = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const path = fc.array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));

/** Straight from the definition. */
function matches(pattern: string, text: string): boolean {
  const parts = pattern.split('/');
  const source = parts.map((part, index) => {
    const isLast = index === parts.length - 1;
    if (part === '**') return isLast ? '.+' : '(?:[^/]+/)*';
    return part.replaceAll('*', '[^/]*') + (isLast ? '' : '/');
  });
  return new RegExp(`^${source.join('')}$`).test(text);
}

const isAllowed = (globs: readonly string[], text: string): boolean =>
  globs.some((each) => {
    const plain = each.replace(/^\{(.*)\}$/, '$1');
    if (plain !== each) return text === plain;
    return matches(each, text) || (!each.includes('*') && text.startsWith(`${each}/`));
  });

test('the combined policy never allows more than either', () => {
  const globs = fc.array(glob, { maxLength: 3 });
  fc.assert(
    fc.property(globs, globs, path, (outer, inner, text) => {
      const both = tighten(allowing(...outer), allowing(...inner)).allowedPaths ?? [];
      if (isAllowed(both, text)) {
        expect(isAllowed(outer, text)).toBe(true);
        expect(isAllowed(inner, text)).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a glob covers exactly the paths that it matches', () => {
  fc.assert(
    fc.property(glob, path, (pattern, text) => {
      expect(globCovers(pattern, text)).toBe(matches(pattern, text));
    }),
    { numRuns: 2_000 },
  );
});
