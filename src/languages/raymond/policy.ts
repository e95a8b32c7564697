// Reads the allowed transitions of a state in two forms: `allowed_tags` with `allowed_targets`, and
// `allowed_transitions`. If both are present, a transition must satisfy both; the result is one list.

import type { Place } from '../../base/source.ts';
import { APPROVER_FORMS, isApprover } from '../../ir/approvers.ts';
import { implicitTransition, plainPath, TAG_RULES } from '../../ir/machine.ts';
import { asTransitionTag, TRANSITION_TAGS, type TransitionTag } from '../../ir/tags.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, listed, type Report, suggest } from '../report.ts';
import { booleanAt, durationAt, listAt, mapAt, textAt, wrongType } from '../yaml-fields.ts';
import { describeYaml, type YamlMap, type YamlScalar, type YamlValue } from '../yaml-tree.ts';
import { POLICY_KEYS, TARGET_KEYS, TARGET_NAMES, TRANSITION_KEYS } from './keys.ts';
import { stateNamed } from './names.ts';
import { lowerText } from './placeholders.ts';
import type { AllowedSyntax, Policy, StateNames } from './syntax.ts';

interface Reading {
  readonly report: Report;
  readonly names: StateNames;
  /** Value of `{{state}}`. */
  readonly stem: string;
}

/** Null if everything is allowed. */
export function readPolicy(reading: Reading, map: YamlMap): Policy | null {
  const { report } = reading;
  const errors = (): number => report.diagnostics().filter(({ severity }) => severity === 'error').length;
  const before = errors();
  const forms = [readTagsAndTargets(reading, map), readTransitions(reading, map)];
  const forced = booleanAt(report, map, 'force_implicit') ?? false;
  const [first, second] = forms.filter((form) => form !== null);
  const place = namesOf(POLICY_KEYS)
    .map((name) => map.entries.get(name)?.keyPlace)
    .find((found) => found !== undefined);
  if (first === undefined || place === undefined) {
    if (forced) refuseForced(report, map);
    return null;
  }
  const allowed = second === undefined ? first : satisfyingBoth(first, second);
  // What was not understood may have allowed something.
  if (allowed.length === 0 && errors() === before) {
    const contradicts = second !== undefined && first.length > 0 && second.length > 0;
    const message = contradicts ? 'no transition satisfies both forms of the policy' : 'the policy allows nothing';
    const hint = contradicts
      ? 'Give both the same transitions, or keep one of the two forms.'
      : 'Name a transition, or remove the policy: without one everything is allowed.';
    report.error('empty-policy', place, message, hint);
  }
  if (forced && implicitTransition(allowed) === null) refuseForced(report, map);
  return { place, allowed, forced };
}

function refuseForced(report: Report, map: YamlMap): void {
  const place = map.entries.get('force_implicit')?.keyPlace ?? map.place;
  const message = '"force_implicit" needs a policy with a single transition that leaves nothing open';
  const hint = 'For example allowed_transitions: [{ tag: goto, target: NEXT.md }].';
  report.error('nothing-to-force', place, message, hint);
}

/** `allowed_tags: [goto, result]`, and `allowed_targets: { goto: [A.md], call: [{ child: B.md, return: C.md }] }`. */
function readTagsAndTargets(reading: Reading, map: YamlMap): readonly AllowedSyntax[] | null {
  const { report } = reading;
  const list = listAt(map, 'allowed_tags');
  const targets = mapAt(report, map, 'allowed_targets', 'For example allowed_targets: { goto: [NEXT.md] }.');
  if (list === null && targets === null) return null;
  const named = list?.items.flatMap((item) => readTag(report, item) ?? []) ?? null;
  if (list !== null && list.items.length === 0) {
    report.error('empty-policy', list.place, '"allowed_tags" allows nothing', 'Name a tag, or leave it out.');
  }
  const withTargets = new Map<TransitionTag, readonly AllowedSyntax[]>();
  for (const { key, keyPlace, value } of targets?.entries.values() ?? []) {
    const tag = readTag(report, { kind: 'string', place: keyPlace, text: key });
    if (tag === null) continue;
    const isNamed = named?.some((each) => each.tag === tag.tag);
    if (isNamed === false) {
      const message = `"allowed_targets" names ${key}, which "allowed_tags" does not allow`;
      report.warning('contradicting-policy', keyPlace, message, 'Add it to allowed_tags, or remove it here.');
    }
    const items = value.kind === 'list' ? value.items : [value];
    if (items.length === 0 && isNamed === true) {
      const message = `"allowed_tags" allows ${key}, and "allowed_targets" leaves it no target`;
      const hint =
        TAG_RULES[tag.tag].target === 'back'
          ? byNameAlone(tag.tag)
          : `Name a target, or take ${key} out of allowed_tags.`;
      report.error('empty-policy', value.place, message, hint);
    }
    const allowed = items.flatMap((item) => readTarget(reading, tag.tag, item) ?? []);
    withTargets.set(tag.tag, allowed);
  }
  const place = list?.place ?? targets?.place ?? map.place;
  const all = named ?? TRANSITION_TAGS.map((tag) => ({ tag, place }));
  return all.flatMap(({ tag, place: where }) => withTargets.get(tag) ?? [{ tag, place: where, ...ANY }]);
}

