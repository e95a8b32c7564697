// The keys of Raymond workflows: of states, of `workflow.yaml`, and of the form in a single file. A key without a value counts as
// absent.

import { TAG_RULES } from '../../ir/machine.ts';
import { type TagName, TRANSITION_TAGS, type TransitionTag } from '../../ir/tags.ts';
import {
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  either,
  FILLED,
  integer,
  key,
  type Key,
  keysOf,
  listOf,
  mapOf,
  namesOf,
  needed,
  type Shape,
  type Table,
  tableOf,
  TEXT,
  words,
} from '../keys.ts';

/** What each tag does. */
export const TAGS: Readonly<Record<TagName, string>> = {
  goto: 'Continues at that state, in the same session.',
  reset: 'Continues at that state, in a fresh session; pending returns are dropped.',
  call: 'Continues at that state, in a copy of the session; its result leads to the state of return.',
  function: 'Continues at that state, in a fresh session; its result leads to the state of return.',
  fork: 'Starts a new agent at that state, and continues at the state of next.',
  result: 'Returns a text to the state that the last call names; without a call, the agent ends.',
  ask: 'Asks a person, and continues at the state of next.',
  'call-workflow': 'Calls another workflow, in a copy of the session.',
  'function-workflow': 'Calls another workflow, in a fresh session.',
  'fork-workflow': 'Starts a new agent in another workflow, and continues at the state of next.',
  'reset-workflow': 'Continues in another workflow, in a fresh session.',
  print: 'Shows a text to people; it is not a transition.',
};

const NOTHING: Shape = { kind: 'nothing' };
const TEXT_OR_NOTHING = either(TEXT, NOTHING);
const TIME_OR_NOTHING = either(DURATION, NOTHING);

const RESETS = ['keep-stack', 'clear-stack'] as const;

/** Of a state, and defaults for all states. */
const SETTINGS = [
  key('adapter', TEXT_OR_NOTHING, 'Adapter of the agent.'),
  key('model', TEXT_OR_NOTHING, 'Model of the agent, for adapters that can choose one.'),
  key('effort', TEXT_OR_NOTHING, 'Effort of the agent, for adapters that can choose one.'),
  key('timeout', TIME_OR_NOTHING, 'Limit of the time without output; default 10m for prompts, 0 is no limit.'),
  key('idle_timeout', TIME_OR_NOTHING, 'Another name of timeout.'),
  key('total_timeout', TIME_OR_NOTHING, 'Limit of the whole visit; default no limit.'),
  key('retries', either(integer(0), NOTHING), 'How often to ask again after an invalid answer; default 2.'),
] as const;

const RESET = key(
  'reset',
  either(words(RESETS), NOTHING),
  'Whether a reset keeps pending returns; in the first state, or for the whole workflow.',
);
const FOR_PEOPLE = [key('name', ANY, 'Name for people.'), key('description', ANY, 'Description for people.')] as const;

/** A target, and what else the transition of a tag may fix. */
function partsOf(tag: TransitionTag, targetNames: readonly string[]): readonly Key[] {
  const { target, requiredAttribute } = TAG_RULES[tag];
  const what = target === 'workflow' ? 'Path of the workflow.' : 'Name of the state.';
  return [
    ...(target === 'back' ? [] : targetNames.map((name) => key(name, TEXT_OR_NOTHING, what))),
    ...(requiredAttribute === null ? [] : [key(requiredAttribute, TEXT_OR_NOTHING, 'State to continue at.')]),
    key('input', TEXT_OR_NOTHING, 'The {{input}} of the next state, if the answer gives none.'),
  ];
}

export const TARGET_NAMES = ['child', 'target', 'worker'] as const;

/** In `allowed_targets`: maps of one tag. */
function targetTable(tag: TransitionTag): Table {
  return { name: `target of ${tag}`, doc: `A target that ${tag} may have.`, keys: partsOf(tag, TARGET_NAMES) };
}

/** Keys of a target of any tag. */
export const TARGET_KEYS: readonly string[] = [
  ...new Set(TRANSITION_TAGS.flatMap((tag) => namesOf(targetTable(tag).keys))),
];

/** A single value is a list of one. */
function oneOrMore(shape: Shape, least?: number): Shape {
  return either(shape, listOf(shape, least));
}

const ALLOWED_TARGETS: Table = {
  name: 'allowed targets',
  doc: 'Targets by tag; a tag without an entry may have any target.',
  keys: TRANSITION_TAGS.map((tag) => {
    const table = targetTable(tag);
    const shape =
      TAG_RULES[tag].target === 'back'
        ? listOf(NOTHING)
        : oneOrMore(
            either(
              FILLED,
              tableOf(() => table),
            ),
          );
    return key(tag, shape, `Targets that ${tag} may have.`);
  }),
};

