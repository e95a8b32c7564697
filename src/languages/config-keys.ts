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
  matching,
  needed,
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

export const TELEMETRY: Table = {
  name: 'telemetry',
  doc: 'Traces of runs for OpenTelemetry.',
  keys: [
    key('otlp', FILLED, 'Address of an OTLP receiver (HTTP), such as http://127.0.0.1:4318; /v1/traces is added.'),
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
    key(
      'overrun',
      amount(0),
      'Share of its reservation that a turn above its budget may cost in addition; default 0.5.',
    ),
  ],
};

const PRICE: Table = {
  name: 'price',
  doc: 'Dollars for a million tokens.',
  keys: [
    needed('input', amount(0), 'Of input that is not cached.'),
    needed('output', amount(0), 'Of output.'),
    key('cached', amount(0), 'Of input from the cache of the provider; default that of input.'),
  ],
};

/** `ADAPTER/MODEL` or `ADAPTER/*`. */
export const PRICED = '^[^/]+/.+$';

const PRICES: Table = {
  name: 'prices',
  doc: 'Prices of turns that report tokens but no dollars, by ADAPTER/MODEL or ADAPTER/*.',
  keys: [],
  others: { shape: tableOf(() => PRICE), names: PRICED },
};

export const PRICE_KEYS = PRICE.keys;

export const ACCOUNTS: Table = {
  name: 'accounts',
  doc: 'Usage limits, which all runs with the same account share.',
  keys: [key('spread', DURATION, 'Time over which waiting turns start after the reset of a limit; default 60s.')],
};

/** `08:00-18:00` */
export const HOURS = String.raw`^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$`;

export const QUIET: Table = {
  name: 'quiet',
  doc: 'When runs that were started with --background start no turn of an agent.',
  keys: [
    needed('hours', matching(HOURS), 'From when until when, such as 08:00-18:00; may be over midnight.'),
    key('timezone', FILLED, 'Time zone of these hours, such as Europe/Berlin; default that of the machine.'),
  ],
};

export const NOTICE_KINDS = ['gate', 'question', 'failed', 'done', 'paused', 'limit', 'stuck'] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

export const WEBHOOK_FORMATS = ['json', 'slack', 'ntfy', 'discord'] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

export const WEBHOOK: Table = {
  name: 'webhook',
  doc: 'An address that gets a POST for each notification.',
  keys: [
    needed('url', FILLED, 'The address: http or https, or $NAME of an environment variable that contains it.'),
    key('format', words(WEBHOOK_FORMATS), 'What the body is made for; default json.'),
    key(
      'secret',
      matching(String.raw`^\$[A-Za-z_][A-Za-z0-9_]*$`),
      'Signs the body: $NAME of an environment variable.',
    ),
  ],
};

export const NOTIFY: Table = {
  name: 'notify',
  doc: 'Who is told what.',
  keys: [
    key('on', listOf(words(NOTICE_KINDS)), 'What people are told of; default all but done and limit.'),
    key('command', FILLED, 'Command that is run with sh -c, with the notification as JSON on standard input.'),
    key(
      'webhook',
      either(
        FILLED,
        tableOf(() => WEBHOOK),
      ),
      'An address that gets a POST for each notification.',
    ),
    key('desktop', BOOLEAN, 'Whether the desktop shows notifications; default false.'),
    key('bell', BOOLEAN, 'Whether the terminal of meow run rings; default false.'),
    key('after', DURATION, 'Time after which people are told, unless it is decided by then; default 0s.'),
    key('repeat', DURATION, 'Time after which people are told again while it waits; default never.'),
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
        'prices',
        tableOf(() => PRICES),
        'Prices of turns that report tokens but no dollars.',
      ),
      key(
        'accounts',
        tableOf(() => ACCOUNTS),
        'Usage limits of accounts.',
      ),
      key(
        'quiet',
        tableOf(() => QUIET),
        'When runs in the background start no turn.',
      ),
      key(
        'notify',
        tableOf(() => NOTIFY),
        'Who is told what.',
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
      key(
        'telemetry',
        tableOf(() => TELEMETRY),
        'Traces of runs for OpenTelemetry.',
      ),
      ...CONDUCTOR_SECTIONS,
      ...IGNORED,
    ],
  },
};
