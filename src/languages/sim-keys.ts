// The keys of scripts of simulated agents, `NAME.sim.toml`.

import {
  ANY,
  amount,
  type Document,
  DURATION,
  either,
  integer,
  key,
  listOf,
  mapOf,
  needed,
  STRING,
  type Table,
  tableOf,
  words,
} from './keys.ts';

/** Signals whose default action ends a program. */
export const CRASH_SIGNALS = [
  'SIGKILL',
  'SIGTERM',
  'SIGSEGV',
  'SIGABRT',
  'SIGBUS',
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
] as const;

export const COST = {
  name: 'cost',
  doc: 'Cost of the work on a prompt; missing values are not reported.',
  keys: [
    key('usd', amount(0), 'Cost in dollars.'),
    key('tokens', amount(0), 'Number of tokens; default the sum of the three kinds.'),
    key('input', amount(0), 'Tokens of input that is not cached.'),
    key('cached', amount(0), 'Tokens of input from a cache.'),
    key('output', amount(0), 'Tokens of output.'),
  ],
} as const satisfies Table;

const TRUE = { kind: 'true' } as const;
const VALUES = either(TRUE, mapOf(ANY));

const VERBS = [
  key('say', STRING, 'Says something.'),
  key('wait', DURATION, 'Waits for that long.'),
  key('write', STRING, 'Writes a file with that path, relative to its working directory.'),
  key('run', STRING, 'Runs a command with sh in its working directory.'),
  key('event', STRING, 'Emits an event of that type.'),
  key('ask', STRING, 'Asks a question; without a gate, it prints the question and ends its turn.'),
  key('done', VALUES, 'Reports these outputs; true reports a suitable value for each requested output.'),
  key('done_twice', VALUES, 'Reports the same twice; the second report changes nothing.'),
  key('wrong', VALUES, 'Makes a report that is rejected; true reports none of the requested outputs.'),
  key('prime', TRUE, 'Asks for its task, as a stop hook does, and continues if there is one.'),
  key('ignore', TRUE, 'Loses the prompt, and calls no stop hook.'),
  key('stop', TRUE, 'Stops without a report.'),
  key('hang', either(TRUE, words(['hard'])), 'Does nothing until it is interrupted; hard ignores interrupts.'),
  key('crash', either(integer(0, 255), words(CRASH_SIGNALS)), 'Exits with that exit code, or by that signal.'),
  key(
    'cost',
    tableOf(() => COST),
    'Reports the cost of its work on the prompt.',
  ),
  key('fail', STRING, 'Ends its turn with an error.'),
  key('limit', STRING, 'Reports a usage limit; a duration is the time until it is reset.'),
] as const;
export type Verb = (typeof VERBS)[number]['name'];
export const VERB_NAMES: readonly Verb[] = VERBS.map(({ name }) => name);

/** Keys beside a verb. */
const BESIDE = [
  { key: key('text', STRING, 'Contents of the file; default empty.'), verbs: ['write'] },
  { key: key('data', mapOf(ANY), 'Data of the event.'), verbs: ['event'] },
  { key: key('gate', STRING, 'Name of the gate that waits for the answer.'), verbs: ['ask'] },
  { key: key('notes', STRING, 'Notes of the report.'), verbs: ['done', 'done_twice'] },
] as const;

export function keysBeside(verb: Verb): readonly string[] {
  return BESIDE.flatMap(({ key: { name }, verbs }) => (verbs.some((each) => each === verb) ? [name] : []));
}

const ACTION: Table = {
  name: 'action',
  doc: 'What the agent does: one verb, and what belongs to it.',
  keys: [...VERBS, ...BESIDE.map(({ key: beside }) => beside)],
  choices: [{ keys: VERB_NAMES, required: true }],
  together: BESIDE.map(({ key: { name }, verbs }) => [name, ...verbs] as const),
};

export const RULE: Table = {
  name: 'rule',
  doc: 'What agents do with matching prompts.',
  keys: [
    key('agent', STRING, 'Name of the agent; * is a wildcard.'),
    key('step', STRING, 'Id of the step, or the visit of a Conductor workflow; * is a wildcard.'),
    key('prompt', STRING, 'Part of the prompt, or a regular expression between slashes.'),
    key('times', integer(1), 'How often each agent follows the rule; later prompts skip it.'),
    needed('do', listOf(tableOf(() => ACTION)), 'The actions, in order.'),
  ],
};

export const SIM: Document = {
  syntax: 'toml',
  doc: 'Scripts of simulated agents, *.sim.toml.',
  root: {
    name: 'script',
    doc: 'Rules for the simulated agents of a workflow; for each prompt the first that matches applies.',
    keys: [key('on', listOf(tableOf(() => RULE)), 'A rule for prompts.')],
  },
};
