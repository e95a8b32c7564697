import { describe, expect, test } from 'vitest';

import type { Operation, Policy } from '../../ir/conductor.ts';
import type { Change } from '../git/diff.ts';
import { checkPolicy, type Conduct, policyRules, READ_ONLY } from './policy-check.ts';

const FREE: Policy = { ...READ_ONLY, access: 'workspace_write', lockfiles: 'allow' };
const HERE = { head: 'a'.repeat(40), branch: 'meow/run-1' };
const STILL: Conduct = { changes: [], hidden: [], moved: [], before: HERE, after: HERE, tampered: [], denied: 0 };

function change(path: string, more: Partial<Change> = {}): Change {
  return { status: 'modified', path, from: null, isExact: true, modeBefore: '100644', modeAfter: '100644', ...more };
}

function rulesBroken(policy: Partial<Policy>, conduct: Partial<Conduct>): readonly string[] {
  return checkPolicy({ ...FREE, ...policy }, { ...STILL, ...conduct }, ['main', 'release/*']).map(({ rule }) => rule);
}

test('what git was told to ignore is forbidden all the same, and a cache is not', () => {
  const forbidden = { forbiddenPaths: ['secrets/**'] };
  expect(rulesBroken(forbidden, { hidden: ['secrets/', '__pycache__/'] })).toEqual(['forbidden_paths']);
  expect(rulesBroken({}, { hidden: ['secrets/'] })).toEqual([]);
});

test('a protected branch that was moved is told of, though HEAD is on another', () => {
  expect(rulesBroken({}, { moved: ['main'] })).toEqual(['protected_branch']);
});

describe('paths', () => {
  test.each<[readonly string[], string, boolean]>([
    [['src/**'], 'src/a/b.ts', true],
    [['src'], 'src/a/b.ts', true],
    [['src/'], 'src/a/b.ts', true],
    [['./src'], 'src/a.ts', true],
    [['src/*'], 'src/a.ts', true],
    [['src/*'], 'src/a/b.ts', false],
    [['src'], 'src2/a.ts', false],
    [[], 'a.ts', false],
  ])('%j allows %s: %j', (allowedPaths, path, allowed) => {
    expect(rulesBroken({ allowedPaths }, { changes: [change(path)] })).toEqual(allowed ? [] : ['allowed_paths']);
  });

  test.each<[readonly string[], string, boolean]>([
    [['infra'], 'infra/a/b.tf', true],
    [['infra/*'], 'infra/a/b.tf', true],
    [['**/*.env'], 'a/b/.env', true],
    [['**/secrets'], 'a/secrets/x', true],
    [['infra'], 'infra2', false],
    [['infra/'], 'src/infra', false],
  ])('%j forbids %s: %j', (forbiddenPaths, path, forbidden) => {
    expect(rulesBroken({ forbiddenPaths }, { changes: [change(path)] })).toEqual(forbidden ? ['forbidden_paths'] : []);
  });

  test('both ends of a rename are looked at', () => {
    const renamed = change('src/b.ts', { status: 'renamed', from: 'infra/a.ts' });
    expect(rulesBroken({ forbiddenPaths: ['infra'] }, { changes: [renamed] })).toEqual(['forbidden_paths']);
    expect(rulesBroken({ allowedPaths: ['src'] }, { changes: [renamed] })).toEqual(['allowed_paths']);
  });

  test('a name that is no text is allowed only where every path is', () => {
    const odd = change('src/\uFFFD', { isExact: false });
    expect(rulesBroken({}, { changes: [odd] })).toEqual([]);
    expect(rulesBroken({ allowedPaths: ['src'] }, { changes: [odd] })).toEqual(['allowed_paths']);
  });
});

