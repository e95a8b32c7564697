// The keys of `.meow/config.toml`.

import { OPEN_CHANNELS, PERMISSIONS } from '../ir/adapter.ts';
import { CONDUCTOR_SECTIONS } from './conductor/config-keys.ts';
import {
  amount,
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  either,
  FILLED,
  integer,
  key,
  type Key,
  listOf,
  type Table,
  tableOf,
  words,
} from './keys.ts';

export const TMUX = ['private', 'shared'] as const;

const SIZE = either(integer(1), {
  kind: 'string',
  pattern: String.raw`^\s*\d+(?:\.\d+)?\s*(?:[KkMmGg][Ii]?[Bb]|[Bb])?\s*$`,
});

export const LIMITS: Table = {
  name: 'limits',
  doc: 'Limits of every run.',
  keys: [
    key('max_expansion_depth', integer(1), 'Maximum nesting of added steps; default 100.'),
    key('max_total_steps', integer(1), 'Maximum number of steps of a run; default 10000.'),
    key('max_workflow_file_size', SIZE, 'Maximum size of the state file of a run; default 50MB.'),
  ],
};

const OTHERS = 'Read by other programs; meow ignores it.';

export const AGENTS: Table = {
  name: 'agents',
  doc: 'Defaults for agents.',
  keys: [
    key('default_adapter', FILLED, 'Adapter of agents that do not name one.'),
    key('channel', words(OPEN_CHANNELS), 'Channel of agents that do not name one; default the first of the adapter.'),
    key('permissions', words(PERMISSIONS), 'What agents may do without asking; default all.'),
    key('setup_hooks', ANY, OTHERS),
  ],
};

export const GATES: Table = {
  name: 'gates',
  doc: 'Reminders and signatures of gates.',
  keys: [
    key('remind', FILLED, 'Command that notifies somebody of an open gate.'),
    key('remind_every', DURATION, 'Time after which the reminder is repeated; default once.'),
    key(
      'allowed_signers',
      FILLED,
      'File with the keys of people who may sign decisions; default .meow/allowed_signers.',
    ),
  ],
};

export const SERVE: Table = {
  name: 'serve',
  doc: 'What meow serve does.',
  keys: [key('resume', BOOLEAN, 'Whether it resumes runs whose engine has died; default true.')],
};

export const RETENTION_STATUSES = ['done', 'failed', 'stopped'] as const;

export const RETENTION: Table = {
  name: 'retention',
  doc: 'Runs that meow serve removes when they are over.',
  keys: [
    key('older_than', DURATION, 'Age, since their end, after which runs are removed.'),
    key('keep', integer(0), 'Number of the newest runs that stay.'),
    key(
      'status',
      either(words(RETENTION_STATUSES), listOf(words(RETENTION_STATUSES))),
      'How they have ended; default any.',
    ),
  ],
};

export const SECRETS: Table = {
  name: 'secrets',
  doc: 'Values that are masked wherever meow records, shows or sends them.',
  keys: [
    key(
      'env',
      listOf({ kind: 'string', pattern: String.raw`^[A-Za-z0-9_*]+$` }),
      'Environment variables that are secrets; * stands for any characters; default *_TOKEN, *_KEY, *_SECRET, *PASSWORD* and *CREDENTIALS*.',
    ),
  ],
};

const ABOVE_0 = { kind: 'number', above: 0 } as const;

export const BUDGET: Table = {
  name: 'budget',
  doc: 'Budgets of all runs of the user, or in a project of its runs.',
  keys: [
    key('run_usd', ABOVE_0, 'Dollars that a run may spend, together with its forks.'),
    key('day_usd', ABOVE_0, 'Dollars that all runs may spend in a day.'),
    key('day_tokens', integer(1), 'Tokens that all runs may use in a day.'),
    key('agent_usd', ABOVE_0, 'Dollars that each agent of a run may spend.'),
    key('reserve_usd', amount(0), 'Dollars reserved for a turn about which nothing is known; default 0.50.'),
  ],
};

/** Keys that other programs for MEOW workflows read. */
const IGNORED: readonly Key[] = ['version', 'paths', 'defaults', 'orchestrator', 'cleanup', 'logging', 'worktree'].map(
  (name) => key(name, ANY, OTHERS),
);

export const CONFIG: Document = {
  syntax: 'toml',
  doc: 'Configuration of a project or a person, .meow/config.toml.',
  root: {
    name: 'configuration',
    doc: 'Settings of a project or, in the home folder, of a person. Every key is optional.',
    keys: [
      key(
        'limits',
        tableOf(() => LIMITS),
        'Limits of every run.',
      ),
      key('shell', FILLED, 'Shell for the commands of steps; default sh.'),
      key('tmux', words(TMUX), 'The tmux server for terminals of agents: one of its own, or yours.'),
      key(
        'agents',
        tableOf(() => AGENTS),
        'Defaults for agents.',
      ),
      key(
        'agent',
        tableOf(() => AGENTS),
        'Another name of agents.',
      ),
      key(
        'gates',
        tableOf(() => GATES),
        'Reminders and signatures of gates.',
      ),
      key(
        'budget',
        tableOf(() => BUDGET),
        'How much runs may spend.',
      ),
      key(
        'serve',
        tableOf(() => SERVE),
        'What meow serve does.',
      ),
      key(
        'retention',
        tableOf(() => RETENTION),
        'Runs that meow serve removes when they are over.',
      ),
      key(
        'secrets',
        tableOf(() => SECRETS),
        'Values that are masked wherever meow records, shows or sends them.',
      ),
      ...CONDUCTOR_SECTIONS,
      ...IGNORED,
    ],
  },
};
