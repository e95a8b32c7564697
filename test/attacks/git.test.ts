// Agents that try to make git deceive the engine: to hide a change, to run a program in it, or to change what a rollback
// restores. Each agent cleans up behind itself, so that only what the engine reads in the worktree can give it away.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Policy } from '../../src/ir/conductor.ts';
import { picture } from '../contracts/git-rig.ts';
import { answering, failureOf, successOf, WorkRig } from '../contracts/opcode-work-rig.ts';

let rig: WorkRig;
beforeEach(async () => {
  rig = await WorkRig.setup();
});
afterEach(() => rig[Symbol.asyncDispose]());

/** Lets the agent work with a script, whose output does not matter. */
function works(script: string, effective: Partial<Policy> = {}) {
  rig.agent(`{ ${script}\n } >&2; ${answering('Nothing was changed.')}`);
  return rig.work({ effective });
}

/** Paths of all violations. */
async function violations(script: string, effective: Partial<Policy>): Promise<readonly unknown[]> {
  const failure = failureOf(await works(script, effective));
  expect(failure.kind).toBe('policy');
  return (failure.outputs['violations'] as { path: string | null }[]).map(({ path }) => path);
}

const ONLY_DIR: Partial<Policy> = { allowedPaths: ['dir/**'] };

/** Everything that tells git about filters, in a subshell that leaves nothing of it behind. */
const FILTERED_ADD = `
  info=$(git rev-parse --git-common-dir)/info
  git show HEAD:a.txt > "$RIG/old"
  git config filter.lie.clean "cat '$RIG/old'"
  mkdir -p "$info"; echo 'a.txt filter=lie' > "$info/attributes"
  echo evil > a.txt
  git add a.txt
  rm "$info/attributes"; git config --remove-section filter.lie`;

describe('a change is seen', () => {
  const ways: readonly (readonly [string, string])[] = [
    ['that a clean filter hid from the index', FILTERED_ADD],
    ['of a file that git assumes unchanged', 'git update-index --assume-unchanged a.txt; echo evil > a.txt'],
    ['of a file that git skips', 'git update-index --skip-worktree a.txt; rm a.txt'],
    [
      'behind a replaced object',
      `old=$(git rev-parse HEAD:a.txt); echo evil > a.txt; git replace "$old" "$(git hash-object -w a.txt)"; git add a.txt`,
    ],
    [
      'whose size and times were set back, in a repository that ignores the rest',
      `cp -p a.txt "$RIG/old"; git config core.checkStat minimal; git config core.trustctime false
       echo e > a.txt; touch -r "$RIG/old" a.txt; git config --unset core.checkStat; git config --unset core.trustctime`,
    ],
    [
      'that the index claims to be the committed file',
      `echo evil > a.txt; git update-index --info-only a.txt
       git update-index --cacheinfo 100644,"$(git rev-parse HEAD:a.txt)",a.txt; git update-index --assume-unchanged a.txt`,
    ],
    [
      'that the user-wide configuration hides',
      `git config --global core.excludesFile "$RIG/excludes"; echo '*' > "$RIG/excludes"; echo evil > evil.txt; rm -f a.txt`,
    ],
    [
      'that consists of line ends alone',
      String.raw`echo '* text' > dir/.gitattributes; printf 'a\r\n' > a.txt; git add a.txt`,
    ],
    [
      'in a folder that was made a repository',
      `echo evil > a.txt; git init --quiet .x; mv .x/.git dir/sub/.git; rmdir .x`,
    ],
  ];
  test.each(ways)('%s', async (_what, script) => {
    expect(await violations(script, ONLY_DIR)).toContain('a.txt');
    expect(rig.artifact('implement#1', 'workspace.patch')).toContain('a.txt');
  });

  test('within a repository in the worktree, file by file', async () => {
    const script = 'git init --quiet lib; echo evil > lib/evil.sh; git -C lib add -A; git -C lib commit --quiet -m x';
    expect(await violations(script, { forbiddenPaths: ['lib/evil.sh'] })).toContain('lib/evil.sh');
    expect(rig.artifact('implement#1', 'workspace.patch')).toContain('+evil');
  });

  test('in a folder whose name git takes for its own', async () => {
    expect(await violations('mkdir .GIT; echo evil > .GIT/evil.sh', ONLY_DIR)).toContain('.GIT/evil.sh');
  });

  test('that was planted as an object before it was made', async () => {
    // The engine writes the tree with this change next: a forged object in its place would hide the change.
    const forge = `
      echo evil > a.txt
      GIT_INDEX_FILE="$RIG/index" git read-tree HEAD; GIT_INDEX_FILE="$RIG/index" git add a.txt
      tree=$(GIT_INDEX_FILE="$RIG/index" git write-tree)
      old=$(git rev-parse 'HEAD^{tree}')
      objects=$(git rev-parse --git-common-dir)/objects
      path() { echo "$objects/$(echo "$1" | cut -c1-2)/$(echo "$1" | cut -c3-)"; }
      chmod u+w "$(path "$tree")"; cp "$(path "$old")" "$(path "$tree")"`;
    expect(await violations(forge, ONLY_DIR)).toContain('a.txt');
  });
});