const TRANSITION_PARTS: Readonly<Partial<Record<TransitionTag, readonly Key[]>>> = {
  result: [key('payload', TEXT_OR_NOTHING, 'The text of the result.')],
  ask: [
    key('payload', TEXT_OR_NOTHING, 'The question.'),
    key('timeout', TIME_OR_NOTHING, 'Time after which the agent continues without an answer.'),
    key('timeout_next', TEXT_OR_NOTHING, 'State to continue at if nobody answers in time.'),
    key('approver', TEXT_OR_NOTHING, 'Who may answer, with commas between; default any person.'),
  ],
};

const TAG = key('tag', words(TRANSITION_TAGS), 'Tag of the transition.');

/** `allowed_transitions`. */
const TRANSITION: Table = {
  name: 'transition',
  doc: 'A transition that the state may make.',
  keys: [{ ...TAG, required: true }],
  variants: {
    key: TAG.name,
    tables: Object.fromEntries(
      TRANSITION_TAGS.map((tag) => [
        tag,
        {
          name: `transition ${tag}`,
          doc: TAGS[tag],
          keys: [...partsOf(tag, ['target']), ...(TRANSITION_PARTS[tag] ?? [])],
          ...(tag === 'ask' ? { together: [['timeout_next', 'timeout']] as const } : {}),
        },
      ]),
    ),
  },
};

/** Keys of a transition by any tag. */
export const TRANSITION_KEYS: readonly string[] = namesOf(keysOf(TRANSITION, null));

export const POLICY_KEYS = [
  key(
    'allowed_tags',
    either(oneOrMore(words([...TRANSITION_TAGS, 'print']), 1), NOTHING),
    'Tags that the answer may have; default any.',
  ),
  key(
    'allowed_targets',
    either(
      tableOf(() => ALLOWED_TARGETS),
      NOTHING,
    ),
    'Targets by tag; a tag without an entry may have any target.',
  ),
  key(
    'allowed_transitions',
    either(
      oneOrMore(
        tableOf(() => TRANSITION),
        1,
      ),
      NOTHING,
    ),
    'Transitions that the state may make; default any.',
  ),
  key(
    'force_implicit',
    either(BOOLEAN, NOTHING),
    'Takes the only allowed transition, whatever the answer says; default false.',
  ),
] as const;

/** Front matter of a prompt. */
export const STATE: Table = {
  name: 'state',
  doc: 'What a prompt may do, and who performs it.',
  keys: [
    ...SETTINGS,
    ...POLICY_KEYS,
    key('max_visits', either(integer(1), NOTHING), 'Number of visits after which then is entered instead.'),
    key('then', TEXT_OR_NOTHING, 'State that is entered after the last visit of max_visits.'),
    RESET,
    ...FOR_PEOPLE,
  ],
  together: [
    ['max_visits', 'then'],
    ['then', 'max_visits'],
  ],
};

/** `workflow.yaml` in a folder. */
export const MANIFEST: Table = {
  name: 'workflow.yaml',
  doc: 'Defaults for all states.',
  keys: [
    ...SETTINGS,
    key('id', ANY, 'Identifier for people.'),
    ...FOR_PEOPLE,
    RESET,
    key(
      'default_budget',
      either({ kind: 'number', above: 0 }, NOTHING),
      'Limit of the cost in dollars, for runs without --budget-usd.',
    ),
  ],
};

const OTHER_SYSTEMS = 'Script for another system; meow ignores it.';

/** A state beside others in one file. */
export const FILE_STATE: Table = {
  ...STATE,
  doc: 'A prompt or a script, and what it may do.',
  keys: [
    key('prompt', TEXT_OR_NOTHING, 'Text of the prompt.'),
    key('sh', TEXT_OR_NOTHING, 'Script instead of a prompt, run with bash.'),
    key('ps1', ANY, OTHER_SYSTEMS),
    key('bat', ANY, OTHER_SYSTEMS),
    ...STATE.keys,
  ],
  choices: [{ keys: ['prompt', 'sh'], required: true }],
};

export const RAYMOND: Document = {
  syntax: 'yaml',
  doc: 'Raymond workflows in a single file, *.yaml with states.',
  root: {
    name: 'workflow',
    doc: 'States by name, and defaults for all of them.',
    keys: [
      ...MANIFEST.keys,
      needed(
        'states',
        mapOf(
          tableOf(() => FILE_STATE),
          String.raw`^(?!\.{1,2}$)(?!\s)[^\\/]*[^\\/\s]$`,
        ),
        'States by name, such as START.',
      ),
    ],
  },
};
