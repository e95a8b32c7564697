// The keys of schedules, `.meow/schedules/NAME.toml`.

import {
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  FILLED,
  key,
  listOf,
  mapOf,
  matching,
  needed,
  STRINGS,
  type Table,
  tableOf,
  words,
} from './keys.ts';

export const OVERLAPS = ['skip', 'queue', 'allow'] as const;
export const MISSED = ['once', 'skip'] as const;

/** Of schedules and hooks. */
export const SCHEDULE_NAME = '^[a-z0-9-]{1,20}$';
export const RATE = String.raw`^[1-9]\d{0,5}/[smh]$`;

export const TRIGGER: Table = {
  name: 'trigger',
  doc: 'Starts a run when files change, or when a program calls a hook of meow serve.',
  keys: [
    key('watch', listOf(FILLED, 1), 'Patterns of files, relative to the project, whose changes start a run.'),
    key('settle', DURATION, 'Time without another change after which the run starts; default 2s.'),
    key('hook', matching(SCHEDULE_NAME), 'Name of the hook: POST /hooks/NAME.'),
    key('secret', FILLED, 'Secret that signs the calls: $NAME for an environment variable. A hook needs it.'),
    key('body', FILLED, 'Variable that gets the body of the call; default body.'),
    key('rate', matching(RATE), 'Calls that are accepted in a second, minute or hour; default 60/m.'),
  ],
  choices: [{ keys: ['watch', 'hook'], required: true }],
};

export const SCHEDULE: Document = {
  syntax: 'toml',
  doc: 'When meow serve starts a workflow, .meow/schedules/NAME.toml.',
  root: {
    name: 'schedule',
    doc: 'A workflow, and when meow serve starts it.',
    keys: [
      key('cron', FILLED, 'When it starts: five fields, or six with seconds first.'),
      key(
        'trigger',
        tableOf(() => TRIGGER),
        'What starts it, instead of a time.',
      ),
      key('timezone', FILLED, 'Time zone of the cron line, such as Europe/Berlin; default that of the machine.'),
      needed('path', FILLED, 'The workflow: PATH or PATH#WORKFLOW, relative to the project.'),
      key('variables', mapOf(ANY), 'Variables of the workflow.'),
      key('args', STRINGS, 'More flags of meow run.'),
      key('overlap', words(OVERLAPS), 'What happens while an earlier run is active; default skip.'),
      key('missed', words(MISSED), 'What happens to times at which meow serve did not run; default once.'),
      key('jitter', DURATION, 'Each start is delayed by a random time of at most this; default none.'),
      key('paused', BOOLEAN, 'Whether nothing is started; default false.'),
    ],
    choices: [{ keys: ['cron', 'trigger'], required: true }],
  },
};
