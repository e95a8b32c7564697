// Symbols of a Raymond workflow: its states, and every tag, policy and `then` that names one. In a folder a state is a
// file; in a YAML file it is a key. It reads what is readable of a damaged text.

import { own } from '../../base/json.ts';
import { makeSource, type Place } from '../../base/source.ts';
import { findState, plainPath, TAG_RULES } from '../../ir/machine.ts';
import { allTags, TRANSITION_TAGS } from '../../ir/tags.ts';
import type { Table, TextAt } from '../keys.ts';
import { createReport, START } from '../report.ts';
import {
  type Definition,
  lineBefore,
  type NamedPart,
  type Suggestion,
  suggestions,
  type Suggestions,
  type Symbols,
  toItems,
  type Use,
  type WrittenKey,
} from '../symbols.ts';
import { explainAt, keyOf, keysAt, valuesAt } from '../written-keys.ts';
import { pathKey, yamlCursorAt, yamlTexts } from '../yaml-cursor.ts';
import { isScalar, NO_KEYS, readPartialYaml, type YamlMap, type YamlValue } from '../yaml-tree.ts';
import { MANIFEST, RAYMOND, STATE, TAGS } from './keys.ts';
import { nameStates, stemOf } from './names.ts';
import { isState, MANIFEST_NAME, spellingsOf } from './open-source.ts';
import { BUILT_IN } from './placeholders.ts';
import type { FindWorkflow, RaymondSource, StateNames } from './syntax.ts';

/** A text with states in it. */
interface Text {
  readonly file: string;
  readonly text: string;
  /** Keys that may name states. */
  readonly keys: readonly YamlMap[];
  /** Its part that is YAML, with its keys. */
  readonly yaml: Place;
  readonly root: YamlMap;
  readonly table: Table;
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

/** `adapters`: their names. */
export function raymondSymbols(source: RaymondSource, find: FindWorkflow, adapters: readonly string[]): Symbols {
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
      const text = texts.find((each) => each.file === file);
      const states = definitions.map(({ name }) => name);
      return text === undefined ? null : suggestAt(text, offset, { states, adapters, variables: variablesIn(texts) });
    },
    keyAt: (file, offset) => {
      const text = texts.find((each) => each.file === file);
      return text === undefined ? null : (explainAt(text.root, text.table, offset) ?? tagAt(text.text, offset));
    },
    namedIn: ({ kind, text }) => namedBy(kind === 'output', text, definitions, names),
  };
}

