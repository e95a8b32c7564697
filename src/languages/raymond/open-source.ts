// Reads a workflow from its source: a folder, or one YAML file with all states.
//
//   - In a folder, prompts are `.md` files; scripts are `.sh` files and executables; a README and hidden files are
//     neither. `workflow.yaml` applies to all of them.
//   - In a file, `states: { NAME: { prompt: … } }`, or `sh: …` instead of the prompt, and the keys of front matter beside
//     it.

import { makeSource, type Place } from '../../base/source.ts';
import { quote } from '../../ir/quote.ts';
import type { Text } from '../../ir/text.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, createReport, type Report, START } from '../report.ts';
import { mapAt, placesIn, textAt } from '../yaml-fields.ts';
import {
  describeYaml,
  NO_KEYS,
  readFrontMatter,
  readYaml,
  type YamlEntry,
  type YamlMap,
  type YamlScalar,
} from '../yaml-tree.ts';
import { FILE_STATE, MANIFEST, RAYMOND } from './keys.ts';
import { findStart, nameStates, stemOf, type TakenIds } from './names.ts';
import { readBudget, readReset, readSettings } from './settings.ts';
import { readState } from './state.ts';
import {
  type Body,
  type FolderSource,
  type RaymondFile,
  type RaymondSource,
  type SingleSource,
  type StateNames,
  type StateSyntax,
  type WorkflowSyntax,
} from './syntax.ts';

export const MANIFEST_NAME = 'workflow.yaml';

export function openSource(source: RaymondSource, prefix: string, taken: TakenIds): WorkflowSyntax {
  return source.kind === 'folder' ? openFolder(source, prefix, taken) : openSingle(source, prefix, taken);
}

function openFolder(source: FolderSource, prefix: string, taken: TakenIds): WorkflowSyntax {
  const report = createReport(makeSource(source.name, ''));
  const candidates = source.files.filter(isState);
  const files = candidates.filter(({ leadsOut }) => !leadsOut);
  const strangers = candidates.filter(({ leadsOut }) => leadsOut).map(reportStranger);
  const fileNames = files.map(({ name }) => name);
  const names = nameStates(fileNames, prefix, taken, (name) => (stemOf(name) === name ? [] : [stemOf(name)]));
  const read = files.map((file) => (/\.md$/i.test(file.name) ? readPrompt(file, names) : readScript(file, names)));
  const manifest = openManifest(source);
  const opened = assemble(source, report, manifest, names, read);
  warnOfResets(read, opened.start, `to ${MANIFEST_NAME}`);
  return { ...opened, reports: [report, manifest.report, ...strangers, ...read.map((state) => state.report)] };
}

function openSingle(source: SingleSource, prefix: string, taken: TakenIds): WorkflowSyntax {
  const report = createReport(makeSource(source.name, source.text));
  const root = readRoot(report);
  const written = mapAt(report, root, 'states', EXAMPLE);
  const entries = [...(written?.entries.values() ?? [])].filter((entry) => isStateName(report, entry));
  const stateNames = entries.map((entry) => entry.key);
  const names = nameStates(stateNames, prefix, taken, (state) => spellingsOf(state, written ?? NO_KEYS));
  const read = entries.flatMap((entry) => readEntry(report, entry, names) ?? []);
  const opened = assemble(source, report, { report, keys: root }, names, written === null ? null : read);
  warnOfResets(read, opened.start, 'to the top of the file');
  return { ...opened, reports: [report, ...read.map((state) => state.report)] };
}

interface Manifest {
  readonly report: Report;
  readonly keys: YamlMap;
}

/** `read`: its states; null if that was reported already. */
function assemble(
  { key, name, start: wanted }: RaymondSource,
  report: Report,
  { report: of, keys }: Manifest,
  names: StateNames,
  read: readonly StateSyntax[] | null,
): Omit<WorkflowSyntax, 'reports'> {
  const states = new Map(read?.map((state) => [state.name, state]));
  const start = read === null ? null : findStart(report, wanted, states, names);
  const ownReset = start === null ? null : readReset(start.report, start.keys);
  const commonReset = readReset(of, keys);
  const [settings, budget] = [readSettings(of, keys), readBudget(of, keys)];
  return {
    key,
    name,
    report,
    states,
    start,
    names,
    settings,
    budget,
    keepsCallers: ownReset ?? commonReset ?? false,
  };
}

export function isState({ name, isExecutable }: RaymondFile): boolean {
  if (name.startsWith('.') || /^readme\.md$/i.test(name) || name === MANIFEST_NAME) return false;
  return /\.(?:md|sh)$/i.test(name) || isExecutable;
}

function reportStranger({ name, file }: RaymondFile): Report {
  const report = createReport(makeSource(file, ''));
  const hint = 'Put a copy into the folder, or enter the other workflow by its path: <call-workflow>.';
  report.warning('leads-out', START, `${name} is a link to a file outside of the folder, and is not a state`, hint);
  return report;
}

