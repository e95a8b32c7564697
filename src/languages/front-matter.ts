// A Markdown text and its front matter: YAML between two lines of `---`.

import type { Place } from '../base/source.ts';
import type { Report } from './report.ts';
import { describeYaml, readYaml, type YamlMap } from './yaml-tree.ts';

export interface FrontMatter {
  /** Null if absent or invalid. */
  readonly map: YamlMap | null;
  /** Range of the text after it. */
  readonly body: Place;
  /** Present but invalid. */
  readonly isBroken: boolean;
}

const EMPTY: YamlMap = { kind: 'map', place: { from: 0, to: 1 }, entries: new Map() };

/** `example`: a key and a value, for the error message. */
export function readFrontMatter(report: Report, example: string): FrontMatter {
  const { text } = report.source;
  const [opened] = /^---[ \t]*\r?\n/.exec(text) ?? [];
  if (opened === undefined) return { map: null, body: { from: 0, to: text.length }, isBroken: false };
  const closing = /^---[ \t]*(?:\r?\n|$)/gm;
  closing.lastIndex = opened.length;
  const closed = closing.exec(text);
  if (closed === null) {
    // A line of dashes may be just that.
    if (/^[A-Za-z_]+:(?:\s|$)/.test(text.slice(opened.length))) {
      const hint = 'Close it with a line ---.';
      report.error('unclosed-front-matter', { from: 0, to: 3 }, 'the front matter has no end', hint);
    }
    return { map: null, body: { from: 0, to: text.length }, isBroken: false };
  }
  const body = { from: closed.index + closed[0].length, to: text.length };
  const value = readYaml(report, { from: opened.length, to: closed.index });
  if (value === null) return { map: null, body, isBroken: true };
  if (value.kind === 'nothing') return { map: EMPTY, body, isBroken: false };
  if (value.kind === 'map') return { map: value, body, isBroken: false };
  const message = `the front matter must be keys and values, got ${describeYaml(value)}`;
  report.error('wrong-type', value.place, message, `For example ${example}.`);
  return { map: null, body, isBroken: true };
}
