// Compiles MEOW text to a Program: files → TOML trees → workflows as syntax → links between them → scopes → IR. Every
// problem is reported; a Program is made only without errors.

import { secretReference } from '../../base/secret-reference.ts';
import type { JsonMap } from '../../base/json.ts';
import { type Diagnostic, hasErrors } from '../../base/source.ts';
import { type CommandSpec, commandSpec } from '../../ir/effect.ts';
import {
  type Block,
  DEFAULT_DRAIN_MS,
  DEFAULT_LIMITS,
  type Limits,
  type Parameter,
  type Program,
} from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { Compiled } from '../language.ts';
import { suggest } from '../report.ts';
import type { TomlString } from '../toml-tree.ts';
import { checkAgents, checkCalls, checkReach, checkRounds } from './checks.ts';
import { type FindOtherWorkflow, type Library, linkBlocks, type Linked } from './link.ts';
import { findBlock, type MeowFile, openModule } from './modules.ts';
import { callerScopes, type CallerScopes, type Root } from './needs.ts';
import { type Adapters, type Scope, STEP_BUILTINS, WORKFLOW_BUILTINS } from './scope.ts';
import { lowerStep } from './step.ts';
import type { BlockSyntax, VariableSyntax } from './syntax.ts';
import { lowerDefault, lowerScript } from './text.ts';
import { outlineOf } from './outline.ts';

export interface MeowInput {
  /** Path as the user wrote it. */
  readonly file: string;
  readonly text: string;
  /** The name after `#`; null is `main`. */
  readonly workflow: string | null;
  /** Names of the run's variables; null if nothing will run, and every required variable counts as given. */
  readonly given: readonly string[] | null;
  /** Their values, if they can name a template. */
  readonly values?: JsonMap;
  readonly limits?: Limits;
  readonly others?: OtherFiles;
  readonly adapters?: Adapters;
}

/** All referenced files, and which name in which file means which of them. */
export interface OtherFiles {
  readonly files: readonly MeowFile[];
  /** The `file` of one of them, or of the compiled one; null if the name is unknown. */
  readonly find: (from: string, name: string) => string | null;
  readonly foreign?: FindOtherWorkflow;
}

/** Without a catalog nothing will be started. */
const NO_ADAPTERS: Adapters = { forced: null, fallback: () => 'sim' };

