// Reads YAML, and the front matter of Markdown, as values and keys, each with its position. After an error there is no
// tree.

import { type Document, isAlias, isMap, isScalar as isScalarNode, isSeq, type Node, parseDocument } from 'yaml';
import { makeSource, type Place } from '../base/source.ts';
import { createReport, type Report, START } from './report.ts';

export type YamlValue = YamlScalar | { readonly kind: 'nothing'; readonly place: Place } | YamlList | YamlMap;

export interface YamlScalar {
  readonly kind: 'string' | 'number' | 'boolean';
  readonly place: Place;
  /** A number or boolean as written. */
  readonly text: string;
}

export interface YamlList {
  readonly kind: 'list';
  readonly place: Place;
  readonly items: readonly YamlValue[];
}

export interface YamlMap {
  readonly kind: 'map';
  readonly place: Place;
  readonly entries: ReadonlyMap<string, YamlEntry>;
}

export interface YamlEntry {
  readonly key: string;
  readonly keyPlace: Place;
  readonly value: YamlValue;
}

export const NO_KEYS: YamlMap = { kind: 'map', place: START, entries: new Map() };

/** For messages: `must be a list, got a map`. */
export function describeYaml(value: YamlValue): string {
  if (value.kind === 'number' || value.kind === 'boolean') return value.text;
  return value.kind === 'nothing' ? 'nothing' : `a ${value.kind}`;
}

/** The same, with the text of a string: `got "yes"`. */
export function shownYaml(value: YamlValue): string {
  return value.kind === 'string' ? JSON.stringify(value.text) : describeYaml(value);
}

export function isScalar(value: YamlValue): value is YamlScalar {
  return value.kind === 'string' || value.kind === 'number' || value.kind === 'boolean';
}

