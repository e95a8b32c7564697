// Collects diagnostics while a text is read. A problem never ends the reading: the reader reports it and continues as
// well as possible.

import { nearest } from '../base/names.ts';
import { type Diagnostic, excerptOf, type Place, type Source, spanOf } from '../base/source.ts';

export interface Report {
  readonly source: Source;
  readonly error: Complain;
  readonly warning: Complain;
  /** All diagnostics in text order. */
  readonly diagnostics: () => readonly Diagnostic[];
  /** A report of a part of the text. It has its own diagnostics; the limit on their number is that of the whole. */
  readonly part: () => Report;
}

export type Complain = (
  code: string,
  place: Place,
  message: string,
  /** A function if it needs a search: most hints are never shown. */
  hint: string | (() => string),
  related?: readonly { readonly message: string; readonly place: Place }[],
) => void;

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
      if (seen.has(key)) return;
      if (seen.size >= DIAGNOSTICS_MAX) {
        left.push(severity);
        return;
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

/** An unknown key is mostly harmless, so it is a warning, unless the caller says otherwise. */
export function checkKeys(
  report: Report,
  { entries }: { readonly entries: ReadonlyMap<string, { readonly key: string; readonly keyPlace: Place }> },
  known: readonly string[],
  what: string,
  severity: Diagnostic['severity'] = 'warning',
): void {
  for (const { key, keyPlace } of entries.values()) {
    if (known.includes(key)) continue;
    const hint = suggest(key, known, `Known here: ${listed(known)}.`);
    report[severity]('unknown-key', keyPlace, `${what} has no key "${key}"`, hint);
  }
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
