import { describe, expect, test } from 'vitest';
import { planRestore, type RestoreQuestion } from './restore-plan.ts';
import type { Entries } from './walk.ts';

function entries(...names: readonly string[]): Entries {
  return new Map(
    names.map((text) => {
      const [name = '', oid = 'o', mode = '100644'] = text.split(' ');
      return [name, { mode, oid }];
    }),
  );
}

function plan(question: Partial<RestoreQuestion>): { aside: string[]; removals: string[]; writes: string[] } {
  const empty = {
    now: entries(),
    wanted: entries(),
    ignoredNow: [],
    specialNow: [],
    repositoriesNow: [],
    ignoredThen: [],
    specialThen: [],
    repositoriesThen: [],
    list: () => [],
  };
  const { aside, removals, writes } = planRestore({ ...empty, ...question });
  return { aside: [...aside], removals: [...removals], writes: writes.map(({ name }) => name) };
}

describe('a restore', () => {
  test('writes what differs and removes what was not there (restore-plan/1, restore-plan/2)', () => {
    const now = entries('same', 'changed 1', 'mode o 100755', 'new');
    const wanted = entries('same', 'changed 2', 'mode o 100644', 'lost');
    expect(plan({ now, wanted })).toEqual({ aside: [], removals: ['new'], writes: ['changed', 'mode', 'lost'] });
  });

  test('moves ignored files, repositories and pipes aside that were not there (restore-plan/3)', () => {
    const question = { ignoredNow: ['a.log', 'out/'], repositoriesNow: ['inner'], specialNow: ['pipe'] };
    expect(plan(question).aside).toEqual(['a.log', 'out', 'inner/.git', 'pipe']);
  });

  test('leaves what was ignored before, or is in a folder that was (restore-plan/4)', () => {
    const ignoredThen = ['a.log', 'out/'];
    expect(plan({ ignoredNow: ['a.log', 'out/', 'b.log'], ignoredThen }).aside).toEqual(['b.log']);
    expect(plan({ ignoredNow: ['out/new/'], ignoredThen }).aside).toEqual([]);
    expect(plan({ now: entries('a.log', 'out/x', 'outer'), ignoredThen }).removals).toEqual(['outer']);
  });

  test('tells a file from the folder that was there by the same name', () => {
    expect(plan({ ignoredNow: ['out'], ignoredThen: ['out/'] }).aside).toEqual(['out']);
    expect(plan({ ignoredNow: ['out/'], ignoredThen: ['out'] }).aside).toEqual(['out']);
  });

  test('looks into a folder that is ignored only now, for what was in it before', () => {
    const inside: Record<string, readonly string[]> = {
      src: ['a', 'deep/', 'new', 'old.log', 'vendor/'],
      'src/deep': ['b', 'c'],
    };
    const question = {
      ignoredNow: ['src/'],
      wanted: entries('src/a', 'src/deep/b'),
      ignoredThen: ['src/old.log', 'src/vendor/'],
      list: (folder: string) => inside[folder] ?? [],
    };
    expect(plan(question)).toEqual({
      aside: ['src/a', 'src/deep/b', 'src/deep/c', 'src/new'],
      removals: [],
      writes: ['src/a', 'src/deep/b'],
    });
  });

  test('moves a submodule aside that was added since, and leaves others', () => {
    const now = entries('added o 160000', 'kept o 160000');
    const wanted = entries('kept o 160000');
    const question = { now, wanted, repositoriesNow: ['added', 'kept'], repositoriesThen: ['kept'] };
    expect(plan(question)).toEqual({ aside: ['added'], removals: [], writes: [] });
  });

  test('moves a submodule aside that has a repository only now, and makes its empty folder again', () => {
    const question = { now: entries('sub o 160000'), wanted: entries('sub o 160000'), repositoriesNow: ['sub'] };
    expect(plan(question)).toEqual({ aside: ['sub'], removals: [], writes: ['sub'] });
  });

  test('moves the repository out of a folder that was none before, tracked or not', () => {
    const question = { now: entries('new/a', 'old/b'), wanted: entries('old/b'), repositoriesNow: ['new', 'old'] };
    expect(plan(question).aside).toEqual(['new/.git', 'old/.git']);
    expect(plan({ ...question, repositoriesThen: ['old'] }).aside).toEqual(['new/.git']);
  });

  test('leaves repositories and pipes that existed in a folder that is ignored only now', () => {
    const inside: Record<string, readonly string[]> = {
      inner: ['.git/', 'file', 'new/'],
      linked: ['.git', 'x.log'],
      src: ['pipe', 'new'],
    };
    const question = {
      ignoredNow: ['inner/', 'linked/', 'src/'],
      wanted: entries('inner/file'),
      repositoriesThen: ['inner', 'linked'],
      specialThen: ['src/pipe'],
      list: (folder: string) => inside[folder] ?? [],
    };
    expect(plan(question)).toEqual({
      aside: ['inner/file', 'inner/new', 'linked/x.log', 'src/new'],
      removals: [],
      writes: ['inner/file'],
    });
  });

  test('leaves repositories and pipes in a folder that was ignored as a whole, and is not ignored now', () => {
    const question = {
      ignoredThen: ['out/'],
      repositoriesNow: ['out', 'out/deep', 'outer'],
      specialNow: ['out/pipe', 'pipe'],
    };
    expect(plan(question).aside).toEqual(['outer/.git', 'pipe']);
  });

  test('leaves what is ignored if it is unknown what was', () => {
    expect(plan({ ignoredNow: ['a.log', 'out/'], ignoredThen: null }).aside).toEqual([]);
  });

  test('keeps what is ignored now where it has to write, even in a folder that was ignored', () => {
    const question = { wanted: entries('out/forced'), ignoredThen: ['out/'], list: () => ['forced', 'other'] };
    expect(plan({ ...question, ignoredNow: ['out/'] })).toMatchObject({
      aside: ['out/forced'],
      writes: ['out/forced'],
    });
  });

  test('moves a folder aside once, with all that is in it', () => {
    const now = entries('inner o 160000', 'inner/a');
    expect(plan({ now, ignoredNow: ['inner/x.log'], repositoriesNow: ['inner'] }).aside).toEqual(['inner']);
  });
});
