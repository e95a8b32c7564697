// Symbols of a Raymond workflow: its states, and every tag, policy and `then` that names one. In a folder a state is a
// file; in a YAML file it is a key. It reads what is readable of a damaged text.

import { own } from '../../base/json.ts';
import { makeSource, type Place } from '../../base/source.ts';
import { findState, plainPath, TAG_RULES } from '../../ir/machine.ts';
import { allTags, TRANSITION_TAGS } from '../../ir/tags.ts';
import { namesOf } from '../keys.ts';
import { createReport, START } from '../report.ts';
import {
  type Definition,
  lineBefore,
  suggestions,
  type Suggestions,
  type Symbols,
  toItems,
  type Use,
} from '../symbols.ts';
import { isScalar, NO_KEYS, readFrontMatter, readPartialYaml, type YamlMap, type YamlValue } from '../yaml-tree.ts';
import { STATE } from './keys.ts';
import { nameStates, stemOf } from './names.ts';
import { isState, spellingsOf } from './open-source.ts';
import { BUILT_IN } from './placeholders.ts';
import type { FindWorkflow, RaymondSource, StateNames } from './syntax.ts';

/** A text with states in it. */
interface Text {
  readonly file: string;
  readonly text: string;
  /** Keys that may name states. */
  readonly keys: readonly YamlMap[];
}

interface States {
  readonly definitions: readonly Definition[];
  readonly names: StateNames;
  readonly texts: readonly Text[];
}

/** A file may be empty. */
const WHOLE_FILE: Place = { from: 0, to: 0 };
const STATES_OF = ['allowed_targets', 'allowed_transitions', 'then'];
const STATE_ATTRIBUTES = ['return', 'next', 'timeout_next'];

