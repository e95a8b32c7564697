// Symbols of MEOW files: workflows, variables, steps and outputs, and every need, placeholder, template and passed
// variable that names one. It reads what is readable of a damaged text.

import type { Place } from '../../base/source.ts';
import type { Path } from '../keys.ts';
import { createReport } from '../report.ts';
import type { Definition, NamedPart, Suggestion, Suggestions, Symbols, Use, WrittenKey } from '../symbols.ts';
import { lineBefore, suggestions, toItems } from '../symbols.ts';
import { type Hole, parseTemplate } from '../template.ts';
import { entriesOf, valueOf } from '../toml-fields.ts';
import { readPartialToml } from '../toml.ts';
import { tomlCursorAt } from '../toml-cursor.ts';
import { placeWithin, type TomlString, type TomlTable, type TomlValue } from '../toml-tree.ts';
import { explainAt, keyOf, keysAt, textsOf, valuesAt } from '../written-keys.ts';
import type { OtherFiles } from './compile.ts';
import { MEOW } from './keys.ts';
import { type Call, type Library, linkBlocks, type Linked } from './link.ts';
import { idsOfRound, stepsBelow, stepsOfRound } from './linked-targets.ts';
import { type MeowFile, openModule } from './modules.ts';
import { STEP_BUILTINS } from './scope.ts';
import { type BlockSyntax, isPlaceholder, type StepSyntax, type VariableSyntax } from './syntax.ts';

/** `adapters`: their names. */
export function meowSymbols(
  entry: MeowFile,
  { files, find }: Pick<OtherFiles, 'files' | 'find'>,
  adapters: readonly string[],
): Symbols {
  const tolerant = (file: MeowFile, prefix: string) =>
    openModule(file, prefix, (report) => readPartialToml(report)?.root ?? null);
  const first = tolerant(entry, '');
  const modules = new Map([[entry.file, first]]);
  for (const file of files) if (file.file !== entry.file) modules.set(file.file, tolerant(file, `${file.file}#`));
  const library: Library = { entry: first, modules, find, foreign: () => null, touched: new Set() };
  const roots = [...modules.values()].flatMap(({ sections, block }) =>
    sections.flatMap(({ name }) => block(name) ?? []),
  );
  return new MeowSymbols(linkBlocks(library, roots, {}), (workflow) => first.block(workflow ?? 'main'), adapters);
}

class MeowSymbols implements Symbols {
  readonly definitions: Definition[] = [];
  readonly uses: Use[] = [];
  readonly #linked: Linked;
  readonly #entry: (workflow: string | null) => BlockSyntax | null;
  readonly #adapters: readonly string[];
  readonly #workflows = new Map<BlockSyntax, Definition>();
  readonly #steps = new Map<StepSyntax, Definition>();
  readonly #variables = new Map<VariableSyntax, Definition>();
  readonly #outputs = new Map<string, Definition>();
  /** Calls by the block that they enter. */
  readonly #callers = new Map<BlockSyntax, Call[]>();

  readonly #scopes = new Map<BlockSyntax, Scope>();

  /** `entry`: the workflow of the first file with a name. */
  constructor(linked: Linked, entry: (workflow: string | null) => BlockSyntax | null, adapters: readonly string[]) {
    this.#linked = linked;
    this.#entry = entry;
    this.#adapters = adapters;
    for (const call of linked.calls) this.#callers.set(call.to, [...(this.#callers.get(call.to) ?? []), call]);
    const workflows = linked.blocks.filter(({ key }) => key === null);
    for (const block of workflows) this.#define(block, this.#defineWorkflow(block));
    for (const block of linked.blocks) this.#findUses(block);
  }

