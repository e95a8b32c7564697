// Texts of an adapter with {{…}}: shell commands, and plain values. Which placeholders are allowed depends on the
// position; ir/adapter.ts lists them all.

import { type Hole as Name, PLACEHOLDERS } from '../../ir/adapter.ts';
import { referencesIn, type Text } from '../../ir/text.ts';
import { listed, type Report, suggest } from '../report.ts';
import { type Hole, readTemplate, scriptText, verbatimText } from '../template.ts';
import { placeWithin, type TomlString, type TomlTable } from '../toml-tree.ts';

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

/** The file being read. */
export interface Reading {
  readonly report: Report;
  readonly root: TomlTable;
  /** Names of the placeholders used so far. */
  readonly used: Set<string>;
}

/** A command, or a part of one. `more`: additional placeholders allowed here. */
export function commandText(reading: Reading, string: TomlString, more: readonly Name[]): Text {
  const cure = (): string => 'Make it a separate word, or put it in quotes.';
  return scriptText(reading.report, string, readParts(reading, string, more), { cure });
}

/** An environment value, a path, a text. */
export function plainText(reading: Reading, string: TomlString): Text {
  return verbatimText(readParts(reading, string, []));
}

export function hasPlaceholder(text: Text | null, name: Name): boolean {
  return text !== null && referencesIn(text).some(({ path }) => path[0] === name);
}

function readParts(reading: Reading, string: TomlString, more: readonly Name[]): readonly (string | Hole)[] {
  const { report, root, used } = reading;
  const known: readonly string[] = [...ALWAYS, ...(root.entries.has('home') ? ['home'] : []), ...more];
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
