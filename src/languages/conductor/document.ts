// Workflow text → steps as syntax, and defaults. All problems are reported, and the rest is read nevertheless.

import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { suggest } from '../report.ts';
import { mapAt, textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar, YamlValue } from '../yaml-tree.ts';
import { describeYaml, readYaml } from '../yaml-tree.ts';
import { checkValues, isScalar, listAt, missingKey, neededText, shown, strictKeys, wordAt } from './fields.ts';
import { ID_HINT, isId, STOP } from './ids.ts';
import { NO_LIMITS, readLimits } from './limits.ts';
import { tidyPath } from './path-problem.ts';
import { checkPath } from './paths.ts';
import type { Unread } from './graph.ts';
import type { Defaults } from './reading.ts';
import type { Opcode, Outline } from './syntax.ts';
import { OPCODES } from './syntax.ts';

export interface DocumentSyntax {
  readonly id: string;
  readonly description: string;
  /** Null if absent. */
  readonly artifactsDir: string | null;
  readonly defaults: Omit<Defaults, 'policy'>;
  /** Contains the default policy. */
  readonly defaultsMap: YamlMap;
  readonly entry: YamlScalar | null;
  /** In order, including duplicates of an id. */
  readonly steps: readonly Outline[];
  /** Steps with an unknown opcode: by id, with their targets. */
  readonly unread: Unread;
}

const WHOLE: Place = { from: 0, to: 1 };
const EMPTY: YamlMap = { kind: 'map', place: WHOLE, entries: new Map() };

const KEYS = ['workflow_id', 'version', 'description', 'defaults', 'entry_step', 'steps'];
const WHAT = 'the workflow';
const STEPS_HINT =
  'For example steps: [{ id: check, opcode: RUN_VALIDATION, run: [tests], routes: { completed: STOP } }].';

export function readDocument(report: Report): DocumentSyntax {
  const root = readRoot(report);
  const text = (key: string, hint: string): YamlScalar | null =>
    root === EMPTY ? null : neededText(report, root, key, { place: WHOLE, what: WHAT, hint });
  const id = text('workflow_id', 'For example workflow_id: implement.');
  checkVersion(report, root);
  const description = text('description', 'Say in a sentence what it is for.');
  const entry = text('entry_step', 'Name the step to begin with.');
  const defaultsMap = mapAt(report, root, 'defaults', 'For example defaults: { limits: { timeout: 30m } }.') ?? EMPTY;
  return {
    id: id?.text.trim() ?? '',
    description: description?.text.trim() ?? '',
    ...readDefaults(report, defaultsMap),
    defaultsMap,
    entry,
    ...readOutlines(report, root),
  };
}

function readRoot(report: Report): YamlMap {
  const value = readYaml(report, { from: 0, to: report.source.text.length });
  if (value === null) return EMPTY;
  if (value.kind !== 'map') {
    const hint = 'It begins with workflow_id: NAME.';
    report.error('wrong-type', value.place, `the workflow must be a map, got ${describeYaml(value)}`, hint);
    return EMPTY;
  }
  strictKeys(report, value, KEYS, WHAT);
  return value;
}

function checkVersion(report: Report, root: YamlMap): void {
  if (root === EMPTY) return;
  const value = root.entries.get('version')?.value;
  if (value === undefined) {
    missingKey(report, WHOLE, WHAT, 'version', 'Write version: 1.');
    return;
  }
  if (value.kind === 'nothing' || (value.kind === 'number' && Number(value.text) === 1)) return;
  const isNumber = value.kind === 'number';
  const message = isNumber
    ? `version ${value.text} is not supported`
    : `"version" must be a whole number, got ${shown(value)}`;
  report.error(isNumber ? 'unsupported-version' : 'wrong-type', value.place, message, 'Write version: 1.');
}

const COMPONENTS = ['docs', 'cli', 'web', 'vscode_ui', 'library'] as const;
const PROFILES = ['smoke', 'overnight', 'release_candidate'] as const;

