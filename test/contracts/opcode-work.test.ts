// Turns of agents under a policy: their prompts, what the engine observes, and the outcome.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Policy } from '../../src/ir/conductor.ts';
import { appears, gone } from './driver-command-rig.ts';
import { answering, failureOf, prompt, successOf, WorkRig } from './opcode-work-rig.ts';

let rig: WorkRig;
beforeEach(async () => {
  rig = await WorkRig.setup();
});
afterEach(() => rig[Symbol.asyncDispose]());

const FINE = answering('All is done, and well done.');

describe('a turn that obeys its policy', () => {
  test("works in the run's own worktree, and does not change the user's tree", async () => {
    const before = rig.userPicture();
    rig.agent(`echo more >> dir/c.txt; echo new > new.txt; rm dir/sub/f; pwd > "$RIG/where"; ${FINE}`);
    const { outputs, route } = successOf(await rig.work());
    expect(route).toBe('completed');
    expect(rig.file('where').trim()).toBe(rig.worktree);
    expect(outputs).toMatchObject({
      result: 'All is done, and well done.',
      changes: { files: 3, added: 1, modified: 1, deleted: 1, paths: ['dir/c.txt', 'dir/sub/f', 'new.txt'] },
      violations: [],
      head: rig.repository.git('user', 'rev-parse', 'HEAD').trim(),
      tree: expect.stringMatching(/^[0-9a-f]{40}$/) as unknown,
    });
    expect(rig.notes).toContainEqual({ session: expect.any(String) as unknown });
    expect(rig.userPicture()).toEqual(before);
  });

  test('stores its artifacts, and names them', async () => {
    rig.agent(`echo new > new.txt; ${FINE}`);
    const { outputs } = successOf(await rig.work());
    const named = (outputs['artifacts'] as { role: string; path: string }[]).map(({ role, path }) => {
      expect(existsSync(join(rig.runDir, path))).toBe(true);
      return role;
    });
    expect(new Set(named)).toEqual(
      new Set([
        'runner_transcript',
        'runner_final_response',
        'runner_metadata',
        'policy_summary',
        'workspace_diff',
        'workspace_status',
      ]),
    );
    expect(rig.artifact('implement#1', 'workspace.patch')).toContain('+new');
    expect(rig.artifact('implement#1', 'final_response.md')).toBe('All is done, and well done.');
    expect(rig.artifact('implement#1', 'prompt.md')).toBe(rig.told);
    expect(rig.json('implement#1', 'runner_metadata.json')).toMatchObject({
      adapter: 'shell',
      exit_code: 0,
    });
  });

  test('may be a later one: only its own changes are reported', async () => {
    rig.agent(`echo 1 > one; ${FINE}`);
    await rig.work();
    rig.agent(`echo 2 > two; ${FINE}`);
    const { outputs } = successOf(await rig.work());
    expect(outputs['changes']).toMatchObject({ files: 1, paths: ['two'] });
    expect(rig.artifact('implement#2', 'workspace.patch')).not.toContain('one');
    expect(rig.git('for-each-ref', '--format=%(refname)', 'refs/meow')).toContain('/implement#2\n');
  });

  test('reports files that it wrote into the run directory', async () => {
    rig.agent(`mkdir "$MEOW_RUN_DIR/harness"; echo x > "$MEOW_RUN_DIR/harness/h.py"; ${FINE}`);
    expect(successOf(await rig.work()).outputs).toMatchObject({ changes: { files: 0 }, run_files: ['harness/h.py'] });
  });

  test('may answer at any length', async () => {
    rig.agent(`result "$(head -c 1100000 /dev/zero | tr '\\0' x)"`);
    const { kept, outputs } = successOf(await rig.work());
    expect(kept).toEqual(['result']);
    expect(outputs['result']).toMatchObject({ bytes: 1_100_000 });
    expect(rig.artifact('implement#1', 'final_response.md')).toHaveLength(1_100_000);
    rig.agent(FINE);
    await rig.work({ text: '{{implement.result}}' });
    expect(rig.told).toMatch(/^x{1100000}\n/);
  });

  test('that fails still reports its changes and its cost', async () => {
    rig.agent('echo half > half.txt; TOTAL=0.2 error "no more"');
    expect(failureOf(await rig.work())).toMatchObject({
      kind: 'exit-nonzero',
      outputs: { changes: { paths: ['half.txt'] } },
    });
  });
});

test('a turn that could not start is reported as such', async () => {
  expect(failureOf(await rig.work({ adapter: 'nobody' }))).toMatchObject({
    kind: 'not-started',
    outputs: { violations: [] },
  });
});

