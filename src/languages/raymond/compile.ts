// Compiles prompts to a Program: files → states as syntax → other workflows they refer to → machines and blocks. Every
// problem is reported; a Program is made only without errors.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import type { Limits, Program } from '../../ir/program.ts';
import { DEFAULT_LIMITS } from '../../ir/program.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import { attributesIn, checkAdapters, checkPaths, checkPlaceholders, checkSaid } from './check-text.ts';
import { checkReach, reachedStates } from './check-reach.ts';
import type { Linked } from './link.ts';
import { linkWorkflows } from './link.ts';
import { lowerWorkflow } from './lower.ts';
import type { TakenIds } from './names.ts';
import type { FindWorkflow, RaymondSource } from './source.ts';

export interface RaymondInput {
  readonly source: RaymondSource;
  /** Names of the run's variables and metadata. */
  readonly given: readonly string[];
  readonly adapters: AdapterKnowledge;
  /** Resolves paths of other workflows. */
  readonly find: FindWorkflow;
  readonly limits?: Limits;
  /** Prefix of the ids of its states, if another workflow enters it. */
  readonly idPrefix?: string;
}

export interface CompiledRaymond {
  /** Null if a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
}

const DRAIN_MS = 600_000;

/** Problems that prevent a run are errors; problems that depend on an agent's answer are warnings. */
export function compileRaymond(input: RaymondInput): CompiledRaymond {
  const { source, given, adapters, find, limits = DEFAULT_LIMITS } = input;
  const taken: TakenIds = new Set();
  const linked = linkWorkflows(source, find, taken, input.idPrefix ?? '');
  const reached = reachedStates(linked);
  const known = [...given, ...attributesIn(linked.workflows)];
  for (const workflow of linked.workflows) {
    checkPaths(workflow, 'warning');
    checkAdapters(workflow, adapters, reached);
    for (const state of workflow.states.values()) {
      if (!reached.has(state)) continue;
      checkSaid(workflow, state, 'warning');
      checkPlaceholders(state, known, true);
    }
  }
  const diagnostics = diagnosticsOf(linked);
  const start = linked.workflows[0]?.start ?? null;
  if (hasErrors(diagnostics) || start === null) return { program: null, diagnostics };
  const lowered = linked.workflows.map((workflow) => ({ workflow, ...lowerWorkflow(workflow, adapters, taken) }));
  // Not by assignment: a state may be called __proto__.
  const blocks = Object.fromEntries(
    lowered.flatMap((each) => each.blocks.map((block) => [block.name, block] as const)),
  );
  const program: Program = {
    format: 2,
    source: { language: 'raymond', name: source.name },
    entry: start.id,
    blocks,
    machines: Object.fromEntries(lowered.map(({ workflow, machine }) => [workflow.machine, machine])),
    steerings: Object.fromEntries(lowered.flatMap(({ steerings }) => Object.entries(steerings))),
    cleanup: { success: null, failure: null, stop: null },
    limits,
    drainMs: DRAIN_MS,
    onFailure: 'isolate',
    attachments: {},
  };
  return { program, diagnostics };
}

/** Checks every state, and where control can go. */
export function validateRaymond(input: Omit<RaymondInput, 'given' | 'limits'>): readonly Diagnostic[] {
  const { source, adapters, find } = input;
  const linked = linkWorkflows(source, find, new Set(), '');
  const known = attributesIn(linked.workflows);
  for (const workflow of linked.workflows) {
    checkPaths(workflow, 'error');
    checkAdapters(workflow, adapters, new Set());
    for (const state of workflow.states.values()) {
      checkSaid(workflow, state, 'error');
      checkPlaceholders(state, known, false);
    }
  }
  checkReach(linked);
  return diagnosticsOf(linked);
}

function diagnosticsOf({ reports }: Linked): readonly Diagnostic[] {
  return reports.flatMap((report) => report.diagnostics());
}
