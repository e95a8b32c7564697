// Facts about a whole Conductor workflow, stored with the Program for later engines.

import { assert } from '../base/errors.ts';
import { isJsonMap, type Json } from '../base/json.ts';
import type { Program } from './program.ts';

export interface ConductorFacts {
  readonly workflowId: string;
  readonly description: string;
  /** Folder of run directories, each named after its run; relative to the project, without a trailing slash. */
  readonly artifactsDir: string;
  /** It has steps that write to the worktree or restore it. */
  readonly mutates: boolean;
  /** Types of gates by step id: `requires_approval`. */
  readonly gates: Readonly<Record<string, string>>;
}

/** Where a run works, determined at its start. */
export interface WorkplaceFacts {
  /** The first commit; null without git. */
  readonly base: string | null;
  /** In the user's own tree instead of a worktree. */
  readonly inPlace: boolean;
}

const WORKPLACE = 'workplace';

export function withWorkplace(program: Program, facts: WorkplaceFacts): Program {
  return { ...program, attachments: { ...program.attachments, [WORKPLACE]: JSON.stringify(facts) } };
}

export function workplaceOf({ attachments }: Program): WorkplaceFacts {
  const text = attachments[WORKPLACE];
  return text === undefined ? { base: null, inPlace: false } : (JSON.parse(text) as WorkplaceFacts);
}

/** Name among the Program's attachments. */
const ATTACHMENT = 'conductor';

export function attachConductor(facts: ConductorFacts): Program['attachments'] {
  return { [ATTACHMENT]: JSON.stringify(facts) };
}

/** Null if the Program comes from another language. */
export function conductorOf({ attachments }: Program): ConductorFacts | null {
  const text = attachments[ATTACHMENT];
  if (text === undefined) return null;
  const facts = JSON.parse(text) as Json;
  assert(isJsonMap(facts), 'the facts of a workflow are no map');
  return facts as unknown as ConductorFacts;
}
