// Agents that try to make git deceive the engine: to hide a change, to run a program in it, or to change what a rollback
// restores. Each agent cleans up behind itself, so that only what the engine reads in the worktree can give it away.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Policy } from '../../src/ir/conductor.ts';
import { picture } from '../contracts/git-rig.ts';
import { answering, failureOf, successOf, WorkRig } from '../contracts/opcode-work-rig.ts';
import { ConductorRig, gate, leadsTo, rollback, work } from '../fixtures/conductor/rig.ts';
import { MEOW } from '../rig/rig.ts';

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

/** Shell variables of an agent: the repository, our files in it, the run's branch and its registration. */
const PLACES = `git=$(git rev-parse --git-common-dir); own=$git/meow/$MEOW_WORKFLOW; refs=$git/refs/meow/$MEOW_WORKFLOW
  branch=$git/refs/heads/meow/run-$MEOW_WORKFLOW; tree=$(git rev-parse --git-dir)`;

describe('something planted where the engine writes or reads', () => {
  const ways: readonly (readonly [string, string])[] = [
    ['folders in the place of records', 'mkdir -p "$own/restores/rollback#1.json/x" "$own/snapshots/now.json/x"'],
    ['a file in the place of folders', 'rm -rf "$own"; echo x > "$own"'],
    [
      'files in the place of folders of ours',
      'for f in restores kept indexes git; do rm -rf "$own/$f"; echo > "$own/$f"; done',
    ],
    ['a link in the place of our folder', 'mkdir "$RIG/else"; rm -rf "$own"; ln -s "$RIG/else" "$own"'],
    ['folders in the place of private indexes', 'mkdir -p "$own/snapshot.index/x" "$own/diff.index.lock/x"'],
    [
      'folders in the place of refs',
      'mkdir -p "$refs/undone-1/x" "$refs/now.lock/x"; rm "$refs/now"; mkdir -p "$refs/now/x"',
    ],
    [
      'locks in the place of refs',
      'mkdir -p "$refs/undone-1"; echo > "$refs/undone-1.lock"; echo > "$refs/undone-1/x.lock"; echo > "$refs/now.lock"',
    ],
    ['a file in the place of all refs', 'rm -r "$refs"; echo > "$refs"'],
    [
      'names of undone states',
      'echo "{}" > "$own/snapshots/undone-99999999999999999999999.json"; git update-ref "refs/meow/$MEOW_WORKFLOW/undone-1" HEAD',
    ],
    [
      'a restore with names that are not names',
      `mkdir -p "$own/restores"; echo '{"undone":["../x"],"movedAside":[1]}' > "$own/restores/rollback#1.json"`,
    ],
    ['folders in the place of locks', 'mkdir -p "$branch.lock/x" "$tree/index.lock/x" "$tree/HEAD.lock/x"'],
    ['a folder in the place of the index', 'rm -f "$tree/index"; mkdir -p "$tree/index/x" "$tree/index.meow/x"'],
    [
      'a branch below the branch',
      'git checkout --quiet --detach; git branch -D --quiet "meow/run-$MEOW_WORKFLOW"; git branch "meow/run-$MEOW_WORKFLOW/x"; git pack-refs --all',
    ],
    [
      'a pipe in the place of a branch',
      'git checkout --quiet --detach; rm "$branch"; mkfifo "$branch"; mkdir -p "$git/logs/refs/heads/meow"; rm -f "$git/logs/refs/heads/meow/"*; mkfifo "$git/logs/refs/heads/meow/run-$MEOW_WORKFLOW"',
    ],
    [
      'pipes in the place of records',
      'for f in "$own"/snapshots/*; do rm "$f"; mkfifo "$f"; done; mkdir -p "$own/restores"; mkfifo "$own/restores/rollback#1.json"',
    ],
    ['pipes in the place of indexes', 'for f in "$own"/indexes/*; do rm "$f"; mkfifo "$f"; done'],
    [
      'pipes in the private git folder',
      'mkdir -p "$own/git/info"; mkfifo "$own/git/commondir" "$own/git/info/attributes"; rm "$own/git/config"; mkfifo "$own/git/config"',
    ],
    [
      'a rebase with a pipe in it',
      'mkdir "$tree/rebase-merge"; mkfifo "$tree/rebase-merge/done"; ln -s /etc/passwd "$tree/rebase-merge/onto"',
    ],
  ];
  test.each(ways)('%s neither changes a verdict nor stops a rollback', async (_what, script) => {
    await works('echo first > first.txt');
    const before = picture(rig.worktree);
    expect(await violations(`echo evil > a.txt; ${PLACES}; ${script}`, ONLY_DIR)).toContain('a.txt');
    expect(rig.artifact('implement#2', 'workspace.patch')).toContain('+evil');
    successOf(await rig.rollback('pre_step'));
    expect(picture(rig.worktree)).toEqual(before);
    expect(existsSync(rig.at('else')) ? readdirSync(rig.at('else')) : []).toEqual([]);
  });

  const tampering: readonly (readonly [string, string, string])[] = [
    [
      'another repository and another worktree',
      'echo ../../../elsewhere > "$tree/commondir"; echo /nowhere/.git > "$tree/gitdir"',
      '/commondir',
    ],
    ['no registration of the worktree', 'rm -r "$tree"', '.git/worktrees/'],
    [
      'pipes in the registration',
      'rm "$tree/commondir" "$tree/HEAD"; mkfifo "$tree/commondir" "$tree/HEAD"',
      '/commondir',
    ],
    ['pipes in its log', 'rm -rf "$tree/logs"; mkdir "$tree/logs"; mkfifo "$tree/logs/HEAD"', '/logs/HEAD'],
    ['a pipe in the place of packed refs', 'rm -f "$git/packed-refs"; mkfifo "$git/packed-refs"', '.git/packed-refs'],
    ['a pipe in the place of the configuration', 'rm "$git/config"; mkfifo "$git/config"', '.git/config'],
    [
      'a pipe in the place of attributes',
      'mkdir -p "$git/info"; mkfifo "$git/info/attributes"',
      '.git/info/attributes',
    ],
  ];
  test.each(tampering)('%s is a violation, and does not stop a rollback', async (_what, script, name) => {
    await works('echo first > first.txt');
    const before = picture(rig.worktree);
    const found = await violations(`echo evil > a.txt; ${PLACES}; ${script}`, ONLY_DIR);
    expect(found).toEqual(expect.arrayContaining(['a.txt', expect.stringContaining(name)]));
    successOf(await rig.rollback('pre_step'));
    expect(picture(rig.worktree)).toEqual(before);
    expect(rig.git('rev-parse', '--abbrev-ref', 'HEAD').trim()).toBe(`meow/run-${rig.runId}`);
  });

  test('no objects of the snapshot is a violation as well', async () => {
    await works('echo first > first.txt');
    const found = await violations(
      'rm -rf "$(git rev-parse --git-common-dir)"/objects/??; echo evil > a.txt',
      ONLY_DIR,
    );
    expect(found).toContainEqual(expect.stringContaining('.git/objects'));
  });

  test('attributes in the private git folder do not make patches unreadable', async () => {
    await works(
      `${PLACES}; mkdir -p "$own/git/info"; echo '* binary' > "$own/git/info/attributes"; echo more >> a.txt`,
    );
    expect(rig.artifact('implement#1', 'workspace.patch')).toContain('+more');
  });

  test('an object forged before the change was made is not shown as the change', async () => {
    await works(`
      evil=$(printf 'evil\\n' | git hash-object --stdin); nice=$(printf 'nice\\n' | git hash-object -w --stdin)
      objects=$(git rev-parse --git-common-dir)/objects
      path() { echo "$objects/$(echo "$1" | cut -c1-2)/$(echo "$1" | cut -c3-)"; }
      mkdir -p "$(dirname "$(path "$evil")")"; cp "$(path "$nice")" "$(path "$evil")"; printf 'evil\\n' > a.txt`);
    const patch = rig.artifact('implement#1', 'workspace.patch');
    expect(patch).not.toContain('nice');
    expect(patch).toContain('No patch: these objects');
    expect(patch).toContain('modified a.txt');
  });

  test('a split index with a filter does not run a program', async () => {
    const filter = `git config filter.x.clean 'touch "$RIG/ran"; cat'; echo '* filter=x' > "$(git rev-parse --git-common-dir)/info/attributes"`;
    await works(
      `git update-index --split-index; echo x > a.txt; git add a.txt; ${filter}; touch a.txt dir/c.txt run.sh`,
    );
    expect(existsSync(rig.at('ran'))).toBe(false);
  });
});