export function raymondSymbols(source: RaymondSource, find: FindWorkflow): Symbols {
  const { definitions, names, texts } = statesOf(source);
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const uses: Use[] = [];
  for (const { file, text, keys } of texts) {
    const use = (written: string, from: number): void => {
      const found = findState(names, written);
      const to = found.ok ? byName.get(found.value.name) : undefined;
      if (to === undefined) return;
      const name = written.trim();
      const start = from + written.indexOf(name);
      const spelling = name === to.name ? 'name' : name === stemOf(to.name) ? 'stem' : 'other';
      uses.push({ file, place: { from: start, to: start + name.length }, to: [to], spelling });
    };
    for (const tag of allTags(text)) {
      if (tag.name === 'print') continue;
      const content = text.indexOf('>', tag.from + attributesLength(text.slice(tag.from, tag.to))) + 1;
      const { target } = TAG_RULES[tag.name];
      if (target === 'workflow') {
        const to = startOf(find(source, plainPath(tag.content.trim())));
        const place = { from: content, to: content + tag.content.length };
        if (to !== null) uses.push({ file, place, to: [to], spelling: 'other' });
      } else if (target !== 'back') use(tag.content, content);
      for (const attribute of STATE_ATTRIBUTES) {
        const written = own(tag.attributes, attribute);
        const at = new RegExp(`\\b${attribute}\\s*=\\s*["']`).exec(text.slice(tag.from, content));
        if (written !== undefined && at !== null) use(written, tag.from + at.index + at[0].length);
      }
    }
    const visit = (value: YamlValue): void => {
      if (isScalar(value)) use(value.text, value.place.from + (/^["']/.test(text.slice(value.place.from)) ? 1 : 0));
      else if (value.kind === 'list') value.items.forEach(visit);
      else if (value.kind === 'map')
        for (const entry of value.entries.values()) if (entry.key !== 'tag') visit(entry.value);
    };
    for (const map of keys)
      for (const key of STATES_OF) visit(map.entries.get(key)?.value ?? { kind: 'nothing', place: START });
  }
  return {
    definitions,
    uses,
    suggest: (file, offset) => {
      const text = texts.find((each) => each.file === file)?.text;
      return text === undefined
        ? null
        : suggestAt(
            text,
            offset,
            definitions.map(({ name }) => name),
          );
    },
  };
}

/** Length of an opening tag, without its `>`: a quoted attribute may contain one. */
function attributesLength(tag: string): number {
  return /^<[\w-]+(?:\s+[\w-]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/.exec(tag)?.[0].length ?? 0;
}

function startOf(found: ReturnType<FindWorkflow>): Definition | null {
  if (found?.kind !== 'raymond') return null;
  const { definitions } = statesOf(found.source);
  return definitions.find(({ name }) => /^(?:1_)?START$/.test(stemOf(name))) ?? null;
}

function statesOf(source: RaymondSource): States {
  if (source.kind === 'folder') {
    const files = source.files.filter((file) => isState(file) && !file.leadsOut);
    const names = nameStates(
      files.map(({ name }) => name),
      '',
      new Set(),
      (name) => (stemOf(name) === name ? [] : [stemOf(name)]),
    );
    const definitions = files.map(({ name, file }) => stateDefinition(name, file, WHOLE_FILE, WHOLE_FILE, true));
    const texts = files.map(({ file, text }) => {
      const report = createReport(makeSource(file, text ?? ''));
      return { file, text: report.source.text, keys: [readFrontMatter(report, '').map ?? NO_KEYS] };
    });
    return { definitions, names, texts };
  }
  const file = source.name;
  const report = createReport(makeSource(file, source.text));
  const { text } = report.source;
  const root = readPartialYaml(report, { from: 0, to: text.length })?.value;
  const written = root?.kind === 'map' ? root.entries.get('states')?.value : undefined;
  const states = written?.kind === 'map' ? written : NO_KEYS;
  const entries = [...states.entries.values()].filter(({ key }) => key !== '');
  const names = nameStates(
    entries.map(({ key }) => key),
    '',
    new Set(),
    (name) => spellingsOf(name, states),
  );
  const definitions = entries.map(({ key, keyPlace, value }) =>
    stateDefinition(key, file, keyPlace, { from: keyPlace.from, to: Math.max(keyPlace.to, value.place.to) }, false),
  );
  const keys = entries.flatMap(({ value }) => (value.kind === 'map' ? [value] : []));
  return { definitions, names, texts: [{ file, text, keys }] };
}

function stateDefinition(name: string, file: string, place: Place, extent: Place, isFile: boolean): Definition {
  return { kind: 'state', name, file, place, extent, about: `state \`${name}\``, parent: null, isFile };
}

function suggestAt(text: string, offset: number, states: readonly string[]): Suggestions | null {
  const line = lineBefore(text, offset);
  const named = { name: /[\w.-]*$/ };
  if (/\{\{\s*[\w-]*$/.test(line)) return suggestions(text, offset, toItems('variable', BUILT_IN, 'built in'));
  if (/<[\w-]*$/.test(line)) return suggestions(text, offset, toItems('value', TRANSITION_TAGS, 'tag'));
  if (
    /<(?:goto|reset|call|function|fork)(?:\s[^<>]*)?>\s*[\w.-]*$/.test(line) ||
    /\b(?:return|next|timeout_next)=["'][\w.-]*$/.test(line)
  )
    return suggestions(text, offset, toItems('state', states), named);
  if (/^\s*(?:-\s*)?\{?.*\b(?:target|child|return|then|next|goto|reset|call|function|fork):\s*\[?[^\]]*$/.test(line))
    return suggestions(text, offset, toItems('state', states), named);
  if (/\b(?:allowed_tags|tag):\s*\[?[^\]]*$/.test(line))
    return suggestions(text, offset, toItems('value', TRANSITION_TAGS, 'tag'));
  const inFrontMatter = text.startsWith('---') && !/^---[ \t]*$/m.test(text.slice(3, offset));
  return inFrontMatter && /^[\w-]*$/.test(line) ? suggestions(text, offset, toItems('key', namesOf(STATE.keys))) : null;
}
