// What is known of a whole workflow of opcodes beside its steps, kept with the Program so that a later life of the engine
// finds it again.

import type { Json } from '../base/json.ts';
import { isJsonMap } from '../base/json.ts';
import { assert } from '../base/assert.ts';
import type { Program } from './program.ts';

export interface ConductorFacts {
  readonly workflowId: string;
  readonly description: string;
  /** Where the run's directory is made, with the run's id as its name; seen from the project, without a slash at its end. */
  readonly artifactsDir: string;
  /** It has steps that write to the worktree, or put it back. */
  readonly mutates: boolean;
  /** The types of gates, by the ids of their steps: `requires_approval`. */
  readonly gates: Readonly<Record<string, string>>;
}

/** Where a run of it works, as was settled when the run was started. */
export interface WorkplaceFacts {
  /** The first commit; null without git. */
  readonly base: string | null;
  /** In the user's own tree, and not in one of its own. */
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

/** The name that they have among the Program's attachments. */
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