/** `main.3.REVIEW`, `*.REVIEW`, `REVIEW#2`; of an output, the state is before it. */
function namedBy(
  isOutput: boolean,
  id: string,
  definitions: readonly Definition[],
  { states }: StateNames,
): readonly NamedPart[] {
  const segments = id.replace(/#.*$/, '').split('.');
  let from = 0;
  const parts = segments.map((segment, index): readonly NamedPart[] => {
    const place = { from, to: from + segment.length };
    from = place.to + 1;
    const to = definitions.filter(({ name }) => own(states, name) === segment);
    const isMeant = isOutput || index === segments.length - 1;
    return isMeant && to.length > 0 ? [{ place, to, spelling: 'stem' }] : [];
  });
  return parts.findLast((found) => found.length > 0) ?? [];
}

/** Attributes of forks are variables of the prompts of workers. */
function variablesIn(texts: readonly Text[]): readonly string[] {
  const forks = texts.flatMap(({ text }) => allTags(text)).filter(({ name }) => name.startsWith('fork'));
  const known = new Set([...STATE_ATTRIBUTES, ...ATTRIBUTES]);
  return forks.flatMap(({ attributes }) => Object.keys(attributes).filter((name) => !known.has(name)));
}

function tagAt(text: string, offset: number): WrittenKey | null {
  const start = text.lastIndexOf('<', offset);
  const [, name = ''] = start === -1 ? [] : (/^<\/?([a-z-]+)/.exec(text.slice(start, start + TAG_LENGTH_MAX)) ?? []);
  const doc = own(TAGS, name);
  const place = { from: start, to: text.indexOf(name, start) + name.length };
  return doc === undefined || offset > place.to ? null : { place, about: `\`<${name}>\`: ${doc}` };
}

const TAG_LENGTH_MAX = 30;
const ATTRIBUTES = ['input', 'model', 'effort', 'adapter', 'cd', 'timeout', 'approver'];

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
    const texts = files.map(({ name, file, text }) => folderText(file, text ?? '', /\.md$/i.test(name)));
    const definitions = files.map(({ name, file }, index) => {
      const { keys = [], text = '' } = texts[index] ?? {};
      return stateDefinition(name, file, WHOLE_FILE, WHOLE_FILE, aboutState(name, keys[0] ?? NO_KEYS, text), true);
    });
    const manifest = source.files.filter(({ name, leadsOut }) => name === MANIFEST_NAME && !leadsOut);
    return {
      definitions,
      names,
      texts: [...texts, ...manifest.map(({ file, text }) => manifestText(file, text ?? ''))],
    };
  }
  const file = source.name;
  const { text, root } = partialYaml(file, source.text, null);
  const written = root.entries.get('states')?.value;
  const states = written?.kind === 'map' ? written : NO_KEYS;
  const entries = [...states.entries.values()].filter(({ key }) => key !== '');
  const names = nameStates(
    entries.map(({ key }) => key),
    '',
    new Set(),
    (name) => spellingsOf(name, states),
  );
  const definitions = entries.map(({ key, keyPlace, value }) => {
    const map = value.kind === 'map' ? value : NO_KEYS;
    const extent = { from: keyPlace.from, to: Math.max(keyPlace.to, value.place.to) };
    const about = aboutState(key, map, text.slice(extent.from, extent.to));
    return stateDefinition(key, file, keyPlace, extent, about, false);
  });
  const keys = entries.flatMap(({ value }) => (value.kind === 'map' ? [value] : []));
  const yaml = { from: 0, to: text.length };
  return { definitions, names, texts: [{ file, text, keys, yaml, root, table: RAYMOND.root }] };
}

/** Only prompts have front matter. */
function folderText(file: string, written: string, isPrompt: boolean): Text {
  const { text } = makeSource(file, written);
  const yaml = (isPrompt ? frontMatterIn(text) : null) ?? WHOLE_FILE;
  const { root } = partialYaml(file, written, yaml);
  return { file, text, keys: [root], yaml, root, table: STATE };
}

function manifestText(file: string, written: string): Text {
  const { text, root } = partialYaml(file, written, null);
  return { file, text, keys: [], yaml: { from: 0, to: text.length }, root, table: MANIFEST };
}

/** `part`: null is the whole text. */
function partialYaml(
  file: string,
  written: string,
  part: Place | null,
): { readonly text: string; readonly root: YamlMap } {
  const report = createReport(makeSource(file, written));
  const { text } = report.source;
  const value = readPartialYaml(report, part ?? { from: 0, to: text.length })?.value;
  return { text, root: value?.kind === 'map' ? value : NO_KEYS };
}

/** Up to its end, or to the end of the text while it has none. Null if there is none. */
function frontMatterIn(text: string): Place | null {
  const [opened] = /^---[ \t]*(?:\r?\n|$)/.exec(text) ?? [];
  if (opened === undefined) return null;
  const closing = /^---[ \t]*$/gm;
  closing.lastIndex = opened.length;
  const closed = closing.exec(text.replaceAll('\r', ' '));
  return { from: opened.length, to: closed?.index ?? text.length };
}

