// What must be known of one kind of agent to start it, to tell it something, to understand what it does, and to end it: as
// data, read from an `adapter.toml` (languages/adapter/). Nothing here runs anything.
//
// Commands are texts of a shell, and keys are named as tmux names them. In commands, environment and files `{{name}}` stands
// for a value of the start: `HOLES` lists them. A pattern is the source of a regular expression that is looked for in what
// is on the screen, with the flags `mu`.

import type { Text } from './text.ts';

export interface Adapter {
  readonly name: string;
  readonly description: string;
  /** Of those that come with meow: agents that name none have this one. */
  readonly isDefault: boolean;
  /** Another name that workflows may have for it. */
  readonly alias: string | null;
  /** What must be installed, for `meow doctor`; null where nothing need be. */
  readonly program: RequiredProgram | null;
  /** Over the caller's environment, below what a workflow sets for its agent; an empty value takes the variable away. */
  readonly environment: Readonly<Record<string, Text>>;
  /** A folder of the agent's own, in place of the user's: one for each run. */
  readonly home: HomeFolder | null;
  /** Written into the folder of a start before the agent is started. */
  readonly files: readonly AdapterFile[];
  readonly hooks: HookNames | null;
  /** How it lives in a terminal; null where it does not. */
  readonly terminal: TerminalProfile | null;
  /** How it answers one prompt and ends; null where it does not. */
  readonly headless: HeadlessProfile | null;
  /** How it speaks the Agent Client Protocol; null where it does not. */
  readonly acp: AcpProfile | null;
  /** It takes its prompts from a mailbox, as the simulated agent does. */
  readonly mailbox: boolean;
  /** What it says when it may not work for a while. */
  readonly limits: readonly LimitPattern[];
}

/** Ways to talk to an agent. A workflow may choose one that its adapter has; else it is the first of these. */
export const CHANNELS = ['mailbox', 'terminal', 'headless', 'acp'] as const;
export type Channel = (typeof CHANNELS)[number];

/** Those that a workflow or a person may ask for. */
export const OPEN_CHANNELS = ['terminal', 'headless', 'acp'] as const satisfies readonly Channel[];

/** What `{{name}}` may stand for. In commands each is quoted as its place demands, in files as their format does. */
export const PLACEHOLDERS = [
  /** The session to begin, to go on with, or to fork from. */
  'session_id',
  /** Of a fork, where the adapter chooses ids: that of the new session. */
  'new_session_id',
  'agent',
  'workflow_id',
  /** Where the agent works. */
  'workdir',
  /** Of this start: absolute, private, and where `files` are. */
  'folder',
  /** The adapter's home folder in this run. */
  'home',
  /** The path of `meow`. */
  'meow',
  /** A command that takes the name of a hook, and its payload on stdin. */
  'hook',
  'socket',
  'inbox',
  /** In the arguments for them alone. */
  'model',
  'effort',
  /** Of a headless prompt by argument alone. */
  'prompt',
] as const;
export type Hole = (typeof PLACEHOLDERS)[number];

export interface RequiredProgram {
  readonly name: string;
  /** A command that prints its version. */
  readonly versionCommand: string | null;
  /** What it was tried with. */
  readonly tried: readonly string[];
  /** How to install it. */
  readonly install: string | null;
  /** A command that succeeds where it is logged in. */
  readonly loginCommand: string | null;
  readonly loginCure: string | null;
  readonly checks: readonly ProgramCheck[];
}

/** Something else that must hold before it can be started with nobody there. */
export interface ProgramCheck {
  readonly name: string;
  /** Succeeds where all is well, and does not start the agent. */
  readonly command: string;
  readonly cure: string;
}

export interface HomeFolder {
  /** The variable by which the agent is told of it. */
  readonly variable: string;
  /** Where the user's own is, relative to their home folder. */
  readonly from: string;
  /** What is shared with it, and what is copied from it, if it is there. */
  readonly link: readonly string[];
  readonly copy: readonly string[];
}

export interface AdapterFile {
  /** Relative to `folder`, or with `{{home}}` in front. */
  readonly path: Text;
  readonly format: 'json' | 'toml' | 'text';
  readonly content: Text;
}

/** The agent's own names of what happens to it, as its hooks tell them. Null where it has no such hook. */
export interface HookNames {
  readonly begun: string | null;
  /** It has the prompt. */
  readonly accepted: string | null;
  readonly toolBegun: string | null;
  readonly toolEnded: string | null;
  /** It waits for a person. */
  readonly blocked: readonly string[];
  /** It has come to rest. */
  readonly stopped: string | null;
  /** It has come to rest with an error. */
  readonly failed: string | null;
  readonly ended: string | null;
  /** Where its payloads have the session. */
  readonly sessionKey: string;
  /** Where the payload of `accepted` has the prompt; null where it does not. */
  readonly promptKey: string | null;
  /** Where the payload of `failed` has its text. */
  readonly messageKey: string | null;
}

