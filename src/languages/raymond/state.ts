// Reads a state: its text, and the keys in front of it or beside it.

import { own } from '../../base/json.ts';
import { findState, plainPath, TAG_RULES } from '../../ir/machine.ts';
import { allTags } from '../../ir/tags.ts';
import { namesOf, type Table } from '../keys.ts';
import { checkKeys } from '../report.ts';
import { countAt, textAt } from '../yaml-fields.ts';
import { STATE } from './keys.ts';
import { stateNamed, stemOf } from './names.ts';
import { readPolicy } from './policy.ts';
import { readSettings } from './settings.ts';
import type { Body, MentionedTag, Named, StateNames, StateSyntax, Visits } from './syntax.ts';

type StateText = Pick<StateSyntax, 'name' | 'report' | 'place' | 'body' | 'keys'>;

/** `table`: the keys of its file format. Of `reset` the reader of the first state takes care. */
export function readState(written: StateText, names: StateNames, table: Table = STATE): StateSyntax {
  const { name, report, body, keys } = written;
  checkKeys(report, keys, namesOf(table.keys), `the state ${name}`);
  const stem = stemOf(name);
  return {
    ...written,
    stem,
    id: names.states[name] ?? name,
    settings: readSettings(report, keys),
    visits: readVisits(written, names),
    policy: readPolicy({ report, names, stem }, keys),
    mentionedTags: tagsIn(body, names),
  };
}

/** `max_visits: 5` with `then: COMMIT.md`. */
function readVisits({ name, report, keys }: StateText, names: StateNames): Visits | null {
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
  const instead = stateNamed(report, names, then);
  if (instead === name) {
    const hint = 'Name the next state after the last allowed visit.';
    report.error('invalid-value', then.place, `"then" leads back to ${name} itself`, hint);
  }
  return instead === null ? null : { max, instead };
}

function tagsIn({ kind, text, placeOf }: Body, names: StateNames): readonly MentionedTag[] {
  // In a script, inner quotes are escaped, and names that begin with $ are computed at run time.
  const unescaped = kind === 'script' ? text.replaceAll(/\\(["'])/g, ' $1') : text;
  return allTags(unescaped).flatMap(({ name: tag, attributes, content, from, to, error }) => {
    if (tag === 'print') return [];
    const { target: leadsTo } = TAG_RULES[tag];
    const target =
      leadsTo === 'back' ? null : leadsTo === 'workflow' ? namedWorkflow(content) : namedState(names, content);
    const stateAt = (key: string): Named | null => {
      const written = own(attributes, key);
      return written === undefined ? null : namedState(names, written);
    };
    const states = { return: stateAt('return'), next: stateAt('next'), timeoutNext: stateAt('timeout_next') };
    return [{ tag, place: placeOf(from, to), target, ...states, attributes: Object.keys(attributes), error }];
  });
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
