// YAML text → Program: text → steps as syntax → their graph → a block for each. All problems of the workflow and its
// prompts are reported; a Program is made only without errors.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { ConductorFacts } from '../../ir/conductor.ts';
import { attachConductor } from '../../ir/conductor.ts';
import type { Limits, Program } from '../../ir/program.ts';
import { DEFAULT_LIMITS } from '../../ir/program.ts';
import { createReport } from '../report.ts';
import type { ConductorConfig } from './config.ts';
import { readDocument } from './document.ts';
import type { Steps } from './graph.ts';
import { checkEntry, checkGoldens, checkInputs, checkTargets } from './graph.ts';
import { lowerSteps } from './lower.ts';
import { tidyPath } from './path-problem.ts';
import { Policies } from './policies.ts';
import type { FindPrompt } from './prompts.ts';
import { Prompts } from './prompts.ts';
import type { ConductorAdapters, EnterWorkflow, FindValidator, Reading } from './reading.ts';
import { readStep } from './step.ts';
import type { Outline } from './syntax.ts';

export interface ConductorInput {
  /** `file`: the path as the user wrote it. */
  readonly source: { readonly file: string; readonly text: string };
  readonly config: ConductorConfig;
  readonly adapters: ConductorAdapters;
  readonly prompts: FindPrompt;
  readonly validators: FindValidator;
  readonly enter: EnterWorkflow;
  /** Default folder for run directories, relative to the project. */
  readonly artifactsDirDefault: string;
  readonly limits?: Limits;
}

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
  const report = createReport(makeSource(input.source.file, input.source.text));
  const document = readDocument(report);
  const prompts = new Prompts(report, input.prompts);
  const policies = new Policies(report, input.config, prompts);
  const notes = new Set<string>();
  const artifactsDir = document.artifactsDir ?? tidyPath(input.artifactsDirDefault);
  const reading: Reading = {
    report,
    config: input.config,
    adapters: input.adapters,
    prompts,
    policies,
    findValidator: input.validators,
    enter: input.enter,
    defaults: { ...document.defaults, policy: policies.at(document.defaultsMap) },
    artifactsDir,
    steps: byId(document.steps),
    note: (text) => notes.add(text),
  };
  const steps = byId(document.steps.map((outline) => readStep(reading, outline, document.id)));
  checkTargets(report, steps, document.unread);
  checkEntry(report, steps, document);
  // The inputs and outputs of unreadable steps are unknown.
  if (document.unread.size === 0) {
    checkGoldens(report, steps);
    checkInputs(report, steps);
  }
  const diagnostics = [...report.diagnostics(), ...prompts.diagnostics()];
  const mutates = [...steps.values()].some(({ opcode }) => opcode === 'RUN_AGENT' || opcode === 'ROLLBACK');
  const program =
    hasErrors(diagnostics) || document.entry === null
      ? null
      : lower(input, document.entry.text, steps, {
          workflowId: document.id,
          description: document.description,
          artifactsDir,
          mutates,
          gates: Object.fromEntries([...steps.values()].flatMap(({ id, gate }) => (gate === null ? [] : [[id, gate]]))),
        });
  return { program, diagnostics, artifactsDir, mutates, notes: [...notes] };
}

/** Of two steps with one id, the first counts. */
function byId<T extends Outline>(steps: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const step of steps) if (!map.has(step.id)) map.set(step.id, step);
  return map;
}

function lower(input: ConductorInput, entry: string, steps: Steps, facts: ConductorFacts): Program {
  return {
    format: 2,
    source: { language: 'conductor', name: input.source.file },
    entry,
    // Not by assignment, since a step may be called constructor.
    blocks: Object.fromEntries(lowerSteps(steps, entry).map((block) => [block.name, block])),
    machines: {},
    steerings: {},
    cleanup: { success: null, failure: null, stop: null },
    limits: input.limits ?? DEFAULT_LIMITS,
    drainMs: DRAIN_MS,
    onFailure: 'drain',
    attachments: attachConductor(facts),
  };
}
