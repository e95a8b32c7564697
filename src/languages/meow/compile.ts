// Compiles MEOW text to a Program: files → TOML trees → workflows as syntax → links between them → scopes → IR. Every
// problem is reported; a Program is made only without errors.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import type { Json } from '../../base/json.ts';
import type { Limits, Program } from '../../ir/program.ts';
import { DEFAULT_LIMITS } from '../../ir/program.ts';
import type { Compiled } from '../language.ts';
import { suggest } from '../report.ts';
import { checkAgents } from './check-agents.ts';
import { checkCalls } from './check-calls.ts';
import { checkReach } from './check-reach.ts';
import type { FindOtherWorkflow, Library, Linked } from './link.ts';
import { linkBlocks } from './link.ts';
import type { Setting } from './lower-block.ts';
import { lowerBlock, lowerCleanups } from './lower-block.ts';
import { findSection } from './module.ts';
import type { MeowFile, Module } from './modules.ts';
import { openModule } from './modules.ts';
import type { AdapterChoice } from './scope.ts';
import type { Root, CallerScopes } from './caller-scope.ts';
import { callerScopes } from './caller-scope.ts';
import type { BlockSyntax } from './syntax.ts';

export interface MeowInput {
  /** Path as the user wrote it. */
  readonly file: string;
  readonly text: string;
  /** The name after `#`; null is `main`. */
  readonly workflow: string | null;
  /** Names of the run's variables; null if nothing will run, and every required variable counts as given. */
  readonly given: readonly string[] | null;
  /** Their values, if they can name a template. */
  readonly values?: Readonly<Record<string, Json>>;
  readonly limits?: Limits;
  readonly others?: OtherFiles;
  readonly adapters?: Adapters;
}

/** All referenced files, and which name in which file means which of them. */
export interface OtherFiles {
  readonly files: readonly MeowFile[];
  /** The `file` of one of them, or of the compiled one; null if the name is unknown. */
  readonly find: (from: string, name: string) => string | null;
  /** Workflows of other languages. */
  readonly foreign?: FindOtherWorkflow;
}

export interface Adapters {
  /** Overrides every choice of the workflow; null does not. */
  readonly forced: string | null;
  /** Used if the workflow names none. */
  readonly fallback: () => string;
  /** Why an adapter cannot be used, reported as a warning; absent if that does not matter. */
  readonly refusal?: AdapterChoice['refusal'];
}

const DRAIN_MS = 600_000;
/** Without a catalog nothing will be started. */
const NO_ADAPTERS: Adapters = { forced: null, fallback: () => 'sim' };

/** Compiles the requested workflow and everything it refers to. Errors in other workflows do not matter. */
export function compileMeow(input: MeowInput): Compiled {
  const { file, workflow, given, values = {}, limits = DEFAULT_LIMITS } = input;
  const library = openLibrary(input);
  const section = findSection(library.entry.report, library.entry.sections, workflow);
  const entry = section === null ? null : library.entry.block(section.name);
  if (entry === null) return { program: null, diagnostics: diagnosticsOf(library), fileVariables: [] };
  checkSize(entry, limits);
  const whole = look(library, [{ block: entry, given: given ?? [], openness: 'closed' }], values);
  const settingOf = settings(whole, input, entry);
  const blocks = whole.linked.blocks.map((block) => lowerBlock(block, whole.sight, settingOf(block)));
  const cleanup = lowerCleanups(entry, whole.sight, settingOf(entry));
  checkAll(whole);
  checkEntry(entry, whole, given);
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
    drainMs: entry.workflow.drainMs ?? DRAIN_MS,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
  return { program, diagnostics, fileVariables };
}

