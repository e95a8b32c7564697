// A prompt file: front matter and text. A prompt that is named by its id must declare that id; for one that is named by
// its path only existing keys are checked.

import type { Place } from '../../base/source.ts';
import { makeSource } from '../../base/source.ts';
import type { PromptInput } from '../../ir/conducted.ts';
import type { ValueType } from '../../ir/output.ts';
import { readFrontMatter } from '../front-matter.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { parseTemplate } from '../template.ts';
import { booleanAt, checkKeys, textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar, YamlValue } from '../yaml-tree.ts';
import { isScalar, missingKey, oneOf, shown, strictKeys, wordAt } from './fields.ts';
import { POLICY_KEYS } from './policy-keys.ts';

export const ROLES = ['task', 'planner', 'policy'] as const;
export type Role = (typeof ROLES)[number];

/** `task.fix.v1`. */
export interface VersionedId {
  readonly name: string;
  readonly version: number;
}

export interface PromptFile {
  readonly path: string;
  readonly report: Report;
  /** Default: the role of its first use. */
  readonly role: Role;
  readonly version: number | null;
  readonly inputs: readonly PromptInput[];
  readonly text: string;
  /** Placeholders in its text. */
  readonly holes: readonly PromptHole[];
  /** Keys of its front matter; those of a policy are read elsewhere. */
  readonly keys: YamlMap | null;
}

export interface PromptHole {
  readonly name: string;
  readonly place: Place;
}

const KEYS = ['prompt_id', 'version', 'role', 'summary', 'inputs', 'output_contract'];

const EXAMPLE = 'prompt_id: task.fix';

/** `expected`: the id that it must declare; null if named by path. `wanted`: the role of its use. */
export function readPromptFile(
  { path, text: written }: { readonly path: string; readonly text: string },
  expected: VersionedId | null,
  wanted: Role,
): PromptFile {
  const report = createReport(makeSource(path, written));
  const { map, body } = readFrontMatter(report, EXAMPLE);
  const isReadable = report.diagnostics().length === 0;
  const whole = report.source.text.slice(body.from, body.to);
  const [blank] = /^(?:[ \t]*\r?\n)*/.exec(whole) ?? [''];
  const text = whole.slice(blank.length).trimEnd();
  const from = body.from + blank.length;
  const role = (map === null ? null : wordAt(report, map, 'role', ROLES)) ?? wanted;
  if (map !== null) checkFront(report, map, role);
  if (expected !== null && isReadable) checkIdentity(report, map, expected, wanted);
  if (text === '' && role !== 'policy' && isReadable) {
    report.error('empty-prompt', { from: 0, to: 1 }, 'the prompt has no text', 'Write it behind the front matter.');
  }
  return {
    path,
    report,
    role,
    version: expected?.version ?? (map === null ? null : versionIn(report, map)),
    inputs: map === null ? [] : readInputs(report, map),
    text,
    // The text of a policy is passed on unchanged.
    holes: role === 'policy' ? [] : holesIn(report, text, from),
    keys: map,
  };
}

/** A misspelt key of a policy would forbid nothing, so it is an error; other prompts may have notes of their own. */
function checkFront(report: Report, map: YamlMap, role: Role): void {
  const known = role === 'policy' ? [...KEYS, ...POLICY_KEYS] : KEYS;
  if (role === 'policy') strictKeys(report, map, known, 'the front matter of a policy');
  else checkKeys(report, map, known, 'the front matter');
  textAt(report, map, 'summary');
  const contract = map.entries.get('output_contract')?.value;
  if (contract === undefined || contract.kind === 'nothing' || contract.kind === 'map' || isScalar(contract)) return;
  const message = `"output_contract" must be an id or a map, got ${shown(contract)}`;
  report.error('wrong-type', contract.place, message, 'For example output_contract: planner.decision.v1.');
}

