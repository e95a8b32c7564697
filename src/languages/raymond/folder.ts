// Reads a folder as a workflow. Prompts are `.md` files; scripts are `.sh` files and executables; a README and hidden
// files are neither. `workflow.yaml` applies to all of them.

import type { Place } from '../../base/source.ts';
import { makeSource } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { readFrontMatter } from '../front-matter.ts';
import type { TakenIds } from './names.ts';
import { nameStates, stemOf } from './names.ts';
import { fileCommand } from './script-command.ts';
import { NO_SETTINGS, readReset, readSettings, WORKFLOW_KEYS } from './settings.ts';
import type { FolderSource, RaymondFile } from './source.ts';
import { findStart } from './start.ts';
import type { StateText } from './state.ts';
import { readState } from './state.ts';
import type { OpenedWorkflow, StateNames, StateSyntax, WorkflowSyntax } from './syntax.ts';
import { WHOLE } from './syntax.ts';
import { checkKeys } from '../yaml-fields.ts';
import type { YamlMap } from '../yaml-tree.ts';
import { describeYaml, readYaml } from '../yaml-tree.ts';

const MANIFEST = 'workflow.yaml';

export function openFolder(source: FolderSource, prefix: string, taken: TakenIds): OpenedWorkflow {
  const report = createReport(makeSource(source.name, ''));
  const candidates = source.files.filter(isState);
  const files = candidates.filter(({ leadsOut }) => !leadsOut);
  const strangers = candidates.filter(({ leadsOut }) => leadsOut).map(reportStranger);
  const names = nameStates(
    files.map(({ name }) => name),
    prefix,
    taken,
    (name) => (stemOf(name) === name ? [] : [stemOf(name)]),
  );
  const read = files.map((file) => readFile(file, names));
  const manifest = openManifest(source);
  const states = new Map(read.map(({ state }) => [state.name, state]));
  const start = findStart(report, source.start, states, names);
  const starting = read.find(({ state }) => state === start);
  const ofStart =
    starting === undefined || starting.keys === null ? null : readReset(starting.state.report, starting.keys);
  for (const { state, keys } of read) if (state !== start) warnOfReset(state, keys);
  const workflow: WorkflowSyntax = {
    key: source.key,
    name: source.name,
    report,
    states,
    start,
    names,
    settings: manifest === null ? NO_SETTINGS : readSettings(manifest.report, manifest.map),
    keepsCallers: ofStart ?? (manifest === null ? null : readReset(manifest.report, manifest.map)) ?? false,
  };
  return {
    workflow,
    reports: [
      report,
      ...(manifest === null ? [] : [manifest.report]),
      ...strangers,
      ...read.map(({ state }) => state.report),
    ],
  };
}

function isState({ name, isExecutable }: RaymondFile): boolean {
  if (name.startsWith('.') || /^readme\.md$/i.test(name) || name === MANIFEST) return false;
  return /\.(?:md|sh)$/i.test(name) || isExecutable;
}

function reportStranger({ name, file }: RaymondFile): Report {
  const report = createReport(makeSource(file, ''));
  const hint = 'Put a copy into the folder, or enter the other workflow by its path: <call-workflow>.';
  report.warning('leads-out', WHOLE, `${name} is a link to a file outside of the folder, and is not a state`, hint);
  return report;
}

interface ReadFile {
  readonly state: StateSyntax;
  readonly keys: YamlMap | null;
}

function readFile(file: RaymondFile, names: StateNames): ReadFile {
  const report = createReport(makeSource(file.file, file.text ?? ''));
  return /\.md$/i.test(file.name) ? readPrompt(file, report, names) : readScript(file, report, names);
}

function readPrompt({ name, text }: RaymondFile, report: Report, names: StateNames): ReadFile {
  const { map, body, isBroken } = readFrontMatter(report, 'allowed_tags: [goto, result]');
  const [before = ''] = /^(?:[ \t]*\r?\n)*/.exec(report.source.text.slice(body.from)) ?? [];
  const from = body.from + before.length;
  const prompt = report.source.text.slice(from).trimEnd();
  if (text === null) report.error('not-text', WHOLE, `${name} is not UTF-8 text`, 'Save it as UTF-8.');
  else if (prompt === '' && !isBroken) {
    report.error('empty-prompt', WHOLE, `${name} has no prompt`, 'Write what the agent is to do.');
  }
  const placeOf = (start: number, end: number): Place => ({ from: from + start, to: from + end });
  const state: StateText = {
    name,
    report,
    place: WHOLE,
    body: { kind: 'prompt', text: prompt, placeOf },
    script: null,
    keys: map,
    alsoKnown: [],
  };
  return { state: readState(state, names), keys: map };
}

function readScript(file: RaymondFile, report: Report, names: StateNames): ReadFile {
  const placeOf = (start: number, end: number): Place => ({ from: start, to: end });
  const state: StateText = {
    name: file.name,
    report,
    place: WHOLE,
    body: { kind: 'script', command: fileCommand(file) },
    script: file.text === null ? null : { text: report.source.text, placeOf },
    keys: null,
    alsoKnown: [],
  };
  return { state: readState(state, names), keys: null };
}

interface Manifest {
  readonly report: Report;
  readonly map: YamlMap;
}

function openManifest({ files }: FolderSource): Manifest | null {
  const file = files.find(({ name, leadsOut }) => name === MANIFEST && !leadsOut);
  if (file === undefined) return null;
  const report = createReport(makeSource(file.file, file.text ?? ''));
  const empty: YamlMap = { kind: 'map', place: WHOLE, entries: new Map() };
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value === null || value.kind === 'nothing') return { report, map: empty };
  if (value.kind !== 'map') {
    const message = `${MANIFEST} must be keys and values, got ${describeYaml(value)}`;
    report.error('wrong-type', value.place, message, 'For example reset: keep-stack.');
    return { report, map: empty };
  }
  checkKeys(report, value, WORKFLOW_KEYS, MANIFEST);
  return { report, map: value };
}

function warnOfReset({ report }: StateSyntax, keys: YamlMap | null): void {
  const entry = keys?.entries.get('reset');
  if (entry === undefined) return;
  const message = '"reset" counts in the state that the workflow begins with, and not here';
  report.warning('unused-key', entry.keyPlace, message, `Move it there, or to ${MANIFEST}.`);
}
