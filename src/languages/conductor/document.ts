// Workflow text → steps as syntax, and defaults. All problems are reported, and the rest is read nevertheless.

import type { Place } from '../../base/source.ts';
import { namesOf } from '../keys.ts';
import { missing, type Report, START, suggest } from '../report.ts';
import { mapAt, textAt, wrongType } from '../yaml-fields.ts';
import {
  NO_KEYS,
  describeYaml,
  isScalar,
  readYaml,
  type YamlMap,
  type YamlScalar,
  type YamlValue,
} from '../yaml-tree.ts';
import {
  checkDuplicates,
  checkId,
  checkPath,
  checkValues,
  listAt,
  neededText,
  strictKeys,
  tidyPath,
  wordAt,
} from './fields.ts';
import { COMPONENTS, CONDUCTOR, DEFAULTS, PROFILES } from './keys.ts';
import { readLimits } from './limits.ts';
import { type Defaults, type Opcode, OPCODES, type Outline, STOP } from './syntax.ts';

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
  readonly unread: ReadonlyMap<string, readonly string[]>;
}

const WHAT = 'the workflow';
const STEPS_HINT =
  'For example steps: [{ id: check, opcode: RUN_VALIDATION, run: [tests], routes: { completed: STOP } }].';

export function readDocument(report: Report): DocumentSyntax {
  const root = readRoot(report);
  const text = (key: string, hint: string): YamlScalar | null =>
    root === NO_KEYS ? null : neededText(report, root, key, { place: START, what: WHAT, hint });
  const id = text('workflow_id', 'For example workflow_id: implement.');
  checkVersion(report, root);
  const description = text('description', 'Say in a sentence what it is for.');
  const entry = text('entry_step', 'Name the step to begin with.');
  const defaultsMap = mapAt(report, root, 'defaults', 'For example defaults: { limits: { timeout: 30m } }.') ?? NO_KEYS;
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
  if (value === null) return NO_KEYS;
  if (value.kind !== 'map') {
    const hint = 'It begins with workflow_id: NAME.';
    report.error('wrong-type', value.place, `the workflow must be a map, got ${describeYaml(value)}`, hint);
    return NO_KEYS;
  }
  strictKeys(report, value, namesOf(CONDUCTOR.root.keys), WHAT);
  return value;
}

function checkVersion(report: Report, root: YamlMap): void {
  if (root === NO_KEYS) return;
  const hint = 'Write version: 1.';
  const value = root.entries.get('version')?.value;
  if (value === undefined) missing(report, START, WHAT, 'version', hint);
  else if (value.kind === 'number' && Number(value.text) !== 1) {
    report.error('unsupported-version', value.place, `version ${value.text} is not supported`, hint);
  } else if (value.kind !== 'number' && value.kind !== 'nothing') {
    wrongType(report, value, '"version" must be a whole number', hint);
  }
}

function readDefaults(report: Report, map: YamlMap): Pick<DocumentSyntax, 'defaults' | 'artifactsDir'> {
  const what = '"defaults"';
  strictKeys(report, map, namesOf(DEFAULTS.keys), what);
  const artifactsDir = readArtifactsDir(report, map);
  const limits = readLimits(report, map, what, true);
  const componentKind = wordAt(report, map, 'component_kind', COMPONENTS);
  const evalProfile = wordAt(report, map, 'eval_profile', PROFILES);
  return { artifactsDir, defaults: { limits, hints: { componentKind, evalProfile } } };
}

/** The run id is appended to it. */
function readArtifactsDir(report: Report, map: YamlMap): string | null {
  const folder = textAt(report, map, 'artifacts_dir');
  if (folder === null) return null;
  checkPath(report, 'artifacts_dir', folder.text, folder.place);
  if (/\$\{|<run_id>/.test(folder.text)) {
    const message = '"artifacts_dir" is the folder that the directories of all runs are in';
    const hint = 'The run\'s id is added by itself: artifacts_dir: ".meow/run/".';
    report.error('invalid-path', folder.place, message, hint);
  }
  return tidyPath(folder.text);
}

function readOutlines(report: Report, root: YamlMap): Pick<DocumentSyntax, 'steps' | 'unread'> {
  if (root === NO_KEYS) return { steps: [], unread: new Map() };
  const list = listAt(report, root, 'steps', 'steps: [{ id: end, opcode: STOP }]');
  if (!root.entries.has('steps')) missing(report, START, WHAT, 'steps', STEPS_HINT);
  if (list?.items.length === 0) report.error('no-steps', list.place, 'the workflow has no steps', STEPS_HINT);
  const outlines = (list?.items ?? []).flatMap((item) => readOutline(report, item) ?? []);
  checkDuplicates(report, outlines, (id) => `there are two steps "${id}"`);
  return {
    steps: outlines.flatMap(({ opcode, ...outline }) => (opcode === null ? [] : [{ ...outline, opcode }])),
    unread: new Map(outlines.flatMap(({ id, opcode, map }) => (opcode === null ? [[id, targetsIn(map)]] : []))),
  };
}

/** Targets of a step with an unknown opcode. */
function targetsIn(step: YamlMap): readonly string[] {
  const routes = step.entries.get('routes')?.value;
  const targets = routes?.kind === 'map' ? [...routes.entries.values()].map(({ value }) => value) : [];
  return targets.filter(isScalar).map(({ text }) => text);
}

/** Without an id a step is ignored; without a known opcode only its id counts. */
function readOutline(
  report: Report,
  item: YamlValue,
): (Omit<Outline, 'opcode'> & { readonly opcode: Opcode | null }) | null {
  if (item.kind !== 'map')
    return wrongType(report, item, 'a step must be a map', 'For example { id: end, opcode: STOP }.');
  checkValues(report, item);
  const what = 'the step';
  const id = neededText(report, item, 'id', { place: item.place, what, hint: 'For example id: implement.' });
  const opcode = readOpcode(report, item, id?.place ?? item.place);
  if (id === null) return null;
  checkId(report, id, 'step id');
  if (id.text === STOP && opcode !== null && opcode !== 'STOP') {
    const message = `the id STOP is reserved for the end of the run, and ${opcode} is none`;
    report.error('reserved-id', id.place, message, 'Give it another id.');
  }
  return { id: id.text, opcode, map: item, place: id.place };
}

function readOpcode(report: Report, step: YamlMap, place: Place): Opcode | null {
  const choices = `It is one of ${OPCODES.join(', ')}.`;
  const written = neededText(report, step, 'opcode', { place, what: 'the step', hint: choices });
  const known = OPCODES.find((opcode) => opcode === written?.text);
  if (written === null || known !== undefined) return known ?? null;
  const hint = (): string => suggest(written.text, OPCODES, choices);
  return report.error('unknown-opcode', written.place, `there is no opcode ${JSON.stringify(written.text)}`, hint);
}
