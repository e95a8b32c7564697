// Context for reading the steps of a workflow.

import type { Policy } from '../../ir/conducted.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import type { Entered } from '../language.ts';
import type { Report } from '../report.ts';
import type { YamlScalar } from '../yaml-tree.ts';
import type { ConductorConfig } from './config.ts';
import type { LimitsSyntax } from './limits.ts';
import type { Policies } from './policies.ts';
import type { Prompts } from './prompts.ts';
import type { Outline } from './syntax.ts';

export interface ConductorAdapters extends Pick<AdapterKnowledge, 'forced' | 'fallback' | 'refusal' | 'canChoose'> {
  /** Resolves an adapter name or alias. */
  readonly adapterNamed: (name: string) => string;
}

/** The project's command for a validator, and where it was found. */
export type FindValidator = (id: string) => { readonly command: string; readonly from: string } | null;

/** Enters another workflow by its path; null if there is none. */
export type EnterWorkflow = (path: string) => Entered | null;

export interface Reading {
  readonly report: Report;
  readonly config: ConductorConfig;
  readonly adapters: ConductorAdapters;
  readonly prompts: Prompts;
  readonly policies: Policies;
  readonly findValidator: FindValidator;
  readonly enter: EnterWorkflow;
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
  readonly componentKind: string | null;
  readonly evalProfile: string | null;
}

/** The adapter of the key `agent`; problems are reported. */
export function adapterFor({ report, adapters }: Reading, agent: YamlScalar | null, { place }: Outline): string {
  const said = agent === null ? adapters.fallback : adapters.adapterNamed(agent.text);
  const adapter = adapters.forced ?? said;
  const refusal = adapters.refusal(adapter);
  if (refusal !== null) report.error('adapter-unavailable', agent?.place ?? place, refusal.message, refusal.hint);
  return adapter;
}

/** The model; null leaves the choice to the adapter. */
export function modelFor({ report, adapters }: Reading, model: YamlScalar | null, adapter: string): string | null {
  if (model === null) return null;
  if (adapters.refusal(adapter) === null && !adapters.canChoose(adapter, 'model')) {
    const message = `the adapter "${adapter}" has no way to choose a model`;
    const hint = 'Remove "model", or give the adapter model_args in its [headless].';
    report.error('cannot-choose', model.place, message, hint);
  }
  return model.text;
}
