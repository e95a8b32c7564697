// YAML text → Program: text → steps as syntax → their graph → a block for each. All problems of the workflow and its
// prompts are reported; a Program is made only without errors.

import { type Diagnostic, hasErrors, makeSource } from '../../base/source.ts';
import { attachConductor } from '../../ir/conductor-facts.ts';
import { DEFAULT_LIMITS, type Program } from '../../ir/program.ts';
import { createReport } from '../report.ts';
import { readDocument } from './document.ts';
import { checkGraph } from './graph.ts';
import { lowerSteps } from './lower.ts';
import { tidyPath } from './paths.ts';
import { policyAt } from './policies.ts';
import { Prompts } from './prompts.ts';
import type { ConductorInput, Reading } from './reading.ts';
import { readStep } from './step.ts';
import type { Outline } from './syntax.ts';

export interface CompiledConductor {
  /** Null if a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
  /** Without a trailing slash. */
  readonly artifactsDir: string;
  /** It has steps that write to the worktree or restore it. */
  readonly mutates: boolean;
  /** Which validators were found where, a sentence each. */
  readonly notes: readonly string[];
}

const DRAIN_MS = 600_000;

/** Reads the whole workflow, whatever a run would use: what is checked is what would run. */
export function compileConductor(input: ConductorInput): CompiledConductor {
  const { source, config, limits = DEFAULT_LIMITS } = input;
  const report = createReport(makeSource(source.file, source.text));
  const document = readDocument(report);
  const { id: workflowId, description, entry } = document;
  const prompts = new Prompts(report, input.prompts);
  const notes = new Set<string>();
  const artifactsDir = document.artifactsDir ?? tidyPath(input.artifactsDirDefault);
  const reading: Reading = {
    ...input,
    report,
    prompts,
    defaults: { ...document.defaults, policy: policyAt({ report, config, prompts }, document.defaultsMap) },
    artifactsDir,
    steps: byId(document.steps),
    note: (text) => notes.add(text),
  };
  const steps = byId(document.steps.map((outline) => readStep(reading, outline, workflowId)));
  checkGraph(report, steps, document);
  const diagnostics = [...report.diagnostics(), ...prompts.diagnostics()];
  const all = [...steps.values()];
  const mutates = all.some(({ opcode }) => opcode === 'RUN_AGENT' || opcode === 'ROLLBACK');
  const compiled = { diagnostics, artifactsDir, mutates, notes: [...notes] };
  if (hasErrors(diagnostics) || entry === null) return { program: null, ...compiled };
  const gates = Object.fromEntries(all.flatMap(({ id, gate }) => (gate === null ? [] : [[id, gate]])));
  const program: Program = {
    format: 2,
    source: { language: 'conductor', name: source.file },
    entry: entry.text,
    // Not by assignment, since a step may be called constructor.
    blocks: Object.fromEntries(lowerSteps(steps, entry.text).map((block) => [block.name, block])),
    machines: {},
    steerings: {},
    cleanup: { success: null, failure: null, stop: null },
    limits,
    drainMs: DRAIN_MS,
    onFailure: 'drain',
    attachments: attachConductor({ workflowId, description, artifactsDir, mutates, gates }),
  };
  return { program, ...compiled };
}

/** Of two steps with one id, the first counts. */
function byId<T extends Outline>(steps: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const step of steps) if (!map.has(step.id)) map.set(step.id, step);
  return map;
}
