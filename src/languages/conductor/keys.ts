// The keys of Conductor workflows.

import { MECHANICAL, STATUSES } from '../../ir/conductor.ts';
import {
  BOOLEAN,
  type Document,
  DURATION,
  either,
  integer,
  key,
  type Key,
  listOf,
  mapOf,
  matching,
  needed,
  type Shape,
  STRING,
  type Table,
  tableOf,
  TEXT,
  TEXTS,
  words,
} from '../keys.ts';
import { COST_LIMITS, TIME_LIMITS } from './limit-keys.ts';
import { GATE_TYPES, type Opcode, OPCODES } from './syntax.ts';

const ID = '^[A-Za-z][A-Za-z0-9_-]*$';
/** Numbers and booleans count as text, as written. */
const TEXT_OR_EMPTY = either(STRING, BOOLEAN, { kind: 'number' });

export const COMPONENTS = ['docs', 'cli', 'web', 'vscode_ui', 'library'] as const;
export const PROFILES = ['smoke', 'overnight', 'release_candidate'] as const;
export const ROLLBACK_TARGETS = ['pre_run', 'pre_step'] as const;
export const VERDICTS = ['success', 'failure'] as const;
export const VALIDATOR_KINDS = ['builtin', 'script'] as const;

const LIMITS: Table = { name: 'limits', doc: 'Limits of a step.', keys: [...TIME_LIMITS, ...COST_LIMITS] };
const VALIDATION_LIMITS: Table = { name: 'validation limits', doc: 'Limits of validators.', keys: TIME_LIMITS };

export const EXPECT: Table = {
  name: 'expect',
  doc: 'What the command of a witness must do.',
  keys: [
    key('exit_code', integer(0), 'Exit code of the command; default 0.'),
    key('output', TEXT, 'A regular expression that must match in the output of the command.'),
  ],
};

export const WITNESS: Table = {
  name: 'witness',
  doc: 'A command that the engine itself runs before it accepts an outcome.',
  keys: [
    needed('command', TEXT, 'The command, run in the worktree.'),
    key(
      'expect',
      either(
        integer(0),
        matching(String.raw`[\s\S]`),
        tableOf(() => EXPECT),
      ),
      'The exit code, or what must match in the output, or both.',
    ),
    key('depends_on', TEXTS, 'Globs of files that the step itself must not have touched.'),
    key('timeout', DURATION, 'Maximum time of the command.'),
  ],
};

const WITNESS_KEY = key(
  'witness',
  tableOf(() => WITNESS),
  'The proof that the outcome completed requires.',
);

/** Keys of a route that is a map. */
export const ROUTE_KEYS: readonly Key[] = [
  needed('to', TEXT, 'Id of the next step, STOP, or the path of another workflow.'),
  WITNESS_KEY,
];

/** Keys of a route to another workflow. */
export const ENTERING_KEYS: readonly Key[] = [
  key('variables', mapOf(TEXT_OR_EMPTY), "Text values for the other workflow's variables."),
  key('return', TEXT, 'The step to continue with when the other workflow is done; default STOP.'),
];

const PROVEN_ROUTE: Table = {
  name: 'proven route',
  doc: 'What follows an outcome that a witness can prove.',
  keys: [...ROUTE_KEYS, ...ENTERING_KEYS],
};
const ROUTE: Table = {
  name: 'route',
  doc: 'What follows an outcome.',
  keys: PROVEN_ROUTE.keys.filter(({ name }) => name !== 'witness'),
};

const OUTCOMES: Readonly<Record<string, string>> = {
  completed: 'Next step if it finished normally.',
  error: 'Next step if it failed.',
  killed_timeout: 'Next step if it exceeded its time limit.',
  killed_idle: 'Next step if it was silent for too long.',
  killed_policy: 'Next step if it violated its policy, or exceeded its token or cost limits.',
  success: 'Next step if the work is good.',
  partial: 'Next step if some of the work is missing.',
  blocked: 'Next step if the work cannot continue; default STOP.',
  unsafe: 'Next step if the work is dangerous: a ROLLBACK or a STOP.',
  needs_human: 'Next step if a person must decide: a GATE or a STOP.',
  gate_approved: 'Next step after an approval.',
  gate_rejected: 'Next step after a rejection.',
  gate_timed_out: 'Next step if nobody decided in time.',
};