function checkIdentity(report: Report, map: YamlMap | null, { name, version }: VersionedId, wanted: Role): void {
  const what = 'the front matter';
  const hint = `Begin the file with ---, prompt_id: ${name}, version: ${String(version)}, role: ${wanted}, and ---.`;
  if (map === null) {
    report.error('missing-front-matter', { from: 0, to: 1 }, 'the prompt does not say what it is', hint);
    return;
  }
  for (const key of ['prompt_id', 'version', 'role']) {
    if ((map.entries.get(key)?.value.kind ?? 'nothing') === 'nothing') missingKey(report, map.place, what, key, hint);
  }
  const id = textAt(report, map, 'prompt_id');
  if (id !== null && id.text !== name && id.text !== `${name}.v${String(version)}`) {
    const message = `the prompt calls itself ${JSON.stringify(id.text)}, and was asked for as "${name}"`;
    report.error('other-prompt', id.place, message, 'Correct prompt_id, or the name of the file.');
  }
  const own = versionIn(report, map);
  if (own !== null && own !== version) {
    const place = map.entries.get('version')?.value.place ?? map.place;
    const message = `the prompt is version ${String(own)}, and was asked for as version ${String(version)}`;
    report.error('other-version', place, message, 'Correct "version", or the name of the file.');
  }
}

function versionIn(report: Report, map: YamlMap): number | null {
  const version = textAt(report, map, 'version');
  if (version === null) return null;
  if (/^\d{1,9}$/.test(version.text)) return Number(version.text);
  const message = `"version" must be a whole number, got ${shown(version)}`;
  report.error('wrong-type', version.place, message, 'For example version: 1.');
  return null;
}

const TYPES: readonly ValueType[] = ['any', 'string', 'integer', 'number', 'boolean', 'json'];
const INPUTS_HINT = 'For example inputs: { diff: string, harness_report: { type: json, required: false } }.';

/** `[diff]`, `{ diff: string }` or `{ diff: { type: string, required: false } }` */
function readInputs(report: Report, map: YamlMap): readonly PromptInput[] {
  const value = map.entries.get('inputs')?.value;
  if (value === undefined || value.kind === 'nothing') return [];
  if (value.kind === 'list') {
    return value.items.flatMap((item) => {
      if (isScalar(item)) return inputNamed(report, item, { type: 'any', required: true });
      report.error('wrong-type', item.place, `an input must have a name, got ${shown(item)}`, INPUTS_HINT);
      return [];
    });
  }
  if (value.kind === 'map') {
    return [...value.entries.values()].flatMap(({ key, keyPlace, value: declared }) => {
      const name: YamlScalar = { kind: 'string', place: keyPlace, text: key };
      const declaration = readDeclaration(report, key, declared);
      return declaration === null ? [] : inputNamed(report, name, declaration);
    });
  }
  report.error('wrong-type', value.place, `"inputs" must be a map or a list, got ${shown(value)}`, INPUTS_HINT);
  return [];
}

function inputNamed(
  report: Report,
  { text, place }: YamlScalar,
  declaration: Omit<PromptInput, 'name'>,
): readonly PromptInput[] {
  if (/^[\w-]+(?:\.[\w-]+)*$/.test(text)) return [{ name: text, ...declaration }];
  const hint = 'A name has letters, digits, _, - and dots.';
  report.error('invalid-value', place, `${JSON.stringify(text)} is not a valid name for an input`, hint);
  return [];
}

function readDeclaration(report: Report, name: string, value: YamlValue): Omit<PromptInput, 'name'> | null {
  if (value.kind === 'nothing') return { type: 'any', required: true };
  if (isScalar(value)) {
    const type = oneOf(report, name, value, TYPES);
    return type === null ? null : { type, required: true };
  }
  if (value.kind === 'map') {
    strictKeys(report, value, ['type', 'required', 'summary'], `the input "${name}"`);
    return {
      type: wordAt(report, value, 'type', TYPES) ?? 'any',
      required: booleanAt(report, value, 'required') ?? true,
    };
  }
  report.error('wrong-type', value.place, `the input "${name}" must have a type, got ${shown(value)}`, INPUTS_HINT);
  return null;
}

function holesIn(report: Report, text: string, offset: number): readonly PromptHole[] {
  const { parts, problems } = parseTemplate(text);
  for (const { from, to, message, hint } of problems) {
    report.error('invalid-reference', { from: offset + from, to: offset + to }, message, hint);
  }
  return parts.flatMap((part) =>
    typeof part === 'string'
      ? []
      : [{ name: part.path.join('.'), place: { from: offset + part.from, to: offset + part.to } }],
  );
}

/** `id.vN`; null otherwise. */
export function versionedId(id: string): VersionedId | null {
  const [, name = '', version = ''] = /^([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\.v(\d{1,9})$/.exec(id) ?? [];
  return name === '' ? null : { name, version: Number(version) };
}

/** `./fix.md`, `../shared/fix.md`, `/etc/fix.md`. */
export function isPath(id: string): boolean {
  return /^\.{0,2}\//.test(id);
}