function readTag(report: Report, value: YamlValue): { readonly tag: TransitionTag; readonly place: Place } | null {
  const { place } = value;
  const written = value.kind === 'string' ? value.text.trim() : '';
  const tag = asTransitionTag(written);
  if (tag !== null) return { tag, place };
  // It is not a transition, so it is always allowed.
  if (written === 'print') return null;
  const got = value.kind === 'string' ? `"${written}"` : describeYaml(value);
  const hint = suggest(written, TRANSITION_TAGS, `Tags are ${listed(TRANSITION_TAGS)}.`);
  return report.error('unknown-tag', place, `${got} is not a tag`, hint);
}

/** A name, or `{ child: A.md, return: B.md }`. */
function readTarget(reading: Reading, tag: TransitionTag, value: YamlValue): AllowedSyntax | null {
  const { report } = reading;
  if (TAG_RULES[tag].target === 'back') {
    return report.error('invalid-value', value.place, `${tag} has no targets`, byNameAlone(tag));
  }
  if (value.kind === 'string') return { tag, place: value.place, ...ANY, target: targetName(reading, tag, value) };
  if (value.kind !== 'map') {
    const hint = 'For example NEXT.md, or { child: A.md, return: B.md }.';
    return wrongType(report, value, 'a target must be a name or a map', hint);
  }
  checkKeys(report, value, TARGET_KEYS, 'a target');
  return readParts(reading, tag, value, TARGET_NAMES);
}

function byNameAlone(tag: TransitionTag): string {
  return `Allow it by its name alone: allowed_tags: [${tag}].`;
}

/** `allowed_transitions: [{ tag: goto, target: A.md }, { tag: result }]`. */
function readTransitions(reading: Reading, map: YamlMap): readonly AllowedSyntax[] | null {
  const { report } = reading;
  const list = listAt(map, 'allowed_transitions');
  if (list === null) return null;
  if (list.items.length === 0) {
    const hint = 'Name a transition, or remove the key: without a policy everything is allowed.';
    return report.warning('empty-policy', list.place, '"allowed_transitions" is empty, and allows everything', hint);
  }
  const example = 'For example { tag: goto, target: NEXT.md }.';
  return list.items.flatMap((item) => {
    if (item.kind !== 'map') {
      report.error('wrong-type', item.place, `a transition must be a map, got ${describeYaml(item)}`, example);
      return [];
    }
    checkKeys(report, item, TRANSITION_KEYS, 'a transition');
    const written = item.entries.get('tag')?.value;
    if (written === undefined) report.error('missing-key', item.place, 'the transition has no "tag"', example);
    const tag = written === undefined ? null : readTag(report, written);
    return tag === null ? [] : [readParts(reading, tag.tag, item, ['target'])];
  });
}

