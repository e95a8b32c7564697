// Symbols of MEOW files: workflows, variables, steps and outputs, and every need, placeholder, template and passed
// variable that names one. It reads what is readable of a damaged text.

import type { Place } from '../../base/source.ts';
import { keysOf } from '../keys.ts';
import { createReport } from '../report.ts';
import type { Definition, Suggestion, Suggestions, Symbols, Use, WrittenKey } from '../symbols.ts';
import { lineBefore, suggestions, toItems } from '../symbols.ts';
import { type Hole, parseTemplate } from '../template.ts';
import { entriesOf, valueOf } from '../toml-fields.ts';
import { readPartialToml } from '../toml.ts';
import { keyWrittenAt } from '../toml-keys.ts';
import { placeWithin, type TomlString, type TomlTable, type TomlValue } from '../toml-tree.ts';
import type { OtherFiles } from './compile.ts';
import { EXECUTOR_NAMES } from './executors/executors.ts';
import { MEOW, STEP, WORKFLOW_KEYS } from './keys.ts';
import { type Call, type Library, linkBlocks, type Linked } from './link.ts';
import { stepsBelow } from './linked-targets.ts';
import { type MeowFile, openModule } from './modules.ts';
import { STEP_BUILTINS } from './scope.ts';
import { type BlockSyntax, isPlaceholder, type StepSyntax, type VariableSyntax } from './syntax.ts';

export function meowSymbols(entry: MeowFile, { files, find }: Pick<OtherFiles, 'files' | 'find'>): Symbols {
  const tolerant = (file: MeowFile, prefix: string) =>
    openModule(file, prefix, (report) => readPartialToml(report)?.root ?? null);
  const first = tolerant(entry, '');
  const modules = new Map([[entry.file, first]]);
  for (const file of files) if (file.file !== entry.file) modules.set(file.file, tolerant(file, `${file.file}#`));
  const library: Library = { entry: first, modules, find, foreign: () => null, touched: new Set() };
  const roots = [...modules.values()].flatMap(({ sections, block }) =>
    sections.flatMap(({ name }) => block(name) ?? []),
  );
  return new MeowSymbols(linkBlocks(library, roots, {}));
}

class MeowSymbols implements Symbols {
  readonly definitions: Definition[] = [];
  readonly uses: Use[] = [];
  readonly #linked: Linked;
  readonly #workflows = new Map<BlockSyntax, Definition>();
  readonly #steps = new Map<StepSyntax, Definition>();
  readonly #variables = new Map<VariableSyntax, Definition>();
  readonly #outputs = new Map<string, Definition>();
  /** Calls by the block that they enter. */
  readonly #callers = new Map<BlockSyntax, Call[]>();

  constructor(linked: Linked) {
    this.#linked = linked;
    for (const call of linked.calls) this.#callers.set(call.to, [...(this.#callers.get(call.to) ?? []), call]);
    const workflows = linked.blocks.filter(({ key }) => key === null);
    for (const block of workflows) this.#define(block, this.#defineWorkflow(block));
    for (const block of linked.blocks) this.#findUses(block);
  }

