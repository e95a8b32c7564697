// The keys of adapters, `adapter.toml`. A table is named like its section.

import {
  BOOLEAN,
  type Document,
  DURATION,
  either,
  ENVIRONMENT,
  FILLED,
  key,
  listOf,
  matching,
  needed,
  type Shape,
  STRING,
  type Table,
  tableOf,
  words,
} from '../keys.ts';

/** A list of texts; a single one needs no brackets. */
const SOME_TEXTS = someOf(STRING);

function someOf(shape: Shape, least?: number): Shape {
  return either(shape, listOf(shape, least));
}

/** It does not lead out of the folder that it is relative to. */
const INSIDE = String.raw`(?![/~])(?!(?:.*/)?\.\.(?:/|$))[\s\S]+$`;
const RELATIVE_PATH = matching(`^${INSIDE}`);
const HOOK_NAME = matching('^[A-Za-z0-9_-]+$');

export const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
export const SESSION_IDS = ['chosen', 'told', 'none'] as const;
export const METHODS = ['paste', 'literal', 'keys'] as const;
export const ALTERATIONS = ['tabs', 'carriage-returns', 'controls', 'invisibles', 'composition'] as const;
export const PROMPT_INPUTS = ['stdin', 'argument'] as const;
export const ACP_PERMISSIONS = ['ask', 'edits', 'allow', 'deny'] as const;
export const FORMATS = ['json', 'toml', 'text'] as const;
export const RESETS = ['epoch', 'duration', 'clock'] as const;

export const HEAD = {
  name: 'adapter',
  doc: 'Name of the adapter, and what lists show.',
  keys: [
    needed(
      'name',
      matching('^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$'),
      'Name that workflows use, and name of its folder: letters, digits, - and _.',
    ),
    key('description', STRING, 'Description for lists.'),
    key('default', BOOLEAN, 'For built-in adapters: whether this is the default.'),
    key('alias', STRING, 'Alternative name for use in workflows.'),
  ],
} as const satisfies Table;

export const CHECK = {
  name: 'program.checks',
  doc: 'A further requirement for an unattended start.',
  keys: [
    needed('name', FILLED, 'What is checked, in a word or two.'),
    needed('command', FILLED, 'Command that succeeds if the requirement is met; must not start the agent.'),
    needed('cure', FILLED, 'What to do otherwise.'),
  ],
} as const satisfies Table;

export const PROGRAM = {
  name: 'program',
  doc: 'Requirements, which meow doctor checks.',
  keys: [
    needed('name', matching(String.raw`^[^\s/]+$`), 'The program on PATH.'),
    key('version_command', FILLED, 'Command that prints its version.'),
    key('tried', SOME_TEXTS, 'Tested versions; an older one is a warning.'),
    key('install', FILLED, 'How to install it.'),
    key('login_command', FILLED, 'Command that succeeds if you are logged in; should not use the network.'),
    key('login_cure', FILLED, 'How to log in.'),
    key('checks', listOf(tableOf(() => CHECK)), 'Further requirements for an unattended start.'),
  ],
} as const satisfies Table;

export const HOME = {
  name: 'home',
  doc: "A home folder for the agent instead of the user's, one for each run.",
  keys: [
    needed(
      'variable',
      matching('^[A-Za-z_][A-Za-z0-9_]*$'),
      'Environment variable that points the agent to its home folder.',
    ),
    needed('from', RELATIVE_PATH, "Path of the user's own, relative to their home folder."),
    key('link', someOf(RELATIVE_PATH), 'Files to share if they exist, such as a login.'),
    key('copy', someOf(RELATIVE_PATH), 'Files to copy once: settings that the agent changes.'),
  ],
} as const satisfies Table;

export const FILE = {
  name: 'files',
  doc: 'A file that is written before each start.',
  keys: [
    needed(
      'path',
      matching(String.raw`^(?:\{\{\s*home\s*\}\}/)?${INSIDE}`),
      'Path of the file below {{folder}}, or {{home}}/NAME.',
    ),
    needed('content', FILLED, 'Text of the file, with placeholders.'),
    key('format', words(FORMATS), 'How values are escaped; default by the file extension.'),
  ],
} as const satisfies Table;

export const HOOKS = {
  name: 'hooks',
  doc: "The agent's names for its events: the argument of {{hook}}.",
  keys: [
    key('begun', HOOK_NAME, 'Its session started.'),
    key('accepted', HOOK_NAME, 'It received a prompt.'),
    key('tool_begun', HOOK_NAME, 'A tool call started.'),
    key('tool_ended', HOOK_NAME, 'A tool call ended, successfully or not.'),
    key('blocked', someOf(HOOK_NAME), 'It waits for a person; may be a list.'),
    key('stopped', HOOK_NAME, 'It is idle.'),
    key('failed', HOOK_NAME, 'It is idle after an error.'),
    key('ended', HOOK_NAME, 'Its session ended.'),
    key('session_key', FILLED, 'JSON key of the session; default session_id.'),
    key('prompt_key', FILLED, 'JSON key of the prompt in accepted.'),
    key('message_key', FILLED, 'JSON key of the error message in failed.'),
  ],
} as const satisfies Table;