function routes(opcode: string, outcomes: readonly string[], required: readonly string[], proven: Table): Table {
  return {
    name: `routes of ${opcode}`,
    doc: 'The next step for each outcome.',
    keys: outcomes.map((outcome): Key => {
      const table = outcome === 'completed' ? proven : ROUTE;
      const shape = either(
        TEXT,
        tableOf(() => table),
      );
      const make = required.includes(outcome) ? needed : key;
      return make(outcome, shape, OUTCOMES[outcome] ?? '');
    }),
  };
}

/** The outcomes of each opcode. */
export const ROUTES: Readonly<Record<Opcode, Table>> = {
  RUN_AGENT: routes('RUN_AGENT', MECHANICAL, [], PROVEN_ROUTE),
  RUN_VALIDATION: routes('RUN_VALIDATION', MECHANICAL, [], PROVEN_ROUTE),
  EVALUATE: routes(
    'EVALUATE',
    [...STATUSES, 'error', 'killed_timeout'],
    STATUSES.filter((status) => status !== 'blocked'),
    ROUTE,
  ),
  GATE: {
    ...routes('GATE', ['gate_approved', 'gate_rejected', 'gate_timed_out', 'killed_timeout', 'completed'], [], ROUTE),
    choices: [{ keys: ['gate_timed_out', 'killed_timeout'] }],
  },
  ROLLBACK: routes('ROLLBACK', MECHANICAL, [], ROUTE),
  STOP: routes('STOP', [], [], ROUTE),
};

function routesKey(opcode: Opcode): Key {
  return needed(
    'routes',
    tableOf(() => ROUTES[opcode]),
    'The next step for each outcome.',
  );
}

export const VALIDATOR_KEYS: readonly Key[] = [
  needed('id', { kind: 'string', pattern: ID }, 'Name of the validator, unique in its step.'),
  needed(
    'kind',
    words(VALIDATOR_KINDS),
    'Kind of the validator: script, or builtin for one that is registered under its id.',
  ),
  key('cwd', TEXT, 'Working directory, relative to the worktree.'),
  key('artifacts', TEXTS, 'Globs, relative to cwd, of files to keep that the validator writes.'),
  key('timeout', DURATION, 'Maximum time of the validator; 0 means no limit.'),
  key('may_propose_goldens', BOOLEAN, 'Whether a report of this validator may propose goldens; default true.'),
];

export const SCRIPT_KEYS: readonly Key[] = [
  needed('entrypoint', TEXT, 'The program to start.'),
  key('args', listOf(TEXT_OR_EMPTY), 'Arguments of the program.'),
];

const VALIDATOR: Table = {
  name: 'validator',
  doc: 'A command that tests the work.',
  keys: VALIDATOR_KEYS,
  variants: {
    key: 'kind',
    tables: {
      builtin: { name: 'builtin validator', doc: 'A command of the project, by its name.', keys: [] },
      script: { name: 'script validator', doc: 'A program with arguments.', keys: SCRIPT_KEYS },
    },
  },
};

export const EVALUATOR: Table = {
  name: 'evaluator',
  doc: 'A command that judges instead of an agent.',
  keys: [needed('command', TEXT, 'Gets the evidence on stdin, and answers on stdout.')],
};

const MODEL = key('model', TEXT, 'Model of the agent, for adapters that can choose one.');
const INPUTS = key('inputs', TEXTS, 'Inputs of the prompt: diff, validation and others, or STEP.OUTPUT.');

