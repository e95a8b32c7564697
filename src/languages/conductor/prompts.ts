// The prompts of a workflow: each is found and read once, and checked against the inputs of its steps.

import { type Diagnostic, makeSource, type Place } from '../../base/source.ts';
import type { PromptInput, PromptText } from '../../ir/conductor.ts';
import type { ValueType } from '../../ir/output.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, createReport, listed, missing, oneOf, type Report, START, suggest } from '../report.ts';
import { parseTemplate } from '../template.ts';
import { booleanAt, placesIn, textAt, wrongType } from '../yaml-fields.ts';
import { NO_KEYS, isScalar, readFrontMatter, type YamlEntry, type YamlMap, type YamlScalar } from '../yaml-tree.ts';
import { POLICY_RULES } from './config-keys.ts';
import { RUN_WORDS, strictKeys, wordAt } from './fields.ts';

/** By `id.vN` in all prompt folders, or by a path relative to the workflow's folder. Null if not found. */
export type FindPrompt = (id: string) => FoundPrompt | null;

interface FoundPrompt {
  readonly path: string;
  readonly text: string;
}

export class Prompts {
  readonly #report: Report;
  readonly #find: FindPrompt;
  readonly #read = new Map<string, PromptFile | null>();

  /** `report`: of the workflow that names the prompts. */
  constructor(report: Report, find: FindPrompt) {
    this.#report = report;
    this.#find = find;
  }

  /** Null after an error was reported. */
  named(key: string, written: YamlScalar, role: Role): PromptFile | null {
    const { text: id, place } = written;
    if (key === 'prompt' && isInline(id)) return this.#inline(written, role);
    const expected = isPath(id) ? null : versionedId(id);
    if (expected === null && !isPath(id)) {
      const inline = key === 'prompt' ? ' Text with white space is the prompt itself.' : '';
      const hint = `Write its id and version, as ${role}.fix.v1, or a path: ./fix.md.${inline}`;
      return this.#report.error('invalid-prompt-id', place, `"${key}": ${JSON.stringify(id)} names no prompt`, hint);
    }
    let file = this.#read.get(id);
    if (file === undefined) {
      const found = this.#find(id);
      file = found === null ? null : readPromptFile(found, expected, role);
      this.#read.set(id, file);
    }
    if (file === null) {
      const hint = isPath(id)
        ? 'Paths are relative to the folder of the workflow.'
        : `Write it to prompts/${id}.md beside the workflow, or to .meow/prompts/${id}.md.`;
      return this.#report.error('unknown-prompt', place, `there is no prompt ${JSON.stringify(id)}`, hint);
    }
    if (file.role === role) return file;
    const message = `"${key}" takes a prompt with the role ${role}, and ${file.path} has the role ${file.role}`;
    return this.#report.error('wrong-role', place, message, 'Name another prompt, or correct its role.');
  }

  #inline(written: YamlScalar, role: Role): PromptFile {
    const report = this.#report;
    const text = written.text.trimEnd();
    const holes = holesIn(report, text, placesIn(report, written));
    return { path: report.source.file, report, role, version: null, inputs: [], text, holes, keys: NO_KEYS };
  }

  /** For a step, with its inputs. */
  text(id: YamlScalar, file: PromptFile, step: string, given: readonly string[]): PromptText {
    const declared = new Set(file.inputs.map(({ name }) => name));
    const used = new Set(file.holes.map(({ name }) => name));
    for (const { name, required } of file.inputs) {
      if (!required || given.includes(name)) continue;
      const message = `the prompt ${id.text} needs the input "${name}", and the step "${step}" does not give it`;
      this.#report.error('missing-input', id.place, message, `Add it: inputs: [${[...given, name].join(', ')}].`);
    }
    for (const { name, place } of file.holes) {
      if (declared.has(name) || given.includes(name) || RUN_WORDS.includes(name)) continue;
      const known = [...new Set([...given, ...declared, ...RUN_WORDS])];
      const message = `nothing gives {{${name}}} to the step "${step}"`;
      const hint = (): string => suggest(name, known, `It has ${listed(known)}; for literal braces, write {{{{.`);
      file.report.error('unknown-variable', place, message, hint);
    }
    const untyped = given.filter((name) => used.has(name) && !declared.has(name)).map((name) => ({ name, ...UNTYPED }));
    const { version, path, text } = file;
    const inputs = [...file.inputs, ...untyped];
    return { id: isInline(id.text) ? 'inline' : id.text, version, path, text, inputs };
  }

  /** Problems in the prompts themselves. */
  diagnostics(): readonly Diagnostic[] {
    return [...this.#read.values()].flatMap((file) => file?.report.diagnostics() ?? []);
  }
}

/** With white space in it, it is the prompt itself. */
function isInline(written: string): boolean {
  return /\s/.test(written.trim());
}

/**
 * A prompt file: front matter and text. A prompt that is named by its id must declare that id; for one that is named
 * by its path only existing keys are checked.
 */
export interface PromptFile {
  readonly path: string;
  readonly report: Report;
  /** Default: the role of its first use. */
  readonly role: Role;
  readonly version: number | null;
  readonly inputs: readonly PromptInput[];
  readonly text: string;
  /** Placeholders in its text. */
  readonly holes: readonly { readonly name: string; readonly place: Place }[];
  /** Keys of its front matter; those of a policy are read elsewhere. */
  readonly keys: YamlMap;
}

const ROLES = ['task', 'planner', 'policy'] as const;
type Role = (typeof ROLES)[number];

const KEYS = ['prompt_id', 'version', 'role', 'summary', 'inputs', 'output_contract'];

