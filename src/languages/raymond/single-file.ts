// Reads one YAML file with all states as a workflow: `states: { NAME: { prompt: … } }`, or `sh: …` instead of the
// prompt, and the keys of front matter beside it.

import type { Place } from '../../base/source.ts';
import { makeSource } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import type { TakenIds } from './names.ts';
import { nameStates, stemOf } from './names.ts';
import { textCommand } from './script-command.ts';
import { readReset, readSettings, WORKFLOW_KEYS } from './settings.ts';
import type { SingleSource } from './source.ts';
import { findStart } from './start.ts';
import { readState } from './state.ts';
import type { Body, OpenedWorkflow, PlaceOf, StateNames, StateSyntax } from './syntax.ts';
import { WHOLE } from './syntax.ts';
import { checkKeys, mapAt, textAt } from '../yaml-fields.ts';
import type { YamlEntry, YamlMap, YamlScalar } from '../yaml-tree.ts';
import { describeYaml, readYaml } from '../yaml-tree.ts';

const EXAMPLE = 'For example states: { START: { prompt: Say hello. } }.';
const EMPTY: YamlMap = { kind: 'map', place: WHOLE, entries: new Map() };

export function openSingle(source: SingleSource, prefix: string, taken: TakenIds): OpenedWorkflow {
  const report = createReport(makeSource(source.name, source.text));
  const { root, states: map } = readRoot(report);
  const entries = [...map.entries.values()].filter((entry) => isStateName(report, entry));
  const names = nameStates(
    entries.map(({ key }) => key),
    prefix,
    taken,
    (name) => spellingsOf(name, map),
  );
  const states = new Map<string, StateSyntax>();
  for (const entry of entries) {
    const state = readEntry(report, entry, names);
    if (state !== null) states.set(state.name, state);
  }
  const start = map === EMPTY ? null : findStart(report, source.start, states, names);
  const workflow = {
    key: source.key,
    name: source.name,
    report,
    states,
    start,
    names,
    settings: readSettings(report, root),
    keepsCallers: readStartReset(report, map, start) ?? readReset(report, root) ?? false,
  };
  return { workflow, reports: [report] };
}

function readRoot(report: Report): { readonly root: YamlMap; readonly states: YamlMap } {
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value === null) return { root: EMPTY, states: EMPTY };
  if (value.kind !== 'map') {
    report.error('wrong-type', value.place, `the workflow must be a map, got ${describeYaml(value)}`, EXAMPLE);
    return { root: EMPTY, states: EMPTY };
  }
  checkKeys(report, value, [...WORKFLOW_KEYS, 'states'], 'the workflow');
  const states = mapAt(report, value, 'states', EXAMPLE);
  if (isAbsent(value, 'states')) {
    report.error('missing-key', value.place, 'the workflow has no "states"', EXAMPLE);
  }
  return { root: value, states: states ?? EMPTY };
}

function isStateName(report: Report, { key, keyPlace }: YamlEntry): boolean {
  if (key.trim() === key && key !== '' && !/[\\/]/.test(key) && key !== '.' && key !== '..') return true;
  const hint = 'A state is named as a file is, without its folder: REVIEW.';
  report.error('invalid-name', keyPlace, `${JSON.stringify(key)} is not a valid name for a state`, hint);
  return false;
}

/** A prompt may be called REVIEW.md and a script CHECK.sh, like files. */
function spellingsOf(name: string, states: YamlMap): readonly string[] {
  if (/\.(?:md|sh)$/.test(name)) return [stemOf(name)];
  const value = states.entries.get(name)?.value;
  return [value?.kind === 'map' && value.entries.has('sh') ? `${name}.sh` : `${name}.md`];
}

/** Scripts for other systems. */
const OTHER_SCRIPTS = ['ps1', 'bat'];

function readEntry(report: Report, { key, keyPlace, value }: YamlEntry, names: StateNames): StateSyntax | null {
  if (value.kind !== 'map') {
    const hint = `For example ${key}: { prompt: Say hello. }.`;
    report.error('wrong-type', value.place, `the state ${key} must be a map, got ${describeYaml(value)}`, hint);
    return null;
  }
  const prompt = promptAt(report, key, value);
  const script = textAt(report, value, 'sh');
  if (prompt !== null && script !== null) {
    const message = `the state ${key} has both "prompt" and "sh"`;
    report.error('invalid-value', script.place, message, 'Keep one of the two.');
  }
  if (!value.entries.has('prompt') && isAbsent(value, 'sh')) {
    report.error(
      'missing-key',
      keyPlace,
      `the state ${key} has neither "prompt" nor "sh"`,
      'Write prompt: and the text.',
    );
  }
  const place = keyPlace;
  const text = prompt ?? script;
  const placeOf = text === null ? (): Place => keyPlace : placesIn(report, text);
  const body: Body =
    script === null || prompt !== null
      ? { kind: 'prompt', text: prompt?.text.trimEnd() ?? '', placeOf }
      : { kind: 'script', command: textCommand(script.text) };
  const read = script === null ? null : { text: script.text, placeOf };
  const alsoKnown = ['prompt', 'sh', ...OTHER_SCRIPTS];
  return readState({ name: key, report, place, body, script: read, keys: value, alsoKnown }, names);
}

/** It must not be empty; beside a script, a key without a value counts as absent. */
function promptAt(report: Report, state: string, map: YamlMap): YamlScalar | null {
  const entry = map.entries.get('prompt');
  if (entry === undefined) return null;
  const { keyPlace, value } = entry;
  const isEmpty = value.kind === 'nothing' ? isAbsent(map, 'sh') : value.kind === 'string' && value.text.trim() === '';
  if (!isEmpty) return textAt(report, map, 'prompt');
  const place = value.kind === 'nothing' ? keyPlace : value.place;
  report.error('empty-prompt', place, `${state} has no prompt`, 'Write what the agent is to do.');
  return null;
}

function isAbsent(map: YamlMap, key: string): boolean {
  return (map.entries.get(key)?.value.kind ?? 'nothing') === 'nothing';
}

/** Finds the same occurrence of the words in the source. */
function placesIn(report: Report, { place, text }: YamlScalar): PlaceOf {
  const source = report.source.text;
  return (from, to) => {
    const [words = ''] = text.slice(from, to).split('\n');
    const nothing = { from: place.from, to: place.from + 1 };
    if (words === '') return nothing;
    let at = source.indexOf(words, place.from);
    for (let seen = text.indexOf(words); seen !== -1 && seen < from; seen = text.indexOf(words, seen + 1)) {
      at = at === -1 ? -1 : source.indexOf(words, at + 1);
    }
    return at === -1 || at >= place.to ? nothing : { from: at, to: at + words.length };
  };
}

/** At its first state, or at the top. */
function readStartReset(report: Report, states: YamlMap, start: StateSyntax | null): boolean | null {
  const value = start === null ? undefined : states.entries.get(start.name)?.value;
  return value?.kind === 'map' ? readReset(report, value) : null;
}
