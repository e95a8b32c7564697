// The keys of test files, `NAME.test.toml`.

import {
  amount,
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  DURATION_SOURCE,
  either,
  FILLED,
  integer,
  key,
  type Key,
  listOf,
  mapOf,
  matching,
  needed,
  type Shape,
  STRING,
  STRINGS,
  type Table,
  tableOf,
  words,
} from '../keys.ts';
import { RULE } from '../sim-keys.ts';

export const RUN_ENDS = ['done', 'failed', 'stopped', 'paused', 'waiting'] as const;
export const STEP_STATUSES = ['pending', 'running', 'completing', 'done', 'failed', 'skipped'] as const;
export const DECISIONS = ['approve', 'reject', 'answer'] as const;
export const CLAIM_ENDS = ['any', 'done', 'failed'] as const;

/** Paths in the folder of the run, and texts. */
const TEXTS_BY_PATH = mapOf(STRING, String.raw`^(?!/)(?!(?:.*/)?\.\.(?:/|$))[\s\S]+$`);
const OPTIONAL = key('optional', BOOLEAN, 'Whether the rule may stay unused; default false, and true in defaults.');
const TIMES = integer(1);

/** `<= 2.50`, or a bare value. */
function compared(bare: Shape, source: string): Shape {
  return either(bare, matching(String.raw`^\s*(?:<=|>=|<|>|=)?\s*${source}\s*$`));
}

const COMPARED = compared(amount(0), String.raw`\$?\d+(?:\.\d+)?`);

export const ON: Table = { ...RULE, name: 'agent rule', keys: [...RULE.keys, OPTIONAL] };

export const COMMAND: Table = {
  name: 'command rule',
  doc: 'Answers commands that do not really run.',
  keys: [
    key('step', STRING, 'Pattern of the steps.'),
    key('script', STRING, 'Text of the command, or a regular expression between slashes.'),
    key('times', TIMES, 'How often each step follows the rule; after that, the next rule.'),
    key('exit', integer(0, 255), 'Exit code; default 0.'),
    key('stdout', STRING, 'Standard output.'),
    key('stderr', STRING, 'Standard error.'),
    key('files', TEXTS_BY_PATH, 'Files that are written before the command ends.'),
    key('takes', DURATION, 'Duration of the command; default none.'),
    key('hangs', BOOLEAN, 'Whether the command never ends.'),
    OPTIONAL,
  ],
};

const ANSWER = key('answer', STRING, 'The text of an answer.');

export const GATE: Table = {
  name: 'gate rule',
  doc: 'Decides gates.',
  keys: [
    needed('gate', FILLED, 'Pattern of the gates.'),
    key('times', TIMES, 'How many askings of each gate it decides; default all.'),
    key('after', DURATION, 'Time since the gate was asked; default at once.'),
    needed('decide', words(DECISIONS), 'The decision: approve, reject or answer.'),
    ANSWER,
    key('by', STRING, 'Who decides; default tester.'),
    key('notes', STRING, 'Notes of the decision.'),
    OPTIONAL,
  ],
  variants: {
    key: 'decide',
    tables: {
      approve: { name: 'approval', doc: 'Approves the gate.', keys: [] },
      reject: { name: 'rejection', doc: 'Rejects the gate.', keys: [] },
      answer: { name: 'answer', doc: 'Answers a question.', keys: [{ ...ANSWER, required: true }] },
    },
  },
};

const WHEN: readonly Key[] = [
  key('after', DURATION, 'Time since the start of the run.'),
  key('after_step', FILLED, 'Pattern of the step after whose end it happens.'),
];
const ONE_MOMENT = { keys: ['after', 'after_step'] } as const;

export const EVENT: Table = {
  name: 'event rule',
  doc: 'Emits an event.',
  keys: [
    ...WHEN,
    needed('type', FILLED, 'Type of the event.'),
    key('agent', STRING, 'Agent that emits it.'),
    key('data', mapOf(ANY), 'Data of the event.'),
    OPTIONAL,
  ],
  choices: [ONE_MOMENT],
};

export const ENGINE: Table = {
  name: 'engine rule',
  doc: 'Kills the engine.',
  keys: [
    key('dies_at', integer(1), 'Number of the record after which the engine is killed.'),
    key('dies_after', FILLED, 'Pattern of the step after whose end the engine is killed.'),
    key('away', DURATION, 'Time until the run is resumed; default none.'),
    OPTIONAL,
  ],
  choices: [{ keys: ['dies_at', 'dies_after'], required: true }],
};