export const PERMISSION_ARGS = {
  name: 'permissions',
  doc: 'Arguments that follow every command, by what the agent may do without asking.',
  keys: [
    key('ask', STRING, 'Arguments if it must always ask; without it, such a run is refused.'),
    key('edits', STRING, 'Arguments if it may change files; without it, such a run is refused.'),
    key('all', STRING, 'Arguments if it may do everything; default none.'),
  ],
} as const satisfies Table;

const PERMISSIONS_KEY = key(
  'permissions',
  tableOf(() => PERMISSION_ARGS),
  'Arguments that follow every command, by what the agent may do without asking.',
);
const SESSION_ID = key('session_id', words(SESSION_IDS), 'Who chooses the id of a new session.');
const SIGNAL = key('signal', words(SIGNALS), 'Signal that asks the agent to exit; default SIGTERM.');

export const SPAWN = {
  name: 'spawn',
  doc: 'Commands for an agent in a terminal.',
  keys: [
    needed('command', FILLED, 'Command that starts the agent.'),
    key('resume_command', FILLED, 'Command that resumes {{session_id}}; without it, sessions cannot be resumed.'),
    key('fork_command', FILLED, 'Command that continues in a copy of {{session_id}}.'),
    PERMISSIONS_KEY,
    SESSION_ID,
    key('startup_delay', DURATION, 'Minimum start-up time with [ready], expected start-up time without it.'),
  ],
} as const satisfies Table;

export const READY = {
  name: 'ready',
  doc: 'How meow knows that the agent can take a prompt.',
  keys: [
    needed('patterns', someOf(STRING, 1), 'Patterns that all match the screen whenever the input is shown.'),
    key('deadline', DURATION, 'Time limit; default 30s.'),
  ],
} as const satisfies Table;

export const INJECTION = {
  name: 'prompt_injection',
  doc: 'How a prompt is put into the input.',
  keys: [
    key('pre_keys', SOME_TEXTS, 'Keys that prepare the input for a prompt; default none.'),
    key('pre_delay', DURATION, 'Delay after pre_keys; default none.'),
    key('method', words(METHODS), 'Whether the text is pasted or typed; default paste.'),
    key('post_delay', DURATION, 'Delay between the text and the submit keys; default 100ms, and 300ms for typed text.'),
    key('post_keys', SOME_TEXTS, 'Keys that submit; default Enter.'),
    key('clear_keys', SOME_TEXTS, 'Keys that clear the input; default C-u, and an empty list if it cannot be cleared.'),
    key('draft', SOME_TEXTS, 'Patterns of an input that contains text; default: compare the cursor row.'),
    key('alters', someOf(words(ALTERATIONS)), 'What the input changes in a text; such prompts are passed as a file.'),
    key('misread', SOME_TEXTS, 'Patterns of prompts that the input would not treat as prompts.'),
    key('deadline', DURATION, 'Time limit of a delivery, without dialogs; default 30s.'),
  ],
} as const satisfies Table;

export const ACKNOWLEDGE = {
  name: 'acknowledge',
  doc: 'How meow knows that a prompt arrived.',
  keys: [
    key('hook', BOOLEAN, 'Whether only the hook accepted confirms; default true if there is such a hook.'),
    key('busy', SOME_TEXTS, 'Patterns of the screen or the title of a busy agent.'),
    key('queued', SOME_TEXTS, 'Patterns of a prompt that is queued behind the current work.'),
    key('timeout', DURATION, 'Time before a key without a visible effect is pressed again; default 2s.'),
  ],
} as const satisfies Table;

export const DIALOG = {
  name: 'dialogs',
  doc: 'A question of the agent.',
  keys: [
    needed('name', FILLED, 'Name of the dialog, such as permission.'),
    needed('pattern', FILLED, 'Pattern of the screen that shows it.'),
    key('answer', SOME_TEXTS, 'Keys to press without asking anybody.'),
    key('approve', SOME_TEXTS, 'Keys for an approval; without them, answer in the terminal.'),
    key('reject', SOME_TEXTS, 'Keys for a rejection.'),
    key('cure', FILLED, 'How to prevent the dialog.'),
    key('at_start', BOOLEAN, 'Whether it occurs only until the agent is ready for the first time; default false.'),
  ],
} as const satisfies Table;

export const LIVENESS = {
  name: 'liveness',
  doc: 'Limits of silence.',
  keys: [
    key('first', DURATION, 'Limit of silence after a prompt; default none.'),
    key('idle', DURATION, 'Limit of silence later on; default none.'),
    key('failed', SOME_TEXTS, 'Patterns of an error that leaves the agent idle, if no hook reports it.'),
  ],
} as const satisfies Table;

