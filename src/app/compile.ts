// From what the user wrote after `meow run`, `validate` or `graph` to a Program, whatever the language.

import type { Diagnostic } from '../base/diagnostic.ts';
import type { Json } from '../base/json.ts';
import { UsageError } from '../base/usage-error.ts';
import { attachConductor, conductorOf } from '../ir/conductor.ts';
import type { ConductorFacts } from '../ir/conductor.ts';
import type { Follow } from '../ir/follow.ts';
import type { Program } from '../ir/program.ts';
import type { Compiled } from '../languages/meow/compile.ts';
import { compileMeow, validateMeow } from '../languages/meow/compile.ts';
import type { Config } from '../languages/config.ts';
import { compileConductor } from '../languages/conductor/compile.ts';
import type { ConductorInput } from '../languages/conductor/compile.ts';
import type { AdapterKnowledge } from '../languages/raymond/check-text.ts';
import { compileRaymond, validateRaymond } from '../languages/raymond/compile.ts';
import type { RaymondInput } from '../languages/raymond/compile.ts';
import type { Found } from '../languages/raymond/source.ts';
import type { Adapters } from './adapters.ts';
import { findPrompt, findValidator } from './conductor-source.ts';
import { foreignWorkflows } from './foreign.ts';
import type { Project } from './project.ts';
import { findOthers, readRaymond } from './raymond-source.ts';
import type { FoundWorkflow, WorkflowText } from './workflow.ts';
import { findWorkflow, NotText, readMeow, readText, searchedFolders } from './workflow.ts';

export interface CompileRequest {
  readonly project: Project;
  /** `PATH[#WORKFLOW]`, or a bare name. */
  readonly reference: string;
  /** Null: by what the path is. */
  readonly language: string | null;
  readonly config: Config;
  readonly adapters: Adapters;
  /** In place of all that workflows say. */
  readonly adapter: string | null;
}

export interface Given {
  readonly values: Readonly<Record<string, Json>>;
  /** Names of notes that the run keeps. */
  readonly meta: readonly string[];
}

export interface CompiledWorkflow extends Compiled {
  /** Absolute. */
  readonly path: string;
}

export interface Validated {
  readonly diagnostics: readonly Diagnostic[];
  /** What was found outside of the file and is no problem, a sentence each. */
  readonly notes?: readonly string[];
}

/** What is done with a workflow of one language. */
interface LanguageWays {
  compile(request: CompileRequest, found: FoundWorkflow, given: Given | null): Compiled;
  validate(request: CompileRequest, found: FoundWorkflow): Validated;
  /** For states that lead to it by its path; null: they are of the same language. */
  readonly program:
    | ((request: CompileRequest, found: FoundWorkflow) => Pick<Compiled, 'program' | 'diagnostics'>)
    | null;
}

const WAYS: Readonly<Record<FoundWorkflow['language'], LanguageWays>> = {
  meow: {
    compile: (request, found, given) => {
      const values = given?.values ?? {};
      const names = given === null ? null : Object.keys(values);
      const source = withForeign(request, readMeow(request.project, found, values));
      const adapters = meowAdapters(request, given === null);
      return compileMeow({ ...source, given: names, values, limits: request.config.limits, adapters });
    },
    validate: (request, found) => {
      const source = withForeign(request, readMeow(request.project, found, {}));
      const adapters = meowAdapters(request, true);
      // With #WORKFLOW what it would take to run that one; variables that a run would have to be given are no problem.
      if (source.workflow === null) return { diagnostics: validateMeow({ ...source, adapters }) };
      return { diagnostics: compileMeow({ ...source, adapters, given: null }).diagnostics };
    },
    program: (request, found) => {
      const source = readMeow(request.project, found, {});
      const adapters = meowAdapters(request, true);
      return compileMeow({ ...source, given: null, limits: request.config.limits, adapters });
    },
  },
  raymond: {
    compile: (request, { path }, given) => {
      const names = given === null ? [] : [...Object.keys(given.values), ...given.meta];
      const { limits } = request.config;
      const conducted: ConductorFacts[] = [];
      const compiled = compileRaymond({ ...raymondInput(request, path, conducted), given: names, limits });
      const program = compiled.program === null ? null : conducting(compiled.program, conducted);
      return { fileVariables: [], ...compiled, program };
    },
    validate: (request, { path }) => ({ diagnostics: validateRaymond(raymondInput(request, path)) }),
    program: null,
  },
  conductor: {
    compile: (request, found) => ({ fileVariables: [], ...compileConductor(conductorInput(request, found)) }),
    validate: (request, found) => compileConductor(conductorInput(request, found)),
    program: (request, found) => compileConductor(conductorInput(request, found)),
  },
};

/** `given`: null where nothing will run, and all that is required counts as given. */
export function compileWorkflow(request: CompileRequest, given: Given | null): CompiledWorkflow {
  const compile = (): CompiledWorkflow => {
    const found = locate(request);
    return { path: found.path, ...WAYS[found.language].compile(request, found, given) };
  };
  return unlessNotText(compile, ({ path, diagnostic }) => {
    return { path, program: null, fileVariables: [], diagnostics: [diagnostic] };
  });
}

/** Every problem of a file, whoever would run which part of it. */
export function validateWorkflow(request: CompileRequest): Validated {
  const validate = (): Validated => {
    const found = locate(request);
    return WAYS[found.language].validate(request, found);
  };
  return unlessNotText(validate, ({ diagnostic }) => ({ diagnostics: [diagnostic] }));
}

