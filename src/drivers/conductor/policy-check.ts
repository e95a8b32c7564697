// Policies: the rules as told to an agent before its turn, and the check afterwards, by what the engine sees in the
// worktree. Statements of the agent do not count.
//
//   - A forbidden pattern also covers everything below a matching folder. An allowed pattern does so only if it is a
//     plain name: `docs` is all of docs, `docs/*` only its direct children.
//   - A rename is a deletion and a creation.
//   - If HEAD is another commit afterwards, that counts as a commit, however it happened.
//   - A run in place may start on a protected branch, but must not move it.

import type { Json } from '../../base/json.ts';
import type { Operation, Policy } from '../../ir/conductor.ts';
import { NO_RESTRICTIONS } from '../../ir/policy.ts';
import type { Change } from '../git/diff.ts';
import { isProtected, short } from '../git/restore.ts';
import { foldersOf } from '../git/worktree-paths.ts';
import { globs, literalOf } from './globs.ts';
import type { After } from './workspace.ts';

export type Violation = {
  readonly rule: Rule;
  /** Relative to the worktree; null if it concerns no path. */
  readonly path: string | null;
  readonly message: string;
};

export type Rule =
  | 'read_only'
  | 'allowed_paths'
  | 'forbidden_paths'
  | 'forbidden_operations'
  | 'lockfiles'
  | 'protected_branch'
  | 'git_tampering'
  | 'on_prompt';

export type Conduct = Pick<After, 'changes' | 'hidden' | 'moved' | 'tampered'> & {
  readonly before: HeadState;
  readonly after: HeadState;
  readonly denied: number;
};

type HeadState = Pick<After, 'head' | 'branch'>;

/** More are not part of a step's outputs. */
export const VIOLATIONS_MAX = 200;

export function checkPolicy(
  policy: Policy,
  conduct: Conduct,
  protectedBranches: readonly string[],
): readonly Violation[] {
  const isAllowed = policy.allowedPaths === null ? () => true : allows(policy.allowedPaths);
  const isForbidden = forbids(policy.forbiddenPaths);
  const { tampered, changes, hidden, moved, denied } = conduct;
  const times = denied === 1 ? 'once' : `${denied} times`;
  return [
    // First, because only the first of many are kept, and what git was told to hide is not among the changes.
    ...tampered.map((name) => violation('git_tampering', name, `${name} decides what git does, and was changed`)),
    ...changes.flatMap((change) => violationsOf(policy, { isAllowed, isForbidden }, change)),
    ...hidden
      .filter((path) => isForbidden(path.replace(/\/$/, '')) || (path.endsWith('/') && isForbidden(`${path}x`)))
      .map((path) =>
        violation('forbidden_paths', path, `${path} was created where git ignores it, and is a forbidden path`),
      ),
    ...moved
      .map((branch) => `${branch} is protected, and was moved to a commit of this run`)
      .map((message) => violation('protected_branch', null, message)),
    ...headViolations(policy, conduct, protectedBranches),
    ...(policy.onPrompt === 'fail' && denied > 0
      ? [violation('on_prompt', null, `it asked for what it may not do, and was denied it ${times}`)]
      : []),
  ];
}

/** Read-only, for evaluators. */
export const READ_ONLY: Policy = { ...NO_RESTRICTIONS, access: 'read_only', lockfiles: 'deny' };

/** Format of outputs and summaries. */
export function policyRecord(policy: Policy): Json {
  return {
    name: policy.name,
    allowed_paths: policy.allowedPaths,
    forbidden_paths: policy.forbiddenPaths,
    forbidden_operations: policy.forbiddenOperations,
    network: policy.network,
    execution: policy.access,
    on_prompt: policy.onPrompt,
    lockfiles: policy.lockfiles,
  };
}

/** The rules told to an agent, one a line; the last is the consequence. */
export function policyRules(policy: Policy, protectedBranches: readonly string[]): readonly string[] {
  const { allowedPaths, forbiddenPaths, forbiddenOperations, network, access, lockfiles } = policy;
  const deeds = forbiddenOperations.map((operation) => DEEDS[operation]).join('; ');
  const changes = [
    ...(allowedPaths !== null ? [`Change only these paths: ${allowedPaths.join(', ') || 'none'}.`] : []),
    ...(forbiddenPaths.length > 0 ? [`Do not change these paths: ${forbiddenPaths.join(', ')}.`] : []),
    ...(deeds !== '' ? [`Do not do any of this: ${deeds}.`] : []),
    ...(lockfiles === 'deny' ? ['Do not change lockfiles or package manifests.'] : []),
  ];
  return [
    ...(access === 'read_only' ? ['Change nothing: no file, no commit, no branch.'] : changes),
    ...(network === 'deny' ? ['Do not use the network.'] : []),
    ...(protectedBranches.length > 0 ? [`Do not change these branches: ${protectedBranches.join(', ')}.`] : []),
    "Do not change git's configuration or hooks.",
    'When you finish, these rules are checked automatically. A violation fails the step.',
  ];
}

const DEEDS: Readonly<Record<Operation, string>> = {
  create: 'create files',
  modify: 'modify files',
  delete: 'delete files',
  rename: 'rename files',
  chmod: 'change permissions',
  symlink: 'make symbolic links',
  commit: 'commit, or move HEAD in another way',
  switch_branch: 'switch to another branch',
};

