// Commands that start, resume or fork a session, and who chooses the id of a new one.

import type { Hole, TerminalProfile } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { missing, wordAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import type { Texts } from './placeholders.ts';
import { commandAt, hasPlaceholder } from './placeholders.ts';

export interface SessionCommands {
  readonly command: Text;
  readonly resume: Text | null;
  readonly fork: Text | null;
  readonly sessionId: TerminalProfile['sessionId'];
}

/** Their key names in the section. */
export interface SessionKeys {
  readonly section: string;
  readonly resume: string;
  readonly fork: string;
  /** Whether the agent itself can report its session there; if not, why. */
  readonly canTell: boolean;
  readonly untold: string;
  /** Placeholders with a value in all three. */
  readonly more: readonly Hole[];
}

export function readSessionCommands(texts: Texts, table: TomlTable, keys: SessionKeys): SessionCommands {
  const { report } = texts;
  const { section, more } = keys;
  const declared = wordAt(report, table, 'session_id', ['chosen', 'told', 'none'] as const);
  const mayChoose = declared === null || declared === 'chosen';
  const command = commandAt(texts, table, 'command', [...more, ...(mayChoose ? (['session_id'] as const) : [])]);
  if (!table.entries.has('command')) {
    missing(report, table.place, section, 'command', 'Say how the agent is started: command = "my-agent".');
  }
  const sessionId = declared ?? (hasPlaceholder(command, 'session_id') ? 'chosen' : keys.canTell ? 'told' : 'none');
  if (sessionId === 'told' && !keys.canTell) {
    const place = table.entries.get('session_id')?.value.place ?? table.place;
    report.error(
      'session-untold',
      place,
      `the agent cannot tell its session: ${keys.untold}`,
      'Write session_id = "none".',
    );
  }
  const forked: readonly Hole[] = sessionId === 'chosen' ? ['session_id', 'new_session_id'] : ['session_id'];
  const resume = commandAt(texts, table, keys.resume, [...more, 'session_id']);
  const fork = commandAt(texts, table, keys.fork, [...more, ...forked]);
  const need = (key: string, text: Text | null, hole: Hole, severity: 'error' | 'warning' = 'error'): void => {
    const entry = table.entries.get(key);
    if (text === null || entry === undefined || hasPlaceholder(text, hole)) return;
    const message = `"${key}" does not say which session: it has no {{${hole}}}`;
    const otherwise =
      severity === 'warning' ? ' Without it the agent resumes the session that it considers the latest.' : '';
    const hint = `Put {{${hole}}} where the agent takes the id of a session.${otherwise}`;
    report[severity]('missing-hole', entry.value.place, message, hint);
  };
  if (declared === 'chosen') need('command', command, 'session_id');
  // Some agents have one session per folder.
  need(keys.resume, resume, 'session_id', 'warning');
  need(keys.fork, fork, 'session_id');
  if (sessionId === 'chosen') need(keys.fork, fork, 'new_session_id');
  return { command: command ?? '', resume, fork, sessionId };
}
