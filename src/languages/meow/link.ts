// Resolves names to blocks: all blocks reachable from the start of a run, and their callers. Unknown names are reported
// at their position.

import type { Json } from '../../base/json.ts';
import { segmentMatcher } from '../../base/segment-pattern.ts';
import type { Entered } from '../language.ts';
import { listed, suggest } from '../report.ts';
import type { Hole } from '../template.ts';
import { parseTemplate } from '../template.ts';
import type { TomlString } from '../toml-tree.ts';
import type { StaticValues } from './static-values.ts';
import { collectStaticValues } from './static-values.ts';
import type { LinkedTarget, LinkedTargets } from './linked-targets.ts';
import type { Module } from './modules.ts';
import { isPlaced, parseReference, spellingsOf } from './target.ts';
import type { BlockSyntax, StepSyntax, TargetSyntax } from './syntax.ts';

/** The files of a compilation, and which of them a name in one of them means. */
export interface Library {
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

/** A step that enters a block. */
export interface Call {
  readonly from: BlockSyntax;
  readonly step: StepSyntax;
  readonly target: TargetSyntax;
  readonly to: BlockSyntax;
  /** False if a reference with placeholders only may mean it. */
  readonly isCertain: boolean;
}

export function linkBlocks(
  library: Library,
  roots: readonly BlockSyntax[],
  given: Readonly<Record<string, Json>>,
): Linked {
  const known = collectStaticValues(library.modules.values(), given);
  const links = new Map<TargetSyntax, LinkedTarget>();
  const calls: Call[] = [];
  const blocks = new Set(roots);
  // Iterating a set includes elements added meanwhile.
  for (const from of blocks) {
    for (const step of from.steps) {
      for (const target of step.targets) {
        const found = resolveTarget(library, known, from, target);
        if (found === null) continue;
        links.set(target, found.link);
        for (const to of found.leadsTo) {
          blocks.add(to);
          calls.push({ from, step, target, to, isCertain: found.link.kind === 'known' });
        }
      }
    }
  }
  return { blocks: [...blocks], calls, of: (target) => links.get(target) ?? null };
}

interface Found {
  readonly link: LinkedTarget;
  readonly leadsTo: Iterable<BlockSyntax>;
}

function resolveTarget(library: Library, known: StaticValues, from: BlockSyntax, target: TargetSyntax): Found | null {
  if (target.to.kind === 'inline') return knownBlock(target.to.block);
  const { reference } = target.to;
  const { parts } = parseTemplate(reference.value);
  if (parts.some((part) => typeof part !== 'string')) return openLink(library, known, from, reference, parts);
  const resolved = resolve(library, from.report.source.file, reference.value);
  if (resolved.kind === 'found') return knownBlock(resolved.block);
  if (resolved.kind === 'missing') {
    const foreign = library.foreign(from.report.source.file, reference.value);
    if (foreign?.kind === 'found') return { link: { kind: 'foreign', entry: foreign.entry }, leadsTo: [] };
    if (foreign !== null) from.report.error('foreign-workflow', reference.place, foreign.message, foreign.hint);
    else if (target.kind === 'recover' && /^\w+$/.test(reference.value)) {
      const hint = suggest(
        reference.value,
        ['fail', 'continue'],
        'Write "fail", "continue" or the name of a workflow.',
      );
      const message = `"on_error" must be "fail", "continue" or a workflow, got "${reference.value}"`;
      from.report.error('invalid-value', reference.place, message, hint);
    } else from.report.error(resolved.code, reference.place, resolved.message, resolved.hint);
  }
  return null;
}

function knownBlock(block: BlockSyntax): Found {
  return { link: { kind: 'known', block }, leadsTo: [block] };
}

/** A reference with placeholders may mean any workflow of the file, and every static value of its variables. */
function openLink(
  library: Library,
  known: StaticValues,
  from: BlockSyntax,
  reference: TomlString,
  parts: readonly (string | Hole)[],
): Found {
  const { file } = from.report.source;
  const names = new Map<string, BlockSyntax>();
  const fits = segmentMatcher(parts.map((part) => (typeof part === 'string' ? part : '*')).join(''));
  const own = library.modules.get(file);
  for (const { name } of own?.sections ?? []) {
    for (const text of [name, `.${name}`]) {
      const block = fits(text) ? (own?.block(name) ?? null) : null;
      if (block === null) continue;
      names.set(text, block);
    }
  }
  for (const { text, file: writtenIn } of known.textsOf(parts)) {
    // Resolved from the file that uses it; else from the file that contains the value.
    const [resolved] = [file, writtenIn].flatMap((base) => {
      const tried = base === null ? null : resolve(library, base, text);
      return tried?.kind === 'found' ? [tried] : [];
    });
    if (resolved === undefined) continue;
    const other = names.get(text);
    if (other === undefined) names.set(text, resolved.block);
    else if (other !== resolved.block) {
      const message = `"${text}" means one workflow in ${whereOf(other)} and another in ${whereOf(resolved.block)}`;
      from.report.error('ambiguous-template', reference.place, message, 'Pass it with its file: "file#name".');
    }
  }
  if (names.size === 0) {
    const message = 'no possible value is known for this: the step would fail';
    const hint = 'Name the workflow by a variable that is given by --var, has a default, or is passed by name.';
    from.report.warning('unknown-template', reference.place, message, hint);
  }
  return { link: { kind: 'open', names }, leadsTo: new Set(names.values()) };
}

function whereOf({ report }: BlockSyntax): string {
  return report.source.file;
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
    ? `There is no file ${searched}, seen from this one.`
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
