// An adapter: everything MEOW knows about one kind of agent, as data from an `adapter.toml` (languages/adapter/). It
// says how to start the agent, prompt it, read its output, and stop it.
//
// Commands are shell text; keys have tmux names. In commands, environment and files `{{name}}` is a placeholder for a
// value of the start: see `PLACEHOLDERS`. A pattern is the source of a regular expression that is searched on the
// screen, with the flags `mu`.

import { err, ok, type Result } from '../base/errors.ts';
import type { Text } from './text.ts';

export interface Adapter {
  readonly name: string;
  readonly description: string;
  readonly isDefault: boolean;
  readonly alias: string | null;
  /** The required program, for `meow doctor`; null if none. */
  readonly program: RequiredProgram | null;
  /** Overrides the caller's environment; a workflow's settings override these. An empty value unsets the variable. */
  readonly environment: Readonly<Record<string, Text>>;
  /** A home folder per run, instead of the user's. */
  readonly home: HomeFolder | null;
  /** Written into the folder of a start before the agent starts. */
  readonly files: readonly AdapterFile[];
  readonly hooks: HookNames | null;
  readonly terminal: TerminalProfile | null;
  readonly headless: HeadlessProfile | null;
  /** Null if it does not support the Agent Client Protocol. */
  readonly acp: AcpProfile | null;
  /** Takes prompts from a mailbox, like the simulated agent. */
  readonly mailbox: boolean;
  readonly limits: readonly LimitPattern[];
}

/** Channels to talk to an agent. A workflow may choose one that its adapter supports; the first is the default. */
export const CHANNELS = ['mailbox', 'terminal', 'headless', 'acp'] as const;
export type Channel = (typeof CHANNELS)[number];

/** Channels that a workflow or a person may choose. */
export const OPEN_CHANNELS = ['terminal', 'headless', 'acp'] as const satisfies readonly Channel[];

/** What agents may do without asking: nothing, change files in their folder, or everything. */
export const PERMISSIONS = ['ask', 'edits', 'all'] as const;
export type Permissions = (typeof PERMISSIONS)[number];

/** Arguments for every command of a channel. Null: its agents cannot ask anybody. */
export type PermissionArgs = Readonly<Record<Permissions, string | null>>;

/** For commands of agents that never ask for a permission. */
export const NEVER_ASKS: PermissionArgs = { ask: null, edits: null, all: '' };

/** Placeholder names. Values are quoted for their position in a command, or for the format of a file. */
export const PLACEHOLDERS = [
  /** The session to start, resume or fork from. */
  'session_id',
  /** Id of the forked session, if the adapter chooses ids. */
  'new_session_id',
  'agent',
  'workflow_id',
  'workdir',
  /** Folder of this start: absolute, private; contains `files`. */
  'folder',
  /** The adapter's home folder in this run. */
  'home',
  'meow',
  /** A command that takes the name of a hook as its argument and the payload on stdin. */
  'hook',
  'socket',
  'inbox',
  /** Only in the arguments for them. */
  'model',
  'effort',
  /** Only for a headless prompt passed as an argument. */
  'prompt',
] as const;
export type Hole = (typeof PLACEHOLDERS)[number];

export interface RequiredProgram {
  readonly name: string;
  readonly versionCommand: string | null;
  readonly tried: readonly string[];
  readonly install: string | null;
  /** A command that succeeds if the user is logged in. */
  readonly loginCommand: string | null;
  readonly loginCure: string | null;
  readonly checks: readonly ProgramCheck[];
}

/** Another condition for starting it unattended. Its command succeeds if it holds, and does not start the agent. */
export type ProgramCheck = Readonly<{ name: string; command: string; cure: string }>;

export interface HomeFolder {
  /** Environment variable that points the agent to it. */
  readonly variable: string;
  /** The user's own folder, relative to their home folder. */
  readonly from: string;
  /** Entries to link, and entries to copy, if they exist. */
  readonly link: readonly string[];
  readonly copy: readonly string[];
}

export interface AdapterFile {
  /** Relative to `folder`, or starting with `{{home}}`. */
  readonly path: Text;
  readonly format: 'json' | 'toml' | 'text';
  readonly content: Text;
}

/** The agent's own names for its hooks. Null if it has no such hook. */
export interface HookNames {
  readonly begun: string | null;
  readonly accepted: string | null;
  readonly toolBegun: string | null;
  readonly toolEnded: string | null;
  /** It waits for a person. */
  readonly blocked: readonly string[];
  /** It has become idle. */
  readonly stopped: string | null;
  /** It has become idle after an error. */
  readonly failed: string | null;
  readonly ended: string | null;
  readonly sessionKey: string;
  /** Key of the prompt in the payload of `accepted`; null if absent. */
  readonly promptKey: string | null;
  /** Key of the message in the payload of `failed`. */
  readonly messageKey: string | null;
}