export const STOP: Table = {
  name: 'stop rule',
  doc: 'Stops the run.',
  keys: [...WHEN, key('force', BOOLEAN, 'Whether its commands are killed at once; default false.'), OPTIONAL],
  choices: [ONE_MOMENT],
};

export const FLAGS = {
  name: 'flags',
  doc: 'Flags of meow run.',
  keys: [
    key('budget_usd', amount(0), 'Limit of the cost in dollars.'),
    key('budget_tokens', integer(0), 'Limit of the tokens.'),
    key('max_transitions', integer(0), 'Limit of the transitions of a state machine.'),
    key('max_agents', integer(0), 'Limit of concurrent turns.'),
    key('max_depth', integer(0), 'Limit of nested expansions.'),
    key('max_steps', integer(0), 'Limit of the steps of the run.'),
  ],
} as const satisfies Table;

export const EXPECTED_ERROR: Table = {
  name: 'expected error',
  doc: 'The error of the run, as in meow status.',
  keys: [key('step', STRING, 'Step that failed.'), key('type', STRING, 'Type of the failure.')],
};

export const EXPECTED_PROMPT: Table = {
  name: 'expected prompt',
  doc: 'What every prompt of matching steps contains or lacks.',
  keys: [
    needed('step', FILLED, 'Pattern of the steps.'),
    key('contains', STRING, 'Text that every prompt contains.'),
    key('lacks', STRING, 'Text that no prompt contains.'),
  ],
  choices: [{ keys: ['contains', 'lacks'], required: true, overlap: true }],
};

export const EXPECTED_COST: Table = {
  name: 'expected cost',
  doc: 'The cost of the run.',
  keys: [
    key('usd', COMPARED, 'Cost in dollars, such as <= 2.50.'),
    key('tokens', COMPARED, 'Number of tokens.'),
    key('turns', COMPARED, 'Number of turns.'),
  ],
};

export const EXPECTED_FILE: Table = {
  name: 'expected file',
  doc: 'A file after the run.',
  keys: [
    key('contains', STRING, 'Text that it contains.'),
    key('lacks', STRING, 'Text that it does not contain.'),
    key('equals', STRING, 'Its whole text.'),
    key('absent', BOOLEAN, 'Whether it must not exist.'),
  ],
};

export const EXPECT: Table = {
  name: 'expectations',
  doc: 'What is expected of the run; without run, it must be done.',
  keys: [
    key('run', words(RUN_ENDS), 'How the run ends; default done.'),
    key('steps', mapOf(words(STEP_STATUSES)), 'Status of each matching step.'),
    key('outcomes', mapOf(STRING), 'Outcome of each matching visit of a Conductor workflow.'),
    key('outputs', mapOf(ANY), 'Outputs by STEP.OUTPUT, or a part of a JSON value.'),
    key(
      'error',
      tableOf(() => EXPECTED_ERROR),
      'The error of the run.',
    ),
    key(
      'order',
      listOf(matching(String.raw`^\s*[^<\s]+\s*<\s*[^<\s]+\s*$`)),
      'Orders of steps: A < B if each A ended before any B started.',
    ),
    key('never', STRINGS, 'Patterns of steps that must not start.'),
    key('visits', mapOf(COMPARED), 'How many steps match a pattern.'),
    key('prompts', listOf(tableOf(() => EXPECTED_PROMPT)), 'What prompts contain or lack.'),
    key(
      'cost',
      tableOf(() => EXPECTED_COST),
      'The cost of the run.',
    ),
    key('took', compared(amount(0), DURATION_SOURCE), 'Duration of the run by its own clock, such as < 40h.'),
    key(
      'files',
      mapOf(
        either(
          STRING,
          tableOf(() => EXPECTED_FILE),
        ),
      ),
      'Files after the run: their text, or what they contain.',
    ),
    key('trace', FILLED, 'File beside the test with the story of the run.'),
  ],
};