/** `expected`: the id that it must declare; null if named by path. `wanted`: the role of its use. */
function readPromptFile(found: FoundPrompt, expected: VersionedId | null, wanted: Role): PromptFile {
  const { path } = found;
  const report = createReport(makeSource(path, found.text));
  const { map, text, offset } = readFrontMatter(report, 'prompt_id: task.fix');
  const keys = map ?? NO_KEYS;
  const isReadable = report.diagnostics().length === 0;
  const role = wordAt(report, keys, 'role', ROLES) ?? wanted;
  checkFront(report, keys, role);
  if (expected !== null && isReadable) checkIdentity(report, map, expected, wanted);
  if (text === '' && role !== 'policy' && isReadable) {
    report.error('empty-prompt', START, 'the prompt has no text', 'Write it after the front matter.');
  }
  return {
    path,
    report,
    role,
    version: expected?.version ?? versionIn(report, keys),
    inputs: readInputs(report, keys),
    text,
    // The text of a policy is passed on unchanged.
    holes: role === 'policy' ? [] : holesIn(report, text, (start, end) => ({ from: offset + start, to: offset + end })),
    keys,
  };
}

/** A misspelt key of a policy would forbid nothing, so it is an error; other prompts may have notes of their own. */
function checkFront(report: Report, map: YamlMap, role: Role): void {
  const known = role === 'policy' ? [...KEYS, ...namesOf(POLICY_RULES)] : KEYS;
  if (role === 'policy') strictKeys(report, map, known, 'the front matter of a policy');
  else checkKeys(report, map, known, 'the front matter');
  textAt(report, map, 'summary');
  const contract = map.entries.get('output_contract')?.value;
  if (contract === undefined || contract.kind === 'nothing' || contract.kind === 'map' || isScalar(contract)) return;
  const hint = 'For example output_contract: planner.decision.v1.';
  wrongType(report, contract, '"output_contract" must be an id or a map', hint);
}

function checkIdentity(report: Report, map: YamlMap | null, { name, version }: VersionedId, wanted: Role): void {
  const hint = `Begin the file with ---, prompt_id: ${name}, version: ${String(version)}, role: ${wanted}, and ---.`;
  if (map === null) {
    report.error('missing-front-matter', START, 'the prompt does not say what it is', hint);
    return;
  }
  for (const key of ['prompt_id', 'version', 'role']) {
    const kind = map.entries.get(key)?.value.kind ?? 'nothing';
    if (kind === 'nothing') missing(report, map.place, 'the front matter', key, hint);
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
  return wrongType(report, version, '"version" must be a whole number', 'For example version: 1.');
}

const TYPES: readonly ValueType[] = ['any', 'string', 'integer', 'number', 'boolean', 'json'];
const INPUTS_HINT = 'For example inputs: { diff: string, harness_report: { type: json, required: false } }.';

/** `[diff]`, `{ diff: string }` or `{ diff: { type: string, required: false } }` */
function readInputs(report: Report, map: YamlMap): readonly PromptInput[] {
  const value = map.entries.get('inputs')?.value;
  if (value === undefined || value.kind === 'nothing') return [];
  if (value.kind === 'list') {
    return value.items.flatMap((item) => {
      if (isScalar(item)) return inputNamed(report, item.text, item.place, UNTYPED);
      return wrongType(report, item, 'an input must have a name', INPUTS_HINT) ?? [];
    });
  }
  if (value.kind === 'map') {
    return [...value.entries.values()].flatMap((entry) => {
      const declaration = readDeclaration(report, entry);
      return declaration === null ? [] : inputNamed(report, entry.key, entry.keyPlace, declaration);
    });
  }
  return wrongType(report, value, '"inputs" must be a map or a list', INPUTS_HINT) ?? [];
}

type Declaration = Omit<PromptInput, 'name'>;

const UNTYPED: Declaration = { type: 'any', required: true };

function inputNamed(report: Report, name: string, place: Place, declaration: Declaration): readonly PromptInput[] {
  if (/^[\w-]+(?:\.[\w-]+)*$/.test(name)) return [{ name, ...declaration }];
  const hint = 'A name has letters, digits, _, - and dots.';
  report.error('invalid-value', place, `${JSON.stringify(name)} is not a valid name for an input`, hint);
  return [];
}

function readDeclaration(report: Report, { key: name, value }: YamlEntry): Declaration | null {
  if (value.kind === 'nothing') return UNTYPED;
  if (isScalar(value)) {
    const type = oneOf(report, name, value, TYPES);
    return type === null ? null : { type, required: true };
  }
  if (value.kind === 'map') {
    strictKeys(report, value, ['type', 'required', 'summary'], `the input "${name}"`);
    const type = wordAt(report, value, 'type', TYPES) ?? 'any';
    return { type, required: booleanAt(report, value, 'required') ?? true };
  }
  return wrongType(report, value, `the input "${name}" must have a type`, INPUTS_HINT);
}

type PlaceOf = (from: number, to: number) => Place;

function holesIn(report: Report, text: string, placeOf: PlaceOf): PromptFile['holes'] {
  const { parts, problems } = parseTemplate(text);
  for (const { from, to, message, hint } of problems) {
    report.error('invalid-reference', placeOf(from, to), message, hint);
  }
  return parts
    .filter((part) => typeof part !== 'string')
    .map(({ path, from, to }) => ({ name: path.join('.'), place: placeOf(from, to) }));
}

interface VersionedId {
  readonly name: string;
  readonly version: number;
}

/** `task.fix.v1`; null otherwise. */
export function versionedId(id: string): VersionedId | null {
  const [, name = '', version = ''] = /^([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\.v(\d{1,9})$/.exec(id) ?? [];
  return name === '' ? null : { name, version: Number(version) };
}

/** `./fix.md`, `../shared/fix.md`, `/etc/fix.md`. */
export function isPath(id: string): boolean {
  return /^\.{0,2}\//.test(id);
}
