// Reads a state: its text, and the keys in front of it or beside it.

import { own } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import { findState, plainPath, TAG_RULES } from '../../ir/machine.ts';
import { allTags } from '../../ir/tags.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { checkKeys, countAt, textAt } from '../yaml-fields.ts';
import type { YamlMap } from '../yaml-tree.ts';
import { stemOf } from './names.ts';
import { POLICY_KEYS, readPolicy } from './policy.ts';
import { NO_SETTINGS, readSettings, SETTINGS_KEYS } from './settings.ts';
import type { Body, Named, PlaceOf, MentionedTag, StateNames, StateSyntax, Visits } from './syntax.ts';

/** `reset` applies only to the first state; its reader handles it. */
const STATE_KEYS: readonly string[] = [
  ...SETTINGS_KEYS,
  ...POLICY_KEYS,
  'max_visits',
  'then',
  'reset',
  'name',
  'description',
];

export interface StateText {
  readonly name: string;
  readonly report: Report;
  readonly place: Place;
  readonly body: Body;
  /** Text that a script prints, as far as readable; null means its own text. */
  readonly script: { readonly text: string; readonly placeOf: PlaceOf } | null;
  /** Null if it has none. */
  readonly keys: YamlMap | null;
  /** Keys of its file format. */
  readonly alsoKnown: readonly string[];
}

export function readState(text: StateText, names: StateNames): StateSyntax {
  const { name, report, place, body, script, keys, alsoKnown } = text;
  if (keys !== null) checkKeys(report, keys, [...STATE_KEYS, ...alsoKnown], `the state ${name}`);
  const stem = stemOf(name);
  const said =
    body.kind === 'prompt'
      ? tagsInText(body.text, names, body.placeOf)
      : script === null
        ? []
        : tagsInScript(script.text, names, script.placeOf);
  return {
    name,
    stem,
    id: names.states[name] ?? name,
    report,
    place,
    body,
    settings: keys === null ? NO_SETTINGS : readSettings(report, keys),
    visits: keys === null ? null : readVisits(report, keys, names, name),
    policy: keys === null ? null : readPolicy({ report, names, stem }, keys),
    mentionedTags: said,
  };
}

/** `max_visits: 5` with `then: COMMIT.md`. */
function readVisits(report: Report, keys: YamlMap, names: StateNames, state: string): Visits | null {
  const max = countAt(report, keys, 'max_visits', 1);
  const then = textAt(report, keys, 'then');
  const [counted, after] = [keys.entries.get('max_visits'), keys.entries.get('then')];
  if (counted !== undefined && after === undefined) {
    const hint = 'Name the next state after that: then: COMMIT.md.';
    report.error('missing-key', counted.keyPlace, '"max_visits" has no "then" beside it', hint);
  }
  if (after !== undefined && counted === undefined) {
    const hint = 'Say after how many visits: max_visits: 5.';
    report.error('missing-key', after.keyPlace, '"then" has no "max_visits" beside it', hint);
  }
  if (max === null || then === null) return null;
  const found = findState(names, then.text);
  if (found.ok && found.value.name === state) {
    const hint = 'Name the next state after the last allowed visit.';
    report.error('invalid-value', then.place, `"then" leads back to ${state} itself`, hint);
  }
  if (found.ok) return { max, instead: found.value.name };
  const known = Object.keys(names.states);
  const hint = suggest(then.text.trim(), known, `States are ${listed(known)}.`);
  report.error('missing-target', then.place, found.error, hint);
  return null;
}

function tagsInText(text: string, names: StateNames, placeOf: PlaceOf): readonly MentionedTag[] {
  return allTags(text).flatMap(({ name, attributes, content, from, to, error }): readonly MentionedTag[] => {
    if (name === 'print') return [];
    const { target: leadsTo } = TAG_RULES[name];
    const stateAt = (key: string): Named | null => {
      const written = own(attributes, key);
      return written === undefined ? null : namedState(names, written);
    };
    return [
      {
        tag: name,
        place: placeOf(from, to),
        target:
          leadsTo === 'back' ? null : leadsTo === 'workflow' ? namedWorkflow(content) : namedState(names, content),
        return: stateAt('return'),
        next: stateAt('next'),
        timeoutNext: stateAt('timeout_next'),
        attributes: Object.keys(attributes),
        error,
      },
    ];
  });
}

/** In a script, inner quotes are escaped, and names that begin with $ are computed at run time. */
function tagsInScript(text: string, names: StateNames, placeOf: PlaceOf): readonly MentionedTag[] {
  return tagsInText(text.replaceAll(/\\(["'])/g, ' $1'), names, placeOf);
}

function namedState(names: StateNames, written: string): Named {
  const found = findState(names, written);
  if (found.ok) return { kind: 'state', name: found.value.name };
  return isComputedName(written)
    ? { kind: 'open' }
    : { kind: 'missing', written: written.trim(), message: found.error };
}

function namedWorkflow(written: string): Named {
  const path = written.trim();
  // `build.meow.toml#beta`
  return isComputedName(path.replace('#', '.')) ? { kind: 'open' } : { kind: 'workflow', path: plainPath(path) };
}

/** `{{next}}`, `$NEXT`, `...`: not a name that could exist. */
function isComputedName(written: string): boolean {
  return !/^[\w./\\-]+$/.test(written.trim()) || /^\.{3,}$/.test(written.trim());
}
