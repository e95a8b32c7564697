// YAML text → Program: text → steps as syntax → their graph → a block for each. All problems of the workflow and its
// prompts are reported; a Program is made only without errors.

import { hasErrors, makeSource } from '../../base/source.ts';
import { attachConductor, DEFAULT_DRAIN_MS, DEFAULT_LIMITS, type Program } from '../../ir/program.ts';
import type { Compiled, Validated } from '../language.ts';
import { createReport } from '../report.ts';
import { readDocument } from './document.ts';
import { tidyPath } from './fields.ts';
import { checkGraph } from './graph.ts';
import { lowerSteps } from './lower.ts';
import { policyAt } from './policies.ts';
import { Prompts } from './prompts.ts';
import { readStep } from './step.ts';
import type { ConductorInput, Outline, Reading } from './syntax.ts';
import { outlineOf } from './outline.ts';

export type CompiledConductor = Pick<Compiled, 'program' | 'diagnostics' | 'outline'> & Pick<Validated, 'notes'>;

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
  const compiled = { diagnostics, notes: [...notes] };
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
    drainMs: DEFAULT_DRAIN_MS,
    onFailure: 'drain',
    attachments: attachConductor({ workflowId, description, artifactsDir, mutates, gates }),
  };
  return { program, ...compiled, outline: () => outlineOf(report.source, steps.values()) };
}

/** If two steps have one id, the first counts. */
function byId<T extends Outline>(steps: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const step of steps) if (!map.has(step.id)) map.set(step.id, step);
  return map;
}