function violationsOf(
  policy: Policy,
  { isAllowed, isForbidden }: Readonly<Record<'isAllowed' | 'isForbidden', (path: string) => boolean>>,
  change: Change,
): readonly Violation[] {
  const { path, from } = change;
  const deed = from === null ? `${path} was ${change.status}` : `${from} was renamed to ${path}`;
  if (policy.access === 'read_only') {
    return [violation('read_only', path, `${deed}, and nothing was to be changed`)];
  }
  const paths = from === null ? [path] : [from, path];
  const isLimited = policy.allowedPaths !== null || policy.forbiddenPaths.length > 0;
  return [
    ...(isLimited && !change.isExact
      ? [violation('allowed_paths', path, `${deed}, and its name is not text, so no policy can allow it`)]
      : []),
    ...paths
      .filter((each) => !isAllowed(each))
      .map((each) => violation('allowed_paths', each, `${deed}, and ${each} is not among the allowed paths`)),
    ...paths
      .filter(isForbidden)
      .map((each) => violation('forbidden_paths', each, `${deed}, and ${each} is a forbidden path`)),
    ...operationsOf(change)
      .filter((operation) => policy.forbiddenOperations.includes(operation))
      .map((operation) => violation('forbidden_operations', path, `${deed}, and it must not ${DEEDS[operation]}`)),
    ...(policy.lockfiles === 'deny' ? paths : [])
      .filter(isOfPackages)
      .map((each) => violation('lockfiles', each, `${deed}, and lockfiles and manifests of packages must not change`)),
  ];
}

function operationsOf({ status, modeBefore, modeAfter }: Change): readonly Operation[] {
  const operations: Operation[] = [...OPERATIONS_OF[status]];
  const isFile = (mode: string): boolean => mode.startsWith('100');
  if (isFile(modeBefore) && isFile(modeAfter) && modeBefore !== modeAfter) operations.push('chmod');
  if (modeAfter === '120000') operations.push('symlink');
  return operations;
}

const OPERATIONS_OF: Readonly<Record<Change['status'], readonly Operation[]>> = {
  added: ['create'],
  modified: ['modify'],
  typechange: ['modify'],
  deleted: ['delete'],
  renamed: ['rename', 'create', 'delete'],
};

function headViolations(
  { access, forbiddenOperations }: Policy,
  { before, after }: Conduct,
  protectedBranches: readonly string[],
): readonly Violation[] {
  const isReadOnly = access === 'read_only';
  const hasMoved = before.head !== after.head;
  const hasSwitched = before.branch !== after.branch;
  const { branch } = after;
  const moved = `HEAD was at ${short(before.head)} and is at ${short(after.head)}`;
  const switched = `HEAD was on ${before.branch ?? 'no branch'} and is on ${branch ?? 'no branch'}`;
  const found: Violation[] = [];
  const forbid = (operation: Operation, what: string): void => {
    if (isReadOnly) found.push(violation('read_only', null, `${what}, and nothing was to be changed`));
    else if (forbiddenOperations.includes(operation))
      found.push(violation('forbidden_operations', null, `${what}, and it must not ${DEEDS[operation]}`));
  };
  if (hasMoved) forbid('commit', moved);
  if (hasSwitched) forbid('switch_branch', switched);
  if ((hasMoved || hasSwitched) && branch !== null && isProtected(branch, protectedBranches)) {
    found.push(violation('protected_branch', null, `${hasSwitched ? switched : moved}, and ${branch} is protected`));
  }
  return found;
}

function allows(patterns: readonly string[]): (path: string) => boolean {
  const names = patterns.map(withoutSlash);
  const matches = globs(names);
  const folders = names.flatMap((name) => literalOf(name) ?? []).map((name) => `${name}/`);
  return (path) => matches(path) || folders.some((folder) => path.startsWith(folder));
}

function forbids(patterns: readonly string[]): (path: string) => boolean {
  const matches = globs(patterns.map(withoutSlash));
  return (path) => matches(path) || foldersOf(path).some(matches);
}

function withoutSlash(pattern: string): string {
  return pattern.replace(/^\.\//, '').replace(/\/+$/, '');
}

/** Package manifests and lockfiles of the known ecosystems. */
function isOfPackages(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return PACKAGE_FILES.has(name.toLowerCase()) || PACKAGE_PATTERNS.some((pattern) => pattern.test(name));
}

const PACKAGE_FILES: ReadonlySet<string> = new Set(
  `package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bun.lockb
  deno.lock jsr.json cargo.toml cargo.lock go.mod go.sum go.work go.work.sum pyproject.toml poetry.lock uv.lock pdm.lock
  pipfile pipfile.lock pylock.toml setup.py setup.cfg environment.yml conda-lock.yml pixi.toml pixi.lock gemfile gemfile.lock
  composer.json composer.lock pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.lockfile
  build.sbt mix.exs mix.lock rebar.config rebar.lock pubspec.yaml pubspec.lock package.swift package.resolved podfile
  podfile.lock cartfile cartfile.resolved packages.lock.json packages.config paket.lock directory.packages.props flake.lock
  stack.yaml stack.yaml.lock cabal.project.freeze conanfile.txt conanfile.py conan.lock vcpkg.json deps.edn project.clj
  renv.lock`.split(/\s+/),
);
const PACKAGE_PATTERNS = [/^requirements.*\.(?:txt|in)$/i, /\.(?:csproj|fsproj|vbproj|gemspec|cabal|podspec|nimble)$/i];

function violation(rule: Rule, path: string | null, message: string): Violation {
  return { rule, path, message };
}
