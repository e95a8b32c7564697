// Input of the language, and the context for reading the steps of a workflow.

import type { Hints, Policy } from '../../ir/conductor.ts';
import type { Limits } from '../../ir/program.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import type { Entered } from '../language.ts';
import type { Report } from '../report.ts';
import type { ConductorConfig } from './config.ts';
import type { LimitsSyntax } from './limits.ts';
import type { FindPrompt, Prompts } from './prompts.ts';
import type { Outline } from './syntax.ts';

export interface ConductorInput {
  /** `file`: the path as the user wrote it. */
  readonly source: { readonly file: string; readonly text: string };
  readonly config: ConductorConfig;
  readonly adapters: ConductorAdapters;
  readonly prompts: FindPrompt;
  readonly validators: FindValidator;
  /** Enters another workflow by its path; null if there is none. */
  readonly enter: (path: string) => Entered | null;
  /** Default folder for run directories, relative to the project. */
  readonly artifactsDirDefault: string;
  readonly limits?: Limits;
}

interface ConductorAdapters extends Pick<AdapterKnowledge, 'forced' | 'fallback' | 'refusal' | 'canChoose'> {
  /** Resolves an adapter name or alias. */
  readonly adapterNamed: (name: string) => string;
}

/** The project's command for a validator, and where it was found. */
export type FindValidator = (id: string) => { readonly command: string; readonly from: string } | null;

export interface Reading extends Pick<ConductorInput, 'config' | 'adapters' | 'validators' | 'enter'> {
  readonly report: Report;
  readonly prompts: Prompts;
  readonly defaults: Defaults;
  /** Folder of run directories. */
  readonly artifactsDir: string;
  /** All steps by id. */
  readonly steps: ReadonlyMap<string, Outline>;
  /** Reports where something was found that the workflow does not name. */
  readonly note: (text: string) => void;
}

export interface Defaults {
  readonly policy: Policy | null;
  readonly limits: LimitsSyntax;
  readonly hints: Hints;
}
