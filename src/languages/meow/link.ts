// Resolves names to blocks: all blocks reachable from the start of a run, and their callers. Unknown names are reported
// at their position. A name with placeholders is resolved by the values of variables known at compile time: those given
// to the run, defaults, and those passed to templates. They are collected by name over all files: a value too many is
// harmless, since it only widens what a reference might mean.

import { isJsonMap, type Json, type JsonMap } from '../../base/json.ts';
import { segmentMatcher } from '../../base/names.ts';
import type { Entered } from '../language.ts';
import { listed, suggest } from '../report.ts';
import { fillPlaceholders, parseTemplate, type Template, wholeReference } from '../template.ts';
import { entriesOf, valueOf } from '../toml-fields.ts';
import { type TomlString, type TomlTable, tomlToJson, type TomlValue } from '../toml-tree.ts';
import type { LinkedTarget, LinkedTargets } from './linked-targets.ts';
import type { Module, Section } from './modules.ts';
import type { BlockSyntax, StepSyntax, TargetSyntax } from './syntax.ts';
import { BRANCH_KEYS, isPlaced, parseReference, spellingsOf } from './target.ts';

/** The files of a compilation, and which of them a name in one of them means. */
export interface Library {
  readonly entry: Module;
  readonly modules: ReadonlyMap<string, Module>;
  /** Null if there is no such file. */
  readonly find: (from: string, name: string) => string | null;
  /** A workflow of another language that a name in a file means; null if there is none. */
  readonly foreign: FindOtherWorkflow;
  /** Modules that something refers to. */
  readonly touched: Set<Module>;
}

export type FindOtherWorkflow = (from: string, name: string) => Entered | null;

export interface Linked extends LinkedTargets {
  /** Each block once, in order of discovery. */
  readonly blocks: readonly BlockSyntax[];
  readonly calls: readonly Call[];
}

export interface Call {
  readonly from: BlockSyntax;
  readonly step: StepSyntax;
  readonly target: TargetSyntax;
  readonly to: BlockSyntax;
  /** False if a reference with placeholders only may mean it. */
  readonly isCertain: boolean;
}

export function linkBlocks(library: Library, roots: readonly BlockSyntax[], given: JsonMap): Linked {
  const linker: Linker = { ...library, possibleTexts: collectStaticValues(library.modules.values(), given) };
  const links = new Map<TargetSyntax, LinkedTarget>();
  const calls: Call[] = [];
  const blocks = new Set(roots);
  // Iterating a set includes elements added meanwhile.
  for (const from of blocks) {
    for (const step of from.steps) {
      for (const target of step.targets) {
        const link = resolveTarget(linker, from, target);
        if (link === null) continue;
        links.set(target, link);
        for (const to of blocksOf(link)) {
          blocks.add(to);
          calls.push({ from, step, target, to, isCertain: link.kind === 'known' });
        }
      }
    }
  }
  return { blocks: [...blocks], calls, of: (target) => links.get(target) ?? null };
}

function blocksOf(link: LinkedTarget): Iterable<BlockSyntax> {
  if (link.kind === 'known') return [link.block];
  return link.kind === 'open' ? new Set(link.names.values()) : [];
}

interface Linker extends Library {
  readonly possibleTexts: PossibleTexts;
}

function resolveTarget(linker: Linker, from: BlockSyntax, target: TargetSyntax): LinkedTarget | null {
  if (target.to.kind === 'inline') return { kind: 'known', block: target.to.block };
  const { reference } = target.to;
  const { parts } = parseTemplate(reference.value);
  if (parts.some((part) => typeof part !== 'string')) return openLink(linker, from, reference, parts);
  const resolved = resolve(linker, from.report.source.file, reference.value);
  if (resolved.kind === 'found') return { kind: 'known', block: resolved.block };
  if (resolved.kind === 'missing') {
    const foreign = linker.foreign(from.report.source.file, reference.value);
    if (foreign?.kind === 'found') return { kind: 'foreign', entry: foreign.entry };
    if (foreign !== null) from.report.error('foreign-workflow', reference.place, foreign.message, foreign.hint);
    else if ((target.kind === 'recover' || target.kind === 'exhausted') && /^\w+$/.test(reference.value)) {
      const otherwise = 'Write "fail", "continue" or the name of a workflow.';
      const hint = suggest(reference.value, ['fail', 'continue'], otherwise);
      const message = `"${target.key}" must be "fail", "continue" or a workflow, got "${reference.value}"`;
      from.report.error('invalid-value', reference.place, message, hint);
    } else from.report.error(resolved.code, reference.place, resolved.message, resolved.hint);
  }
  return null;
}

