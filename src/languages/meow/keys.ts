// The keys of MEOW workflows.

import { OPEN_CHANNELS } from '../../ir/adapter.ts';
import {
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  either,
  ENVIRONMENT,
  FILLED,
  integer,
  key,
  type Key,
  listOf,
  mapOf,
  needed,
  REFERENCE,
  SCALAR,
  type Shape,
  STRING,
  STRINGS,
  type Table,
  tableOf,
  words,
} from '../keys.ts';

const NAME = '^[A-Za-z0-9_-]+$';
const VALUES = mapOf(ANY, NAME);
const COUNT = either(integer(1), REFERENCE);

export const TYPES = ['string', 'int', 'number', 'bool', 'boolean', 'json', 'object'] as const;
export const EXPECTED_TYPES = ['string', 'int', 'number', 'bool', 'boolean', 'json', 'object', 'file_path'] as const;
export const BACKOFFS = ['none', 'linear', 'exponential'] as const;
export const MODES = ['autonomous', 'interactive', 'fire_forget'] as const;

export const VARIABLE: Table = {
  name: 'variable',
  doc: 'A parameter of a workflow.',
  keys: [
    key('required', BOOLEAN, 'Refuses a run without a value for this variable.'),
    key('default', ANY, 'Value if none is given.'),
    key('type', words([...TYPES, 'file']), 'Type of its values; without a type, any value is accepted.'),
    key('description', STRING, 'Description for people.'),
    key('secret', BOOLEAN, 'Masks its value wherever meow records, shows or sends it.'),
    key('env', FILLED, 'Environment variable that has the value of a secret.'),
  ],
};

export const CAPTURE: Table = {
  name: 'output',
  doc: 'A value captured from a command.',
  keys: [
    needed(
      'source',
      { kind: 'string', pattern: '^(?:stdout|stderr|exit_code|file:.+)$' },
      'Where the value comes from: stdout, stderr, exit_code or file:PATH.',
    ),
    key('type', words(TYPES), 'Type of the value; without a type, it is kept as text.'),
    key('required', BOOLEAN, 'Fails the step if the value is missing; default true.'),
    key('trim', BOOLEAN, 'Removes white space around the text; default true.'),
    key('description', STRING, 'Description for people.'),
  ],
};

export const EXPECTATION: Table = {
  name: 'expected output',
  doc: 'A value that the agent must report.',
  keys: [
    key('required', BOOLEAN, 'Refuses a report without this value; default false.'),
    key('type', words(EXPECTED_TYPES), 'Type of the value; default string.'),
    key('description', STRING, 'Description for the agent.'),
  ],
};

export const RETRY: Table = {
  name: 'retry',
  doc: 'How often a failed step is tried again.',
  keys: [
    key('max_attempts', integer(1), 'Number of attempts, the first included.'),
    key('attempts', integer(1), 'Another name of max_attempts.'),
    key('delay', DURATION, 'Time before the second attempt; default none.'),
    key('backoff', words(BACKOFFS), 'How the delay grows from attempt to attempt; default none.'),
    key(
      'jitter',
      either(BOOLEAN, { kind: 'number', least: 0, most: 1 }),
      'Random share of the delay, from 0 to 1; true means 0.5.',
    ),
    key('description', STRING, 'Description for people.'),
  ],
  choices: [{ keys: ['max_attempts', 'attempts'], required: true }],
};

const TEMPLATE = key('template', STRING, 'Workflow whose steps are added: .name in this file, file#name in another.');
const VARIABLES = key('variables', VALUES, 'Values that the template gets for its variables.');
const INLINE = key('inline', listOf(tableOf(() => STEP)), 'Steps written in place, instead of a template.');

/** `on_true`, `on_false`, `on_timeout`, and `on_exhausted` as a table. */
export const TARGET: Table = {
  name: 'target',
  doc: 'Steps that are added: those of a template, or inline ones.',
  keys: [TEMPLATE, INLINE, VARIABLES, key('description', STRING, 'Description for people.')],
  choices: [{ keys: ['template', 'inline'], required: true }],
};

const TARGET_SHAPE = tableOf(() => TARGET);

