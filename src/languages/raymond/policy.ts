// Reads the allowed transitions of a state in two forms: `allowed_tags` with `allowed_targets`, and
// `allowed_transitions`. If both are present, a transition must satisfy both; the result is one list.

import type { Place } from '../../base/source.ts';
import { findState, implicitTransition, plainPath, TAG_RULES } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import { asTransitionTag, TRANSITION_TAGS } from '../../ir/tags.ts';
import type { Text } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { lowerText } from './placeholders.ts';
import type { AllowedSyntax, Policy, StateNames } from './syntax.ts';
import { booleanAt, checkKeys, durationAt, listAt, mapAt, textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlValue } from '../yaml-tree.ts';
import { describeYaml } from '../yaml-tree.ts';

export const POLICY_KEYS = ['allowed_tags', 'allowed_targets', 'allowed_transitions', 'force_implicit'] as const;

interface Reading {
  readonly report: Report;
  readonly names: StateNames;
  /** Value of `{{state}}`. */
  readonly stem: string;
}

/** Null if everything is allowed. */
export function readPolicy(given: Reading, map: YamlMap): Policy | null {
  const { report, hasErrors } = withErrorFlag(given.report);
  const reading: Reading = { ...given, report };
  const forms = [readTagsAndTargets(reading, map), readTransitions(reading, map)].filter((form) => form !== null);
  const forced = booleanAt(report, map, 'force_implicit') ?? false;
  const [first, second] = forms;
  const place = POLICY_KEYS.map((key) => map.entries.get(key)?.keyPlace).find((found) => found !== undefined);
  if (first === undefined || place === undefined) {
    if (forced) refuseForced(report, map);
    return null;
  }
  const allowed = second === undefined ? first : satisfyingBoth(first, second);
  // Errors have been reported already.
  if (allowed.length === 0 && !hasErrors()) {
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

/** The same report, with a flag for errors reported through it. */
function withErrorFlag(report: Report): { readonly report: Report; readonly hasErrors: () => boolean } {
  let noticed = false;
  const error: Report['error'] = (...problem) => {
    noticed = true;
    report.error(...problem);
  };
  return { report: { ...report, error }, hasErrors: () => noticed };
}

function refuseForced(report: Report, map: YamlMap): void {
  const place = map.entries.get('force_implicit')?.keyPlace ?? map.place;
  const message = '"force_implicit" needs a policy with a single transition that leaves nothing open';
  report.error(
    'nothing-to-force',
    place,
    message,
    'For example allowed_transitions: [{ tag: goto, target: NEXT.md }].',
  );
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
  const held = new Map<TransitionTag, readonly AllowedSyntax[]>();
  for (const { key, keyPlace, value } of targets?.entries.values() ?? []) {
    const tag = readTag(report, { kind: 'string', place: keyPlace, text: key });
    if (tag === null) continue;
    if (named !== null && !named.some((each) => each.tag === tag.tag)) {
      const message = `"allowed_targets" speaks of ${key}, and "allowed_tags" does not allow it`;
      report.warning('contradicting-policy', keyPlace, message, 'Add it to allowed_tags, or remove it here.');
    }
    const items = value.kind === 'list' ? value.items : [value];
    if (items.length === 0 && named?.some((each) => each.tag === tag.tag) === true) {
      const message = `"allowed_tags" allows ${key}, and "allowed_targets" leaves it no target`;
      const hint =
        TAG_RULES[tag.tag].target === 'back'
          ? byNameAlone(tag.tag)
          : `Name a target, or take ${key} out of allowed_tags.`;
      report.error('empty-policy', value.place, message, hint);
    }
    held.set(
      tag.tag,
      items.flatMap((item) => readTarget(reading, tag.tag, item) ?? []),
    );
  }
  const place = list?.place ?? targets?.place ?? map.place;
  const all = named ?? TRANSITION_TAGS.map((tag) => ({ tag, place }));
  return all.flatMap(({ tag, place: where }) => held.get(tag) ?? [anyOf(tag, where)]);
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
  report.error('unknown-tag', place, `${got} is not a tag`, hint);
  return null;
}

/** A name, or `{ child: A.md, return: B.md }`. */
function readTarget(reading: Reading, tag: TransitionTag, value: YamlValue): AllowedSyntax | null {
  const { report } = reading;
  if (TAG_RULES[tag].target === 'back') {
    report.error('invalid-value', value.place, `${tag} has no targets`, byNameAlone(tag));
    return null;
  }
  if (value.kind === 'string') return { ...anyOf(tag, value.place), target: targetName(reading, tag, value) };
  if (value.kind !== 'map') {
    const message = `a target must be a name or a map, got ${describeYaml(value)}`;
    report.error('wrong-type', value.place, message, 'For example NEXT.md, or { child: A.md, return: B.md }.');
    return null;
  }
  checkKeys(report, value, ['child', 'target', 'worker', 'return', 'next', 'input'], 'a target');
  return readParts(reading, tag, value, ['child', 'target', 'worker']);
}

function byNameAlone(tag: TransitionTag): string {
  return `Allow it by its name alone: allowed_tags: [${tag}].`;
}

const TRANSITION_KEYS = ['tag', 'target', 'return', 'next', 'payload', 'input', 'timeout', 'timeout_next'];

/** `allowed_transitions: [{ tag: goto, target: A.md }, { tag: result }]`. */
function readTransitions(reading: Reading, map: YamlMap): readonly AllowedSyntax[] | null {
  const { report } = reading;
  const list = listAt(map, 'allowed_transitions');
  if (list === null) return null;
  if (list.items.length === 0) {
    const hint = 'Name a transition, or remove the key: without a policy everything is allowed.';
    report.warning('empty-policy', list.place, '"allowed_transitions" is empty, and allows everything', hint);
    return null;
  }
  return list.items.flatMap((item): readonly AllowedSyntax[] => {
    if (item.kind !== 'map') {
      const message = `a transition must be a map, got ${describeYaml(item)}`;
      report.error('wrong-type', item.place, message, 'For example { tag: goto, target: NEXT.md }.');
      return [];
    }
    checkKeys(report, item, TRANSITION_KEYS, 'a transition');
    const written = item.entries.get('tag')?.value;
    if (written === undefined) {
      const hint = 'For example { tag: goto, target: NEXT.md }.';
      report.error('missing-key', item.place, 'the transition has no "tag"', hint);
      return [];
    }
    const tag = readTag(report, written);
    const parts = tag === null ? null : readParts(reading, tag.tag, item, ['target']);
    return parts === null ? [] : [parts];
  });
}

function readParts(reading: Reading, tag: TransitionTag, map: YamlMap, targetKeys: readonly string[]): AllowedSyntax {
  const { report, stem } = reading;
  const { target: leadsTo, requiredAttribute: wants } = TAG_RULES[tag];
  const text = (key: string): string | null => textAt(report, map, key)?.text ?? null;
  const stateAt = (key: string, isMeant: boolean): string | null => {
    const value = isMeant ? textAt(report, map, key) : misplaced(report, tag, map, key);
    return value === null ? null : stateName(reading, value.text, value.place);
  };
  const targets = targetKeys.flatMap(
    (key) => (leadsTo === 'back' ? misplaced(report, tag, map, key) : textAt(report, map, key)) ?? [],
  );
  const input = text('input');
  const lowered: Text | null = input === null ? null : lowerText(input, stem);
  const isAsk = tag === 'ask';
  if (leadsTo !== 'back') misplaced(report, tag, map, 'payload');
  if (!isAsk) misplaced(report, tag, map, 'timeout');
  return {
    tag,
    place: map.place,
    target: targets[0] === undefined ? null : targetName(reading, tag, targets[0]),
    return: stateAt('return', wants === 'return'),
    next: stateAt('next', wants === 'next'),
    payload: leadsTo === 'back' ? text('payload') : null,
    input: lowered,
    timeout: isAsk ? readTimeout(report, map) : null,
    timeoutNext: stateAt('timeout_next', isAsk),
  };
}

/** As written: it is a default for the answer and is read like one. */
function readTimeout(report: Report, map: YamlMap): string | null {
  const isSaid = (key: string): boolean => (map.entries.get(key)?.value.kind ?? 'nothing') !== 'nothing';
  if (isSaid('timeout_next') && !isSaid('timeout')) {
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
  const message = `${tag} has no "${key}"`;
  report.warning('unused-key', entry.keyPlace, message, 'Remove it: it changes nothing.');
  return null;
}

function targetName(
  reading: Reading,
  tag: TransitionTag,
  value: { readonly text: string; readonly place: Place },
): string {
  if (TAG_RULES[tag].target === 'workflow') return plainPath(value.text.trim());
  return stateName(reading, value.text, value.place);
}

function stateName({ report, names }: Reading, written: string, place: Place): string {
  const found = findState(names, written);
  if (found.ok) return found.value.name;
  const known = Object.keys(names.states);
  const hint = suggest(written.trim(), known, `States are ${listed(known)}.`);
  report.error('missing-target', place, found.error, hint);
  return written.trim();
}

function anyOf(tag: TransitionTag, place: Place): AllowedSyntax {
  const nothing = {
    target: null,
    return: null,
    next: null,
    payload: null,
    input: null,
    timeout: null,
    timeoutNext: null,
  };
  return { tag, place, ...nothing };
}

const PARTS = ['target', 'return', 'next', 'payload', 'input', 'timeout', 'timeoutNext'] as const;

function satisfyingBoth(first: readonly AllowedSyntax[], second: readonly AllowedSyntax[]): readonly AllowedSyntax[] {
  const both = first.flatMap((one) => second.flatMap((other) => intersect(one, other) ?? []));
  const seen = new Map(both.map((each) => [JSON.stringify({ ...each, place: null }), each]));
  return [...seen.values()];
}

/** Null if nothing satisfies both. */
function intersect(one: AllowedSyntax, other: AllowedSyntax): AllowedSyntax | null {
  if (one.tag !== other.tag) return null;
  const differs = PARTS.some(
    (part) => one[part] !== null && other[part] !== null && JSON.stringify(one[part]) !== JSON.stringify(other[part]),
  );
  if (differs) return null;
  return {
    tag: one.tag,
    place: one.place,
    target: one.target ?? other.target,
    return: one.return ?? other.return,
    next: one.next ?? other.next,
    payload: one.payload ?? other.payload,
    input: one.input ?? other.input,
    timeout: one.timeout ?? other.timeout,
    timeoutNext: one.timeoutNext ?? other.timeoutNext,
  };
}
