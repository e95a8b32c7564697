// Reads YAML as values and keys, each with its position. After an error there is no tree.

import type { Document, Node } from 'yaml';
import { isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { Place } from '../base/source.ts';
import type { Report } from './report.ts';

export type YamlValue = YamlScalar | YamlNothing | YamlList | YamlMap;

export interface YamlScalar {
  readonly kind: 'string' | 'number' | 'boolean';
  readonly place: Place;
  /** A number or boolean as written. */
  readonly text: string;
}

export interface YamlNothing {
  readonly kind: 'nothing';
  readonly place: Place;
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

/** For messages: `must be a list, got a map`. */
export function describeYaml(value: YamlValue): string {
  switch (value.kind) {
    case 'nothing':
      return 'nothing';
    case 'number':
    case 'boolean':
      return value.text;
    case 'string':
    case 'list':
    case 'map':
      return `a ${value.kind}`;
  }
}

/** A part of the report's text. Null after an error. */
export function readYaml(report: Report, { from, to }: Place): YamlValue | null {
  const text = report.source.text.slice(from, to);
  // We report positions instead of the parser's excerpts.
  const document = parseDocument(text, { prettyErrors: false });
  for (const { pos, code, message } of document.errors) {
    const place = onItsLine(text, pos);
    report.error(
      'invalid-yaml',
      { from: from + place.from, to: from + place.to },
      sentence(message),
      CURES[code] ?? CURE,
    );
  }
  if (document.errors.length > 0) return null;
  const converted = new Converter(document, from, text).value(document.contents, 0);
  if (converted !== null) return converted;
  report.error('invalid-yaml', { from, to: from + 1 }, 'aliases are nested too deeply', 'Write it out.');
  return null;
}

/** An error at the end of a line is shown at its last character. */
function onItsLine(text: string, [from, to]: readonly [number, number]): Place {
  const last = text.slice(0, from).replace(/[\r\n]+$/, '').length;
  const start = from > 0 && /^[\r\n]?$/.test(text.slice(from, from + 1)) ? Math.max(0, Math.min(from, last) - 1) : from;
  return { from: start, to: Math.max(to, start + 1) };
}

const CURE = 'Look at the indentation, quotes and brackets here and on the line before.';
const CURES: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'Remove one of the two.',
  TAB_AS_INDENT: 'Indent with spaces.',
  BLOCK_AS_IMPLICIT_KEY: 'A value with a colon in it is put in quotes.',
  MULTIPLE_DOCS: 'Remove the line ---.',
};

function sentence(message: string): string {
  return `${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
}

/** Limit on nodes: aliases can expand to very many. */
const NODES_MAX = 100_000;
const DEPTH_MAX = 100;

class Converter {
  private nodes = 0;
  private readonly document: Document;
  private readonly base: number;
  private readonly text: string;

  constructor(document: Document, base: number, text: string) {
    this.document = document;
    this.base = base;
    this.text = text;
  }

  /** Null above the limit. */
  value(node: unknown, depth: number): YamlValue | null {
    this.nodes += 1;
    if (this.nodes > NODES_MAX || depth > DEPTH_MAX) return null;
    if (isAlias(node)) return this.value(node.resolve(this.document), depth + 1);
    const place = this.placeOf(node as Node | null);
    if (isScalar(node)) return this.scalar(node.value, place);
    if (isSeq(node)) {
      const items = node.items.map((item) => this.value(item, depth + 1));
      return items.includes(null) ? null : { kind: 'list', place, items: items.filter((item) => item !== null) };
    }
    if (!isMap(node)) return { kind: 'nothing', place };
    const entries = new Map<string, YamlEntry>();
    for (const { key, value } of node.items) {
      const inner = this.value(value, depth + 1);
      if (inner === null) return null;
      const name = isScalar(key) ? String(key.value) : '';
      entries.set(name, { key: name, keyPlace: this.placeOf(key as Node | null), value: inner });
    }
    return { kind: 'map', place, entries };
  }

  private scalar(value: unknown, place: Place): YamlValue {
    const written = this.text.slice(place.from - this.base, place.to - this.base);
    switch (typeof value) {
      case 'string':
        return { kind: 'string', place, text: value };
      case 'number':
      case 'bigint':
        return { kind: 'number', place, text: written };
      case 'boolean':
        return { kind: 'boolean', place, text: value ? 'true' : 'false' };
      default:
        return { kind: 'nothing', place };
    }
  }

  private placeOf(node: Node | null): Place {
    const [from, to] = node?.range ?? [0, 1];
    return { from: this.base + from, to: this.base + Math.max(to, from + 1) };
  }
}