function readDefaults(report: Report, map: YamlMap): Pick<DocumentSyntax, 'defaults' | 'artifactsDir'> {
  const what = '"defaults"';
  strictKeys(report, map, ['policy', 'limits', 'artifacts_dir', 'component_kind', 'eval_profile'], what);
  return {
    artifactsDir: readArtifactsDir(report, map),
    defaults: {
      limits: map === EMPTY ? NO_LIMITS : readLimits(report, map, what, true),
      componentKind: wordAt(report, map, 'component_kind', COMPONENTS),
      evalProfile: wordAt(report, map, 'eval_profile', PROFILES),
    },
  };
}

/** The run id is appended to it. */
function readArtifactsDir(report: Report, map: YamlMap): string | null {
  const folder = textAt(report, map, 'artifacts_dir');
  if (folder === null) return null;
  checkPath(report, 'artifacts_dir', folder);
  if (/\$\{|<run_id>/.test(folder.text)) {
    const message = '"artifacts_dir" is the folder that the directories of all runs are in';
    report.error(
      'invalid-path',
      folder.place,
      message,
      'The run\'s id is added by itself: artifacts_dir: ".meow/run/".',
    );
  }
  return tidyPath(folder.text);
}

function readOutlines(report: Report, root: YamlMap): Pick<DocumentSyntax, 'steps' | 'unread'> {
  const unread = new Map<string, readonly string[]>();
  if (root === EMPTY) return { steps: [], unread };
  const list = listAt(report, root, 'steps', 'steps: [{ id: end, opcode: STOP }]');
  if (!root.entries.has('steps')) missingKey(report, WHOLE, WHAT, 'steps', STEPS_HINT);
  if (list?.items.length === 0) report.error('no-steps', list.place, 'the workflow has no steps', STEPS_HINT);
  const seen = new Map<string, Place>();
  const steps = (list?.items ?? []).flatMap((item) => {
    const outline = readOutline(report, item);
    if (outline === null) return [];
    const { id, opcode, map, place } = outline;
    const before = seen.get(id);
    seen.set(id, before ?? place);
    if (before !== undefined) {
      const related = [{ message: 'the first one', place: before }];
      report.error('duplicate-id', place, `there are two steps "${id}"`, 'Give one of them another id.', related);
    }
    if (opcode !== null) return [{ id, opcode, map, place }];
    const routes = map.entries.get('routes')?.value;
    const targets = routes?.kind === 'map' ? [...routes.entries.values()].map(({ value }) => value) : [];
    unread.set(
      id,
      targets.filter(isScalar).map(({ text }) => text),
    );
    return [];
  });
  return { steps, unread };
}

/** Without an id a step is ignored; without a known opcode only its id counts. */
function readOutline(
  report: Report,
  item: YamlValue,
): (Omit<Outline, 'opcode'> & { readonly opcode: Opcode | null }) | null {
  if (item.kind !== 'map') {
    const message = `a step must be a map, got ${shown(item)}`;
    report.error('wrong-type', item.place, message, 'For example { id: end, opcode: STOP }.');
    return null;
  }
  checkValues(report, item);
  const what = 'the step';
  const id = neededText(report, item, 'id', { place: item.place, what, hint: 'For example id: implement.' });
  const hint = `It is one of ${OPCODES.join(', ')}.`;
  const place = id?.place ?? item.place;
  const written = neededText(report, item, 'opcode', { place, what, hint });
  const opcode = written === null ? null : readOpcode(report, written);
  if (id === null) return null;
  const outline = { id: id.text, opcode, map: item, place: id.place };
  if (!isId(id.text)) {
    report.error('invalid-id', id.place, `${JSON.stringify(id.text)} is not a valid step id`, ID_HINT);
  }
  if (id.text === STOP && opcode !== null && opcode !== 'STOP') {
    const message = `the id STOP is reserved for the end of the run, and ${opcode} is none`;
    report.error('reserved-id', id.place, message, 'Give it another id.');
  }
  return outline;
}

function readOpcode(report: Report, written: YamlScalar): Opcode | null {
  const known = OPCODES.find((opcode) => opcode === written.text);
  if (known !== undefined) return known;
  const hint = (): string => suggest(written.text, OPCODES, `It is one of ${OPCODES.join(', ')}.`);
  report.error('unknown-opcode', written.place, `there is no opcode ${JSON.stringify(written.text)}`, hint);
  return null;
}