/** A reference with placeholders may mean any workflow of the file, and every static value of its variables. */
function openLink(linker: Linker, from: BlockSyntax, reference: TomlString, parts: Template['parts']): LinkedTarget {
  const { file } = from.report.source;
  const names = new Map<string, BlockSyntax>();
  const fits = segmentMatcher(fillPlaceholders(parts, '*'));
  const own = linker.modules.get(file);
  for (const { name } of own?.sections ?? []) {
    for (const text of [name, `.${name}`]) {
      const block = fits(text) ? (own?.block(name) ?? null) : null;
      if (block !== null) names.set(text, block);
    }
  }
  for (const { value: text, file: writtenIn } of linker.possibleTexts(parts)) {
    // Resolved from the file that uses it; else from the file that contains the value.
    const [resolved] = [file, writtenIn].flatMap((base) => {
      const tried = base === null ? null : resolve(linker, base, text);
      return tried?.kind === 'found' ? [tried] : [];
    });
    if (resolved === undefined) continue;
    const other = names.get(text);
    if (other === undefined) names.set(text, resolved.block);
    else if (other !== resolved.block) {
      const [one, another] = [other, resolved.block].map(({ report }) => report.source.file);
      const message = `"${text}" means one workflow in ${one} and another in ${another}`;
      from.report.error('ambiguous-template', reference.place, message, 'Pass it with its file: "file#name".');
    }
  }
  if (names.size === 0) {
    const message = 'no possible value is known for this: the step would fail';
    const hint = 'Name the workflow by a variable that is given by --var, has a default, or is passed by name.';
    from.report.warning('unknown-template', reference.place, message, hint);
  }
  return { kind: 'open', names };
}

type Resolved =
  | { readonly kind: 'found'; readonly block: BlockSyntax }
  | { readonly kind: 'missing'; readonly code: string; readonly message: string; readonly hint: string }
  /** The file exists but has errors, which are reported there. */
  | { readonly kind: 'broken' };

function resolve(library: Library, from: string, text: string): Resolved {
  const reference = parseReference(text);
  const own = library.modules.get(from);
  if (reference === null || own === undefined) {
    const hint = 'Write ".name" for a workflow of this file, "file#name" for another\'s.';
    return missing('unknown-template', `"${text}" names no workflow`, hint);
  }
  if (reference.kind !== 'file') {
    const block = own.block(reference.name);
    if (block !== null) return { kind: 'found', block };
    if (reference.kind === 'local') return missingSection(own, reference.name);
  }
  const path = reference.kind === 'file' ? reference.path : reference.name;
  const file = library.find(from, path);
  const other = file === null ? undefined : library.modules.get(file);
  if (other === undefined) return missingFile(own, text, path, reference.kind === 'either');
  library.touched.add(other);
  if (other.isBroken) return { kind: 'broken' };
  const name = reference.kind === 'file' ? reference.workflow : 'main';
  const block = other.block(name);
  if (block === null) return missingSection(other, name);
  if (block.workflow.internal === null || other === own) return { kind: 'found', block };
  const message = `"${name}" of ${other.file} is internal: only its own file may use it`;
  return missing('internal-workflow', message, `Remove "internal" there, or use another workflow.`);
}

function missing(code: string, message: string, hint: string): Resolved {
  return { kind: 'missing', code, message, hint };
}

const SEARCHED = 'beside this file, in .meow/templates/ and .meow/workflows/, the same in ~/.meow/, and in the library';

function missingFile({ sections }: Module, text: string, path: string, couldBeOwn: boolean): Resolved {
  const isDotted = text.startsWith('.');
  const names = sections.map(({ name }) => (isDotted ? `.${name}` : name));
  const [searched = path] = spellingsOf(path);
  const elsewhere = isPlaced(path)
    ? `There is no file ${searched}, relative to this one.`
    : `A file ${searched} was searched ${SEARCHED}.`;
  const own = `This file has ${listed(names)}.`;
  const hint = couldBeOwn ? suggest(text, names, isDotted ? own : `${own} ${elsewhere}`) : elsewhere;
  return missing('unknown-template', `there is no template "${text}"`, hint);
}

function missingSection({ file, sections }: Module, name: string): Resolved {
  const names = sections.map((section) => section.name);
  const hint = suggest(name, names, names.length === 0 ? 'It has none.' : `It has ${listed(names)}.`);
  return missing('unknown-template', `${file} has no workflow "${name}"`, hint);
}

