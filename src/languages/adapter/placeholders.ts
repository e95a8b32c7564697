// Texts of an adapter with {{…}}: shell commands, and plain values. Which placeholders are allowed depends on the
// position; ir/adapter.ts lists them all.

import type { Hole as Name } from '../../ir/adapter.ts';
import { PLACEHOLDERS } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { referencesIn } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { readTemplate, scriptText, verbatimText } from '../template.ts';
import type { Hole } from '../template.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';
import { placeWithin } from '../toml-tree.ts';
import { filledAt } from './fields.ts';

/** Known for every start. */
const ALWAYS: readonly Name[] = ['agent', 'workflow_id', 'workdir', 'folder', 'meow', 'hook', 'socket', 'inbox'];

/** Where the other placeholders have a value. */
const ELSEWHERE: Readonly<Partial<Record<Name, string>>> = {
  session_id: 'It is known when a session is resumed or forked, and when MEOW chooses it: session_id = "chosen".',
  new_session_id: 'It is the new session of a fork, where we choose it: session_id = "chosen".',
  home: 'It is the folder that the section [home] asks for.',
  model: 'It is for "model_args" alone.',
  effort: 'It is for "effort_args" alone.',
  prompt: 'It is for the commands of [headless] alone, with prompt = "argument".',
};

/** Texts of one file. */
export interface Texts {
  readonly report: Report;
  /** Whether there is a home folder. */
  readonly home: boolean;
  /** Names used so far. */
  readonly used: Set<string>;
}

/** A command, or a part of one. `more`: additional placeholders allowed here. */
export function commandAt(texts: Texts, table: TomlTable, key: string, more: readonly Name[] = []): Text | null {
  const string = filledAt(texts.report, table, key);
  if (string === null) return null;
  const cure = 'Make it a separate word, or put it in quotes.';
  return scriptText(texts.report, string, readParts(texts, string, more), { cure: () => cure });
}

/** An environment value, a path, a text. */
export function value(texts: Texts, string: TomlString): Text {
  return verbatimText(readParts(texts, string, []));
}

export function hasPlaceholder(text: Text | null, name: Name): boolean {
  return text !== null && referencesIn(text).some(({ path }) => path[0] === name);
}

function readParts(texts: Texts, string: TomlString, more: readonly Name[]): readonly (string | Hole)[] {
  const { report, used, home } = texts;
  const known: readonly string[] = [...ALWAYS, ...(home ? (['home'] as const) : []), ...more];
  const parts = readTemplate(report, string);
  for (const part of parts) {
    if (typeof part === 'string') continue;
    const name = part.path.join('.');
    used.add(name);
    if (known.includes(name)) continue;
    const place = placeWithin(string, part.from, part.to);
    const elsewhere = PLACEHOLDERS.find((hole) => hole === name);
    if (elsewhere === undefined) {
      const hint = suggest(name, known, `Known here: ${listed(known)}.`);
      report.error('unknown-hole', place, `{{${name}}} is not a known placeholder`, hint);
    } else report.error('unknown-hole', place, `{{${name}}} has no value here`, ELSEWHERE[elsewhere] ?? '');
  }
  return parts;
}