describe('the prompt of an agent', () => {
  test('contains its inputs, its working directory, and what it must not do', async () => {
    rig.past({
      kind: 'evaluate',
      outcome: 'partial',
      outputs: { fix_instructions: { file: '{{run_id}}' }, blockers: ['b'] },
    });
    rig.agent(FINE);
    const effective: Partial<Policy> = {
      text: 'Be careful.',
      allowedPaths: ['src/**'],
      forbiddenOperations: ['commit'],
      network: 'deny',
    };
    const text = 'Fix {{fix_instructions}} in {{ component_kind }}; braces: {{{{x}}.';
    const hints = { componentKind: 'cli', evalProfile: null };
    await rig.work({ text, hints, inputs: ['fix_instructions', 'evaluate.blockers'], effective });
    expect(rig.told).toContain('Fix {"file":"{{run_id}}"} in cli; braces: {{x}}.\n\n## evaluate.blockers\n\n["b"]\n');
    for (const line of [
      'Be careful.',
      'Change only these paths: src/**.',
      'commit, or move HEAD',
      'Do not use the network.',
    ]) {
      expect(rig.told).toContain(line);
    }
    expect(rig.told).toContain(rig.worktree);
    expect(rig.told).toContain(rig.runDir);
  });

  test('contains the whole diff of the run, including untracked files and commits', async () => {
    rig.agent(`echo 1 > one; git add one; git commit --quiet -m one; echo 2 > two; ${FINE}`);
    await rig.work();
    await rig.work({ text: 'Look at this:\n{{diff}}' });
    expect(rig.told).toMatch(/diff --git a\/one b\/one[^]*diff --git a\/two b\/two/);
  });

  test.each([
    ['{{harness_report}}', 'needs harness_report, and no validation has left a harness report'],
    ['{{fix_instructions}}', 'needs fix_instructions, and the latest evaluation gave no fix_instructions'],
    ['{{component_kind}}', 'needs component_kind, and defaults.component_kind is not set'],
    ['{{plan.result}}', 'needs plan.result, and plan has not been visited before'],
    ['{{nonsense}}', 'needs nonsense, and there is no such input'],
  ])('must have its inputs before it starts: %s', async (text, message) => {
    rig.agent(FINE);
    const failure = failureOf(await rig.work({ text }));
    expect(failure.kind).toBe('unresolved');
    expect(failure.message).toContain(message);
    expect(rig.told).toBe('');
  });

  test('may lack optional inputs', async () => {
    rig.agent(FINE);
    const inputs = [{ name: 'fix_instructions', type: 'any', required: false } as const];
    successOf(await rig.work({ prompt: prompt('Fix: [{{fix_instructions}}]', inputs) }));
    expect(rig.told).toContain('Fix: []');
  });

  test('must have inputs of the declared types', async () => {
    rig.past({ kind: 'evaluate', outputs: { fix_instructions: { a: 1 } } });
    const inputs = [{ name: 'fix_instructions', type: 'string', required: true } as const];
    const failure = failureOf(await rig.work({ prompt: prompt('{{fix_instructions}}', inputs) }));
    expect(failure).toMatchObject({ kind: 'unresolved' });
    expect(failure.message).toContain('expected a string');
  });
});