describe('no program of an agent is run by the engine', () => {
  const RUN = 'touch "$RIG/ran"; cat';
  const ways: readonly (readonly [string, string])[] = [
    [
      'a filter in the configuration of the repository',
      `git config filter.x.clean '${RUN}'; git config filter.x.smudge '${RUN}'`,
    ],
    [
      'a filter in the user-wide configuration',
      `git config --global filter.x.clean '${RUN}'; git config --global filter.x.smudge '${RUN}'`,
    ],
    ['a required process filter', `git config filter.x.process '${RUN}'; git config filter.x.required true`],
    ['a diff driver', `git config diff.x.command '${RUN}'; git config diff.x.textconv '${RUN}'`],
    ['a file system monitor', `git config core.fsmonitor "$RIG/hook"; git config --global core.fsmonitor "$RIG/hook"`],
    ['a hook', `git config core.hooksPath "$RIG/hooks"; git config --global core.hooksPath "$RIG/hooks"`],
    ['a signature program', `git config commit.gpgSign true; git config gpg.program "$RIG/hook"`],
    [
      'a configuration that is included',
      `echo "[filter \\"x\\"] clean = touch '$RIG/ran'" > "$RIG/more"; git config include.path "$RIG/more"`,
    ],
  ];
  test.each(ways)('%s', async (_what, script) => {
    const hook = `mkdir "$RIG/hooks"; printf '#!/bin/sh\\ntouch "$RIG/ran"\\n' > "$RIG/hook"; chmod +x "$RIG/hook"
      for name in post-checkout reference-transaction post-index-change pre-commit; do cp "$RIG/hook" "$RIG/hooks/$name"; done`;
    await works(`${hook}; echo '* filter=x diff=x' > .gitattributes; echo more >> a.txt; ${script}`);
    expect(rig.artifact('implement#1', 'workspace.patch')).toContain('+more');
    successOf(await rig.rollback('pre_step'));
    expect(readFileSync(rig.inTree('a.txt'), 'utf8')).toBe('a\n');
    expect(existsSync(rig.at('ran'))).toBe(false);
  });
});

describe('a rollback restores what was there', () => {
  async function undoes(script: string): Promise<void> {
    await works('echo first > first.txt');
    const before = picture(rig.worktree);
    await works(script);
    successOf(await rig.rollback('pre_step'));
    expect(picture(rig.worktree)).toEqual(before);
  }

  const META = '"$(git rev-parse --git-common-dir)/meow"';
  const ways: readonly (readonly [string, string])[] = [
    ['after a change that a clean filter hid', FILTERED_ADD],
    [
      'if blobs were replaced',
      `old=$(git rev-parse HEAD:a.txt); echo evil > a.txt; git replace "$old" "$(git hash-object -w a.txt)"`,
    ],
    [
      'if a smudge filter would change it',
      `git config filter.x.smudge 'tr a-z A-Z'; echo '* filter=x' > .gitattributes; rm a.txt`,
    ],
    ['if the records of the engine are gone', `echo evil > a.txt; rm -r ${META}`],
    [
      'if the records of the engine were edited',
      `echo evil > a.txt; evil=$(git hash-object -w a.txt)
       tree=$(printf '100644 blob %s\\ta.txt\\n' "$evil" | git mktree)
       commit=$(git commit-tree "$tree" -m x)
       for ref in $(git for-each-ref --format='%(refname)' refs/meow); do git update-ref "$ref" "$commit"; done
       find ${META} -type f -name '*.json' -exec sed -i "s/[0-9a-f]\\{40\\}/$tree/g" {} +`,
    ],
    [
      'if the agent says that it has been done',
      `echo evil > a.txt; mkdir -p ${META}/$MEOW_WORKFLOW/restores
       echo '{"isDone":true,"undone":[],"movedAside":[],"keptIn":[]}' > ${META}/$MEOW_WORKFLOW/restores/rollback#1.json`,
    ],
    ['and no repository that the agent made', 'git init --quiet lib; echo x > lib/x; git init --quiet dir/sub'],
    [
      'if the agent has worked in its own repository within',
      'git init --quiet lib; echo x > lib/x; git -C lib add -A; git -C lib commit --quiet -m x; git -C lib checkout --quiet --detach',
    ],
    ['and no pipe or socket', `mkfifo pipe dir/pipe .gitattributes; rm a.txt; mkfifo a.txt; ${socket('dir/socket')}`],
    ['if the worktree is said to be elsewhere', 'echo evil > a.txt; git config core.worktree "$RIG/home"'],
    [
      'if HEAD is a commit that does not exist',
      `echo evil > a.txt; echo ${'1'.repeat(40)} > "$(git rev-parse --git-dir)/HEAD"`,
    ],
  ];
  test.each(ways)('%s', async (_what, script) => {
    await undoes(script);
  });

  test('or refuses, if the objects of the snapshot were forged', async () => {
    await works('echo first > first.txt');
    const forge = `
      old=$(git hash-object first.txt); echo evil > first.txt; evil=$(git hash-object -w first.txt)
      objects=$(git rev-parse --git-common-dir)/objects
      path() { echo "$objects/$(echo "$1" | cut -c1-2)/$(echo "$1" | cut -c3-)"; }
      chmod u+w "$(path "$old")"; cp "$(path "$evil")" "$(path "$old")"`;
    await works(forge);
    expect(failureOf(await rig.rollback('pre_step')).message).toMatch(/first\.txt|object/);
    expect(readFileSync(rig.inTree('first.txt'), 'utf8')).toBe('evil\n');
  });
});