/** Own keys of each opcode. */
export const OPCODE_TABLES: Readonly<Record<Opcode, Table>> = {
  RUN_AGENT: {
    name: 'RUN_AGENT',
    doc: 'Runs one headless turn of an agent, in the worktree of the run.',
    keys: [
      needed('agent', TEXT, 'Adapter of the agent.'),
      MODEL,
      needed('prompt', TEXT, 'A prompt with the role task, or the text itself.'),
      INPUTS,
      key('policy', TEXT, 'A policy, which can only tighten that of the workflow.'),
      key(
        'limits',
        tableOf(() => LIMITS),
        'Limits of the step, which override those of the workflow.',
      ),
      WITNESS_KEY,
      routesKey('RUN_AGENT'),
    ],
  },
  RUN_VALIDATION: {
    name: 'RUN_VALIDATION',
    doc: 'Runs commands, one after the other.',
    keys: [
      needed(
        'run',
        listOf(
          either(
            TEXT,
            tableOf(() => VALIDATOR),
          ),
          1,
        ),
        'The validators: names of registered commands, or maps.',
      ),
      key(
        'limits',
        tableOf(() => VALIDATION_LIMITS),
        'Limits of validators that have none of their own.',
      ),
      WITNESS_KEY,
      routesKey('RUN_VALIDATION'),
    ],
  },
  EVALUATE: {
    name: 'EVALUATE',
    doc: 'An agent or a command gets the evidence, and its status selects the route.',
    keys: [
      key('prompt', TEXT, 'A prompt with the role planner; required without evaluator.'),
      key(
        'evaluator',
        tableOf(() => EVALUATOR),
        'A command instead of an agent.',
      ),
      key('agent', TEXT, 'Adapter of the evaluator; default the default adapter.'),
      MODEL,
      key('inputs', TEXTS, 'Inputs of the prompt in addition to the evidence.'),
      key(
        'limits',
        tableOf(() => LIMITS),
        'Limits of the evaluation.',
      ),
      key('max_partial', integer(1), 'How often in a row partial may occur before it becomes needs_human; default 3.'),
      needed('allowed_next_steps', TEXTS, 'Ids of steps; every route must name one of them, or STOP.'),
      routesKey('EVALUATE'),
    ],
    choices: [{ keys: ['prompt', 'evaluator'], required: true, overlap: true }],
  },
  GATE: {
    name: 'GATE',
    doc: 'A decision that only people can make.',
    keys: [
      needed('gate', words(GATE_TYPES), 'Type of the gate: whether it waits for a decision.'),
      key('reason', TEXT, 'The question to people.'),
      key('approvers', listOf(TEXT, 1), 'Who may decide; default any person.'),
      key('timeout', DURATION, 'Time after which the outcome is gate_timed_out.'),
      routesKey('GATE'),
    ],
  },
  ROLLBACK: {
    name: 'ROLLBACK',
    doc: 'Restores the worktree.',
    keys: [
      needed('target', words(ROLLBACK_TARGETS), 'The state to restore: of the start, or before the latest turn.'),
      routesKey('ROLLBACK'),
    ],
  },
  STOP: {
    name: 'STOP',
    doc: 'Ends the run.',
    keys: [
      key('reason', TEXT, 'Why the run ends, for people.'),
      key('verdict', words(VERDICTS), 'Result of the run; without it, the route decides.'),
    ],
  },
};

/** Keys of every step. */
export const STEP_KEYS: readonly Key[] = [
  needed('id', { kind: 'string', pattern: ID }, 'Name of the step; STOP is reserved for the end.'),
  needed('opcode', words(OPCODES), 'What the step does; decides which other keys it has.'),
  key('allow_unreachable', BOOLEAN, 'Allows that no route leads here.'),
];

const STEP: Table = {
  name: 'step',
  doc: 'A step of a workflow.',
  keys: STEP_KEYS,
  variants: { key: 'opcode', tables: OPCODE_TABLES },
};

export const DEFAULTS: Table = {
  name: 'defaults',
  doc: 'Settings for all steps.',
  keys: [
    key('policy', TEXT, 'The policy of all agents.'),
    key(
      'limits',
      tableOf(() => LIMITS),
      'The limits of all steps.',
    ),
    key('artifacts_dir', TEXT, 'The folder in which each run gets a directory; default .meow/run/.'),
    key('component_kind', words(COMPONENTS), 'A hint for prompts: what is built.'),
    key('eval_profile', words(PROFILES), 'A hint for prompts: how thorough to be.'),
  ],
};

const STEPS: Shape = listOf(
  tableOf(() => STEP),
  1,
);

export const CONDUCTOR: Document = {
  syntax: 'yaml',
  doc: 'Conductor workflows, *.yaml with workflow_id.',
  root: {
    name: 'workflow',
    doc: 'A list of steps, each with an opcode and the next step for every outcome.',
    keys: [
      needed('workflow_id', TEXT, 'A stable name.'),
      needed('version', integer(1, 1), 'The format version, 1.'),
      needed('description', TEXT, 'A sentence for people.'),
      key(
        'defaults',
        tableOf(() => DEFAULTS),
        'Settings for all steps.',
      ),
      needed('entry_step', TEXT, 'The id of the first step.'),
      needed('steps', STEPS, 'The steps of the workflow.'),
    ],
  },
};