describe('a policy violation counts whatever the agent says (§11)', () => {
  const ways: readonly (readonly [string, string, Partial<Policy>, string])[] = [
    ['a path that is not allowed', 'echo x >> a.txt', { allowedPaths: ['dir/**'] }, 'allowed_paths'],
    ['a forbidden path', 'echo x > dir/c.txt', { forbiddenPaths: ['dir'] }, 'forbidden_paths'],
    ['a rename out of a forbidden path', 'mv dir/c.txt c.txt', { forbiddenPaths: ['dir/**'] }, 'forbidden_paths'],
    ['a deletion', 'rm a.txt', { forbiddenOperations: ['delete'] }, 'forbidden_operations'],
    ['a new mode', 'chmod +x a.txt', { forbiddenOperations: ['chmod'] }, 'forbidden_operations'],
    ['a link', 'ln -s /etc/passwd l', { forbiddenOperations: ['symlink'] }, 'forbidden_operations'],
    ['a commit', 'git commit --quiet --allow-empty -m x', { forbiddenOperations: ['commit'] }, 'forbidden_operations'],
    [
      'another branch',
      'git switch --quiet -c other',
      { forbiddenOperations: ['switch_branch'] },
      'forbidden_operations',
    ],
    ['a protected branch', 'git switch --quiet -c release/1', {}, 'protected_branch'],
    [
      'a protected branch, from another one',
      'git commit --quiet --allow-empty -m x; git branch --force release/1 HEAD',
      {},
      'protected_branch',
    ],
    [
      'a forbidden path that git is told to ignore',
      'mkdir secrets; echo "*" > secrets/.gitignore; echo x > secrets/x',
      { forbiddenPaths: ['secrets/**'] },
      'forbidden_paths',
    ],
    ['a lockfile', 'echo {} > dir/package-lock.json', { lockfiles: 'deny' }, 'lockfiles'],
    ['a manifest', 'echo {} > package.json', { lockfiles: 'deny' }, 'lockfiles'],
    ['any change, if read-only', 'echo x > x', { access: 'read_only' }, 'read_only'],
    ['a commit, if read-only', 'git commit --quiet --allow-empty -m x', { access: 'read_only' }, 'read_only'],
    [
      'a nested repository',
      'git init --quiet lib; git -C lib commit --quiet --allow-empty -m x',
      { allowedPaths: ['dir'] },
      'allowed_paths',
    ],
    [
      'a hook',
      'h=$(git rev-parse --git-common-dir)/hooks; mkdir -p "$h"; echo x > "$h/pre-commit"',
      {},
      'git_tampering',
    ],
    ['a setting that runs programs', 'git config core.fsmonitor ./x', {}, 'git_tampering'],
    [
      'paths that are hidden from git',
      'echo "*" >> "$(git rev-parse --git-common-dir)/info/exclude"',
      {},
      'git_tampering',
    ],
    [
      'a setting in the line of its section',
      'echo "[core] excludesFile = /dev/null" >> "$(git rev-parse --git-common-dir)/config"',
      {},
      'git_tampering',
    ],
    [
      'a setting of the worktree only',
      'git config extensions.worktreeConfig true; git config --worktree core.fileMode false',
      {},
      'git_tampering',
    ],
    ['a worktree without its link', 'rm .git', {}, 'git_tampering'],
    ['a worktree that becomes another repository', 'rm .git; git init --quiet .', {}, 'git_tampering'],
  ];
  test.each(ways)('%s', async (_what, script, effective, rule) => {
    const before = rig.repository.git('user', 'rev-parse', 'HEAD', 'main');
    rig.agent(`{ ${script}; } >&2; ${FINE}`);
    const failure = failureOf(await rig.work({ effective }));
    expect(failure.kind).toBe('policy');
    expect(failure.outputs['violations']).toContainEqual(expect.objectContaining({ rule }));
    expect(rig.json('implement#1', 'policy_summary.json')['violations']).toEqual(failure.outputs['violations']);
    expect(failure.usage).toEqual({ usd: 0.5, tokens: 100 });
    expect(rig.repository.git('user', 'rev-parse', 'HEAD', 'main')).toBe(before);
    expect(rig.git('rev-parse', '--show-toplevel').trim()).toBe(rig.worktree);
  });

  test('even if it blocks the files of the engine', async () => {
    const folder = '"$MEOW_RUN_DIR/artifacts/implement"';
    rig.agent(`rm a.txt; mv ${folder} "$RIG/aside"; ln -s "$RIG/aside" ${folder}; ${FINE}`);
    const failure = failureOf(await rig.work({ effective: { forbiddenOperations: ['delete'] } }));
    expect(failure.kind).toBe('policy');
    expect(failure.outputs).toMatchObject({ violations: [{ rule: 'forbidden_operations', path: 'a.txt' }] });
  });

  test('even if the turn fails', async () => {
    rig.agent('rm a.txt; error "I could not do it"');
    const failure = failureOf(await rig.work({ effective: { forbiddenOperations: ['delete'] } }));
    expect(failure).toMatchObject({ kind: 'policy', message: expect.stringContaining('a.txt was deleted') as unknown });
  });

  test('even if the turn times out', async () => {
    rig.agent('rm a.txt; echo > "$RIG/there"; sleep 1000');
    const outcome = rig.work({ effective: { forbiddenOperations: ['delete'] }, timeoutMs: 600_000 });
    await appears(rig.at('there'));
    rig.stop('timeout');
    expect(failureOf(await outcome).kind).toBe('policy');
  });

  test('if the agent asked for a forbidden action and the policy says fail', async () => {
    const denials = `'"permission_denials":[{"tool_name":"Bash"},{"tool_name":"Bash"}],'`;
    rig.agent(`result fine ${denials} | sed 's/"permission_denials":\\[\\],//'`);
    const failure = failureOf(await rig.work({ effective: { onPrompt: 'fail' } }));
    expect(failure.outputs['violations']).toMatchObject([{ rule: 'on_prompt' }]);
  });

  test('allowed changes are not violations', async () => {
    rig.agent(`echo x > dir/x; echo {} > dir/package.json; git commit --quiet --allow-empty -m x; ${FINE}`);
    successOf(await rig.work({ effective: { allowedPaths: ['dir/'], forbiddenPaths: ['a.txt'] } }));
  });
});