/** Keys of every step. */
export const STEP_KEYS: readonly Key[] = [
  needed('id', { kind: 'string', pattern: NAME }, 'Name of the step, unique in its list of steps.'),
  needed(
    'executor',
    words(['shell', 'expand', 'branch', 'foreach', 'loop', 'spawn', 'agent', 'kill']),
    'What the step does; decides which other keys it has.',
  ),
  key('needs', STRINGS, 'Steps that must have finished before this one starts.'),
  key('on_error', STRING, 'What happens if the step fails: fail, continue, or a workflow that recovers it.'),
  key(
    'retry',
    tableOf(() => RETRY),
    'Attempts after a failure.',
  ),
  key('description', STRING, 'Description for people.'),
];

const TIMEOUT = key('timeout', either(DURATION, REFERENCE), 'Longest duration of the step; default no limit.');
const WORKDIR = key('workdir', STRING, 'Working directory, which must exist; default where the run was started.');
const ENV = key('env', ENVIRONMENT, 'Additional environment variables.');
const CAPTURES: Shape = mapOf(
  either(
    tableOf(() => CAPTURE),
    STRING,
  ),
  NAME,
);
const OUTPUTS = key('outputs', CAPTURES, 'Values to capture from the command.');
const SHELL_OUTPUTS = key('shell_outputs', CAPTURES, 'Another name of outputs.');

/** Own keys of each executor, with `timeout` first if it has one. */
export const EXECUTOR_TABLES = {
  agent: {
    name: 'agent',
    doc: 'Prompts an agent and waits for its report.',
    keys: [
      TIMEOUT,
      needed('agent', FILLED, 'Name that the agent was spawned with.'),
      needed('prompt', FILLED, 'What the agent shall do.'),
      key(
        'outputs',
        mapOf(
          tableOf(() => EXPECTATION),
          NAME,
        ),
        'Values that the agent must report.',
      ),
      key('mode', words(MODES), 'Whether the step waits for the agent, and who may talk to it; default autonomous.'),
    ],
  },
  branch: {
    name: 'branch',
    doc: 'Runs a script whose exit code selects the path.',
    keys: [
      TIMEOUT,
      needed('condition', FILLED, 'Script that decides: exit code 0 is true, any other is false.'),
      key('on_true', TARGET_SHAPE, 'Steps if the condition is true.'),
      key('on_false', TARGET_SHAPE, 'Steps if the condition is false.'),
      key('on_timeout', TARGET_SHAPE, 'Steps if the time is up; default those of on_false.'),
      OUTPUTS,
      SHELL_OUTPUTS,
      WORKDIR,
      ENV,
    ],
  },
  expand: {
    name: 'expand',
    doc: 'Adds the steps of a template below this step.',
    keys: [{ ...TEMPLATE, required: true }, VARIABLES],
  },
  foreach: {
    name: 'foreach',
    doc: 'Adds the steps of a template for each item of a list.',
    keys: [
      key('items', either(listOf(ANY), STRING), 'The list: written out, a reference, or JSON.'),
      key('items_file', STRING, 'File that contains the list, as JSON or one item a line.'),
      key('item_var', { kind: 'string', pattern: NAME }, 'Variable that contains the item; default item.'),
      key('index_var', { kind: 'string', pattern: NAME }, 'Variable that contains the number of the item, from 0.'),
      key('key', STRING, 'Name of an item in step ids; default its number.'),
      { ...TEMPLATE, required: true },
      VARIABLES,
      key(
        'parallel',
        either(BOOLEAN, words(['true', 'false']), REFERENCE),
        'Whether items run side by side; default true.',
      ),
      key('max_concurrent', COUNT, 'How many items run side by side; default all.'),
      key('join', BOOLEAN, 'Whether the step waits for the steps of all items; default true.'),
    ],
    choices: [{ keys: ['items', 'items_file'], required: true }],
  },
  kill: {
    name: 'kill',
    doc: 'Stops an agent.',
    keys: [
      key('timeout', DURATION, 'Time that the agent gets to exit by itself; default 10s.'),
      needed('agent', FILLED, 'Name of the agent.'),
      key('graceful', BOOLEAN, 'Whether the agent is asked to exit first; default true.'),
    ],
  },
  loop: {
    name: 'loop',
    doc: 'Runs a template or inline steps, round after round.',
    keys: [
      key('until', FILLED, 'Script after each round; the loop ends if it succeeds.'),
      key('while', FILLED, 'Script before each round; the loop ends if it fails.'),
      key('until_output', STRING, 'Output of a step of the round; the loop ends if it is true.'),
      needed('max_rounds', COUNT, 'Number of rounds after which the loop gives up.'),
      key('on_exhausted', either(STRING, TARGET_SHAPE), 'What follows the last round: fail, continue, or more steps.'),
      TEMPLATE,
      INLINE,
      VARIABLES,
      key('delay', DURATION, 'Time between two rounds; default none.'),
    ],
    choices: [
      { keys: ['until', 'while', 'until_output'], required: true },
      { keys: ['template', 'inline'], required: true },
    ],
  },
  shell: {
    name: 'shell',
    doc: 'Runs a command.',
    keys: [TIMEOUT, needed('command', FILLED, 'The shell script to run.'), OUTPUTS, SHELL_OUTPUTS, WORKDIR, ENV],
  },
  spawn: {
    name: 'spawn',
    doc: 'Starts an agent.',
    keys: [
      TIMEOUT,
      needed('agent', FILLED, 'Name by which other steps address the agent.'),
      key('adapter', FILLED, 'Adapter that starts the agent; default that of the workflow, then of the project.'),
      WORKDIR,
      ENV,
      key('channel', words(OPEN_CHANNELS), 'How meow talks to the agent; default what the adapter prefers.'),
      key('resume_session', STRING, 'Session that the agent continues.'),
      key('fork_session', BOOLEAN, 'Continues a copy of the session instead of the session itself.'),
      key('spawn_args', STRING, 'Additional arguments for the command that starts the agent.'),
    ],
    together: [['fork_session', 'resume_session']],
  },
} as const satisfies Readonly<Record<string, Table>>;