/** A value and the file that contains it; null if it was given to the run. */
interface StaticValue<V = Json> {
  readonly value: V;
  readonly file: string | null;
}

/** Every text that a text with placeholders may become, with the files of its values. */
export type PossibleTexts = (parts: Template['parts']) => readonly StaticValue<string>[];

/** Limit on combinations of a text with several placeholders. */
const TEXTS_MAX = 500;
/** Limit on variables that refer to other variables; more would be a cycle. */
const NAMES_MAX = 200;

export function collectStaticValues(modules: Iterable<Module>, given: JsonMap): PossibleTexts {
  const values = new Map<string, StaticValue[]>();
  const aliases = new Map<string, (readonly string[])[]>();
  for (const [name, value] of Object.entries(given)) push(values, name, { value, file: null });
  for (const { file, sections } of modules) {
    for (const [name, value] of sections.flatMap((section) => [...namedValues(section)])) {
      const alias = value.kind === 'string' ? wholeReference(value.value) : null;
      if (alias !== null) push(aliases, name, alias.path);
      else if (value.kind !== 'string' || !value.value.includes('{{')) {
        push(values, name, { value: tomlToJson(value), file });
      }
    }
  }
  // A variable is often passed under its own name, so each name is visited once.
  const valuesAt = (path: readonly string[]): readonly StaticValue[] => {
    const found: StaticValue[] = [];
    const seen = new Set<string>();
    const open = [path];
    for (let next = open.pop(); next !== undefined && seen.size < NAMES_MAX; next = open.pop()) {
      const [name = '', ...rest] = next;
      if (seen.has(next.join('.'))) continue;
      seen.add(next.join('.'));
      for (const { value, file } of values.get(name) ?? []) {
        const part = valueAt(value, rest);
        if (part !== undefined) found.push({ value: part, file });
      }
      for (const alias of aliases.get(name) ?? []) open.push([...alias, ...rest]);
    }
    return found.slice(0, TEXTS_MAX);
  };
  return (parts) => {
    let texts: readonly StaticValue<string>[] = [{ value: '', file: null }];
    for (const part of parts) {
      const found = typeof part === 'string' ? [{ value: part, file: null }] : valuesAt(part.path);
      const choices = found.flatMap(({ value, file }) =>
        typeof value === 'string' || typeof value === 'number' ? [{ value: String(value), file }] : [],
      );
      texts = texts
        .flatMap((text) => choices.map(({ value, file }) => ({ value: text.value + value, file: text.file ?? file })))
        .slice(0, TEXTS_MAX);
    }
    return texts;
  };
}

/** Defaults, passed variables, and the items of literal lists. */
function* namedValues(section: Section): Generator<readonly [string, TomlValue]> {
  for (const { key, value } of entriesOf(section.table, 'variables')) {
    const fallback = value.kind === 'table' ? value.entries.get('default')?.value : value;
    if (fallback !== undefined) yield [key, fallback];
  }
  for (const step of stepTables(section)) {
    for (const table of targetTables(step)) {
      for (const { key, value } of entriesOf(table, 'variables')) yield [key, value];
    }
    const itemName = valueOf(step, 'item_var', 'string')?.value ?? 'item';
    for (const item of valueOf(step, 'items', 'list')?.items ?? []) yield [itemName, item];
  }
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let now: Json | undefined = value;
  for (const segment of path) {
    if (Array.isArray(now)) now = (now as readonly Json[])[/^\d+$/.test(segment) ? Number(segment) : -1];
    else now = isJsonMap(now) && Object.hasOwn(now, segment) ? now[segment] : undefined;
    if (now === undefined) return undefined;
  }
  return now;
}

export function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** The steps of a workflow as raw tables, including inline steps. For a first look at a file: checks and reports nothing. */
export function stepTables({ table }: Section): readonly TomlTable[] {
  const found: TomlTable[] = [];
  const open = [valueOf(table, 'steps', 'list')];
  for (let list = open.pop(); list !== undefined; list = open.pop()) {
    for (const step of list?.items ?? []) {
      if (step.kind !== 'table') continue;
      found.push(step);
      open.push(...targetTables(step).map((table) => valueOf(table, 'inline', 'list')));
    }
  }
  return found;
}

/** Tables of a step that may contain `template` and `variables`: its own, and those below `on_…`. */
export function targetTables(step: TomlTable): readonly TomlTable[] {
  return [step, ...[...BRANCH_KEYS, 'on_exhausted'].flatMap((key) => valueOf(step, key, 'table') ?? [])];
}