/** A shell command that leaves a socket behind. */
function socket(path: string): string {
  return `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "${path}", Listen => 1) or die'`;
}

describe('files that are neither files nor links', () => {
  test('are named as changes, and never read', async () => {
    const { outputs } = successOf(await works(`mkfifo pipe .gitignore.d; ${socket('dir/socket')}`));
    expect(outputs['changes']).toMatchObject({ files: 3, added: 3, paths: ['.gitignore.d', 'dir/socket', 'pipe'] });
  });

  test('are subject to the policy like all others', async () => {
    expect(await violations('mkfifo pipe', ONLY_DIR)).toEqual(['pipe']);
    expect(await violations('rm dir/c.txt; mkfifo dir/c.txt', { forbiddenPaths: ['dir'] })).toEqual(['dir/c.txt']);
  });

  test.each(['.gitignore', '.gitattributes', 'dir/.gitignore'])(
    'do not stop the engine in the place of %s',
    async (name) => {
      const script = `rm -f ${name}; mkfifo ${name}; echo evil > evil.log; echo evil > dir/evil.txt`;
      expect(await violations(script, { allowedPaths: ['nothing'] })).toEqual(
        expect.arrayContaining([name, 'dir/evil.txt']),
      );
      successOf(await rig.rollback('pre_step'));
    },
  );
});

describe('what belongs to the engine', () => {
  test.each([
    [
      'a replaced object',
      'git replace "$(git rev-parse HEAD:a.txt)" "$(git rev-parse HEAD:dir/c.txt)"',
      'refs/replace/',
    ],
    [
      'a snapshot that moved',
      `for ref in $(git for-each-ref --format='%(refname)' refs/meow); do git update-ref "$ref" HEAD~0; done; git commit --quiet --allow-empty -m x; for ref in $(git for-each-ref --format='%(refname)' refs/meow); do git update-ref "$ref" HEAD; done`,
      'refs/meow/',
    ],
    [
      'a snapshot that was deleted',
      `git for-each-ref --format='delete %(refname)' refs/meow | git update-ref --stdin`,
      'refs/meow/',
    ],
    [
      'other objects',
      'mkdir -p "$(git rev-parse --git-common-dir)/objects/info"; echo "$RIG" > "$(git rev-parse --git-common-dir)/objects/info/alternates"',
      '.git/objects/info/alternates',
    ],
  ])('%s is a violation', async (_what, script, path) => {
    const found = await violations(`${script}; true`, {});
    expect(found).toContainEqual(expect.stringContaining(path));
  });

  test('snapshots that were moved are put back', async () => {
    await works('echo 1 > one');
    const refs = (): string => rig.git('for-each-ref', '--format=%(refname) %(objectname)', 'refs/meow');
    const before = refs()
      .split('\n')
      .filter((line) => !line.includes('/now '));
    await works(`git for-each-ref --format='delete %(refname)' refs/meow | git update-ref --stdin`);
    expect(refs().split('\n')).toEqual(expect.arrayContaining(before));
  });

  test('the user-wide configuration is not changed, and neither is that of the repository', async () => {
    const files = [rig.at('home/.gitconfig'), join(rig.repository.user, '.git/config')];
    const before = files.map((file) => readFileSync(file, 'utf8'));
    await works('echo 1 > one; git add one; git commit --quiet -m one');
    successOf(await rig.rollback('pre_run'));
    expect(files.map((file) => readFileSync(file, 'utf8'))).toEqual(before);
    expect(readdirSync(rig.at('home'))).toEqual(['.gitconfig']);
  });
});

test('an ignored file that the user-wide configuration names stays ignored in a tree of the user', async () => {
  await rig[Symbol.asyncDispose]();
  rig = await WorkRig.setup('in-place');
  writeFileSync(rig.at('excludes'), '.DS_Store\n');
  rig.repository.git('user', 'config', '--global', 'core.excludesFile', rig.at('excludes'));
  rig.repository.write('.DS_Store', 'x');
  expect(successOf(await works('echo 1 > one')).outputs['changes']).toMatchObject({ paths: ['one'] });
  rmSync(join(rig.repository.user, '.DS_Store'));
});