export interface TerminalProfile {
  readonly command: Text;
  /** Null: a session cannot be gone on with. */
  readonly resumeCommand: Text | null;
  readonly forkCommand: Text | null;
  /** Who says the id of a new session: we, the agent (by a hook), or nobody. */
  readonly sessionId: 'chosen' | 'told' | 'none';
  /** Without `ready`: when it is taken to be ready. With it: not before. */
  readonly startupMs: number;
  readonly ready: ReadySigns | null;
  readonly injection: Injection;
  readonly acknowledge: Acknowledgement;
  readonly dialogs: readonly DialogPattern[];
  readonly liveness: Liveness;
  readonly stop: StopWays;
}

export interface ReadySigns {
  /** All must be seen. */
  readonly patterns: readonly string[];
  readonly deadlineMs: number;
}

export interface Injection {
  readonly preKeys: readonly string[];
  readonly preDelayMs: number;
  /** `paste`: bracketed where the program wants it. `literal`, `keys`: typed. */
  readonly method: 'paste' | 'literal' | 'keys';
  /** Between the text and the keys that submit it. */
  readonly postDelayMs: number;
  readonly postKeys: readonly string[];
  /** Keys that empty a draft; none where it cannot be emptied. */
  readonly clearKeys: readonly string[];
  /** Patterns of an input that holds text; none: what is in the row of the cursor tells. */
  readonly draft: readonly string[];
  /** What its input changes in a text: such a prompt is handed over as a file that the agent is told to read. */
  readonly alters: readonly Alteration[];
  /** Patterns of a prompt that its input takes for something else, a command or a key: handed over as a file as well. */
  readonly misread: readonly string[];
}

export type Alteration = 'tabs' | 'carriage-returns' | 'controls' | 'invisibles' | 'composition';

export interface Acknowledgement {
  /** Whether the hook `accepted` tells; where it does, nothing else counts. */
  readonly byHook: boolean;
  /** Patterns of a screen on which the agent is at work. */
  readonly busy: readonly string[];
  /** Patterns of a prompt that waits for the end of the present work. */
  readonly queued: readonly string[];
  /** What is given to it, before the keys are pressed again or it is given up. */
  readonly timeoutMs: number;
}

export interface DialogPattern {
  readonly name: string;
  readonly pattern: string;
  /** Pressed without asking anybody; null asks a person. */
  readonly answer: readonly string[] | null;
  /** Pressed for a person who approves, or rejects; null: the person must do it in the terminal. */
  readonly approve: readonly string[] | null;
  readonly reject: readonly string[] | null;
  /** How to keep it from coming. */
  readonly cure: string | null;
  /** Only as long as the agent has not been ready. */
  readonly atStart: boolean;
}

/** How long it may give no sign of life while it works; null is no limit. */
export interface Liveness {
  readonly firstMs: number | null;
  readonly idleMs: number | null;
  /** Patterns of the end of a screen on which it has come to rest with an error, whose text is their first group, or all of it. */
  readonly failed?: readonly string[];
}

export interface StopWays {
  /** What makes it leave what it is doing. */
  readonly interruptKeys: readonly string[];
  /** What makes it end by itself, before it is sent a signal. */
  readonly keys: readonly string[];
  readonly waitMs: number;
  readonly signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP';
}

export interface HeadlessProfile {
  readonly command: Text;
  readonly resume: Text | null;
  readonly fork: Text | null;
  /** Without `fork`: a fresh session that is told all that was said in the other takes its place. */
  readonly replays?: boolean;
  readonly modelArgs: Text | null;
  readonly effortArgs: Text | null;
  readonly prompt: 'stdin' | 'argument';
  /** The name of what reads its output (drivers/agent/readers/). */
  readonly reader: string;
  readonly sessionId: 'chosen' | 'told' | 'none';
  readonly signal: StopWays['signal'];
}

export interface AcpProfile {
  readonly command: Text;
  /** What becomes of a request for permission. */
  readonly permission: 'ask' | 'allow' | 'deny';
  readonly signal: StopWays['signal'];
}

export interface LimitPattern {
  readonly pattern: string;
  /** How the first group tells when it ends: seconds since 1970, a duration from now, a time of day; null: it does not. */
  readonly reset: 'epoch' | 'duration' | 'clock' | null;
}

/** The channels it has, in the order in which they are chosen. */
export function channelsOf({ mailbox, terminal, headless, acp }: Adapter): readonly Channel[] {
  const has: Readonly<Record<Channel, boolean>> = {
    mailbox,
    terminal: terminal !== null,
    headless: headless !== null,
    acp: acp !== null,
  };
  return CHANNELS.filter((channel) => has[channel]);
}