  suggest(file: string, offset: number): Suggestions | null {
    const around = this.#around(file, offset);
    if (around === null) return null;
    const { block, step } = around;
    const { text } = block.report.source;
    const line = lineBefore(text, offset);
    const reference = /\{\{\s*([\w.-]*)$/.exec(line)?.[1];
    if (reference !== undefined) return suggestions(text, offset, this.#inBraces(around, reference.split('.')));
    const written = text.slice(step?.table.place.from ?? block.place.from, offset);
    const others = [...block.byId.keys()].filter((id) => !isPlaceholder(id) && id !== step?.id);
    const quotes = { quotes: true };
    if (/(?:^|[\s{,])needs\s*=\s*\[[^\]]*$/.test(written))
      return suggestions(text, offset, toItems('step', others), quotes);
    const value = /(?:^|[\s{,])([\w-]+)\s*=\s*(?:"[^"]*|'[^']*|[\w-]*)$/.exec(line)?.[1];
    if (value === 'executor') return suggestions(text, offset, toItems('value', EXECUTOR_NAMES, 'executor'), quotes);
    if (value === 'agent') return suggestions(text, offset, toItems('value', this.#agents(), 'agent'), quotes);
    if (value === 'template' || value === 'on_error')
      return suggestions(text, offset, this.#templates(block), { quotes: true, name: /[\w./#-]*$/ });
    if (value !== undefined || !/^\s*[\w-]*$/.test(line)) return null;
    const keys = step === null ? WORKFLOW_KEYS : keysOf(STEP, step.executor);
    const missing = keys.filter(({ name }) => step?.table.entries.has(name) !== true);
    const items = missing.map(({ name, doc }) => ({ label: name, kind: 'key' as const, detail: doc }));
    return suggestions(text, offset, items);
  }

  keyAt(file: string, offset: number): WrittenKey | null {
    const report = this.#linked.blocks.find((block) => block.report.source.file === file)?.report;
    const tree = report === undefined ? null : readPartialToml(createReport(report.source));
    const found = tree === null ? null : keyWrittenAt(tree.root, MEOW.root, offset);
    return found === null ? null : { place: found.place, about: `\`${found.key.name}\`: ${found.key.doc}` };
  }

  #inBraces({ block, step }: Around, [name = '', ...rest]: readonly string[]): readonly Suggestion[] {
    if (rest.length === 0) {
      const variables = this.#visibleVariables(block).map(({ name: label, type }) => ({
        label,
        kind: 'variable' as const,
        detail: type,
      }));
      const steps = this.#visibleSteps(block).filter((each) => each !== step && !isPlaceholder(each.id));
      const named = steps.map(({ id, executor }) => ({ label: id, kind: 'step' as const, detail: executor ?? 'step' }));
      return [...variables, ...named, ...toItems('variable', STEP_BUILTINS, 'built in')];
    }
    const found = this.#visibleSteps(block).find(({ id }) => id === name);
    if (found === undefined) return [];
    const at = rest.indexOf('outputs');
    const below = rest.slice(0, at === -1 ? rest.length - 1 : at);
    const [last] = below.length === 0 ? [found] : (stepsBelow(this.#linked, found, below) ?? []);
    if (last === undefined) return [];
    if (at !== -1 && at === rest.length - 2) {
      return [...(last.outputs ?? [])].map(([label, type]) => ({ label, kind: 'output', detail: type }));
    }
    const inner = last.targets.flatMap((target) => {
      const link = this.#linked.of(target);
      return link?.kind === 'known' ? link.block.steps.map(({ id }) => id) : [];
    });
    return at === -1 ? [...toItems('value', ['outputs'], 'its outputs'), ...toItems('step', inner)] : [];
  }

  #agents(): readonly string[] {
    const steps = this.#linked.blocks.flatMap((block) => block.steps);
    const named = steps.flatMap(({ table }) => valueOf(table, 'agent', 'string')?.value ?? []);
    return [...new Set(named)].filter((name) => !name.includes('{{') && name !== '');
  }

  #templates({ report }: BlockSyntax): readonly Suggestion[] {
    const { file } = report.source;
    return [...this.#workflows.values()].map(({ name, file: other }) =>
      other === file
        ? { label: `.${name}`, kind: 'workflow' as const, detail: 'of this file' }
        : { label: `${fileStem(other)}#${name}`, kind: 'workflow' as const, detail: other },
    );
  }

  /** The innermost block and step at an offset. A table by header reaches to the next header. */
  #around(file: string, offset: number): Around | null {
    let best: (Around & { readonly from: number }) | null = null;
    const blocks = this.#linked.blocks.filter(({ report }) => report.source.file === file);
    for (const block of blocks) {
      if (block.key === null && block.place.from <= offset && (best === null || block.place.from >= best.from))
        best = { block, step: null, from: block.place.from };
      for (const step of block.steps) {
        const { from, to } = step.table.place;
        const isInline = block.report.source.text.charAt(from) === '{';
        if (from <= offset && (!isInline || offset <= to) && (best === null || from >= best.from))
          best = { block, step, from };
      }
    }
    const [first] = blocks;
    return best ?? (first === undefined ? null : { block: first, step: null });
  }

  // ── Definitions ───────────────────────────────────────────────────────────────────────────────────────────────────

  #defineWorkflow(block: BlockSyntax): Definition {
    const { source } = block.report;
    const { name } = block.workflow;
    const written = source.text.slice(block.place.from, block.place.to);
    const at = Math.max(0, written.indexOf(name));
    const from = block.place.from + at;
    return this.#add(block, {
      kind: 'workflow',
      name,
      place: written.includes(name) ? { from, to: from + name.length } : block.place,
      extent: block.place,
      about: `workflow \`${name}\``,
      parent: null,
    });
  }

  /** Variables and steps, and the steps inside of them. */
  #define(block: BlockSyntax, parent: Definition): void {
    if (block.key === null) this.#workflows.set(block, parent);
    for (const variable of block.variables) {
      const { name, place } = variable;
      const about = aboutVariable(variable);
      this.#variables.set(variable, this.#add(block, { kind: 'variable', name, place, extent: place, about, parent }));
    }
    for (const step of block.steps) {
      if (isPlaceholder(step.id)) continue;
      const id = valueOf(step.table, 'id', 'string');
      const place = id === null ? step.place : innerPlace(id);
      const extent = extentOf(step.table);
      const definition = this.#add(block, {
        kind: 'step',
        name: step.id,
        place,
        extent,
        about: aboutStep(step),
        parent,
      });
      this.#steps.set(step, definition);
      for (const { key, keyPlace } of ['outputs', 'shell_outputs'].flatMap((each) => entriesOf(step.table, each))) {
        const about = `output \`${key}\` of \`${step.id}\`: ${step.outputs?.get(key) ?? 'any'}`;
        const output = this.#add(block, {
          kind: 'output',
          name: key,
          place: keyPlace,
          extent: keyPlace,
          about,
          parent: definition,
        });
        this.#outputs.set(outputKey(definition, key), output);
      }
      for (const { to } of step.targets) if (to.kind === 'inline') this.#define(to.block, definition);
    }
  }

  #add({ report }: BlockSyntax, written: Omit<Definition, 'file' | 'isFile'>): Definition {
    const definition = { ...written, file: report.source.file, isFile: false };
    this.definitions.push(definition);
    return definition;
  }

  // ── Uses ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  #findUses(block: BlockSyntax): void {
    const { success, failure, stop } = block.workflow.cleanup;
    if (block.key === null)
      for (const script of [success, failure, stop]) if (script !== null) this.#inText(block, script);
    for (const { fallback } of block.variables) if (fallback?.kind === 'text') this.#inText(block, fallback.text);
    for (const step of block.steps) {
      for (const need of valueOf(step.table, 'needs', 'list')?.items ?? []) {
        if (need.kind === 'string') this.#path(block, need, 0, need.value.split('.'));
      }
      this.#inValues(block, step.table);
      for (const target of step.targets) {
        const link = this.#linked.of(target);
        if (link?.kind !== 'known') continue;
        const workflow = this.#workflows.get(link.block);
        if (target.to.kind === 'template' && workflow !== undefined) {
          const { reference } = target.to;
          const at = reference.value.endsWith(workflow.name) ? reference.value.length - workflow.name.length : 0;
          const isName = at > 0 && '.#'.includes(reference.value.charAt(at - 1));
          const place = placeWithin(reference, isName ? at : 0, reference.value.length);
          this.#use(block, place, [workflow], isName ? 'name' : 'other');
        }
        for (const { key, keyPlace } of target.variables) {
          const variable = link.block.variables.find(({ name }) => name === key);
          const definition = variable === undefined ? undefined : this.#variables.get(variable);
          if (definition !== undefined) this.#use(block, keyPlace, [definition]);
        }
      }
    }
  }

  /** Inline steps are blocks of their own. */
  #inValues(block: BlockSyntax, table: TomlTable): void {
    const visit = (value: TomlValue): void => {
      if (value.kind === 'string') this.#inText(block, value);
      else if (value.kind === 'list') value.items.forEach(visit);
      else if (value.kind === 'table')
        for (const entry of value.entries.values()) if (entry.key !== 'inline') visit(entry.value);
    };
    for (const { key, value } of table.entries.values()) if (key !== 'needs' && key !== 'inline') visit(value);
  }

  #inText(block: BlockSyntax, string: TomlString): void {
    for (const part of parseTemplate(string.value).parts)
      if (typeof part !== 'string') this.#inHole(block, string, part);
  }

  #inHole(block: BlockSyntax, string: TomlString, { path, from, to }: Hole): void {
    const start = from + string.value.slice(from, to).indexOf(path.join('.'));
    const [name = ''] = path;
    const variable = this.#visibleVariables(block).find((each) => each.name === name);
    const definition = variable === undefined ? undefined : this.#variables.get(variable);
    if (definition !== undefined) this.#use(block, placeWithin(string, start, start + name.length), [definition]);
    else if (name === 'previous' && path.length > 2)
      this.#path(block, string, start + 'previous.'.length, path.slice(1));
    else this.#path(block, string, start, path);
  }

  /** `step.below.outputs.name`, at an offset of the string. */
  #path(block: BlockSyntax, string: TomlString, at: number, path: readonly string[]): void {
    const steps = path.includes('outputs') ? path.slice(0, path.indexOf('outputs')) : path;
    const first = this.#visibleSteps(block).find(({ id }) => id === steps[0]);
    if (first === undefined) return;
    let offset = at;
    let found: readonly StepSyntax[] = [first];
    for (const [index, segment] of steps.entries()) {
      if (index > 0) found = stepsBelow(this.#linked, first, steps.slice(1, index + 1)) ?? [];
      const named = found.filter(({ id }) => id === segment).flatMap((step) => this.#steps.get(step) ?? []);
      if (named.length > 0) this.#use(block, placeWithin(string, offset, offset + segment.length), named);
      offset += segment.length + 1;
    }
    const field = path[steps.length + 1];
    if (field === undefined) return;
    const owners = found.flatMap((step) => this.#steps.get(step) ?? []);
    const outputs = owners.flatMap((owner) => this.#outputs.get(outputKey(owner, field)) ?? []);
    offset += 'outputs.'.length;
    if (outputs.length > 0) this.#use(block, placeWithin(string, offset, offset + field.length), outputs);
  }

  #use({ report }: BlockSyntax, place: Place, to: readonly Definition[], spelling: Use['spelling'] = 'name'): void {
    this.uses.push({ file: report.source.file, place, to, spelling });
  }

  // ── Scope ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What the block has, and the blocks that enter it, the nearest first. */
  #visible<T>(block: BlockSyntax, of: (block: BlockSyntax) => readonly T[]): readonly T[] {
    const seen = new Set([block]);
    // The loop also visits what it adds.
    for (const each of seen) for (const { from } of this.#callers.get(each) ?? []) seen.add(from);
    return [...seen].flatMap(of);
  }

  #visibleSteps(block: BlockSyntax): readonly StepSyntax[] {
    return this.#visible(block, ({ steps }) => steps);
  }

  #visibleVariables(block: BlockSyntax): readonly VariableSyntax[] {
    return this.#visible(block, ({ variables }) => variables);
  }
}

