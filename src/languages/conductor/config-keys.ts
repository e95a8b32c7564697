// The keys of the configuration sections `[conductor]`, `[policy.NAME]` and `[validators.NAME]`, and of the front matter of
// policies.

import { OPERATIONS } from '../../ir/conductor.ts';
import {
  BOOLEAN,
  DURATION,
  FILLED,
  key,
  type Key,
  listOf,
  mapOf,
  needed,
  STRING,
  STRINGS,
  type Table,
  tableOf,
  words,
} from '../keys.ts';

export const CONDUCTOR_SECTION: Table = {
  name: 'conductor',
  doc: 'Settings of Conductor workflows.',
  keys: [
    key('allowed_entrypoints', STRINGS, 'Entrypoints of validators outside the run directory.'),
    key('env_allow', STRINGS, 'Environment variables that script validators see.'),
    key('allow_lockfiles', BOOLEAN, 'Whether agents may change lockfiles and manifests; default false.'),
    key('protected_branches', STRINGS, 'Branches on which a rollback is refused.'),
  ],
};

export const ACCESS = ['read_only', 'workspace_write'] as const;
export const ON_PROMPT = ['fail', 'deny'] as const;
export const ALLOW = ['allow', 'deny'] as const;

/** Rules of a policy. */
export const POLICY_RULES: readonly Key[] = [
  key('allowed_paths', STRINGS, 'Globs of paths that may change; default anything.'),
  key('forbidden_paths', STRINGS, 'Globs of paths that must not change, including everything below them.'),
  key('forbidden_operations', listOf(words(OPERATIONS)), 'What the agent must not do to files and branches.'),
  key('network', words(ALLOW), 'Whether the agent may use the network; default allow.'),
  key('execution', words(ACCESS), 'Whether the agent may change files; default workspace_write.'),
  key('on_prompt', words(ON_PROMPT), 'The reply to an agent that asks for permission; default deny.'),
  key('lockfiles', words(ALLOW), 'Whether the agent may change lockfiles and package manifests.'),
];

export const POLICY: Table = {
  name: 'policy',
  doc: 'What an agent may do.',
  keys: [key('text', STRING, 'Text for the agent.'), ...POLICY_RULES],
};

export const REGISTERED_VALIDATOR: Table = {
  name: 'registered validator',
  doc: 'A command that workflows name.',
  keys: [
    needed('command', FILLED, 'The command of the validator.'),
    key('cwd', STRING, 'Working directory, relative to the worktree.'),
    key('timeout', DURATION, 'Maximum time of the command.'),
    key('artifacts', STRINGS, 'Globs, relative to cwd, of files to keep that the command writes.'),
  ],
};

export const CONDUCTOR_SECTIONS: readonly Key[] = [
  key(
    'conductor',
    tableOf(() => CONDUCTOR_SECTION),
    'Settings of Conductor workflows.',
  ),
  key('policy', mapOf(tableOf(() => POLICY)), 'Policies by name.'),
  key(
    'validators',
    mapOf(
      tableOf(() => REGISTERED_VALIDATOR),
      '^[A-Za-z][A-Za-z0-9_-]*$',
    ),
    'Validators by name.',
  ),
];