export const STEP: Table = {
  name: 'step',
  doc: 'A step of a workflow.',
  keys: STEP_KEYS,
  variants: { key: 'executor', tables: EXECUTOR_TABLES },
};

const CLEANUP = 'Script that runs when the workflow ends';

export const WORKFLOW_KEYS: readonly Key[] = [
  key('name', STRING, 'Name for people; default that of the table.'),
  key('description', STRING, 'Description for people.'),
  key('internal', BOOLEAN, 'Lets only workflows of the same file use it.'),
  key(
    'variables',
    mapOf(
      either(
        tableOf(() => VARIABLE),
        SCALAR,
        listOf(ANY),
      ),
      NAME,
    ),
    'Parameters of the workflow.',
  ),
  needed('steps', listOf(tableOf(() => STEP)), 'Steps of the workflow.'),
  key('cleanup_on_success', STRING, `${CLEANUP} successfully.`),
  key('cleanup_on_failure', STRING, `${CLEANUP} with a failure.`),
  key('cleanup_on_stop', STRING, `${CLEANUP} because it was stopped.`),
  key('drain', DURATION, 'How long running steps may continue after the run starts to fail; default 10m.'),
  key('default_adapter', STRING, 'Adapter of agents that do not name one.'),
];

const WORKFLOW: Table = { name: 'workflow', doc: 'A workflow: its steps and variables.', keys: WORKFLOW_KEYS };

/** The older form has the keys of its only workflow at the top of the file. */
const OPTIONAL_KEYS = WORKFLOW_KEYS.map(({ name, shape, doc }) => key(name, shape, doc));

const META: Table = { name: 'meta', doc: 'Keys of the workflow of an older file.', keys: OPTIONAL_KEYS };

export const MEOW: Document = {
  syntax: 'toml',
  doc: 'Workflows in the MEOW language, *.meow.toml.',
  root: {
    name: 'file',
    doc: 'A file with workflows, each a table of its own; a file with steps at its top is one workflow.',
    keys: [
      key(
        'meta',
        tableOf(() => META),
        'Keys of the workflow of an older file.',
      ),
      ...OPTIONAL_KEYS,
    ],
    together: OPTIONAL_KEYS.flatMap(({ name }) => (name === 'steps' ? [] : [[name, 'steps'] as const])),
    others: { shape: tableOf(() => WORKFLOW), names: String.raw`^\.?[A-Za-z0-9_-]+$` },
    least: 1,
  },
};
