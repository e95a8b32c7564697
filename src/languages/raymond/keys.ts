// The keys of Raymond workflows: front matter, `workflow.yaml`, and the form with all states in one file.

import { type TagName, TRANSITION_TAGS } from '../../ir/tags.ts';
import {
  ANY,
  BOOLEAN,
  type Document,
  DURATION,
  either,
  integer,
  key,
  type Key,
  listOf,
  mapOf,
  needed,
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

const TAG = words([...TRANSITION_TAGS, 'print']);

const SETTINGS_KEYS: readonly Key[] = [
  key('adapter', TEXT, 'Adapter of the agent; an attribute of the tag overrides it.'),
  key('model', TEXT, 'Model of the agent; an attribute of the tag overrides it.'),
  key('effort', TEXT, 'Effort of the agent; an attribute of the tag overrides it.'),
  key('timeout', DURATION, 'Maximum time without output, 0 for no limit; default 10m for prompts, none for scripts.'),
  key('idle_timeout', DURATION, 'Another name of timeout.'),
  key('total_timeout', DURATION, 'Maximum time of the whole visit; default no limit.'),
  key('retries', integer(0), 'How often to ask again after an invalid answer; default 2.'),
];

const RESET = key(
  'reset',
  words(['keep-stack', 'clear-stack']),
  'Whether the tag reset keeps pending returns; only in the first state, or for the whole workflow.',
);
const FOR_PEOPLE: readonly Key[] = [
  key('name', TEXT, 'Name for people.'),
  key('description', TEXT, 'Description for people.'),
];

const RETURN = key('return', TEXT, 'The state that gets the result.');
const NEXT = key('next', TEXT, 'The state to continue with.');
const INPUT = key('input', TEXT, 'The input of the next state, unless the answer has one; may contain placeholders.');

export const TARGET: Table = {
  name: 'target',
  doc: 'A state that a tag may name, with the state that follows.',
  keys: [
    key('child', TEXT, 'The state that is called or forked.'),
    key('target', TEXT, 'Another name of child.'),
    key('worker', TEXT, 'Another name of child.'),
    RETURN,
    NEXT,
    INPUT,
  ],
};

export const TRANSITION: Table = {
  name: 'transition',
  doc: 'A transition that is allowed; what it does not name is free.',
  keys: [
    needed('tag', TAG, 'The tag of the answer.'),
    key('target', TEXT, 'The state or workflow that the tag names.'),
    RETURN,
    NEXT,
    key('payload', TEXT, 'The text of the tag.'),
    INPUT,
    key('timeout', DURATION, 'Maximum time for a person to answer, unless the tag has one.'),
    key('timeout_next', TEXT, 'The state to continue with if nobody answers in time.'),
    key('approver', TEXT, 'Who may answer: names with commas between.'),
  ],
};

const TARGETS = either(
  TEXT,
  tableOf(() => TARGET),
  listOf(
    either(
      TEXT,
      tableOf(() => TARGET),
    ),
  ),
);

const ALLOWED_TARGETS: Table = {
  name: 'allowed targets',
  doc: 'The states that each tag may name.',
  keys: TRANSITION_TAGS.map((tag) => key(tag, TARGETS, `What <${tag}> may name.`)),
};

export const POLICY_KEYS: readonly Key[] = [
  key('allowed_tags', either(TAG, listOf(TAG)), 'The tags that an answer may have.'),
  key(
    'allowed_targets',
    tableOf(() => ALLOWED_TARGETS),
    'The states that each tag may name; a tag without an entry may name any.',
  ),
  key('allowed_transitions', listOf(tableOf(() => TRANSITION)), 'The transitions that are allowed, whole.'),
  key('force_implicit', BOOLEAN, 'Takes the only allowed transition, whatever the agent answers.'),
];

/** Front matter of a prompt. */
export const STATE: Table = {
  name: 'state',
  doc: 'A prompt or a script.',
  keys: [
    ...SETTINGS_KEYS,
    ...POLICY_KEYS,
    key('max_visits', integer(1), 'How often an agent may visit the state; needs then.'),
    key('then', TEXT, 'The state that follows the last allowed visit; needs max_visits.'),
    RESET,
    ...FOR_PEOPLE,
  ],
};

/** `workflow.yaml` in a folder. */
export const MANIFEST: Table = {
  name: 'workflow.yaml',
  doc: 'Defaults for all states.',
  keys: [
    ...SETTINGS_KEYS,
    key('id', TEXT, 'Id for people.'),
    ...FOR_PEOPLE,
    RESET,
    key(
      'default_budget',
      { kind: 'number', above: 0 },
      'Dollars after which a run pauses, unless it has another budget.',
    ),
  ],
};

/** A state beside others in one file. */
export const FILE_STATE: Table = {
  ...STATE,
  keys: [
    key('prompt', TEXT, 'What the agent is to do.'),
    key('sh', TEXT, 'A shell script instead of a prompt.'),
    key('ps1', ANY, 'A script for another system, which is ignored.'),
    key('bat', ANY, 'A script for another system, which is ignored.'),
    ...STATE.keys,
  ],
};

export const RAYMOND: Document = {
  syntax: 'yaml',
  doc: 'Raymond workflows in one file, *.yaml with states.',
  root: {
    name: 'workflow',
    doc: 'States with their prompts, and defaults for all of them.',
    keys: [...MANIFEST.keys, needed('states', mapOf(tableOf(() => FILE_STATE)), 'The states by name.')],
  },
};