/** Nothing more can be said of a workflow with a file that is no text. */
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
  if (found.language === 'meow' || found.workflow === null) return found;
  throw new UsageError(
    `${found.file} has states, and no workflow ${found.workflow}`,
    'name the folder, or the file of the state to begin with',
  );
}

/** Its templates may be workflows of another language. */
function withForeign(request: CompileRequest, source: WorkflowText): WorkflowText {
  const { project } = request;
  const texts = [source.text, ...source.others.files.map(({ text }) => text)];
  const foreign = foreignWorkflows({
    cwd: project.cwd,
    folders: searchedFolders(project),
    taken: texts.flatMap((text) => [...text.matchAll(SECTION)].map(([, name = '']) => name)),
    input: (path) => ({ ...raymondInput(request, path), limits: request.config.limits }),
  });
  return { ...source, others: { ...source.others, foreign } };
}

/** The name that a table of a workflow begins with. */
const SECTION = /^[ \t]*\[+[ \t]*"?\.?([A-Za-z0-9_-]+)/gm;

/** `refuses`: adapters that cannot be used are problems of the file; a run is refused later, with what to do. */
function meowAdapters({ config, adapters, adapter }: CompileRequest, refuses: boolean) {
  return {
    forced: adapter,
    fallback: () => config.defaultAdapter ?? adapters.default(),
    ...(refuses ? { refusal: (name: string) => adapters.refusal(name) } : {}),
  };
}

function conductorInput(request: CompileRequest, { path, file }: FoundWorkflow): ConductorInput {
  const { project, config, adapters } = request;
  const { forced, fallback, refusal, canChoose } = knowledgeOf(request);
  return {
    source: { file, text: readText(path, file) },
    config: config.conductor,
    adapters: { forced, fallback, refusal, canChoose, adapterNamed: (name) => adapters.meant(name) },
    prompts: (id) => findPrompt(project, path, id),
    validators: (id) => findValidator(project, id),
    artifactsDirDefault: '.meow/run',
    limits: config.limits,
  };
}

/** `conducted`: takes the facts of Conductor workflows that states lead to. */
function raymondInput(
  request: CompileRequest,
  path: string,
  conducted: ConductorFacts[] = [],
): Omit<RaymondInput, 'given'> {
  const { project } = request;
  const source = readRaymond(project, path);
  return {
    source,
    adapters: knowledgeOf(request),
    find: findOthers(project, source, (other) => otherBlocks(request, other, conducted)),
  };
}

/** What is steered by its answers needs an agent that answers, and ends. */
function knowledgeOf({ config, adapters, adapter }: CompileRequest): AdapterKnowledge {
  const headless = (name: string) => {
    const found = adapters.named(name);
    return found.ok ? found.value.headless : null;
  };
  return {
    forced: adapter,
    fallback: config.defaultAdapter ?? adapters.default(),
    canChoose: (name, what) => {
      const ways = headless(name);
      return ways === null || (what === 'model' ? ways.modelArgs : ways.effortArgs) !== null;
    },
    refusal: (name) => {
      const refusal = adapters.refusal(name);
      if (refusal !== null || headless(name) !== null) return refusal;
      const message = `the adapter ${name} has no way to work without a terminal`;
      return { message, hint: 'Use one that has: meow adapter list.' };
    },
    canFork: (name) => {
      const ways = headless(name);
      return ways !== null && (ways.fork !== null || ways.replays === true);
    },
  };
}

/** A workflow of another language that states lead to: its blocks, by names that no other file has. */
function otherBlocks(request: CompileRequest, path: string, conducted: ConductorFacts[]): Found | null {
  const found = findWorkflow(request.project, path, null);
  const { program: compile } = WAYS[found.language];
  if (compile === null) return null;
  const { file } = found;
  const { program, diagnostics } = compile(request, found);
  if (program === null) {
    const [first] = diagnostics.filter(({ severity }) => severity === 'error');
    const message = `${file} has problems${first === undefined ? '' : `: ${first.message}`}`;
    return { kind: 'refused', message, hint: `See all of them: meow validate ${file}.` };
  }
  const facts = conductorOf(program);
  if (facts !== null) conducted.push(facts);
  const nameOf = (name: string): string => `${file}#${name}`;
  const renamed = JSON.parse(
    JSON.stringify(program.blocks, (key, value: unknown) => {
      if (key === 'block' && typeof value === 'string') return nameOf(value);
      return isStop(value) ? returning(value) : value;
    }),
  ) as typeof program.blocks;
  const blocks = Object.entries(renamed).map(([name, block]) => [nameOf(name), { ...block, name: nameOf(name) }]);
  return { kind: 'blocks', entry: nameOf(program.entry), blocks: Object.fromEntries(blocks) as typeof program.blocks };
}

type StopFollow = Extract<Follow, { kind: 'stop' }>;

function isStop(value: unknown): value is StopFollow {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'stop' && 'verdict' in value;
}

/** Where a workflow was called, its end is not that of the run: whoever called it is told how it ended. */
function returning({ verdict, reason }: StopFollow): Follow {
  const value = { verdict: verdict === 'done' ? 'success' : 'failure', reason };
  return { kind: 'return', value: { kind: 'literal', value } };
}

/** With what a run needs to know of the Conductor workflows that a part of it may be. */
function conducting(program: Program, [first, ...others]: readonly ConductorFacts[]): Program {
  if (first === undefined) return program;
  const mutates = first.mutates || others.some((facts) => facts.mutates);
  const gates = Object.assign({}, first.gates, ...others.map((facts) => facts.gates)) as ConductorFacts['gates'];
  const facts = { ...first, workflowId: program.source.name, mutates, gates };
  return { ...program, attachments: { ...program.attachments, ...attachConductor(facts) } };
}