function readPrompt({ name, file, text: written }: RaymondFile, names: StateNames): StateSyntax {
  const report = createReport(makeSource(file, written ?? ''));
  const { map, text, offset, isBroken } = readFrontMatter(report, 'allowed_tags: [goto, result]');
  if (written === null) report.error('not-text', START, `${name} is not UTF-8 text`, 'Save it as UTF-8.');
  else if (text === '' && !isBroken) {
    report.error('empty-prompt', START, `${name} has no prompt`, 'Write what the agent is to do.');
  }
  const placeOf = (from: number, to: number): Place => ({ from: offset + from, to: offset + to });
  const keys = map ?? NO_KEYS;
  return readState({ name, report, place: START, body: { kind: 'prompt', text, placeOf }, keys }, names);
}

function readScript(file: RaymondFile, names: StateNames): StateSyntax {
  const report = createReport(makeSource(file.file, file.text ?? ''));
  const { text } = report.source;
  const placeOf = (from: number, to: number): Place => ({ from, to });
  const body = { kind: 'script', command: fileCommand(file), text, placeOf } as const;
  return readState({ name: file.name, report, place: START, body, keys: NO_KEYS }, names);
}

function openManifest({ files }: FolderSource): Manifest {
  const file = files.find(({ name, leadsOut }) => name === MANIFEST_NAME && !leadsOut);
  const report = createReport(makeSource(file?.file ?? MANIFEST_NAME, file?.text ?? ''));
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value?.kind === 'map') {
    checkKeys(report, value, namesOf(MANIFEST.keys), MANIFEST_NAME);
    return { report, keys: value };
  }
  if (value !== null && value.kind !== 'nothing') {
    const message = `${MANIFEST_NAME} must be keys and values, got ${describeYaml(value)}`;
    report.error('wrong-type', value.place, message, 'For example reset: keep-stack.');
  }
  return { report, keys: NO_KEYS };
}

/** `elsewhere`: where it counts for the whole workflow. */
function warnOfResets(states: readonly StateSyntax[], start: StateSyntax | null, elsewhere: string): void {
  for (const state of states) {
    const entry = state.keys.entries.get('reset');
    if (state === start || entry === undefined) continue;
    const message = '"reset" counts in the state that the workflow begins with, and not here';
    state.report.warning('unused-key', entry.keyPlace, message, `Move it there, or ${elsewhere}.`);
  }
}

const EXAMPLE = 'For example states: { START: { prompt: Say hello. } }.';

function readRoot(report: Report): YamlMap {
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value?.kind === 'map') {
    checkKeys(report, value, namesOf(RAYMOND.root.keys), 'the workflow');
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
export function spellingsOf(name: string, states: YamlMap): readonly string[] {
  if (/\.(?:md|sh)$/.test(name)) return [stemOf(name)];
  const value = states.entries.get(name)?.value;
  return [value?.kind === 'map' && value.entries.has('sh') ? `${name}.sh` : `${name}.md`];
}

function readEntry(whole: Report, { key, keyPlace, value }: YamlEntry, names: StateNames): StateSyntax | null {
  if (value.kind !== 'map') {
    const hint = `For example ${key}: { prompt: Say hello. }.`;
    return whole.error('wrong-type', value.place, `the state ${key} must be a map, got ${describeYaml(value)}`, hint);
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
  return readState(state, names, FILE_STATE);
}

/** It must not be empty; beside a script, a key without a value counts as absent. */
function promptAt(report: Report, state: string, map: YamlMap): YamlScalar | null {
  const entry = map.entries.get('prompt');
  if (entry === undefined) return null;
  const { keyPlace, value } = entry;
  const isEmpty = value.kind === 'nothing' ? isAbsent(map, 'sh') : value.kind === 'string' && value.text.trim() === '';
  if (!isEmpty) return textAt(report, map, 'prompt');
  const place = value.kind === 'nothing' ? keyPlace : value.place;
  return report.error('empty-prompt', place, `${state} has no prompt`, 'Write what the agent is to do.');
}

function isAbsent(map: YamlMap, key: string): boolean {
  return (map.entries.get(key)?.value.kind ?? 'nothing') === 'nothing';
}

// How scripts are run: with bash, or with sh if bash is missing.

const BASH = '"$(command -v bash || echo sh)"';

/** Runs in its own folder, so that it finds files next to it. With bash, unless it has a `#!` and is executable. */
function fileCommand({ name, text, path, isExecutable, stored }: RaymondFile): Text {
  const runsItself = isExecutable && (!/\.sh$/i.test(name) || text === null || text.startsWith('#!'));
  const start = runsItself ? 'exec ' : `exec ${BASH} `;
  if (stored === undefined) return `${start}${word(path)}`;
  return { parts: [start, { path: ['@run_folder'], quote: [{ kind: 'quoted' }] }, word(`/${stored}`)] };
}

function textCommand(script: string): string {
  return `exec ${BASH} -c ${word(script)}`;
}

/** A shell cannot run text with a NUL byte. */
function word(text: string): string {
  const quoted = quote(text, [{ kind: 'quoted' }]);
  return quoted.ok ? quoted.value : "''";
}