  suggest(file: string, offset: number): Suggestions | null {
    const around = this.#around(file, offset);
    if (around === null) return null;
    const { block } = around;
    const { text } = block.report.source;
    const reference = /\{\{\s*([\w.-]*)$/.exec(lineBefore(text, offset))?.[1];
    if (reference !== undefined) return suggestions(text, offset, this.#inBraces(around, reference.split('.')));
    const cursor = tomlCursorAt(text, offset);
    const tree = readPartialToml(createReport(block.report.source));
    if (cursor === null || tree === null) return null;
    const textAt = textsOf(tree.root);
    const keys = keysAt(MEOW.root, cursor, textAt, (path) => isPresent(tree.root, path));
    if (keys.length > 0) return suggestions(text, offset, keys);
    const key = keyOf(cursor);
    const names = key === null ? [] : this.#valuesOf(around, key, lineBefore(text, offset));
    const items = [...valuesAt(MEOW.root, cursor, textAt), ...names];
    const isText = items.some(({ label }) => label !== 'true' && label !== 'false');
    const isPath = key === 'template' || key === 'on_error' || key === 'on_exhausted';
    const name = isPath ? /[\w./#-]*$/ : /[\w-]*$/;
    return items.length === 0 ? null : suggestions(text, offset, items, { quotes: isText, name });
  }

  keyAt(file: string, offset: number): WrittenKey | null {
    const report = this.#linked.blocks.find((block) => block.report.source.file === file)?.report;
    const tree = report === undefined ? null : readPartialToml(createReport(report.source));
    return tree === null ? null : explainAt(tree.root, MEOW.root, offset);
  }

  /** Names that the value of a key may be. */
  #valuesOf({ block, step }: Around, key: string, line: string): readonly Suggestion[] {
    switch (key) {
      case 'needs':
        return toItems(
          'step',
          [...block.byId.keys()].filter((id) => !isPlaceholder(id) && id !== step?.id),
        );
      case 'agent':
        return toItems('value', this.#agents(), 'agent');
      case 'adapter':
      case 'default_adapter':
        return toItems('value', this.#adapters, 'adapter');
      case 'template':
        return this.#templates(block);
      case 'on_error':
      case 'on_exhausted':
        return [...toItems('value', ['fail', 'continue']), ...this.#templates(block)];
      case 'until_output': {
        const [, written = ''] = /["']([\w.-]*)$/.exec(line) ?? [];
        return step === null ? [] : this.#inPath(this.#rounds(step), written.split('.'));
      }
      default:
        return [];
    }
  }

  #inBraces({ block, step }: Around, path: readonly string[]): readonly Suggestion[] {
    const [name = '', ...rest] = path;
    const rounds = this.#roundsAround(block);
    const isInRound = rounds.length > 0 && !this.#visibleSteps(block).some(({ id }) => id === 'previous');
    if (rest.length > 0) {
      if (name === 'previous' && isInRound) return this.#inPath(rounds, rest);
      return this.#inPath(this.#visibleSteps(block), path);
    }
    const variables = this.#visibleVariables(block).map(({ name: label, type }) => ({
      label,
      kind: 'variable' as const,
      detail: type,
    }));
    const brought = this.#visibleCalls(block).flatMap(({ target }) => [
      ...toItems('variable', target.brings, 'variable'),
      ...toItems(
        'variable',
        target.variables.map(({ key }) => key),
        'variable',
      ),
    ]);
    return [
      ...variables,
      ...brought,
      ...this.#inPath(
        this.#visibleSteps(block).filter((each) => each !== step),
        path,
      ),
      ...toItems('variable', STEP_BUILTINS, 'built in'),
      ...(isInRound ? toItems('value', ['previous'], 'the round before') : []),
    ];
  }