describe('the cost of a turn', () => {
  test.each([
    [{ tokensMax: 99 }, 'it used 100 tokens, and may use 99'],
    [{ usdMax: 0.4 }, 'it cost 0.5 USD, and may cost 0.4'],
  ])('is a limit: %j', async (limit, message) => {
    rig.agent(`echo x > x; ${FINE}`);
    const failure = failureOf(await rig.work({ limits: { idleMs: null, tokensMax: null, usdMax: null, ...limit } }));
    expect(failure).toMatchObject({
      kind: 'budget',
      outputs: { changes: { files: 1 } },
    });
    expect(failure.message).toContain(message);
  });
});

describe('a witness', () => {
  const witness = (command: string, dependsOn: readonly string[] = []) => ({
    command,
    expect: { exitCode: 0, output: null },
    dependsOn,
    timeoutMs: null,
  });

  test('that passes is reported, with the tree that it saw', async () => {
    rig.agent(`echo new > new.txt; ${FINE}`);
    const { outputs, route } = successOf(await rig.work({ witness: witness('test -e new.txt; echo x > left') }));
    expect(route).toBe('completed');
    expect(outputs['witness']).toMatchObject({ holds: true, exit_code: 0, tree: outputs['tree'] });
    expect(outputs['changes']).toMatchObject({ paths: ['new.txt'] });
  });

  test('that fails makes the turn a failure', async () => {
    rig.agent(FINE);
    const failure = failureOf(await rig.work({ witness: witness('test -e new.txt') }));
    expect(failure).toMatchObject({
      kind: 'unproven',
      outputs: { witness: { holds: false, exit_code: 1 }, changes: { files: 0 } },
    });
  });

  test('does not count if the agent has touched the files that it depends on', async () => {
    rig.agent(`echo true > run.sh; ${FINE}`);
    const failure = failureOf(await rig.work({ witness: witness('sh run.sh', ['*.sh']) }));
    expect(failure).toMatchObject({ kind: 'unproven', outputs: { witness: { touched: ['run.sh'] } } });
  });

  test('does not run after a failed turn', async () => {
    rig.agent('error no');
    expect(failureOf(await rig.work({ witness: witness('echo > "$RIG/asked"') })).kind).toBe('exit-nonzero');
    expect(existsSync(rig.at('asked'))).toBe(false);
  });

  test('does not charge its own changes to anybody, even if the engine dies after it', async () => {
    rig.agent(FINE);
    const wish = { witness: witness('echo x > left'), effective: { allowedPaths: ['dir'] } };
    successOf(await rig.work(wish));
    rig.nextLife();
    successOf(await rig.work({ ...wish, step: 'implement#1' }));
  });
});

describe('the whole process tree is killed', () => {
  const grandchild = `setsid sh -c 'echo $$ > "$RIG/grandchild"; exec sleep 1000' </dev/null >/dev/null 2>&1 &`;
  const waits = 'while [ ! -s "$RIG/grandchild" ]; do sleep 0.01; done';
  const ended = async (): Promise<void> => {
    await gone(Number(rig.file('grandchild')));
    expect(rig.left()).toEqual([]);
  };

  test('killed_timeout', async () => {
    rig.agent(`${grandchild} ${waits}; echo > "$RIG/there"; sleep 1000`);
    const outcome = rig.work({ timeoutMs: 600_000 });
    await appears(rig.at('there'));
    rig.stop('timeout');
    expect(failureOf(await outcome).kind).toBe('timeout');
    await ended();
  });

  test('killed_idle', async () => {
    rig.agent(`${grandchild} ${waits}; sleep 1000`);
    const failure = failureOf(await rig.work({ limits: { idleMs: 300, tokensMax: null, usdMax: null } }));
    expect(failure.kind).toBe('idle');
    await ended();
  });

  test('killed_policy', async () => {
    rig.agent(`${grandchild} ${waits}; rm a.txt; ${FINE}`);
    const failure = failureOf(await rig.work({ effective: { forbiddenOperations: ['delete'] } }));
    expect(failure.kind).toBe('policy');
    await ended();
  });

  test('and processes that a successful turn left, before anything is inspected', async () => {
    rig.agent(`${grandchild} ${waits}; ${FINE}`);
    successOf(await rig.work());
    await ended();
  });
});