function readParts(reading: Reading, tag: TransitionTag, map: YamlMap, targetKeys: readonly string[]): AllowedSyntax {
  const { report, stem } = reading;
  const { target: leadsTo, requiredAttribute: wants } = TAG_RULES[tag];
  const text = (key: string): string | null => textAt(report, map, key)?.text ?? null;
  const stateAt = (key: string, isMeant: boolean): string | null => {
    const value = isMeant ? textAt(report, map, key) : misplaced(report, tag, map, key);
    return value === null ? null : stateName(reading, value);
  };
  const targets = targetKeys.flatMap(
    (key) => (leadsTo === 'back' ? misplaced(report, tag, map, key) : textAt(report, map, key)) ?? [],
  );
  const input = text('input');
  const isAsk = tag === 'ask';
  if (leadsTo !== 'back') misplaced(report, tag, map, 'payload');
  if (!isAsk) for (const key of ['timeout', 'approver']) misplaced(report, tag, map, key);
  const approver = isAsk ? readApprover(report, map) : null;
  return {
    tag,
    place: map.place,
    target: targets[0] === undefined ? null : targetName(reading, tag, targets[0]),
    return: stateAt('return', wants === 'return'),
    next: stateAt('next', wants === 'next'),
    payload: leadsTo === 'back' ? text('payload') : null,
    input: input === null ? null : lowerText(input, stem),
    timeout: isAsk ? readTimeout(report, map) : null,
    timeoutNext: stateAt('timeout_next', isAsk),
    ...(approver === null ? {} : { approver }),
  };
}

/** As written: an answer that names others is not allowed. */
function readApprover(report: Report, map: YamlMap): string | null {
  const approver = textAt(report, map, 'approver');
  if (approver === null || approver.text.split(',').every(isApprover)) return approver?.text ?? null;
  const hint = `Write ${APPROVER_FORMS}, with commas between: approver: ada, grace.`;
  return report.error('invalid-value', approver.place, '"approver" does not name who decides', hint);
}

/** As written: it is a default for the answer and is read like one. */
function readTimeout(report: Report, map: YamlMap): string | null {
  const isWritten = (key: string): boolean => (map.entries.get(key)?.value.kind ?? 'nothing') !== 'nothing';
  if (isWritten('timeout_next') && !isWritten('timeout')) {
    const place = map.entries.get('timeout_next')?.keyPlace ?? map.place;
    const hint = 'Say after how long: timeout: 30m, 24h or 7d.';
    report.error('missing-key', place, '"timeout_next" has no "timeout" beside it', hint);
  }
  return durationAt(report, map, 'timeout') === null ? null : (textAt(report, map, 'timeout')?.text ?? null);
}

/** A part that the tag does not have. */
function misplaced(report: Report, tag: TransitionTag, map: YamlMap, key: string): null {
  const entry = map.entries.get(key);
  if (entry === undefined) return null;
  return report.warning('unused-key', entry.keyPlace, `${tag} has no "${key}"`, 'Remove it: it changes nothing.');
}

function targetName(reading: Reading, tag: TransitionTag, value: YamlScalar): string {
  return TAG_RULES[tag].target === 'workflow' ? plainPath(value.text.trim()) : stateName(reading, value);
}

function stateName({ report, names }: Reading, value: YamlScalar): string {
  return stateNamed(report, names, value) ?? value.text.trim();
}

const PARTS = ['target', 'return', 'next', 'payload', 'input', 'timeout', 'timeoutNext', 'approver'] as const;

/** Fixes no part. */
const ANY = { target: null, return: null, next: null, payload: null, input: null, timeout: null, timeoutNext: null };

function satisfyingBoth(first: readonly AllowedSyntax[], second: readonly AllowedSyntax[]): readonly AllowedSyntax[] {
  const both = first.flatMap((one) => second.flatMap((other) => intersect(one, other) ?? []));
  const seen = new Map(both.map((each) => [JSON.stringify({ ...each, place: null }), each]));
  return [...seen.values()];
}

function given(allowed: AllowedSyntax): Partial<AllowedSyntax> {
  return Object.fromEntries(PARTS.flatMap((part) => ((allowed[part] ?? null) === null ? [] : [[part, allowed[part]]])));
}

/** Null if nothing satisfies both. */
function intersect(one: AllowedSyntax, other: AllowedSyntax): AllowedSyntax | null {
  const differs = PARTS.some((part) => {
    const [a, b] = [one[part] ?? null, other[part] ?? null];
    return a !== null && b !== null && JSON.stringify(a) !== JSON.stringify(b);
  });
  return one.tag !== other.tag || differs ? null : { ...one, ...given(other), ...given(one) };
}
