// Reads a folder as a workflow. Prompts are `.md` files; scripts are `.sh` files and executables; a README and hidden
// files are neither. `workflow.yaml` applies to all of them.

import { makeSource, type Place } from '../../base/source.ts';
import { readFrontMatter } from '../front-matter.ts';
import { checkKeys, createReport, type Report } from '../report.ts';
import { describeYaml, readYaml, type YamlMap } from '../yaml-tree.ts';
import { findStart, nameStates, stemOf, type TakenIds } from './names.ts';
import { readBudget, readReset, readSettings, WORKFLOW_KEYS } from './settings.ts';
import { fileCommand, type FolderSource, type RaymondFile } from './source.ts';
import { readState } from './state.ts';
import { NO_KEYS, type StateNames, type StateSyntax, WHOLE, type WorkflowSyntax } from './syntax.ts';

const MANIFEST = 'workflow.yaml';

export function openFolder(source: FolderSource, prefix: string, taken: TakenIds): WorkflowSyntax {
  const report = createReport(makeSource(source.name, ''));
  const candidates = source.files.filter(isState);
  const files = candidates.filter(({ leadsOut }) => !leadsOut);
  const strangers = candidates.filter(({ leadsOut }) => leadsOut).map(reportStranger);
  const fileNames = files.map(({ name }) => name);
  const names = nameStates(fileNames, prefix, taken, (name) => (stemOf(name) === name ? [] : [stemOf(name)]));
  const read = files.map((file) => (/\.md$/i.test(file.name) ? readPrompt(file, names) : readScript(file, names)));
  const manifest = openManifest(source);
  const states = new Map(read.map((state) => [state.name, state]));
  const start = findStart(report, source.start, states, names);
  const ownReset = start === null ? null : readReset(start.report, start.keys);
  for (const state of read) if (state !== start) warnOfReset(state);
  return {
    key: source.key,
    name: source.name,
    report,
    reports: [report, manifest.report, ...strangers, ...read.map((state) => state.report)],
    states,
    start,
    names,
    settings: readSettings(manifest.report, manifest.keys),
    budget: readBudget(manifest.report, manifest.keys),
    keepsCallers: ownReset ?? readReset(manifest.report, manifest.keys) ?? false,
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

function readPrompt({ name, file, text: written }: RaymondFile, names: StateNames): StateSyntax {
  const report = createReport(makeSource(file, written ?? ''));
  const { map, body, isBroken } = readFrontMatter(report, 'allowed_tags: [goto, result]');
  const [blank = ''] = /^(?:[ \t]*\r?\n)*/.exec(report.source.text.slice(body.from)) ?? [];
  const offset = body.from + blank.length;
  const text = report.source.text.slice(offset).trimEnd();
  if (written === null) report.error('not-text', WHOLE, `${name} is not UTF-8 text`, 'Save it as UTF-8.');
  else if (text === '' && !isBroken) {
    report.error('empty-prompt', WHOLE, `${name} has no prompt`, 'Write what the agent is to do.');
  }
  const placeOf = (from: number, to: number): Place => ({ from: offset + from, to: offset + to });
  const keys = map ?? NO_KEYS;
  return readState({ name, report, place: WHOLE, body: { kind: 'prompt', text, placeOf }, keys }, names);
}

function readScript(file: RaymondFile, names: StateNames): StateSyntax {
  const report = createReport(makeSource(file.file, file.text ?? ''));
  const { text } = report.source;
  const placeOf = (from: number, to: number): Place => ({ from, to });
  const body = { kind: 'script', command: fileCommand(file), text, placeOf } as const;
  return readState({ name: file.name, report, place: WHOLE, body, keys: NO_KEYS }, names);
}

function openManifest({ files }: FolderSource): { readonly report: Report; readonly keys: YamlMap } {
  const file = files.find(({ name, leadsOut }) => name === MANIFEST && !leadsOut);
  const report = createReport(makeSource(file?.file ?? MANIFEST, file?.text ?? ''));
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value?.kind === 'map') {
    checkKeys(report, value, WORKFLOW_KEYS, MANIFEST);
    return { report, keys: value };
  }
  if (value !== null && value.kind !== 'nothing') {
    const message = `${MANIFEST} must be keys and values, got ${describeYaml(value)}`;
    report.error('wrong-type', value.place, message, 'For example reset: keep-stack.');
  }
  return { report, keys: NO_KEYS };
}

function warnOfReset({ report, keys }: StateSyntax): void {
  const entry = keys.entries.get('reset');
  if (entry === undefined) return;
  const message = '"reset" counts in the state that the workflow begins with, and not here';
  report.warning('unused-key', entry.keyPlace, message, `Move it there, or to ${MANIFEST}.`);
}