/** Whether a document has the key at its top level, in block or flow style. A broken one may have it all the same. */
export function hasRootKey(text: string, key: string): boolean {
  if (new RegExp(`^["']?${key}["']?\\s*:`, 'm').test(text)) return true;
  const isFlow = /^(?:\uFEFF|\s+|#.*|---|%.*)*\{/.test(text);
  if (!isFlow || !text.includes(key)) return false;
  const root = readYaml(createReport(makeSource('', text)), { from: 0, to: text.length });
  return root?.kind === 'map' && root.entries.has(key);
}

/** The parser takes seconds for more. */
const YAML_LENGTH_MAX = 500_000;

/** A part of the report's text. Null after an error. */
export function readYaml(report: Report, part: Place): YamlValue | null {
  const read = readPartialYaml(report, part);
  return read?.isDamaged === false ? read.value : null;
}

/** For editors: what can be read of a text that somebody is still writing. Null if it is huge or nested too deeply. */
export function readPartialYaml(
  report: Report,
  { from, to }: Place,
): { readonly value: YamlValue; readonly isDamaged: boolean } | null {
  if (to - from > YAML_LENGTH_MAX) {
    const message = `the YAML has ${String(Math.ceil((to - from) / 1_000))} kB; at most 500 kB are read`;
    return report.error('file-too-large', { from, to: from + 1 }, message, 'Keep long texts in files of their own.');
  }
  const text = report.source.text.slice(from, to);
  // We report positions instead of the parser's excerpts. Its check for duplicate keys compares each with all others.
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false });
  for (const { pos, code, message } of document.errors) {
    const place = onItsLine(text, pos);
    const sentence = `${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
    report.error('invalid-yaml', { from: from + place.from, to: from + place.to }, sentence, CURES[code] ?? CURE);
  }
  const { value, duplicates } = convert(document, text, from);
  for (const place of duplicates)
    report.error('invalid-yaml', place, 'map keys must be unique', 'Remove one of the two.');
  const isDamaged = document.errors.length > 0 || duplicates.length > 0;
  if (value !== null) return { value, isDamaged };
  if (isDamaged) return null;
  return report.error('invalid-yaml', { from, to: from + 1 }, 'aliases are nested too deeply', 'Write it out.');
}

/** An error at the end of a line is shown at its last character. */
function onItsLine(text: string, [from, to]: readonly [number, number]): Place {
  let last = from;
  while (last > 0 && '\r\n'.includes(text.charAt(last - 1))) last -= 1;
  const start = from > 0 && /^[\r\n]?$/.test(text.slice(from, from + 1)) ? Math.max(0, Math.min(from, last) - 1) : from;
  return { from: start, to: Math.max(to, start + 1) };
}

const CURE = 'Look at the indentation, quotes and brackets here and on the line before.';
const CURES: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'Indent with spaces.',
  BLOCK_AS_IMPLICIT_KEY: 'A value with a colon in it is put in quotes.',
  MULTIPLE_DOCS: 'Remove the line ---.',
};

/** Limit on nodes: aliases can expand to very many. */
const NODES_MAX = 100_000;
const DEPTH_MAX = 100;

/** `base`: the offset of the text. The value is null above the limits. `duplicates`: repeated keys. */
function convert(
  document: Document,
  text: string,
  base: number,
): { readonly value: YamlValue | null; readonly duplicates: readonly Place[] } {
  let nodes = 0;
  let deepest = 0;
  const duplicates: Place[] = [];
  // The parser would search the whole document for each alias. Null while the value is being read.
  const anchors = new Map<string, { value: YamlValue; nodes: number; height: number } | null>();
  const placeOf = (node: unknown): Place => {
    const [from, to] = (node as Node | null)?.range ?? [0, 1];
    return { from: base + from, to: base + Math.max(to, from + 1) };
  };
  /** Counts the node, or all nodes of an alias. */
  const isWithinLimits = (more: number, depth: number): boolean => {
    nodes += more;
    deepest = Math.max(deepest, depth);
    return nodes <= NODES_MAX && depth <= DEPTH_MAX;
  };
  const valueOf = (node: unknown, depth: number): YamlValue | null => {
    if (isAlias(node)) {
      const known = anchors.get(node.source);
      if (known === undefined) return { kind: 'nothing', place: placeOf(node) };
      return known !== null && isWithinLimits(known.nodes, depth + known.height) ? known.value : null;
    }
    if (!isWithinLimits(1, depth)) return null;
    const anchor = isScalarNode(node) || isSeq(node) || isMap(node) ? node.anchor : undefined;
    if (anchor === undefined) return contentOf(node, depth);
    const [nodesBefore, deepestBefore] = [nodes, deepest];
    deepest = depth;
    anchors.set(anchor, null);
    const value = contentOf(node, depth);
    if (value !== null) anchors.set(anchor, { value, nodes: 1 + nodes - nodesBefore, height: deepest - depth });
    deepest = Math.max(deepest, deepestBefore);
    return value;
  };
  const contentOf = (node: unknown, depth: number): YamlValue | null => {
    const place = placeOf(node);
    if (isScalarNode(node)) return scalarOf(node.value, text.slice(place.from - base, place.to - base), place);
    if (isSeq(node)) {
      const items = node.items.map((item) => valueOf(item, depth + 1));
      return items.includes(null) ? null : { kind: 'list', place, items: items.filter((item) => item !== null) };
    }
    if (!isMap(node)) return { kind: 'nothing', place };
    const entries = new Map<string, YamlEntry>();
    for (const { key, value } of node.items) {
      const inner = valueOf(value, depth + 1);
      if (inner === null) return null;
      const name = isScalarNode(key) ? String(key.value) : '';
      if (isScalarNode(key) && entries.has(name)) duplicates.push(placeOf(key));
      entries.set(name, { key: name, keyPlace: placeOf(key), value: inner });
    }
    return { kind: 'map', place, entries };
  };
  return { value: valueOf(document.contents, 0), duplicates };
}

function scalarOf(value: unknown, written: string, place: Place): YamlValue {
  switch (typeof value) {
    case 'string':
      return { kind: 'string', place, text: value };
    case 'number':
    case 'bigint':
      return { kind: 'number', place, text: written };
    case 'boolean':
      return { kind: 'boolean', place, text: String(value) };
    default:
      return { kind: 'nothing', place };
  }
}

/** YAML between two lines of `---`, at the start of a Markdown text. */
interface FrontMatter {
  /** Null if absent or invalid. */
  readonly map: YamlMap | null;
  /** The text after it, without blank lines around it, and where it begins. */
  readonly text: string;
  readonly offset: number;
  /** Present but invalid. */
  readonly isBroken: boolean;
}

/** `example`: a key and a value, for the error message. */
export function readFrontMatter(report: Report, example: string): FrontMatter {
  const { text } = report.source;
  const before = (from: number, map: YamlMap | null, isBroken = false): FrontMatter => {
    const [blank = ''] = /^(?:[ \t]*\r?\n)*/.exec(text.slice(from)) ?? [];
    const offset = from + blank.length;
    return { map, text: text.slice(offset).trimEnd(), offset, isBroken };
  };
  const [opened] = /^---[ \t]*\r?\n/.exec(text) ?? [];
  if (opened === undefined) return before(0, null);
  const closing = /^---[ \t]*(?:\r?\n|$)/gm;
  closing.lastIndex = opened.length;
  const closed = closing.exec(text);
  if (closed === null) {
    // A line of dashes may be just that.
    if (/^[A-Za-z_]+:(?:\s|$)/.test(text.slice(opened.length))) {
      const hint = 'Close it with a line ---.';
      report.error('unclosed-front-matter', { from: 0, to: 3 }, 'the front matter has no end', hint);
    }
    return before(0, null);
  }
  const end = closed.index + closed[0].length;
  const value = readYaml(report, { from: opened.length, to: closed.index });
  if (value?.kind === 'nothing') return before(end, NO_KEYS);
  if (value?.kind === 'map') return before(end, value);
  if (value !== null) {
    const message = `the front matter must be keys and values, got ${describeYaml(value)}`;
    report.error('wrong-type', value.place, message, `For example ${example}.`);
  }
  return before(end, null, true);
}