/** Its description, its limit of visits, and where its text leads. */
function aboutState(name: string, keys: YamlMap, text: string): string {
  const textOf = (key: string): string | null => {
    const value = keys.entries.get(key)?.value;
    return value !== undefined && isScalar(value) ? value.text : null;
  };
  const [description, max, then] = ['description', 'max_visits', 'then'].map(textOf);
  const tags = allTags(text).flatMap(({ name: tag, content }) => {
    if (tag === 'print') return [];
    return TAG_RULES[tag].target === 'back' ? [`- ${tag}`] : [`- ${tag} \`${content.trim()}\``];
  });
  return [
    `state \`${name}\``,
    ...(description ? [description] : []),
    ...(max ? [`At most ${max} visits${then ? `, then \`${then}\`` : ''}.`] : []),
    ...(tags.length === 0 ? [] : [`Its text names:\n\n${[...new Set(tags)].join('\n')}`]),
  ].join('\n\n');
}

function stateDefinition(
  name: string,
  file: string,
  place: Place,
  extent: Place,
  about: string,
  isFile: boolean,
): Definition {
  return { kind: 'state', name, file, place, extent, about, parent: null, isFile };
}

interface Nameable {
  readonly states: readonly string[];
  readonly adapters: readonly string[];
  readonly variables: readonly string[];
}

function suggestAt(
  { text, yaml, table }: Text,
  offset: number,
  { states, adapters, variables }: Nameable,
): Suggestions | null {
  const line = lineBefore(text, offset);
  const named = { name: /[\w.-]*$/ };
  if (/\{\{\s*[\w-]*$/.test(line)) {
    const items = [...toItems('variable', BUILT_IN, 'built in'), ...toItems('variable', variables, 'of a fork')];
    return suggestions(text, offset, items);
  }
  if (/<[\w-]*$/.test(line)) return suggestions(text, offset, TAG_ITEMS);
  if (
    /<(?:goto|reset|call|function|fork)(?:\s[^<>]*)?>\s*[\w.-]*$/.test(line) ||
    /\b(?:return|next|timeout_next)=["'][\w.-]*$/.test(line)
  )
    return suggestions(text, offset, toItems('state', states), named);
  const [, tag = ''] = /<([a-z-]+)(?:\s+[\w-]+=(?:"[^"]*"|'[^']*'))*\s+[\w-]*$/.exec(line) ?? [];
  if (own(TAGS, tag) !== undefined) return suggestions(text, offset, attributesOf(tag));
  if (offset < yaml.from || offset > yaml.to) return null;
  const part = text.slice(yaml.from, yaml.to);
  const cursor = yamlCursorAt(part, offset - yaml.from);
  if (cursor === null) return null;
  const texts = yamlTexts(part);
  const textAt: TextAt = (path) => texts.get(pathKey(path)) ?? null;
  const keys = keysAt(table, cursor, textAt, (path) => texts.has(pathKey(path)));
  const key = keyOf(cursor);
  const isTarget = cursor.path.includes('allowed_targets') && cursor.path.at(-1) !== 'allowed_targets';
  const isState =
    key !== null &&
    (NAMING_KEYS.has(key) || isTarget || (cursor.key !== null && cursor.path.at(-1) === 'allowed_targets'));
  const items = [
    ...(isState ? toItems('state', states) : []),
    ...keys,
    ...(key === 'adapter' ? toItems('value', adapters, 'adapter') : []),
    ...valuesAt(table, cursor, textAt),
  ];
  return items.length === 0 ? null : suggestions(text, offset, items, named);
}

const NAMING_KEYS = new Set(['target', 'child', 'worker', 'return', 'next', 'timeout_next', 'then']);
const TAG_ITEMS: readonly Suggestion[] = Object.entries(TAGS).map(([label, detail]) => ({
  label,
  kind: 'value',
  detail,
}));

function attributesOf(tag: string): readonly Suggestion[] {
  const rule = TRANSITION_TAGS.find((each) => each === tag);
  if (rule === undefined) return [];
  const { requiredAttribute, target } = TAG_RULES[rule];
  const settings =
    tag === 'ask' ? ['timeout', 'timeout_next', 'approver'] : target === 'back' ? [] : ['input', 'model', 'effort'];
  const session = target === 'back' || tag === 'goto' || tag === 'call' ? [] : ['adapter', 'cd'];
  const required = requiredAttribute === null ? [] : [requiredAttribute];
  return toItems('value', [...required, ...settings, ...session], `of <${tag}>`);
}