export interface TerminalProfile {
  readonly command: Text;
  /** Null: sessions cannot be resumed. */
  readonly resumeCommand: Text | null;
  readonly forkCommand: Text | null;
  readonly permissions: PermissionArgs;
  /** Who chooses the id of a new session: `chosen` MEOW, `told` the agent (by a hook), `none` nobody. */
  readonly sessionId: 'chosen' | 'told' | 'none';
  /** Without `ready`, the time until it counts as ready. With it, the minimum. */
  readonly startupMs: number;
  readonly ready: ReadySigns | null;
  readonly injection: Injection;
  readonly acknowledge: Acknowledgement;
  readonly dialogs: readonly DialogPattern[];
  readonly liveness: Liveness;
  readonly stop: StopWays;
  readonly timing: Timing;
}

/** How slow the agent may be. Nothing is concluded from a shorter time. */
export const DEFAULT_TIMING = {
  /** A screen that has not changed for this long is completely drawn. */
  settleMs: 100,
  /** An agent that has done nothing for this long has stopped, not paused. */
  pauseMs: 300,
  /** A person who has typed nothing for this long is not typing. */
  typingMs: 1_000,
  /** The effect of a key, a recognizable dialog, and the next step of a counter are visible by then. */
  visibleMs: 1_500,
  /** An agent has reported or continued by then, if it does so by itself. */
  reactMs: 3_000,
  /** The same after an error. */
  recoverMs: 60_000,
} as const;
export type Timing = Readonly<Record<keyof typeof DEFAULT_TIMING, number>>;

/** All patterns must match. */
export type ReadySigns = Readonly<{ patterns: readonly string[]; deadlineMs: number }>;

export interface Injection {
  readonly preKeys: readonly string[];
  readonly preDelayMs: number;
  /** `paste`: bracketed if the program asked for it. `literal`, `keys`: typed, but pasted if it asked for that. */
  readonly method: 'paste' | 'literal' | 'keys';
  /** Delay between the text and the keys that submit it. */
  readonly postDelayMs: number;
  readonly postKeys: readonly string[];
  /** Keys that clear a draft; empty if that is impossible. */
  readonly clearKeys: readonly string[];
  /** Patterns of an input field with text. Empty: the row of the cursor decides. */
  readonly draft: readonly string[];
  /** Changes that the input field makes to text. Affected prompts are passed as a file for the agent to read. */
  readonly alters: readonly Alteration[];
  /** Patterns of prompts that the input field would read as a command or a key. They are passed as a file too. */
  readonly misread: readonly string[];
  /** Time limit for a delivery, without dialogs; null leaves it to the caller. */
  readonly deadlineMs: number | null;
}

export type Alteration = 'tabs' | 'carriage-returns' | 'controls' | 'invisibles' | 'composition';

export interface Acknowledgement {
  /** The hook `accepted` confirms delivery; then nothing else counts. */
  readonly byHook: boolean;
  readonly busy: readonly string[];
  /** Patterns of a prompt queued behind the current work. */
  readonly queued: readonly string[];
  /** Time before a key without a visible effect is pressed again; doubles each time. */
  readonly timeoutMs: number;
}

export interface DialogPattern {
  readonly name: string;
  readonly pattern: string;
  /** Keys pressed without asking anyone; null asks a person. */
  readonly answer: readonly string[] | null;
  /** Keys for approval and rejection; null: the person must answer in the terminal. */
  readonly approve: readonly string[] | null;
  readonly reject: readonly string[] | null;
  readonly cure: string | null;
  /** Only until the agent is ready for the first time. */
  readonly atStart: boolean;
}

/** How long it may be silent while it works; null is unlimited. */
export interface Liveness {
  readonly firstMs: number | null;
  readonly idleMs: number | null;
  /** Patterns at the end of the screen after an error. The message is the first group, or the whole match. */
  readonly failed?: readonly string[];
}

export interface StopWays {
  readonly interruptKeys: readonly string[];
  /** Keys that make it exit, before any signal is sent. */
  readonly keys: readonly string[];
  readonly waitMs: number;
  readonly signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP';
}