  /** What may follow in `step.below.outputs.name`, whose last name is being written. */
  #inPath(steps: readonly StepSyntax[], [name = '', ...rest]: readonly string[]): readonly Suggestion[] {
    if (rest.length === 0) {
      const named = steps.filter(({ id }) => !isPlaceholder(id));
      return named.map(({ id, executor }) => ({ label: id, kind: 'step', detail: executor ?? 'step' }));
    }
    const found = steps.find(({ id }) => id === name);
    if (found === undefined) return [];
    const at = rest.indexOf('outputs');
    const below = rest.slice(0, at === -1 ? rest.length - 1 : at);
    const [last] = below.length === 0 ? [found] : (stepsBelow(this.#linked, found, below) ?? []);
    if (last === undefined) return [];
    if (at !== -1) {
      const inner = rest.slice(at + 1, -1);
      const owners = inner.reduce<readonly StepSyntax[]>(
        (steps, id) => steps.flatMap((step) => this.#roundSteps(step, id)),
        [last],
      );
      return owners.flatMap((owner): readonly Suggestion[] => [
        ...[...(owner.outputs ?? [])].map(([label, type]) => ({ label, kind: 'output' as const, detail: type })),
        ...toItems('step', owner.executor === 'loop' ? idsOfRound(this.#linked, owner) : [], 'in the last round'),
      ]);
    }
    const inner = last.targets.flatMap((target) => {
      const link = this.#linked.of(target);
      return link?.kind === 'known' ? link.block.steps.map(({ id }) => id) : [];
    });
    return [...toItems('value', ['outputs'], 'its outputs'), ...toItems('step', inner)];
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
      // The header of its first step may be its own.
      const start = Math.min(block.place.from, block.steps[0]?.table.place.from ?? block.place.from);
      if (block.key === null && start <= offset && (best === null || start >= best.from))
        best = { block, step: null, from: start };
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
      // The condition of a loop is a script, whose step is not written anywhere.
      for (const { kind, to } of step.targets)
        if (to.kind === 'inline' && kind !== 'check') this.#define(to.block, definition);
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
      this.#inRound(block, step);
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

  /** `until_output` names a step of the round without braces. */
  #inRound(block: BlockSyntax, loop: StepSyntax): void {
    const written = valueOf(loop.table, 'until_output', 'string');
    if (written !== null) this.#pathInRounds(block, this.#rounds(loop), written, 0, written.value.split('.'));
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
    const variable = this.#scope(block).variableByName.get(name);
    const definition = variable === undefined ? undefined : this.#variables.get(variable);
    if (definition !== undefined) this.#use(block, placeWithin(string, start, start + name.length), [definition]);
    else if (name === 'previous' && path.length > 2)
      this.#pathInRounds(block, this.#roundsAround(block), string, start + 'previous.'.length, path.slice(1));
    else this.#path(block, string, start, path);
  }

  /** `step.below.outputs.name`, at an offset of the string. */
  #path(block: BlockSyntax, string: TomlString, at: number, path: readonly string[]): void {
    this.#pathFrom(block, this.#scope(block).stepById.get(path[0] ?? ''), string, at, path);
  }

  /** Of the steps of a round. */
  #pathInRounds(
    block: BlockSyntax,
    rounds: readonly StepSyntax[],
    string: TomlString,
    at: number,
    path: readonly string[],
  ): void {
    const first = rounds.find(({ id }) => id === path[0]);
    this.#pathFrom(block, first, string, at, path);
  }

  #pathFrom(
    block: BlockSyntax,
    first: StepSyntax | undefined,
    string: TomlString,
    at: number,
    path: readonly string[],
  ): void {
    if (first === undefined) return;
    const split = path.indexOf('outputs');
    const { parts } = this.#named(first, path, split === -1 ? path.length : split, 'outputs'.length + 1);
    for (const { place, to } of parts) this.#use(block, placeWithin(string, at + place.from, at + place.to), to);
  }

  /** Parts of a path that name steps, and the output behind them. `gap`: length of what is between the two. */
  #named(
    first: StepSyntax,
    path: readonly string[],
    steps: number,
    gap: number,
  ): { readonly parts: readonly NamedPart[]; readonly isOutput: boolean } {
    const parts: NamedPart[] = [];
    let offset = 0;
    let found: readonly StepSyntax[] = [first];
    const add = (name: string, to: readonly Definition[]): void => {
      if (to.length > 0) parts.push({ place: { from: offset, to: offset + name.length }, to, spelling: 'name' });
    };
    for (const [index, segment] of path.slice(0, steps).entries()) {
      if (index > 0) found = stepsBelow(this.#linked, first, path.slice(1, index + 1)) ?? [];
      add(
        segment,
        found.filter(({ id }) => id === segment).flatMap((step) => this.#steps.get(step) ?? []),
      );
      offset += segment.length + 1;
    }
    offset += gap;
    for (const output of path.slice(steps + (gap > 0 ? 1 : 0))) {
      const owners = found.flatMap((step) => this.#steps.get(step) ?? []);
      const outputs = owners.flatMap((owner) => this.#outputs.get(outputKey(owner, output)) ?? []);
      add(output, outputs);
      if (outputs.length > 0) return { parts, isOutput: true };
      // The outputs of a loop contain those of the steps of its last round.
      found = found.flatMap((step) => this.#roundSteps(step, output));
      add(
        output,
        found.flatMap((step) => this.#steps.get(step) ?? []),
      );
      offset += output.length + 1;
    }
    return { parts, isOutput: false };
  }

  /** Gates have names of their own. */
  namedIn({ kind, text }: Parameters<Symbols['namedIn']>[0], workflow: string | null): readonly NamedPart[] {
    const entry = this.#entry(workflow);
    const path = text.replace(/#.*$/, '').split('.');
    const first = entry?.byId.get(path[0] ?? '');
    if (kind === 'gate' || first === undefined) return [];
    if (kind === 'step') return this.#named(first, path, path.length, 0).parts;
    for (let steps = path.length - 1; steps > 0; steps -= 1) {
      const { parts, isOutput } = this.#named(first, path, steps, 0);
      if (isOutput) return parts;
    }
    return this.#named(first, path, 1, 0).parts;
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

  #visibleCalls(block: BlockSyntax): readonly Call[] {
    return this.#visible(block, (each) => this.#callers.get(each) ?? []);
  }

  /** Steps of the rounds that the block is a part of. */
  #roundsAround(block: BlockSyntax): readonly StepSyntax[] {
    const loops = this.#visibleCalls(block).filter(({ target: { kind } }) => kind === 'round' || kind === 'check');
    return [...new Set(loops.map(({ step }) => step))].flatMap((loop) => this.#rounds(loop));
  }

  /** Steps with that id in the rounds of a loop; none if the step is not a loop. */
  #roundSteps(loop: StepSyntax, id: string): readonly StepSyntax[] {
    return stepsOfRound(this.#linked, loop, id) ?? [];
  }

  #rounds(loop: StepSyntax): readonly StepSyntax[] {
    return idsOfRound(this.#linked, loop).flatMap((id) => this.#roundSteps(loop, id));
  }

  #visibleSteps(block: BlockSyntax): readonly StepSyntax[] {
    return this.#scope(block).steps;
  }

  #visibleVariables(block: BlockSyntax): readonly VariableSyntax[] {
    return this.#scope(block).variables;
  }

  /** Every placeholder asks for it. */
  #scope(block: BlockSyntax): Scope {
    const known = this.#scopes.get(block);
    if (known !== undefined) return known;
    const steps = this.#visible(block, (each) => each.steps);
    const variables = this.#visible(block, (each) => each.variables);
    // The nearest of one name counts.
    const scope = {
      steps,
      variables,
      stepById: new Map(steps.toReversed().map((step) => [step.id, step])),
      variableByName: new Map(variables.toReversed().map((variable) => [variable.name, variable])),
    };
    this.#scopes.set(block, scope);
    return scope;
  }
}

/** What is visible in a block. */
interface Scope {
  readonly steps: readonly StepSyntax[];
  readonly variables: readonly VariableSyntax[];
  readonly stepById: ReadonlyMap<string, StepSyntax>;
  readonly variableByName: ReadonlyMap<string, VariableSyntax>;
}

interface Around {
  readonly block: BlockSyntax;
  readonly step: StepSyntax | null;
}

function isPresent(root: TomlTable, path: Path): boolean {
  let value: TomlValue | undefined = root;
  for (const step of path) {
    if (value?.kind === 'table') value = value.entries.get(String(step))?.value;
    else value = value?.kind === 'list' && typeof step === 'number' ? value.items[step] : undefined;
  }
  return value !== undefined;
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