export const GRACEFUL_STOP = {
  name: 'graceful_stop',
  doc: 'How the agent is stopped.',
  keys: [
    key('interrupt_keys', SOME_TEXTS, 'Keys that interrupt its work; default C-c.'),
    key('keys', SOME_TEXTS, 'Keys that make it exit, before a signal is sent; default none.'),
    key('wait', DURATION, 'Time to exit; default 5s.'),
    SIGNAL,
  ],
} as const satisfies Table;

export const TIMING = {
  name: 'timing',
  doc: 'How slow the agent may be.',
  keys: [
    key('settle', DURATION, 'A screen that has not changed for this long is completely drawn; default 100ms.'),
    key('pause', DURATION, 'An agent that has done nothing for this long has stopped, not paused; default 300ms.'),
    key('typing', DURATION, 'A person who has typed nothing for this long is not typing; default 1s.'),
    key('visible', DURATION, 'The effect of a clear key or an answered dialog is visible by then; default 1500ms.'),
    key('react', DURATION, 'An agent has reported, continued or ended its work by then; default 3s.'),
    key('recover', DURATION, 'The same after an error; default 1m.'),
  ],
} as const satisfies Table;

export const HEADLESS = {
  name: 'headless',
  doc: 'Commands for an agent that is one process for each prompt.',
  keys: [
    needed('command', FILLED, 'Command that starts the agent.'),
    key('resume', FILLED, 'Command that resumes {{session_id}}.'),
    key('fork', FILLED, 'Command that continues in a copy of {{session_id}}.'),
    key('replay', BOOLEAN, 'Without fork, a copy is a new session that first gets the history; default false.'),
    key('model_args', FILLED, 'Arguments that are appended if a model is requested: {{model}}.'),
    key('effort_args', FILLED, 'Arguments that are appended if an effort is requested: {{effort}}.'),
    key('prompt', words(PROMPT_INPUTS), 'Whether the prompt is read from stdin or is an argument; default stdin.'),
    key('reader', FILLED, 'Reads its output; default text, which takes stdout as the answer.'),
    PERMISSIONS_KEY,
    SESSION_ID,
    SIGNAL,
  ],
} as const satisfies Table;

export const ACP = {
  name: 'acp',
  doc: 'Command for an agent that speaks the Agent Client Protocol.',
  keys: [
    needed('command', FILLED, 'Command that starts the agent.'),
    key('permission', words(ACP_PERMISSIONS), 'Handling of permission requests; default ask a person.'),
    SIGNAL,
  ],
} as const satisfies Table;

export const MAILBOX = {
  name: 'mailbox',
  doc: 'Prompts in files.',
  keys: [key('enabled', BOOLEAN, 'Whether it takes its prompts from files, like the simulated agent.')],
} as const satisfies Table;

export const LIMIT = {
  name: 'limits',
  doc: 'A message about a usage limit.',
  keys: [
    needed('pattern', FILLED, 'Pattern of the message.'),
    key('reset', words(RESETS), 'Format of the reset time in the first group of the pattern.'),
  ],
} as const satisfies Table;

/** Sections without meaning for an agent without a terminal. */
const TERMINAL_SECTIONS: readonly Table[] = [READY, INJECTION, ACKNOWLEDGE, DIALOG, LIVENESS, GRACEFUL_STOP, TIMING];
export const TERMINAL_SECTION_NAMES: readonly string[] = TERMINAL_SECTIONS.map(({ name }) => name);

/** Sections of which there may be several. */
const REPEATED: readonly Table[] = [FILE, DIALOG, LIMIT];

export const SECTIONS: readonly Table[] = [
  HEAD,
  PROGRAM,
  HOME,
  FILE,
  HOOKS,
  SPAWN,
  ...TERMINAL_SECTIONS,
  HEADLESS,
  ACP,
  MAILBOX,
  LIMIT,
];

export const ADAPTER: Document = {
  syntax: 'toml',
  doc: 'Adapters of agents, adapter.toml.',
  root: {
    name: 'file',
    doc: 'Everything that meow knows about one kind of agent.',
    keys: [
      ...SECTIONS.map((section) => {
        const shape = tableOf(() => section);
        const make = section === HEAD ? needed : key;
        return make(section.name, REPEATED.includes(section) ? listOf(shape) : shape, section.doc);
      }),
      key('environment', ENVIRONMENT, "Environment variables that override the caller's; an empty text removes one."),
    ],
    choices: [{ keys: [SPAWN.name, HEADLESS.name, ACP.name, MAILBOX.name], required: true, overlap: true }],
    together: TERMINAL_SECTION_NAMES.map((name) => [name, SPAWN.name] as const),
  },
};