/** Compiles the requested workflow and everything it refers to. Errors in other workflows do not matter. */
export function compileMeow(input: MeowInput): Compiled {
  const { file, workflow, given, limits = DEFAULT_LIMITS } = input;
  const library = openLibrary(input);
  const entry = findBlock(library.entry, workflow);
  if (entry === null) return { program: null, diagnostics: diagnosticsOf(library), fileVariables: [] };
  checkSize(entry, limits);
  const compilation = analyze(library, [{ block: entry, given: given ?? [], openness: 'closed' }], entry, input);
  const blocks = compilation.linked.blocks.map((block) => lowerBlock(block, compilation));
  const cleanup = lowerCleanups(entry, compilation);
  checkAll(compilation);
  checkEntry(entry, compilation, given);
  const diagnostics = diagnosticsOf(library);
  const fileVariables = entry.variables.filter(({ isFile }) => isFile).map(({ name }) => name);
  if (hasErrors(diagnostics)) return { program: null, diagnostics, fileVariables };
  const program: Program = {
    format: 2,
    source: { language: 'meow', name: `${file}#${entry.workflow.name}` },
    entry: entry.name,
    blocks: Object.fromEntries(blocks.map((block) => [block.name, block])),
    cleanup,
    limits,
    drainMs: entry.workflow.drainMs ?? DEFAULT_DRAIN_MS,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
  return { program, diagnostics, fileVariables, outline: () => outlineOf(compilation.linked.blocks) };
}

/** Checks every workflow of the file, and everything they refer to. */
export function validateMeow(input: Pick<MeowInput, 'file' | 'text' | 'others' | 'adapters'>): readonly Diagnostic[] {
  const library = openLibrary(input);
  const { entry } = library;
  const all = entry.sections.flatMap(({ name }) => entry.block(name) ?? []);
  const visible = all.filter(({ workflow }) => workflow.internal === null);
  // Internal workflows are checked through their callers; unused ones by themselves.
  const reached = new Set(linkBlocks(library, visible, {}).blocks);
  const checked = all.filter((block) => block.workflow.internal === null || !reached.has(block));
  // Anyone may call a workflow that is not internal; `main` is there to be run.
  const roots = checked.map((block): Root => {
    return { block, given: [], openness: block.workflow.name === 'main' ? 'closed' : 'called' };
  });
  const compilation = analyze(library, roots, null, { adapters: input.adapters ?? NO_ADAPTERS });
  for (const block of compilation.linked.blocks) lowerBlock(block, compilation);
  for (const block of all) lowerCleanups(block, compilation);
  checkAll(compilation);
  return diagnosticsOf(library);
}

function openLibrary({ file, text, others }: Pick<MeowInput, 'file' | 'text' | 'others'>): Library {
  const entry = openModule({ file, text }, '');
  const modules = new Map([[file, entry]]);
  for (const other of others?.files ?? []) {
    if (other.file !== file) modules.set(other.file, openModule(other, `${other.file}#`));
  }
  const foreign = others?.foreign ?? (() => null);
  return { entry, modules, find: others?.find ?? (() => null), foreign, touched: new Set([entry]) };
}

/** Diagnostics of all files involved, the first file first. */
function diagnosticsOf({ touched }: Library): readonly Diagnostic[] {
  return [...touched].flatMap(({ report }) => report.diagnostics());
}

interface Compilation {
  readonly linked: Linked;
  readonly callers: CallerScopes;
  /** Names that each block refers to. */
  readonly used: ReadonlyMap<BlockSyntax, Set<string>>;
  /** The scope of a block, outside of its steps. */
  readonly scopeOf: (block: BlockSyntax) => Scope;
}

/** `entry`: the first block of the run; null if nothing will run. */
function analyze(
  library: Library,
  roots: readonly Root[],
  entry: BlockSyntax | null,
  { given, values = {}, adapters = NO_ADAPTERS }: Partial<Pick<MeowInput, 'given' | 'values' | 'adapters'>>,
): Compilation {
  const starts = roots.map(({ block }) => block);
  const linked = linkBlocks(library, starts, values);
  const callers = callerScopes(linked, roots);
  const used = new Map(linked.blocks.map((block) => [block, new Set<string>()]));
  const passed = new Set(given ?? []);
  const hasAdapterVariable = (block: BlockSyntax): boolean =>
    block.variables.some(({ name, required, hasDefault }) => name === 'default_adapter' && (required || hasDefault));
  const ofEntry = passed.has('default_adapter') || (entry !== null && hasAdapterVariable(entry));
  const entryAdapter = entry?.workflow.defaultAdapter?.value ?? null;
  const scopeOf = (block: BlockSyntax): Scope => ({
    ...block,
    variables: new Set(block.variables.map(({ name }) => name)),
    declared: block.variables,
    passed: block === entry ? passed : new Set(),
    builtins: WORKFLOW_BUILTINS,
    step: null,
    round: null,
    isFinished: () => false,
    ownOutputs: false,
    around: callers.around(block),
    links: linked,
    adapters,
    runAdapter: entryAdapter?.includes('{{') === true ? null : entryAdapter,
    hasAdapterVariable: ofEntry || hasAdapterVariable(block),
    onUse: (name) => used.get(block)?.add(name),
  });
  return { linked, callers, used, scopeOf };
}

function checkAll({ linked, callers, used }: Compilation): void {
  checkCalls(linked, callers, (block, name) => used.get(block)?.has(name) ?? false);
  checkAgents(linked, callers);
  checkReach(linked);
  checkRounds(linked);
}

/** Checks that apply only to a workflow run by name. */
function checkEntry(entry: BlockSyntax, { used }: Compilation, given: readonly string[] | null): void {
  const { report, workflow, variables } = entry;
  if (workflow.internal !== null) {
    const hint = 'Remove "internal", or run a workflow that uses it.';
    const message = `"${workflow.name}" is internal: only its own file may use it`;
    report.error('internal-workflow', workflow.internal, message, hint);
  }
  if (given === null) return;
  const isUsedHere = (name: string): boolean =>
    [...used].some(([block, names]) => block.workflow === workflow && names.has(name));
  for (const { name, place, required, hasDefault, secret } of variables) {
    if (hasDefault || given.includes(name) || !(required || isUsedHere(name))) continue;
    const why = required ? 'is required' : 'has no default, is used';
    const message = `the variable "${name}" ${why}, and was not given`;
    const flag = secret === undefined ? `--var ${name}=VALUE` : `--var-env ${name}=NAME`;
    report.error('missing-variable', place, message, `Pass it: ${flag}.`);
  }
  const declared = variables.map(({ name }) => name);
  for (const name of given) {
    if (declared.includes(name) || [...used.values()].some((names) => names.has(name))) continue;
    const hint = suggest(name, declared, 'Remove it, or declare it.');
    report.warning('unused-variable', workflow.place, `--var ${name} is given, and used nowhere`, hint);
  }
}

function checkSize({ report, workflow, steps }: BlockSyntax, { stepsMax }: Limits): void {
  if (steps.length <= stepsMax) return;
  const message = `"${workflow.name}" has ${String(steps.length)} steps; at most ${String(stepsMax)} may be in a run`;
  report.error('too-many-steps', workflow.place, message, 'Raise max_total_steps under [limits] in .meow/config.toml.');
}

function lowerBlock(block: BlockSyntax, { callers, scopeOf }: Compilation): Block {
  const order = callers.orderOf(block);
  const base = scopeOf(block);
  const steps = block.steps.flatMap((step) => {
    const isFinished = (id: string): boolean => order.isBefore(id, step);
    return lowerStep({ ...base, builtins: STEP_BUILTINS, step, isFinished }, step) ?? [];
  });
  return { name: block.name, parameters: lowerParameters(base, block.variables), steps, naming: 'path', visits: null };
}

function lowerCleanups(block: BlockSyntax, { scopeOf }: Compilation): Program['cleanup'] {
  const base = scopeOf(block);
  const { success, failure, stop } = block.workflow.cleanup;
  return {
    success: lowerCleanup({ ...base, isFinished: () => true }, success),
    failure: lowerCleanup(base, failure),
    stop: lowerCleanup(base, stop),
  };
}

/** A default sees earlier variables: they get their values in order of declaration. */
function lowerParameters(scope: Scope, variables: readonly VariableSyntax[]): readonly Parameter[] {
  const before = new Set<string>();
  return variables.map(({ name, type, required, fallback, description, secret }) => {
    const lowered: Parameter['fallback'] =
      fallback?.kind === 'text' ? { kind: 'text', text: lowerDefault(scope, before, fallback.text) } : fallback;
    before.add(name);
    if (secret !== undefined) {
      const reference: Parameter['fallback'] =
        secret === null ? null : { kind: 'literal', value: secretReference(secret, '', '') };
      return { name, type, required: secret === null, fallback: reference, description, secret: true } as const;
    }
    return { name, type, required, fallback: lowered, description };
  });
}

function lowerCleanup(scope: Scope, script: TomlString | null): CommandSpec<Text> | null {
  return script === null ? null : commandSpec<Text>(lowerScript(scope, script), null);
}
