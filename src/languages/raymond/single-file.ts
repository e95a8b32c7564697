// Reads one YAML file with all states as a workflow: `states: { NAME: { prompt: … } }`, or `sh: …` instead of the
// prompt, and the keys of front matter beside it.

import { makeSource, type Place } from '../../base/source.ts';
import { checkKeys, createReport, type Report } from '../report.ts';
import { mapAt, placesIn, textAt } from '../yaml-fields.ts';
import { describeYaml, readYaml, type YamlEntry, type YamlMap, type YamlScalar } from '../yaml-tree.ts';
import { findStart, nameStates, stemOf, type TakenIds } from './names.ts';
import { readBudget, readReset, readSettings, WORKFLOW_KEYS } from './settings.ts';
import { type SingleSource, textCommand } from './source.ts';
import { readState } from './state.ts';
import { type Body, NO_KEYS, type StateNames, type StateSyntax, type WorkflowSyntax } from './syntax.ts';

const EXAMPLE = 'For example states: { START: { prompt: Say hello. } }.';

export function openSingle(source: SingleSource, prefix: string, taken: TakenIds): WorkflowSyntax {
  const { key, name, text, start: wanted } = source;
  const report = createReport(makeSource(name, text));
  const root = readRoot(report);
  const written = mapAt(report, root, 'states', EXAMPLE) ?? NO_KEYS;
  const entries = [...written.entries.values()].filter((entry) => isStateName(report, entry));
  const stateNames = entries.map((entry) => entry.key);
  const names = nameStates(stateNames, prefix, taken, (state) => spellingsOf(state, written));
  const read = entries.flatMap((entry) => readEntry(report, entry, names) ?? []);
  const states = new Map(read.map((state) => [state.name, state]));
  const start = written === NO_KEYS ? null : findStart(report, wanted, states, names);
  const ownReset = start === null ? null : readReset(start.report, start.keys);
  const settings = readSettings(report, root);
  const budget = readBudget(report, root);
  const keepsCallers = ownReset ?? readReset(report, root) ?? false;
  const reports = [report, ...read.map((state) => state.report)];
  return { key, name, report, reports, states, start, names, settings, budget, keepsCallers };
}

function readRoot(report: Report): YamlMap {
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value?.kind === 'map') {
    checkKeys(report, value, [...WORKFLOW_KEYS, 'states'], 'the workflow');
    if (isAbsent(value, 'states')) report.error('missing-key', value.place, 'the workflow has no "states"', EXAMPLE);
    return value;
  }
  if (value !== null) {
    report.error('wrong-type', value.place, `the workflow must be a map, got ${describeYaml(value)}`, EXAMPLE);
  }
  return NO_KEYS;
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

function readEntry(whole: Report, { key, keyPlace, value }: YamlEntry, names: StateNames): StateSyntax | null {
  if (value.kind !== 'map') {
    const hint = `For example ${key}: { prompt: Say hello. }.`;
    whole.error('wrong-type', value.place, `the state ${key} must be a map, got ${describeYaml(value)}`, hint);
    return null;
  }
  const report = whole.part();
  const prompt = promptAt(report, key, value);
  const script = textAt(report, value, 'sh');
  if (prompt !== null && script !== null) {
    const message = `the state ${key} has both "prompt" and "sh"`;
    report.error('invalid-value', script.place, message, 'Keep one of the two.');
  }
  if (!value.entries.has('prompt') && isAbsent(value, 'sh')) {
    const message = `the state ${key} has neither "prompt" nor "sh"`;
    report.error('missing-key', keyPlace, message, 'Write prompt: and the text.');
  }
  const text = prompt ?? script;
  const placeOf = text === null ? (): Place => keyPlace : placesIn(report, text);
  const body: Body =
    script === null || prompt !== null
      ? { kind: 'prompt', text: prompt?.text.trimEnd() ?? '', placeOf }
      : { kind: 'script', command: textCommand(script.text), text: script.text, placeOf };
  const state = { name: key, report, place: keyPlace, body, keys: value };
  return readState(state, names, ['prompt', 'sh', ...OTHER_SCRIPTS]);
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