describe('what people are shown about the work', () => {
  const ASK = { gate_approved: 'STOP', gate_rejected: 'undo' };
  const FLOW = { work: work('ask'), ask: gate(ASK), undo: rollback('pre_run', 'STOP') };

  /** A run that waits at its gate after this script of its agent. */
  async function atGate(script: string): Promise<ConductorRig> {
    const made = await ConductorRig.setup({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    made.agents({ work: script });
    made.workflow(FLOW);
    await made.run('--no-wait');
    return made;
  }

  /** Output of all commands that show the work. */
  async function shown(made: ConductorRig): Promise<readonly string[]> {
    const commands = [['status', 'r'], ['gates'], ['status', 'r', '--json']];
    const results: string[] = [];
    for (const command of commands) results.push((await made.rig.meow(...command)).stdout);
    return results;
  }

  test.each([
    [
      'a clean filter',
      'git config --global filter.fmt.clean "$AGENT_FOLDER/evil"; echo "* filter=fmt" > .gitattributes',
    ],
    ['a file system monitor', 'git config --global core.fsmonitor "$AGENT_FOLDER/evil"'],
    [
      'a diff driver',
      'git config --global diff.external "$AGENT_FOLDER/evil"; git config --global diff.x.textconv "$AGENT_FOLDER/evil"',
    ],
    [
      'hooks',
      'mkdir "$AGENT_FOLDER/h"; cp "$AGENT_FOLDER/evil" "$AGENT_FOLDER/h/post-index-change"; git config --global core.hooksPath "$AGENT_FOLDER/h"',
    ],
  ])('does not run %s of an agent, which would approve its gate', async (_what, script) => {
    const evil = `#!/bin/sh\ntouch "$AGENT_FOLDER/ran"\nmeow approve r ask --as ada\ncat\n`;
    const write = `printf '%s' '${evil}' > "$AGENT_FOLDER/evil"; sed -i "s|\\$AGENT_FOLDER|$AGENT_FOLDER|" "$AGENT_FOLDER/evil"; chmod +x "$AGENT_FOLDER/evil"`;
    await using made = await atGate(`${write}; ${script}; echo b >> a.txt; touch b.txt`);
    expect(made.rig.exists('.agent/evil')).toBe(true);
    for (const text of await shown(made)) expect(text).toMatch(/uncommitted/);
    await made.rig.meow('gc', 'r');
    expect(made.rig.exists('.agent/ran')).toBe(false);
    expect(await made.rig.status('r')).toMatchObject({ gates: [{ id: 'ask' }] });
  });

  test('a filter that git must run for the user cannot approve a gate either', async () => {
    await using made = await atGate(`
      git config --global filter.fmt.smudge 'meow approve r ask --as ada > "$HOME/said" 2>&1; cat'
      git config --global core.attributesFile "$HOME/attributes"; echo '* filter=fmt' > "$HOME/attributes"`);
    const { rig } = made;
    expect((await rig.shell('meow run w.yaml --id s --no-wait')).code).toBe(3);
    expect(readFileSync(join(rig.home, 'said'), 'utf8')).toContain('cannot decide gates');
    expect(await rig.status('r')).toMatchObject({ gates: [{ id: 'ask' }] });
  });

  test('contains files that git assumes unchanged, and new ones, and its command shows them', async () => {
    await using made = await atGate(
      'git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt; echo evil >> a.txt; rm b.txt; echo new > n.txt',
    );
    for (const text of await shown(made)) {
      expect(text).toContain('3 files changed, 2 insertions(+), 1 deletion(-)');
    }
    const [status = ''] = await shown(made);
    expect(status).toContain('3 uncommitted files');
    const [, show = ''] = /show: (git .*)/.exec(status) ?? [];
    const patch = execFileSync('/bin/sh', ['-c', show], { cwd: made.rig.folder, encoding: 'utf8' });
    expect(patch).toMatch(/\+evil[\s\S]*-b[\s\S]*\+new/);
  });

  test('follows from the journal: edited files of ours do not make gc remove another folder', async () => {
    await using made = await ConductorRig.setup({ 'a.txt': 'a\n' });
    const { rig } = made;
    const other = rig.path('other');
    await rig.shell(`git worktree add --quiet -b mine ${other} && echo mine > ${other}/mine.txt`);
    made.agents({
      work: `git=$(git rev-parse --git-common-dir); tree=$(git rev-parse --git-dir)
        sed -i 's|"path":"[^"]*"|"path":"${other}"|' "$git/meow/r/run.json"
        echo '{"run":"elsewhere"}' > "$tree/meow-lease.json"; echo b >> a.txt`,
    });
    made.workflow({ work: work('STOP', { routes: leadsTo('STOP', 'STOP') }) });
    await made.run();
    expect(rig.read('.git/meow/r/run.json')).toContain(other);
    expect((await rig.meow('status', 'r')).stdout).toContain('branch meow/run-r in .meow/worktrees/r: 1 uncommitted');
    expect((await rig.meow('gc', 'r', '--force')).stdout).toBe('r: removed\n');
    expect(rig.read('other/mine.txt')).toBe('mine\n');
    expect(rig.exists('.meow/worktrees/r')).toBe(false);
  });

  test.each([
    ['a link', 'mv .meow/worktrees/r moved && ln -s ../../victim .meow/worktrees/r'],
    ['another folder', 'rm -r .meow/worktrees/r && cp -r victim .meow/worktrees/r'],
    [
      'a worktree of somebody else',
      'rm -r .meow/worktrees/r && git worktree add --quiet -b mine w2 && cp -r w2 .meow/worktrees/r',
    ],
    ['a link above', 'mv .git/meow m && mkdir -p victim/r && echo kept > victim/r/kept && ln -s ../victim .git/meow'],
  ])('gc removes nothing through %s', async (_what, script) => {
    await using made = await ConductorRig.setup({ 'a.txt': 'a\n', 'victim/kept': 'kept\n' });
    const { rig } = made;
    made.agents({ work: 'echo b >> a.txt' });
    made.workflow({ work: work('STOP') });
    await made.run();
    expect((await rig.shell(script)).code).toBe(0);
    const before = picture(rig.path('victim'));
    const { stdout, stderr } = await rig.meow('gc', 'r', '--force');
    expect(`${stdout}${stderr}`).toMatch(/is not registered as a worktree|is a link/);
    expect(picture(rig.path('victim'))).toEqual(before);
    if (!script.includes('.git/meow')) expect(existsSync(rig.path('.meow/worktrees/r'))).toBe(true);
  });

  test.each([
    ['are gone', 'rm -rf .git/meow'],
    ['are empty', 'find .git/meow .git/worktrees/r/meow-lease.json -type f -exec truncate -s 0 {} +'],
    [
      'name another place',
      `sed -i 's|"path":"[^"]*"|"path":"/nowhere"|' .git/meow/r/run.json; echo '{"run":"x"}' > .git/worktrees/r/meow-lease.json`,
    ],
    [
      'and the registration are spoilt',
      'rm -rf .git/meow; echo ../../../elsewhere > .git/worktrees/r/commondir; echo /nowhere/.git > .git/worktrees/r/gitdir',
    ],
  ])('a rejected gate is rolled back after a resume, also if the files of the engine %s', async (_what, script) => {
    await using made = await atGate('echo b >> a.txt; echo new > n.txt');
    const { rig } = made;
    expect((await rig.shell(script)).code).toBe(0);
    await rig.meow('reject', 'r', 'ask', '--as', 'ada', '--reason', 'no');
    await rig.meow('resume', 'r');
    expect(await made.outcomes()).toEqual([
      'work#1 completed',
      'ask#1 gate_rejected',
      'undo#1 completed',
      expect.anything(),
    ]);
    expect(rig.read('.meow/worktrees/r/a.txt')).toBe('a\n');
    expect(rig.exists('.meow/worktrees/r/n.txt')).toBe(false);
  });

  test('planted folders in the steps of the run do not change a verdict or stop a rollback', async () => {
    const config = '[policy.keep]\nforbidden_paths = ["a.txt"]\n';
    await using made = await ConductorRig.setup({ 'a.txt': 'a\n' }, config);
    made.agents({
      work: `S=${made.rig.path('.meow/workflows/r/steps')}
        mkdir -p "$S/work#1.inspect.1.workspace.patch/x" "$S/undo#1.before.patch/x" "$S/undo#1.after.patch/x" "$S/work#1.inspect.replaced-git/x" "$S/work#1.inspect.tampered/x"
        rm .git; mkdir -p .git/x; echo evil > a.txt`,
    });
    const routes = { ...leadsTo('STOP'), killed_policy: 'undo' };
    made.workflow({ work: work('STOP', { policy: 'keep', routes }), undo: rollback('pre_run', 'STOP') });
    await made.run();
    expect((await made.outcomes()).slice(0, 2)).toEqual(['work#1 killed_policy', 'undo#1 completed']);
    expect(made.rig.read('.meow/run/r/artifacts/undo/1/before.patch')).toContain('+evil');
    expect(made.rig.read('.meow/worktrees/r/a.txt')).toBe('a\n');
  });

  test('pipes in the repository do not stop the commands forever', async () => {
    await using made = await atGate('echo b >> a.txt');
    const { rig } = made;
    await rig.shell(
      'rm -f .git/packed-refs; mkfifo .git/packed-refs; for f in .git/meow/r/snapshots/*; do rm "$f"; mkfifo "$f"; done',
    );
    expect(await rig.meow('status', 'r')).toMatchObject({ code: 0 });
    const { stderr } = await rig.meow('gc', 'r', '--force');
    expect(stderr).toContain('find .git -type p');
    rmSync(rig.path('.git/packed-refs'));
  });
});

/** Root may read everything: then the run is that of another user. */
const AS_USER = process.getuid?.() === 0 ? 'setpriv --reuid=65534 --regid=65534 --clear-groups ' : '';

test.each([
  ['a file', 'echo evil > a.txt; chmod 000 a.txt'],
  ['a folder', 'mkdir -p dir; echo evil > dir/b.txt; chmod 000 dir'],
  ['a folder that nobody may write to', 'mkdir -p dir; echo evil > dir/b.txt; chmod 500 dir'],
  ['the whole tree', 'echo evil > a.txt; chmod 000 .'],
])('an agent that locks %s does not keep its work from being undone', async (_what, script) => {
  await using made = await ConductorRig.setup({ 'a.txt': 'one\n' });
  const { rig } = made;
  made.agents({ spoil: script });
  made.workflow({ spoil: work('undo'), undo: rollback('pre_run', 'end'), end: { opcode: 'STOP', reason: 'all' } });
  if (AS_USER !== '') await rig.shell(`chown -R 65534:65534 ${rig.path('..')}`);
  const { stdout, stderr } = await rig.shell(`${AS_USER}env HOME='${rig.home}' ${MEOW} run w.yaml --id r`);
  expect(await made.outcomes(), stdout + stderr).toContain('undo#1 completed');
  const { stdout: left } = await rig.shell('cd .meow/worktrees/r && cat a.txt && find . -name b.txt');
  expect(left).toBe('one\n');
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