const TEST_KEYS: readonly Key[] = [
  key('variables', mapOf(ANY), 'Variables of the run.'),
  key('folder', FILLED, 'Folder whose copy the run works in; default an empty one.'),
  key('files', TEXTS_BY_PATH, 'Texts by path, written into that folder.'),
  key('run', STRINGS, 'Patterns of steps whose commands really run, in that folder.'),
  key(
    'now',
    either({ kind: 'moment' }, matching(String.raw`\d`)),
    'First moment of the clock; default 2026-01-01T00:00:00Z.',
  ),
  key(
    'flags',
    tableOf(() => FLAGS),
    'Flags of meow run.',
  ),
  key('max_records', integer(1), 'Number of records after which an endless run is ended; default 10000.'),
  key('on', listOf(tableOf(() => ON)), 'What simulated agents do; tried before the rules of NAME.sim.toml.'),
  key('command', listOf(tableOf(() => COMMAND)), 'Answers commands that do not really run.'),
  key('gate', listOf(tableOf(() => GATE)), 'Decides gates.'),
  key('event', listOf(tableOf(() => EVENT)), 'Emits events.'),
  key('engine', listOf(tableOf(() => ENGINE)), 'Kills the engine.'),
  key('stop', listOf(tableOf(() => STOP)), 'Stops the run.'),
  key(
    'expect',
    tableOf(() => EXPECT),
    'What is expected of the run.',
  ),
];

export const DEFAULTS: Table = {
  name: 'defaults',
  doc: 'Put under every test of the file: tables are merged, lists are appended.',
  keys: TEST_KEYS,
};

export const TEST: Table = {
  name: 'test',
  doc: 'A test: a run without agents, and what is expected of it.',
  keys: [needed('name', FILLED, 'What the test shows; unique in the file.'), ...TEST_KEYS],
};

export const CLAIMED_LIMITS: Table = {
  name: 'claimed limits',
  doc: 'Limits that no run exceeds.',
  keys: [
    key('turns', integer(0), 'Number of turns.'),
    key('commands', integer(0), 'Number of commands.'),
    key('agents_at_once', integer(0), 'Number of agents that are alive at the same time.'),
    key('usd', amount(0), 'Cost in dollars.'),
    key('visits', mapOf(integer(0)), 'Number of steps by pattern.'),
  ],
  least: 1,
};

const SUBJECTS = [
  key('never', FILLED, 'Pattern of steps that never start.'),
  key('always', FILLED, 'Pattern of steps of which one starts in every run that ends.'),
  key(
    'at_most',
    tableOf(() => CLAIMED_LIMITS),
    'Limits that no run exceeds.',
  ),
  key('alone', FILLED, 'Pattern of steps of which two never run at once.'),
  key('ends', { kind: 'true' }, 'No run waits forever, and every loop has a bound.'),
  key('cleaned', { kind: 'true' }, 'In a run that ends as done, every agent was stopped.'),
] as const;
export const SUBJECT_NAMES: readonly string[] = SUBJECTS.map(({ name }) => name);

/** Keys beside a subject. */
export const EXCEPTIONS = { never: ['unless', 'unless_gate'], always: ['when'] } as const;

export const CLAIM: Table = {
  name: 'claim',
  doc: 'What is true of every run.',
  keys: [
    ...SUBJECTS,
    key('unless', FILLED, 'Step that must be done before the step of never starts.'),
    key('unless_gate', FILLED, 'Gate that must be approved before the step of never starts.'),
    key('when', words(CLAIM_ENDS), 'Runs that always is about; default any.'),
  ],
  choices: [{ keys: SUBJECT_NAMES, required: true }, { keys: EXCEPTIONS.never }],
  together: Object.entries(EXCEPTIONS).flatMap(([subject, names]) => names.map((name) => [name, subject] as const)),
};

export const TEST_FILE: Document = {
  syntax: 'toml',
  doc: 'Tests of a workflow, *.test.toml.',
  root: {
    name: 'test file',
    doc: 'The tests of a workflow, and claims about all its runs.',
    keys: [
      key('workflow', FILLED, 'File or folder of the workflow; default the one beside it with its name.'),
      key(
        'defaults',
        tableOf(() => DEFAULTS),
        'Put under every test of the file.',
      ),
      key('test', listOf(tableOf(() => TEST)), 'A test of the workflow.'),
      key('claim', listOf(tableOf(() => CLAIM)), 'What is true of every run.'),
    ],
  },
};