describe('operations', () => {
  test.each<[Operation, Partial<Change>]>([
    ['create', { status: 'added', modeBefore: '000000' }],
    ['modify', { status: 'modified' }],
    ['modify', { status: 'typechange' }],
    ['delete', { status: 'deleted' }],
    ['rename', { status: 'renamed', from: 'old' }],
    ['delete', { status: 'renamed', from: 'old' }],
    ['create', { status: 'renamed', from: 'old' }],
    ['chmod', { modeAfter: '100755' }],
    ['symlink', { status: 'added', modeBefore: '000000', modeAfter: '120000' }],
    ['symlink', { status: 'typechange', modeAfter: '120000' }],
  ])('%s is seen in %j', (operation, more) => {
    expect(rulesBroken({ forbiddenOperations: [operation] }, { changes: [change('a', more)] })).toEqual([
      'forbidden_operations',
    ]);
  });

  test('a file that is new or changed has no new mode', () => {
    const changes = [change('a', { status: 'added', modeBefore: '000000', modeAfter: '100755' }), change('b')];
    expect(rulesBroken({ forbiddenOperations: ['chmod', 'symlink', 'delete', 'rename'] }, { changes })).toEqual([]);
  });
});

describe('HEAD', () => {
  const elsewhere = { head: 'b'.repeat(40), branch: 'meow/run-1' };

  test('may move, unless that is forbidden', () => {
    expect(rulesBroken({}, { after: elsewhere })).toEqual([]);
    expect(rulesBroken({ forbiddenOperations: ['commit'] }, { after: elsewhere })).toEqual(['forbidden_operations']);
    expect(rulesBroken({ access: 'read_only' }, { after: elsewhere })).toEqual(['read_only']);
  });

  test('must not come to a protected branch, nor move one', () => {
    expect(rulesBroken({}, { after: { ...HERE, branch: 'release/2' } })).toEqual(['protected_branch']);
    const onMain = { ...HERE, branch: 'main' };
    expect(rulesBroken({}, { before: onMain, after: onMain })).toEqual([]);
    expect(rulesBroken({}, { before: onMain, after: { ...elsewhere, branch: 'main' } })).toEqual(['protected_branch']);
  });

  test('may lose its branch, unless to switch is forbidden', () => {
    const detached = { ...HERE, branch: null };
    expect(rulesBroken({}, { after: detached })).toEqual([]);
    expect(rulesBroken({ forbiddenOperations: ['switch_branch'] }, { after: detached })).toEqual([
      'forbidden_operations',
    ]);
  });
});

test.each(['package.json', 'a/yarn.lock', 'Cargo.toml', 'requirements-dev.txt', 'x/App.csproj', 'Gemfile'])(
  '%s is of packages',
  (path) => {
    expect(rulesBroken({ lockfiles: 'deny' }, { changes: [change(path)] })).toEqual(['lockfiles']);
    expect(rulesBroken({ lockfiles: 'allow' }, { changes: [change(path)] })).toEqual([]);
  },
);

test.each(['package.json.md', 'src/lock.ts', 'requirements.md'])('%s is not', (path) => {
  expect(rulesBroken({ lockfiles: 'deny' }, { changes: [change(path)] })).toEqual([]);
});

test('where nothing is to be changed, all else needs no mention', () => {
  const policy = { access: 'read_only', allowedPaths: ['src'], lockfiles: 'deny' } as const;
  expect(rulesBroken(policy, { changes: [change('package.json'), change('x')] })).toEqual(['read_only', 'read_only']);
});

test('an agent is told what is checked', () => {
  const policy: Policy = {
    ...FREE,
    allowedPaths: ['src'],
    forbiddenPaths: ['src/gen'],
    lockfiles: 'deny',
    network: 'deny',
  };
  expect(policyRules(policy, ['main'])).toEqual([
    'Change only these paths: src.',
    'Do not change these paths: src/gen.',
    'Do not change lockfiles or package manifests.',
    'Do not use the network.',
    'Do not change these branches: main.',
    "Do not change git's configuration or hooks.",
    'When you finish, these rules are checked automatically. A violation fails the step.',
  ]);
});