/** Checks every workflow of the file, and everything they refer to. */
export function validateMeow(input: Pick<MeowInput, 'file' | 'text' | 'others' | 'adapters'>): readonly Diagnostic[] {
  const library = openLibrary(input);
  const { entry } = library;
  const all = entry.sections.flatMap(({ name }) => entry.block(name) ?? []);
  const visible = all.filter(({ workflow }) => workflow.internal === null);
  // Internal workflows are checked through their callers; unused ones by themselves.
  const reached = new Set(linkBlocks(library, visible, {}).blocks);
  const roots = all.filter((block) => block.workflow.internal === null || !reached.has(block)).map(rootOf);
  const whole = look(library, roots, {});
  const settingOf = settings(whole, input, null);
  for (const block of whole.linked.blocks) lowerBlock(block, whole.sight, settingOf(block));
  for (const block of all) lowerCleanups(block, whole.sight, settingOf(block));
  checkAll(whole);
  return diagnosticsOf(library);
}

/** Anyone may call a workflow that is not internal; `main` is there to be run. */
function rootOf(block: BlockSyntax): Root {
  return { block, given: [], openness: block.workflow.name === 'main' ? 'closed' : 'called' };
}

interface Opened extends Library {
  readonly entry: Module;
}

function openLibrary({ file, text, others }: Pick<MeowInput, 'file' | 'text' | 'others'>): Opened {
  const entry = openModule({ file, text }, '');
  const modules = new Map([[file, entry]]);
  for (const other of others?.files ?? []) {
    if (other.file !== file) modules.set(other.file, openModule(other, `${other.file}#`));
  }
  const foreign = others?.foreign ?? (() => null);
  return { entry, modules, find: others?.find ?? (() => null), foreign, touched: new Set([entry]) };
}

/** Diagnostics of all files involved, the first file first. */
function diagnosticsOf({ touched }: Opened): readonly Diagnostic[] {
  return [...touched].flatMap(({ report }) => report.diagnostics());
}

/** Everything that belongs to one compilation. */
interface Compilation {
  readonly linked: Linked;
  readonly sight: CallerScopes;
  /** Names that each block refers to. */
  readonly used: ReadonlyMap<BlockSyntax, Set<string>>;
}

function look(library: Library, roots: readonly Root[], values: Readonly<Record<string, Json>>): Compilation {
  const linked = linkBlocks(
    library,
    roots.map(({ block }) => block),
    values,
  );
  const used = new Map(linked.blocks.map((block) => [block, new Set<string>()]));
  return { linked, sight: callerScopes(linked, roots), used };
}

/** `entry`: the first block of the run; null if nothing will run. */
function settings(
  { linked, used }: Compilation,
  { given, adapters = NO_ADAPTERS }: Partial<Pick<MeowInput, 'given' | 'adapters'>>,
  entry: BlockSyntax | null,
): (block: BlockSyntax) => Setting {
  const passed = new Set(given ?? []);
  const nothing: ReadonlySet<string> = new Set();
  const hasVariable = (block: BlockSyntax | null): boolean =>
    block?.variables.some(({ name, required, hasDefault }) => name === 'default_adapter' && (required || hasDefault)) ??
    false;
  const ofEntry = hasVariable(entry) || passed.has('default_adapter');
  const literal = entry?.workflow.defaultAdapter?.value ?? null;
  const fallback = literal === null || literal.includes('{{') ? adapters.fallback : () => literal;
  return (block) => ({
    passed: block === entry ? passed : nothing,
    links: linked,
    adapter: {
      forced: adapters.forced,
      fallback,
      hasVariable: ofEntry || hasVariable(block),
      refusal: adapters.refusal ?? (() => null),
    },
    onUse: (name) => used.get(block)?.add(name),
  });
}

function checkAll({ linked, sight, used }: Compilation): void {
  checkCalls(linked, sight, (block, name) => used.get(block)?.has(name) ?? false);
  checkAgents(linked, sight);
  checkReach(linked);
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
  for (const { name, place, required, hasDefault } of variables) {
    if (hasDefault || given.includes(name) || !(required || isUsedHere(name))) continue;
    const why = required ? 'is required' : 'has no default, is used';
    const message = `the variable "${name}" ${why}, and was not given`;
    report.error('missing-variable', place, message, `Pass it: --var ${name}=VALUE.`);
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