export interface HeadlessProfile {
  readonly command: Text;
  readonly resume: Text | null;
  readonly fork: Text | null;
  /** Without `fork`: a fresh session that receives the whole conversation replaces it. */
  readonly replays?: boolean;
  readonly permissions: PermissionArgs;
  readonly modelArgs: Text | null;
  readonly effortArgs: Text | null;
  readonly prompt: 'stdin' | 'argument';
  /** Name of the reader of its output (drivers/agent/readers/). */
  readonly reader: string;
  readonly sessionId: 'chosen' | 'told' | 'none';
  readonly signal: StopWays['signal'];
}

export interface AcpProfile {
  readonly command: Text;
  /** Answer to permission requests. `edits`: allows changes of files in the agent's folder, and asks about the rest. */
  readonly permission: 'ask' | 'edits' | 'allow' | 'deny';
  readonly signal: StopWays['signal'];
}

/** `reset`: format of the reset time in the first group: seconds since 1970, a duration, a time of day; null: none. */
export type LimitPattern = Readonly<{ pattern: string; reset: 'epoch' | 'duration' | 'clock' | null }>;

/** Supported channels, in order of preference. */
export function channelsOf({ mailbox, terminal, headless, acp }: Adapter): readonly Channel[] {
  const has = { mailbox, terminal: terminal !== null, headless: headless !== null, acp: acp !== null };
  return CHANNELS.filter((channel) => has[channel]);
}

/** The channel of an agent: the wanted one, else the fallback if the adapter has it, else its first. The error is a sentence. */
export function channelFor(
  adapter: Adapter,
  wanted: Channel | null,
  fallback: Channel | null,
): Result<Channel, string> {
  const has = channelsOf(adapter);
  if (wanted !== null) {
    if (has.includes(wanted)) return ok(wanted);
    return err(`the adapter ${adapter.name} has no channel ${wanted}: it has ${has.join(', ')}`);
  }
  const first = fallback !== null && has.includes(fallback) ? fallback : has[0];
  return first === undefined ? err(`the adapter ${adapter.name} has no channel`) : ok(first);
}

/**
 * The adapter with commands for these permissions; an adapter without a way to pass them starts no agents. Null: nobody
 * chose; then agents may do everything, except those of the Agent Client Protocol, whose adapter decides. `others`:
 * channels that could be chosen instead. The error is a sentence.
 */
export function permitted(
  adapter: Adapter,
  channel: Channel,
  wanted: Permissions | null,
  others: readonly Channel[] = OPEN_CHANNELS,
): Result<Adapter, string> {
  const { terminal, headless, acp } = adapter;
  if (channel === 'acp' && acp !== null && wanted !== null) {
    return ok({ ...adapter, acp: { ...acp, permission: REQUESTS[wanted] } });
  }
  const args = argumentsFor(adapter, channel, wanted);
  if (args === null) return err(cannotAsk(adapter, channel, wanted, others));
  const followed = <T extends Text | null>(command: T): Text | T => {
    if (args === '' || command === null) return command;
    return typeof command === 'string' ? `${command} ${args}` : { parts: [...command.parts, ` ${args}`] };
  };
  if (channel === 'terminal' && terminal !== null) {
    const { command, resumeCommand, forkCommand } = terminal;
    const commands = { resumeCommand: followed(resumeCommand), forkCommand: followed(forkCommand) };
    return ok({ ...adapter, terminal: { ...terminal, command: followed(command), ...commands } });
  }
  if (channel !== 'headless' || headless === null) return ok(adapter);
  const { command, resume, fork } = headless;
  const commands = { command: followed(command), resume: followed(resume), fork: followed(fork) };
  return ok({ ...adapter, headless: { ...headless, ...commands } });
}

const REQUESTS = { ask: 'ask', edits: 'edits', all: 'allow' } as const;

/** Null: agents of this channel cannot ask. Channels without arguments have no commands to add them to. */
function argumentsFor(adapter: Adapter, channel: Channel, wanted: Permissions | null): string | null {
  const profile = channel === 'terminal' || channel === 'headless' ? adapter[channel] : null;
  return profile === null ? '' : profile.permissions[wanted ?? 'all'];
}

function cannotAsk(adapter: Adapter, channel: Channel, wanted: Permissions | null, others: readonly Channel[]): string {
  const isAble = (other: Channel): boolean => others.includes(other) && argumentsFor(adapter, other, wanted) !== null;
  const able = channelsOf(adapter).find(isAble);
  const cure = able === undefined ? 'only permissions = "all" is possible' : `channel = "${able}" can`;
  return `${adapter.name} agents cannot ask for permission (channel "${channel}", permissions "${wanted}"): ${cure}`;
}