interface Around {
  readonly block: BlockSyntax;
  readonly step: StepSyntax | null;
}

function outputKey({ file, place }: Definition, name: string): string {
  return JSON.stringify([file, place.from, name]);
}

function innerPlace(string: TomlString): Place {
  return placeWithin(string, 0, string.value.length);
}

/** From its header to its last value. */
function extentOf({ place, entries }: TomlTable): Place {
  return { from: place.from, to: Math.max(place.to, ...[...entries.values()].map(({ value }) => value.place.to)) };
}

function fileStem(path: string): string {
  return path.replace(/^.*\//, '').replace(/(?:\.meow)?\.toml$/, '');
}

function aboutVariable({ name, type, required, fallback, description }: VariableSyntax): string {
  const initial =
    fallback?.kind === 'text' ? fallback.text.value : fallback === null ? null : JSON.stringify(fallback.value);
  const value = required ? 'required' : initial === null ? 'no default' : `default \`${initial}\``;
  return [`variable \`${name}\`: ${type}, ${value}`, ...(description === null ? [] : [description])].join('\n\n');
}

function aboutStep({ id, executor, outputs, table }: StepSyntax): string {
  const described = valueOf(table, 'description', 'string')?.value ?? null;
  const lines = [...(outputs ?? [])].map(([name, type]) => `- \`${name}\`: ${type}`);
  return [
    `step \`${id}\` (${executor ?? 'no executor'})`,
    ...(described === null ? [] : [described]),
    ...(lines.length === 0 ? [] : [`Outputs:\n\n${lines.join('\n')}`]),
  ].join('\n\n');
}
