// From what the user wrote after `meow run`, `validate` or `graph` to a Program, whatever the language.

import { UsageError } from '../base/usage-error.ts';
import type { AdapterCatalog } from '../languages/adapter-catalog.ts';
import type { Surroundings } from '../languages/compose.ts';
import { checkWorkflow, composeWorkflow } from '../languages/compose.ts';
import type { Config } from '../languages/config.ts';
import type { Compiled, Given, Validated } from '../languages/language.ts';
import type { Adapters } from './adapters.ts';
import type { Project } from './project.ts';
import { NotText, projectReader } from './sources.ts';
import type { FoundWorkflow } from './workflow.ts';
import { findWorkflow } from './workflow.ts';

export interface CompileRequest {
  readonly project: Project;
  /** `PATH[#WORKFLOW]`, or a bare name. */
  readonly reference: string;
  /** Null: by what the path is. */
  readonly language: string | null;
  readonly config: Config;
  readonly adapters: Adapters;
  /** Replaces the adapter that workflows name. */
  readonly adapter: string | null;
}

export interface CompiledWorkflow extends Compiled {
  /** Absolute. */
  readonly path: string;
}

/** `given`: null if nothing will run, and everything that is required counts as given. */
export function compileWorkflow(request: CompileRequest, given: Given | null): CompiledWorkflow {
  const compile = (): CompiledWorkflow => {
    const found = locate(request);
    return { path: found.path, ...composeWorkflow(found.language, found, surroundings(request), given) };
  };
  return unlessNotText(compile, ({ path, diagnostic }) => {
    return { path, program: null, fileVariables: [], diagnostics: [diagnostic] };
  });
}

/** Every problem of a file, whichever part of it a run would use. */
export function validateWorkflow(request: CompileRequest): Validated {
  const validate = (): Validated => {
    const found = locate(request);
    return checkWorkflow(found.language, found, surroundings(request));
  };
  return unlessNotText(validate, ({ diagnostic }) => ({ diagnostics: [diagnostic], notes: [] }));
}

/** If a file is not text, that is the only problem that can be told. */
function unlessNotText<T>(read: () => T, otherwise: (error: NotText) => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof NotText) return otherwise(error);
    throw error;
  }
}

function locate({ project, reference, language }: CompileRequest): FoundWorkflow {
  const found = findWorkflow(project, reference, language);
  if (found.language.hasSections || found.workflow === null) return found;
  throw new UsageError(`${found.file} is one workflow, without parts`, `leave out #${found.workflow}`);
}

function surroundings({ project, config, adapters, adapter }: CompileRequest): Surroundings {
  const catalog: AdapterCatalog = {
    forced: adapter,
    fallback: () => config.defaultAdapter ?? adapters.default(),
    meant: (name) => adapters.meant(name),
    named: (name) => adapters.named(name),
    refusal: (name) => adapters.refusal(name),
  };
  return { reader: projectReader(project), config, adapters: catalog };
}
