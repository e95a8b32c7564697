// Collects diagnostics while a text is read. A problem never ends the reading: the reader reports it and continues as
// well as possible.

import { own } from '../base/json.ts';
import { nearest } from '../base/names.ts';
import { type Diagnostic, excerptOf, type Place, type Source, spanOf } from '../base/source.ts';

export interface Report {
  readonly source: Source;
  readonly error: Complain;
  readonly warning: Complain;
  /** All diagnostics in text order. */
  readonly diagnostics: () => readonly Diagnostic[];
  /** A report of a part of the text. It has its own diagnostics, and shares the limit on their number. */
  readonly part: () => Report;
}

/** Returns null, the value of whatever could not be read. */
export type Complain = (
  code: string,
  place: Place,
  message: string,
  /** A function if it needs a search: most hints are never shown. */
  hint: string | (() => string),
  related?: readonly { readonly message: string; readonly place: Place }[],
) => null;

/** Position for problems of a whole text. */
export const START: Place = { from: 0, to: 1 };

/** More diagnostics of one text would not help. */
const DIAGNOSTICS_MAX = 500;
/** Messages quote the text, which may contain very long names. */
const MESSAGE_MAX = 1_000;

export function createReport(source: Source): Report {
  return reportWith(source, new Set());
}

/** `seen`: keys of all diagnostics of the text. */
function reportWith(source: Source, seen: Set<string>): Report {
  const found: { readonly place: Place; readonly diagnostic: Diagnostic }[] = [];
  const left: Diagnostic['severity'][] = [];
  const complain =
    (severity: Diagnostic['severity']): Complain =>
    (code, place, message, hint, related = []) => {
      // The same mistake found twice (a shared default, a step read twice) is reported once.
      const key = `${String(place.from)}:${code}:${bounded(message)}`;
      if (seen.has(key)) return null;
      if (seen.size >= DIAGNOSTICS_MAX) {
        left.push(severity);
        return null;
      }
      seen.add(key);
      const excerpt = excerptOf(source, place);
      const diagnostic: Diagnostic = {
        severity,
        code,
        message: bounded(message),
        span: spanOf(source, place),
        sourceLine: excerpt.text,
        sourceColumn: excerpt.column,
        hint: bounded(typeof hint === 'string' ? hint : hint()),
        related: related.map((other) => ({ message: other.message, span: spanOf(source, other.place) })),
      };
      found.push({ place, diagnostic });
      return null;
    };
  return {
    source,
    error: complain('error'),
    warning: complain('warning'),
    diagnostics: () => {
      const sorted = found.toSorted((a, b) => a.place.from - b.place.from).map(({ diagnostic }) => diagnostic);
      const last = sorted.at(-1);
      if (left.length === 0 || last === undefined) return sorted;
      const severity = left.includes('error') ? 'error' : 'warning';
      const message = `${String(left.length)} more problems are not shown`;
      return [
        ...sorted,
        { ...last, severity, code: 'too-many-problems', message, hint: 'Cure these first.', related: [] },
      ];
    },
    part: () => reportWith(source, seen),
  };
}

function bounded(text: string): string {
  return text.length <= MESSAGE_MAX ? text : `${text.slice(0, MESSAGE_MAX)}…`;
}

interface Key {
  readonly key: string;
  readonly keyPlace: Place;
}

/** A table of TOML or a map of YAML. */
interface Keys {
  readonly entries: ReadonlyMap<string, Key>;
}

/** An unknown key is mostly harmless, so it is a warning, unless the caller says otherwise. `elsewhere`: a better hint. */
export function checkKeys(
  report: Report,
  { entries }: Keys,
  known: readonly string[],
  what: string,
  severity: Diagnostic['severity'] = 'warning',
  elsewhere: (key: string) => string | null = () => null,
): void {
  for (const { key, keyPlace } of entries.values()) {
    if (known.includes(key)) continue;
    const hint = (): string => elsewhere(key) ?? suggest(key, known, `Known here: ${listed(known)}.`);
    report[severity]('unknown-key', keyPlace, `${what} has no key "${key}"`, hint);
  }
}

/**
 * Unknown keys where a forgotten one is dangerous. One that is similar to a known key is an error: the step would run
 * without what its author wrote. So is a habit from another tool (`habits`: hints for its keys). Any other is a warning,
 * so that files may contain notes.
 */
export function checkSimilarKeys(
  report: Report,
  { entries }: Keys,
  known: readonly string[],
  what: string,
  habits: Readonly<Record<string, string>> = {},
): void {
  for (const entry of entries.values()) {
    if (known.includes(entry.key)) continue;
    const message = `${what} has no key "${entry.key}"`;
    const habit = own(habits, plain(entry.key));
    if (habit !== undefined) report.error('unknown-key', entry.keyPlace, message, habit);
    else reportUnknownKey(report, entry, known, message, `Known here: ${listed(known)}.`);
  }
}

/** `otherwise`: the hint if no known key is similar. */
export function reportUnknownKey(
  report: Report,
  { key, keyPlace }: Key,
  known: readonly string[],
  message: string,
  otherwise: string,
): void {
  const plainNames = new Map(known.map((name) => [plain(name), name]));
  const similar = plainNames.get(nearest(plain(key), plainNames.keys(), key.length <= 4 ? 1 : 2) ?? '');
  if (similar === undefined) report.warning('unknown-key', keyPlace, message, otherwise);
  else report.error('unknown-key', keyPlace, message, `Did you mean "${similar}"?`);
}

/** Case and separators do not make another name. */
function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[-_]/g, '');
}

export function missing(report: Report, place: Place, what: string, key: string, hint: string): null {
  return report.error('missing-key', place, `${what} has no "${key}"`, hint);
}

export function oneOf<W extends string>(
  report: Report,
  key: string,
  { text, place }: { readonly text: string; readonly place: Place },
  words: readonly W[],
): W | null {
  const known = words.find((each) => each === text);
  if (known !== undefined) return known;
  const hint = (): string => suggest(text, words, `It is one of ${listed(words)}.`);
  return report.error('invalid-value', place, `"${key}" cannot be ${JSON.stringify(text)}`, hint);
}

/** `Did you mean "build"?`, or else the alternatives. */
export function suggest(wanted: string, known: Iterable<string>, otherwise: string): string {
  const close = nearest(wanted, known);
  return close === null ? otherwise : `Did you mean "${close}"?`;
}

/** `"a", "b" and "c"`; long lists are cut. */
export function listed(names: Iterable<string>): string {
  const all = [...names].map((name) => `"${name}"`);
  if (all.length > 12) return `${all.slice(0, 12).join(', ')} and ${String(all.length - 12)} more`;
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1) ?? ''}`;
}
