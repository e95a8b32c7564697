// Compiles prompts to a Program: files → states as syntax → other workflows they refer to → machines and blocks. Every
// problem is reported; a Program is made only without errors.

import { type Diagnostic, hasErrors } from '../../base/source.ts';
import { DEFAULT_DRAIN_MS, DEFAULT_LIMITS, type Limits, type Program } from '../../ir/program.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import type { Compiled } from '../language.ts';
import { checkReach, reachedStates } from './check-reach.ts';
import { checkHabits, checkTexts } from './check-text.ts';
import { type LinkedWorkflow, linkWorkflows, pathsIn } from './link.ts';
import { lowerWorkflow } from './lower.ts';
import type { FindWorkflow, RaymondSource, StateSyntax } from './syntax.ts';
import { outlineOf } from './outline.ts';

export interface RaymondInput {
  readonly source: RaymondSource;
  /** Names of the run's variables and metadata. */
  readonly given: readonly string[];
  readonly adapters: AdapterKnowledge;
  readonly find: FindWorkflow;
  readonly limits?: Limits;
  /** Prefix of the ids of its states, if another workflow enters it. */
  readonly idPrefix?: string;
}

export type CompiledRaymond = Pick<Compiled, 'program' | 'diagnostics' | 'outline'>;

/**
 * Problems that prevent a run are errors; problems that depend on an agent's answer are warnings, and so are those of
 * states that nothing leads to: these are left out.
 */
export function compileRaymond(input: RaymondInput): CompiledRaymond {
  const { source, given, adapters, find, limits = DEFAULT_LIMITS, idPrefix = '' } = input;
  const taken = new Set<string>();
  const linked = linkWorkflows(source, find, taken, idPrefix);
  const reached = reachedStates(linked);
  checkTexts(linked, adapters, given, reached);
  const { start = null, budget = null } = linked[0] ?? {};
  const diagnostics = diagnosticsOf(linked, reached);
  if (hasErrors(diagnostics) || start === null) return { program: null, diagnostics };
  const usable = withoutBroken(linked, reached);
  const lowered = usable.map((workflow) => ({ workflow, ...lowerWorkflow(workflow, adapters, taken) }));
  const blocks = lowered.flatMap((each) => each.blocks);
  const program: Program = {
    format: 2,
    source: { language: 'raymond', name: source.name },
    entry: start.id,
    // Not by assignment: a state may be called __proto__.
    blocks: Object.fromEntries(blocks.map((block) => [block.name, block])),
    machines: Object.fromEntries(lowered.map(({ workflow, machine }) => [workflow.machine, machine])),
    steerings: Object.fromEntries(lowered.flatMap(({ steerings }) => Object.entries(steerings))),
    cleanup: { success: null, failure: null, stop: null },
    limits,
    drainMs: DEFAULT_DRAIN_MS,
    onFailure: 'isolate',
    attachments: {},
    ...(budget === null ? {} : { budgetUsd: budget }),
  };
  return { program, diagnostics, outline: () => outlineOf(usable) };
}

/** Checks every state, and where control can go. */
export function validateRaymond(input: Pick<RaymondInput, 'source' | 'adapters' | 'find'>): readonly Diagnostic[] {
  const linked = linkWorkflows(input.source, input.find, new Set(), '');
  const reached = reachedStates(linked);
  checkTexts(linked, input.adapters, null, reached);
  checkReach(linked, reached);
  checkHabits(reached);
  return diagnosticsOf(linked, reached);
}

/** Errors of states that nothing leads to, and of workflows that only these enter, are warnings. */
function diagnosticsOf(workflows: readonly LinkedWorkflow[], reached: ReadonlySet<StateSyntax>): readonly Diagnostic[] {
  // Without a start nothing is reachable, and everything counts.
  if ((workflows[0]?.start ?? null) === null) {
    return workflows.flatMap(({ reports }) => reports.flatMap((report) => report.diagnostics()));
  }
  const entered = new Set([workflows[0]?.key]);
  for (const workflow of workflows) {
    for (const { path, state } of pathsIn(workflow)) if (reached.has(state)) entered.add(workflow.otherKeys.get(path));
  }
  return workflows.flatMap(({ key, start, states, reports }) => {
    const idle = new Set([...states.values()].filter((state) => !reached.has(state)).map(({ report }) => report));
    return reports.flatMap((report) => {
      const counts = entered.has(key) && (start === null || !idle.has(report));
      return report.diagnostics().map((each) => (counts ? each : { ...each, severity: 'warning' as const }));
    });
  });
}

/** Without states that have errors; nothing leads to these. */
function withoutBroken(
  workflows: readonly LinkedWorkflow[],
  reached: ReadonlySet<StateSyntax>,
): readonly LinkedWorkflow[] {
  const all = workflows.flatMap(({ states }) => [...states.values()]);
  const broken = new Set(all.filter((state) => !reached.has(state) && hasErrors(state.report.diagnostics())));
  if (broken.size === 0) return workflows;
  const gone = new Set([...broken].map(({ id }) => id));
  return workflows.map((workflow) => {
    const states = new Map([...workflow.states].filter(([, state]) => !broken.has(state)));
    const spellings = Object.entries(workflow.names.spellings).flatMap(([spelling, meant]) => {
      const left = meant.filter((name) => states.has(name));
      return left.length === 0 ? [] : [[spelling, left] as const];
    });
    const names = {
      states: Object.fromEntries(Object.entries(workflow.names.states).filter(([name]) => states.has(name))),
      spellings: Object.fromEntries(spellings),
    };
    const otherWorkflows = new Map([...workflow.otherWorkflows].filter(([, block]) => !gone.has(block)));
    return { ...workflow, states, names, otherWorkflows };
  });
}