describe('an engine that restarts', () => {
  test('finds the turn that it started, and the snapshot before it', async () => {
    rig.agent(
      `echo x >> "$RIG/begun"; rm a.txt; echo > "$RIG/there"; while [ ! -e "$RIG/go" ]; do sleep 0.01; done; ${FINE}`,
    );
    void rig.work();
    await appears(rig.at('there'));
    rig.nextLife();
    const again = rig.work({ step: 'implement#1' });
    rig.repository.write('../go', '');
    const { outputs } = successOf(await again);
    expect(outputs['changes']).toMatchObject({ deleted: 1, paths: ['a.txt'] });
    expect(rig.file('begun')).toBe('x\n');
    expect(rig.git('ls-tree', '--name-only', `refs/meow/${rig.runId}/implement#1`)).toContain('a.txt');
  });

  test('accepts the result of the turn, and does not restart it', async () => {
    rig.agent(`echo x >> "$RIG/begun"; echo new > new.txt; ${FINE}`);
    const first = successOf(await rig.work());
    rig.nextLife();
    const second = successOf(await rig.work({ step: 'implement#1' }));
    expect(rig.file('begun')).toBe('x\n');
    expect(second.outputs).toEqual(first.outputs);
  });

  test('counts the changes of a lost attempt', async () => {
    rig.agent('rm a.txt; echo $$ > "$RIG/pid"; echo > "$RIG/there"; sleep 1000');
    void rig.work({ effective: { forbiddenOperations: ['delete'] } });
    await appears(rig.at('there'));
    rig.nextLife();
    for (const pid of rig.left()) process.kill(pid, 'SIGKILL');
    rig.agent(FINE);
    expect(failureOf(await rig.work({ step: 'implement#1' })).kind).toBe('policy');
  });

  test('leaves a turn that was stopped with its run to the next attempt', async () => {
    rig.agent('echo > "$RIG/there"; sleep 1000');
    const outcome = rig.work();
    await appears(rig.at('there'));
    rig.stop('run-ending');
    await outcome;
    expect(rig.left()).toEqual([]);
    rig.agent(FINE);
    successOf(await rig.work({ step: 'implement#1' }));
  });
});

describe('a run works', () => {
  test('in the tree of the user, if requested and clean', async () => {
    await rig[Symbol.asyncDispose]();
    rig = await WorkRig.setup('in-place');
    rig.agent(`echo new > new.txt; ${FINE}`);
    successOf(await rig.work());
    expect(readFileSync(join(rig.repository.user, 'new.txt'), 'utf8')).toBe('new\n');
  });

  test('in the same place after a restart, even if the user has continued to work', async () => {
    rig.agent(`echo 1 > one; ${FINE}`);
    await rig.work();
    const [base, before] = [rig.git('rev-parse', 'HEAD'), rig.git('rev-parse', `refs/meow/${rig.runId}/pre_run`)];
    rig.repository.git('user', 'commit', '--quiet', '-a', '-m', "the user's");
    rig.nextLife();
    rig.agent(`echo 2 > two; ${FINE}`);
    expect(successOf(await rig.work({ text: '{{diff}}' })).outputs).toMatchObject({ changes: { paths: ['two'] } });
    expect(rig.told).toContain('one');
    expect(rig.git('rev-parse', 'HEAD')).toBe(base);
    expect(rig.git('rev-parse', `refs/meow/${rig.runId}/pre_run`)).toBe(before);
  });

  test('directly in a folder, if nothing is to be changed', async () => {
    await rig[Symbol.asyncDispose]();
    rig = await WorkRig.setup('as-it-is');
    rig.agent(`pwd > "$RIG/where"; ${FINE}`);
    expect(failureOf(await rig.work()).message).toContain('execution: read_only');
    successOf(await rig.work({ effective: { access: 'read_only' } }));
    expect(rig.file('where').trim()).toBe(rig.repository.user);
    expect(rig.json('implement#2', 'policy_summary.json')['not_enforced']).toEqual(['execution']);
  });

  test('nowhere, with a message that says why and what to do', async () => {
    rig.repository.git('user', 'branch', `meow/run-${rig.runId}`);
    const failure = failureOf(await rig.work());
    expect(failure).toMatchObject({ kind: 'refused' });
    expect(failure.message).toMatch(/the branch .* exists.*; choose another --id/);
  });
});
