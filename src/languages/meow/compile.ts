// MEOW text → Program. The way: TOML tree → module → workflow as syntax → steps in the order of their needs → IR.
// Every problem of the text is reported; a Program is made only where none of them is an error.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { CommandSpec } from '../../ir/effect.ts';
import type { Block, Limits, Parameter, Program } from '../../ir/program.ts';
import { DEFAULT_LIMITS } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { createReport, suggest } from '../report.ts';
import { readToml } from '../toml.ts';
import type { TomlString } from '../toml-tree.ts';
import type { Section } from './module.ts';
import { findSection, readModule } from './module.ts';
import { checkNeeds } from './needs.ts';
import type { Scope } from './scope.ts';
import { STEP_BUILTINS, WORKFLOW_BUILTINS } from './scope.ts';
import { lowerStep } from './step.ts';
import type { VariableSyntax, WorkflowSyntax } from './syntax.ts';
import { lowerDefault, lowerScript } from './text.ts';
import { readWorkflow } from './workflow.ts';

export interface MeowInput {
  /** Path as the user wrote it. */
  readonly file: string;
  readonly text: string;
  /** The name after `#`; null is `main`. */
  readonly workflow: string | null;
  /** Names of the variables that the run is given; null where nothing will run, and all that are required count as given. */
  readonly given: readonly string[] | null;
  readonly limits?: Limits;
}

export interface Compiled {
  /** Null where a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
}

const DRAIN_MS = 600_000;

/** The workflow that is asked for. What is wrong with others of the file does not matter to it. */
export function compileMeow({ file, text, workflow, given, limits = DEFAULT_LIMITS }: MeowInput): Compiled {
  const report = createReport(makeSource(file, text));
  const section = findSection(report, readSections(report), workflow);
  if (section === null) return { program: null, diagnostics: report.diagnostics() };
  const syntax = readWorkflow(report, section);
  checkSize(report, syntax, limits);
  const lowered = lowerWorkflow(report, syntax, new Set(given ?? []));
  checkEntry(report, syntax, given, lowered.used);
  const diagnostics = report.diagnostics();
  if (hasErrors(diagnostics)) return { program: null, diagnostics };
  const program: Program = {
    format: 1,
    source: { language: 'meow', name: `${file}#${syntax.name}` },
    entry: syntax.name,
    blocks: { [syntax.name]: lowered.block },
    cleanup: lowered.cleanup,
    limits,
    drainMs: syntax.drainMs ?? DRAIN_MS,
    onFailure: 'drain',
  };
  return { program, diagnostics };
}

/** Every workflow of the file, whoever runs it. */
export function validateMeow({ file, text }: { readonly file: string; readonly text: string }): readonly Diagnostic[] {
  const report = createReport(makeSource(file, text));
  for (const section of readSections(report)) {
    lowerWorkflow(report, readWorkflow(report, section), section.name === 'main' ? new Set() : null);
  }
  return report.diagnostics();
}

function readSections(report: Report): readonly Section[] {
  const tree = readToml(report);
  return tree === null ? [] : readModule(report, tree);
}

/** What matters only where a workflow is run by its name. */
function checkEntry(
  report: Report,
  workflow: WorkflowSyntax,
  given: readonly string[] | null,
  used: ReadonlySet<string>,
): void {
  if (workflow.internal !== null) {
    const hint = 'Remove "internal", or run a workflow that uses it.';
    report.error(
      'internal-workflow',
      workflow.internal,
      `"${workflow.name}" is internal: only its own file may use it`,
      hint,
    );
  }
  if (given === null) return;
  for (const { name, place, required, hasDefault } of workflow.variables) {
    if (hasDefault || given.includes(name) || !(required || used.has(name))) continue;
    const why = required ? 'is required' : 'has no default, is used';
    report.error(
      'missing-variable',
      place,
      `the variable "${name}" ${why}, and was not given`,
      `Pass it: --var ${name}=VALUE.`,
    );
  }
}

function checkSize(report: Report, { name, place, steps }: WorkflowSyntax, { stepsMax }: Limits): void {
  if (steps.length <= stepsMax) return;
  const message = `"${name}" has ${String(steps.length)} steps; at most ${String(stepsMax)} may be in a run`;
  report.error('too-many-steps', place, message, 'Raise max_total_steps under [limits] in .meow/config.toml.');
}

interface Lowered {
  readonly block: Block;
  readonly cleanup: Program['cleanup'];
  /** Names that it refers to. */
  readonly used: ReadonlySet<string>;
}

/** `given` are the names that the run is given; null where the workflow is not the one that is run. */
function lowerWorkflow(report: Report, workflow: WorkflowSyntax, given: ReadonlySet<string> | null): Lowered {
  const { name, variables, steps, cleanup } = workflow;
  const order = checkNeeds(report, steps);
  const declared = new Set(variables.map((variable) => variable.name));
  const used = new Set<string>();
  const base: Scope = {
    report,
    workflow: name,
    variables: declared,
    passed: given ?? new Set(),
    builtins: WORKFLOW_BUILTINS,
    steps: new Map(steps.map((step) => [step.id, step])),
    step: null,
    isFinished: () => false,
    isEntry: given !== null,
    onUse: (variable) => {
      used.add(variable);
    },
  };
  const lowered = steps.map((step) => {
    const isFinished = (id: string): boolean => order.isBefore(id, step);
    return lowerStep({ ...base, builtins: STEP_BUILTINS, step, isFinished }, step);
  });
  const block: Block = {
    name,
    parameters: lowerParameters(base, variables),
    steps: lowered.filter((step) => step !== null),
    naming: 'path',
  };
  const scripts = {
    success: lowerCleanup({ ...base, isFinished: () => true }, cleanup.success),
    failure: lowerCleanup(base, cleanup.failure),
    stop: lowerCleanup(base, cleanup.stop),
  };
  for (const passed of given ?? []) {
    if (declared.has(passed) || used.has(passed)) continue;
    const hint = suggest(passed, declared, 'Remove it, or declare it.');
    report.warning('unused-variable', workflow.place, `--var ${passed} is given, and used nowhere`, hint);
  }
  return { block, cleanup: scripts, used };
}

function lowerParameters(scope: Scope, variables: readonly VariableSyntax[]): readonly Parameter[] {
  return variables.map(({ name, type, required, fallback, description }) => ({
    name,
    type,
    required,
    fallback: fallback?.kind === 'text' ? { kind: 'text', text: lowerDefault(scope, fallback.text) } : fallback,
    description,
  }));
}

function lowerCleanup(scope: Scope, script: TomlString | null): CommandSpec<Text> | null {
  if (script === null) return null;
  return { kind: 'command', script: lowerScript(scope, script), cwd: null, env: {}, captures: [], verdict: 'success' };
}
