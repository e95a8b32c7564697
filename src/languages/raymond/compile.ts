// Prompts → Program. The way: files → states as syntax → the other workflows that they lead to → machines and blocks.
// Every problem is reported; a Program is made only where none of them is an error.

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
  /** Names of variables and metadata that the run is given. */
  readonly given: readonly string[];
  readonly adapters: AdapterKnowledge;
  /** How paths of other workflows are followed. */
  readonly find: FindWorkflow;
  readonly limits?: Limits;
  /** Stands before the ids of its states, where another workflow enters it. */
  readonly idPrefix?: string;
}

export interface CompiledRaymond {
  /** Null where a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
}

const DRAIN_MS = 600_000;

/** What stands in the way of a run is an error; what an agent would have to say first is a warning. */
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

/** Every state, whoever enters it, and where control can go. */
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
