// Channels without a terminal: one process per prompt (`[headless]`), or a protocol (`[acp]`).

import { type AcpProfile, type HeadlessProfile, type Hole, NEVER_ASKS, type PermissionArgs } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, listed, suggest } from '../report.ts';
import { stringAt } from '../toml-fields.ts';
import { type Fields, hasPlaceholder, type Reading, sectionAt } from './fields.ts';
import { ACP, ACP_PERMISSIONS, HEADLESS, PERMISSION_ARGS, PROMPT_INPUTS, SESSION_IDS, SIGNALS } from './keys.ts';

/** Output format of an agent that prints only its answer. */
const PLAIN = 'text';

export function readHeadless(reading: Reading, readers: readonly string[]): HeadlessProfile | null {
  return sectionAt(reading, HEADLESS, 'below it command = "my-agent"', (headless) => {
    const prompt = headless.word('prompt', PROMPT_INPUTS) ?? 'stdin';
    const reader = readReader(reading, headless, readers);
    const commands = readSessionCommands(reading, headless, {
      resume: 'resume',
      fork: 'fork',
      cannotReport: reader === PLAIN ? `the reader "${PLAIN}" knows of none` : null,
      more: prompt === 'argument' ? ['prompt'] : [],
    });
    for (const key of ['command', 'resume', 'fork'] as const) {
      const written = headless.value(key);
      const text = commands[key];
      if (prompt === 'stdin' || written === undefined || text === null || hasPlaceholder(text, 'prompt')) continue;
      const message = `"${key}" does not hand over the prompt: it has no {{prompt}}`;
      const hint = 'Put {{prompt}} where the agent takes it, or let it be read from stdin: prompt = "stdin".';
      reading.report.error('missing-hole', written.place, message, hint);
    }
    return {
      ...commands,
      replays: headless.boolean('replay') ?? false,
      permissions: readPermissions(reading, headless),
      modelArgs: headless.command('model_args', ['model']),
      effortArgs: headless.command('effort_args', ['effort']),
      prompt,
      reader,
      signal: readSignal(headless),
    };
  });
}

function readReader({ report }: Reading, headless: Fields<'reader'>, readers: readonly string[]): string {
  const reader = headless.filled('reader');
  if (reader === null) return PLAIN;
  if (!readers.includes(reader.value)) {
    const hint = suggest(reader.value, readers, `Available: ${listed(readers)}.`);
    report.error('unknown-reader', reader.place, `no reader is called ${JSON.stringify(reader.value)}`, hint);
  }
  return reader.value;
}

export function readAcp(reading: Reading): AcpProfile | null {
  return sectionAt(reading, ACP, 'below it command = "my-agent --acp"', (acp) => {
    acp.require('command', 'Say how the agent is started: command = "my-agent --acp".');
    return {
      command: acp.command('command') ?? '',
      permission: acp.word('permission', ACP_PERMISSIONS) ?? 'ask',
      signal: readSignal(acp),
    };
  });
}

/** The signal that asks a process to exit. */
export function readSignal(section: Fields<'signal'>): (typeof SIGNALS)[number] {
  return section.word('signal', SIGNALS) ?? 'SIGTERM';
}

/** Without `all`, the commands as they are allow everything. */
export function readPermissions({ report }: Reading, section: Fields<'permissions'>): PermissionArgs {
  const hint = 'Write permissions = { ask = "ARGUMENTS", edits = "ARGUMENTS", all = "ARGUMENTS" }.';
  const table = section.table('permissions', hint);
  if (table === null) return NEVER_ASKS;
  checkKeys(report, table, namesOf(PERMISSION_ARGS.keys), '"permissions"', 'warning');
  const args = (key: string): string | null => stringAt(report, table, key)?.value ?? null;
  return { ask: args('ask'), edits: args('edits'), all: args('all') ?? '' };
}

/** The keys for sessions, which have other names in each section. */
interface SessionKeys<Key> {
  readonly resume: Key;
  readonly fork: Key;
  /** Why the agent itself cannot report its session there; null if it can. */
  readonly cannotReport: string | null;
  /** Placeholders with a value in all commands. */
  readonly more: readonly Hole[];
}

/** Commands that start, resume or fork a session, and who chooses the id of a new one. */
export function readSessionCommands<Key extends string>(
  { report }: Reading,
  section: Fields<NoInfer<Key> | 'command' | 'session_id'>,
  { resume: resumeKey, fork: forkKey, cannotReport, more }: SessionKeys<Key>,
): Pick<HeadlessProfile, 'command' | 'resume' | 'fork' | 'sessionId'> {
  const declared = section.word('session_id', SESSION_IDS);
  const chosen: readonly Hole[] = declared === null || declared === 'chosen' ? ['session_id'] : [];
  const command = section.command('command', [...more, ...chosen]);
  section.require('command', 'Say how the agent is started: command = "my-agent".');
  const sessionId =
    declared ?? (hasPlaceholder(command, 'session_id') ? 'chosen' : cannotReport === null ? 'told' : 'none');
  if (sessionId === 'told' && cannotReport !== null) {
    const { place } = section.value('session_id') ?? section;
    const message = `the agent cannot tell its session: ${cannotReport}`;
    report.error('session-untold', place, message, 'Write session_id = "none".');
  }
  const forked: readonly Hole[] = sessionId === 'chosen' ? ['session_id', 'new_session_id'] : ['session_id'];
  const resume = section.command(resumeKey, [...more, 'session_id']);
  const fork = section.command(forkKey, [...more, ...forked]);
  const need = (key: Key | 'command', text: Text | null, hole: Hole, severity: 'error' | 'warning' = 'error'): void => {
    const written = section.value(key);
    if (text === null || written === undefined || hasPlaceholder(text, hole)) return;
    const message = `"${key}" does not say which session: it has no {{${hole}}}`;
    const otherwise =
      severity === 'warning' ? ' Without it the agent resumes the session that it considers the latest.' : '';
    const hint = `Put {{${hole}}} where the agent takes the id of a session.${otherwise}`;
    report[severity]('missing-hole', written.place, message, hint);
  };
  if (declared === 'chosen') need('command', command, 'session_id');
  // Some agents have one session per folder.
  need(resumeKey, resume, 'session_id', 'warning');
  for (const hole of forked) need(forkKey, fork, hole);
  return { command: command ?? '', resume, fork, sessionId };
}
