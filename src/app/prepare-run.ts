// From the flags of `meow run` to a Program and a request: everything that is checked before a run exists.

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';

import { err, UsageError } from '../base/errors.ts';
import { type Json, type JsonMap, own } from '../base/json.ts';
import { secretReference } from '../base/secret-reference.ts';
import { type Diagnostic, hasErrors } from '../base/source.ts';
import { formatMoment } from '../base/time.ts';
import { readTraceparent } from '../base/trace-ids.ts';
import { SIM_SCRIPT } from '../drivers/agent/sim-host.ts';
import { Repository } from '../drivers/git/repository.ts';
import { coerce, typeError, type ValueType } from '../ir/output.ts';
import { type Permissions, PERMISSIONS } from '../ir/adapter.ts';
import { type Allowance, conductorOf, type Program, type RunRequest, UNLIMITED, withWorkplace } from '../ir/program.ts';
import { fillValue, type Lookup, type ValueTemplate } from '../ir/text.ts';
import { valueAt } from '../kernel/scope.ts';
import { checkRunId } from '../stores/errors.ts';
import { tolerate } from '../sys/errors.ts';
import type { Adapters } from './adapters.ts';
import { compileWorkflow } from './compile.ts';
import { FORCED_ADAPTER } from './enter-workflow.ts';
import { orThrow } from './errors.ts';
import { ownEnvironment, type Project } from './project.ts';
import { withoutSecrets } from './run-secrets.ts';
import { withBudgets } from './run-budgets.ts';
import { attachSources, hashOf, readText, type Settings } from './sources.ts';

export { createRun } from '../engine/client.ts';
export { claimPermissionNote, refuseAdapters, startsRealAgents } from './adapters.ts';
export type { Allowance } from '../ir/program.ts';
export type { Extra } from '../kernel/spending.ts';
export type { Fork } from '../kernel/fork.ts';

/** As it was written on the command line. */
export interface RunFlags {
  /** `PATH[#WORKFLOW]`, or a bare name. */
  readonly reference: string;
  readonly var?: readonly string[];
  readonly varJson?: readonly string[];
  readonly varEnv?: readonly string[];
  readonly meta?: readonly string[];
  readonly id?: string;
  readonly language?: string;
  readonly adapter?: string;
  readonly permissions?: string;
  readonly allowOutside?: boolean;
  readonly background?: true;
  readonly inPlace?: boolean;
  /** Nothing will run, so the repository is not looked at, and values of secrets may be missing. */
  readonly dryRun?: boolean;
  /** Values of secrets may not be missing, even in a dry run. */
  readonly requiresSecrets?: boolean;
  /** What it leaves out has its default. */
  readonly allowance: Partial<Allowance>;
  /** What a fork has from the run that it comes from; flags win. */
  readonly inherited?: InheritedVariables;
}

export interface InheritedVariables {
  /** None is the path of a file. */
  readonly values: JsonMap;
  /** Values of defaults that name the moment or the run: they stay while the default is the same. */
  readonly defaults: Readonly<Record<string, { readonly fallback: ValueTemplate; readonly value: Json }>>;
}

export interface PreparedRun {
  readonly diagnostics: readonly Diagnostic[];
  /** Null if there are errors. */
  readonly ready: { readonly program: Program; readonly request: RunRequest; readonly at: number } | null;
}

/** Throws a UsageError for flags that do not fit the workflow or its repository. */
export async function prepareRun(
  project: Project,
  settings: Settings,
  adapters: Adapters,
  flags: RunFlags,
): Promise<PreparedRun> {
  const given = readGiven(flags);
  const meta = readMeta(flags);
  const permissions =
    flags.permissions === undefined ? settings.config.permissions : readPermissions(flags.permissions);
  if (flags.id !== undefined) checkRunId(flags.id);
  const inherited = Object.entries(flags.inherited?.values ?? {}).filter(
    ([name]) => !given.texts.has(name) && !given.references.has(name),
  );
  const valuesGiven = new Map([...inherited, ...given.values]);
  const values = Object.fromEntries<Json>([...given.texts, ...valuesGiven, ...given.references]);
  const { reference, language = null, adapter = null } = flags;
  const compiled = compileWorkflow(
    { project, config: settings.config, adapters, reference, language, adapter },
    { values, meta: Object.keys(meta) },
  );
  const script = await readSimulation(compiled.path, project.cwd);
  const diagnostics = [...settings.diagnostics, ...compiled.diagnostics, ...script.diagnostics];
  if (compiled.program === null || hasErrors(diagnostics)) return { diagnostics, ready: null };
  // Stored with the run, so that simulated agents do the same after a resume.
  const attached = script.text === null ? {} : { [SIM_SCRIPT]: script.text };
  const sources = new Map(compiled.sources);
  if (script.text !== null) sources.set(script.path, hashOf(script.text));
  const forced = adapter === null ? {} : { [FORCED_ADAPTER]: adapter };
  const attachments = { ...compiled.program.attachments, ...attachSources(sources), ...attached, ...forced };
  const program = await placed({ ...compiled.program, attachments }, project.cwd, flags);
  const id = flags.id ?? randomId();
  const at = Date.now();
  const fromRun = new Set(inherited.map(([name]) => name));
  const fileVariables = compiled.fileVariables.filter(
    (name) => (!fromRun.has(name) || given.values.has(name)) && !given.references.has(name),
  );
  const withDefaults = new Map([...sameDefaults(program, flags.inherited, given), ...valuesGiven]);
  const { variables, files } = resolveVariables({ ...given, values: withDefaults }, program, {
    id,
    at,
    cwd: project.cwd,
    fileVariables,
    keeps: new Set([...withDefaults.keys()].filter((name) => !given.values.has(name))),
  });
  const request: RunRequest = {
    id,
    mark: randomLetters(8),
    // Prompts of a state machine may use the notes of their run.
    variables: program.source.language === 'raymond' ? { ...meta, ...variables } : variables,
    meta,
    cwd: project.cwd,
    allowOutside: flags.allowOutside ?? false,
    ...(flags.background === true ? { background: true } : {}),
    ...(permissions === null ? {} : { permissions }),
    folder: join(project.runs, id),
    ...traceContext(),
    allowance: { ...DEFAULT_ALLOWANCE, usd: program.budgetUsd ?? null, ...flags.allowance },
    given: { reference, variables: Object.keys(values), files, allowance: flags.allowance },
  };
  const isLimited = settings.config.money.budgets.length > 0;
  const asked = isLimited ? withBudgets(settings.config, project.runs, request) : request;
  // Values of another run have references already, and so have secret variables.
  const masked = new Set([...withDefaults.keys(), ...given.references.keys(), ...secretParameters(program)]);
  for (const name of given.values.keys()) masked.delete(name);
  const recorded = withoutSecrets(program, asked, {
    config: settings.config,
    environment: ownEnvironment(),
    masked,
    isDry: flags.dryRun === true && flags.requiresSecrets !== true,
  });
  return { diagnostics, ready: { ...recorded, at } };
}

function secretParameters({ blocks, entry }: Program): readonly string[] {
  return (blocks[entry]?.parameters ?? []).flatMap(({ name, secret }) => (secret === true ? [name] : []));
}

/** What of the caller's environment makes the run a part of a trace. */
export function traceContext(): Pick<RunRequest, 'traceparent'> {
  const { TRACEPARENT: traceparent = '' } = process.env;
  return readTraceparent(traceparent) === null ? {} : { traceparent };
}

function* sameDefaults(
  { blocks, entry }: Program,
  inherited: InheritedVariables | undefined,
  { texts }: GivenVariables,
): Generator<[string, Json]> {
  for (const { name, fallback } of blocks[entry]?.parameters ?? []) {
    const old = own(inherited?.defaults ?? {}, name);
    if (old !== undefined && !texts.has(name) && JSON.stringify(old.fallback) === JSON.stringify(fallback))
      yield [name, old.value];
  }
}

export function readPermissions(text: string): Permissions {
  const level = PERMISSIONS.find((word) => word === text);
  if (level !== undefined) return level;
  throw new UsageError(`--permissions cannot be ${JSON.stringify(text)}`, `choose one of ${PERMISSIONS.join(', ')}`);
}

export const DEFAULT_ALLOWANCE: Allowance = {
  ...UNLIMITED,
  transitions: 1_000,
  agents: Math.max(4, availableParallelism()),
};

/** The script of simulated agents, next to the workflow: `deploy.sim.toml` for `deploy.meow.toml`. */
export async function readSimulation(
  workflow: string,
  cwd: string,
): Promise<{ readonly path: string; readonly text: string | null; readonly diagnostics: readonly Diagnostic[] }> {
  const name = `${basename(workflow).replace(/(?:\.meow\.toml|\.toml|\.ya?ml|\.md|\.sh|\.zip)$/, '')}.sim.toml`;
  const path = join(dirname(workflow), name);
  const text = tolerate(['ENOENT'], null, () => readFileSync(path, 'utf8'));
  if (text === null) return { path, text, diagnostics: [] };
  const { readSimScript } = await import('../sim/script.ts');
  return { path, text, diagnostics: readSimScript(text, relative(cwd, path)).diagnostics };
}

/** With the commit that a Conductor run starts from. Refuses a repository that the run cannot work in. */
export async function placed(
  program: Program,
  cwd: string,
  flags: Pick<RunFlags, 'inPlace' | 'var' | 'varJson' | 'varEnv' | 'dryRun'>,
): Promise<Program> {
  const inPlace = flags.inPlace === true;
  const conductor = conductorOf(program);
  if (conductor === null) {
    if (inPlace) throw new UsageError('--in-place is for Conductor workflows', 'other runs work in place anyway');
    return program;
  }
  const [variable] = [...(flags.var ?? []), ...(flags.varJson ?? []), ...(flags.varEnv ?? [])];
  if (program.source.language === 'conductor' && variable !== undefined) {
    throw new UsageError(`a Conductor workflow has no variables: ${variable}`, 'keep notes with its run: --meta k=v');
  }
  if (!conductor.mutates || flags.dryRun === true) return withWorkplace(program, { base: null, inPlace });
  const repository = orThrow(await Repository.open(cwd, ownEnvironment()));
  if (inPlace) orThrow(await repository.checkClean());
  return withWorkplace(program, { base: repository.head, inPlace });
}

/** The id of a run that nobody has named. */
export function randomId(): string {
  return `wf-${randomLetters(8)}`;
}

/** A collision among 36^8 names is unlikely enough; the store refuses an id that exists. */
function randomLetters(count: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length: count }, () => letters[randomInt(letters.length)]).join('');
}

/** `--var` and `--var-json`, as written on the command line. All problems of them are reported together. */
export interface GivenVariables {
  readonly texts: ReadonlyMap<string, string>;
  readonly values: ReadonlyMap<string, Json>;
  /** References to secrets, by `--var-env`. */
  readonly references: ReadonlyMap<string, string>;
}

export function readGiven(flags: Pick<RunFlags, 'var' | 'varJson' | 'varEnv'>): GivenVariables {
  const problems: string[] = [];
  const texts = new Map(pairsOf('--var', flags.var, problems));
  const values = new Map<string, Json>();
  for (const [name, text] of pairsOf('--var-json', flags.varJson, problems)) {
    const parsed = coerce(text, 'json');
    if (parsed.ok) values.set(name, parsed.value);
    else problems.push(`--var-json ${name}: ${parsed.error}`);
  }
  for (const name of values.keys()) {
    if (texts.has(name)) problems.push(`${name} is given by --var and by --var-json`);
  }
  const references = new Map<string, string>();
  for (const [name, variable] of pairsOf('--var-env', flags.varEnv, problems)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(variable))
      problems.push(`--var-env ${name}: ${JSON.stringify(variable)} is not the name of an environment variable`);
    else if (ownEnvironment()[variable] === undefined)
      problems.push(`--var-env ${name}: there is no environment variable ${variable}`);
    else references.set(name, secretReference(variable, '', ''));
    if (texts.has(name) || values.has(name)) problems.push(`${name} is given by --var-env and by another flag`);
  }
  const isEnv = problems.some((problem) => problem.includes('--var-env'));
  refuse(problems, isEnv ? 'write --var-env NAME=VARIABLE' : 'write --var NAME=VALUE, or --var-json NAME=JSON');
  return { texts, values, references };
}

/** Only the variables that the flags name, parsed as their declared types. */
export function givenVariables(
  flags: Pick<RunFlags, 'var' | 'varJson' | 'varEnv'>,
  program: Program,
  place: Pick<RunToBe, 'cwd' | 'fileVariables'>,
): ResolvedVariables {
  const given = readGiven(flags);
  const names = new Set([...given.texts.keys(), ...given.values.keys(), ...given.references.keys()]);
  const fileVariables = place.fileVariables.filter((name) => names.has(name));
  const { variables, files } = resolveVariables(given, program, { id: '', at: 0, cwd: place.cwd, fileVariables });
  return { variables: Object.fromEntries(Object.entries(variables).filter(([name]) => names.has(name))), files };
}

export function readMeta(flags: Pick<RunFlags, 'meta'>): Readonly<Record<string, string>> {
  const problems: string[] = [];
  const meta = Object.fromEntries(pairsOf('--meta', flags.meta, problems));
  refuse(problems, 'write --meta NAME=VALUE');
  return meta;
}

/** The values of a flag, split at their first `=`. */
function* pairsOf(flag: string, texts: readonly string[] = [], problems: string[]): Generator<[string, string]> {
  for (const text of texts) {
    const at = text.indexOf('=');
    if (at > 0) yield [text.slice(0, at), text.slice(at + 1)];
    else problems.push(`${flag} ${text} has no ${at === 0 ? 'name before its "="' : '"="'}`);
  }
}

export interface RunToBe {
  readonly id: string;
  readonly at: number;
  readonly cwd: string;
  /** Variables whose value is the path of a file; they get the text of the file. */
  readonly fileVariables: readonly string[];
  /** Variables whose values are those of another run. */
  readonly keeps?: ReadonlySet<string>;
}

export interface ResolvedVariables {
  readonly variables: JsonMap;
  /** Paths of the files that were read, by variable. Absolute. */
  readonly files: Readonly<Record<string, string>>;
}

/** The variables of the run, parsed as their declared types, with defaults. */
export function resolveVariables(
  { texts, values, references }: GivenVariables,
  program: Program,
  run: RunToBe,
): ResolvedVariables {
  const parameters = program.blocks[program.entry]?.parameters ?? [];
  const typeOf = (name: string): ValueType => parameters.find((one) => one.name === name)?.type ?? 'any';
  const problems: VariableProblem[] = [];
  const resolved = new Map<string, Json>(references);
  for (const { name, secret } of parameters) {
    const flag = texts.has(name) ? '--var' : values.has(name) ? '--var-json' : null;
    if (secret !== true || flag === null || run.keeps?.has(name) === true) continue;
    const problem = `${name} is a secret, and a value on the command line can be read by others`;
    problems.push({ name, place: `${flag} ${name}`, problem: `${problem}; write --var-env ${name}=NAME` });
  }
  for (const [name, text] of texts) {
    const read = coerce(text, typeOf(name));
    if (read.ok) resolved.set(name, read.value);
    else problems.push({ name, place: `--var ${name}`, problem: read.error });
  }
  for (const [name, value] of values) {
    const problem = typeError(value, typeOf(name));
    if (problem === null) resolved.set(name, value);
    else problems.push({ name, place: `--var-json ${name}`, problem });
  }
  // A default may use earlier variables, so they are resolved in order.
  for (const { name, type, fallback } of problems.length > 0 ? [] : parameters) {
    if (resolved.has(name) || fallback === null) continue;
    const filled = fillValue(fallback, lookupIn(resolved, run));
    const value = filled.ok && typeof filled.value === 'string' ? coerce(filled.value, type) : filled;
    if (value.ok) resolved.set(name, value.value);
    else problems.push({ name, place: `the default of ${name}`, problem: value.error });
  }
  if (problems.length > 0)
    throw new WrongVariables(problems, `${program.source.name} declares its variables and their types`);
  const files: Record<string, string> = {};
  for (const name of run.fileVariables) {
    const path = resolved.get(name);
    if (typeof path !== 'string') continue;
    files[name] = resolve(run.cwd, path);
    resolved.set(name, readText(files[name], path));
  }
  return { variables: Object.fromEntries(resolved), files };
}

function lookupIn(resolved: ReadonlyMap<string, Json>, { id, at }: RunToBe): Lookup {
  const moment = formatMoment(at);
  const [date, time] = [moment.slice(0, 10), moment.slice(11, 19)];
  const builtIn = { workflow_id: id, timestamp: moment, date, time };
  return ([name = '', ...rest]) => {
    const value = resolved.get(name) ?? own<string>(builtIn, name);
    return value === undefined ? err(`{{${[name, ...rest].join('.')}}} has no value`) : valueAt(value, rest, name);
  };
}

export interface VariableProblem {
  readonly name: string;
  /** Where the value was given. */
  readonly place: string;
  readonly problem: string;
}

/** Values that variables cannot have. */
export class WrongVariables extends UsageError {
  readonly problems: readonly VariableProblem[];

  constructor(problems: readonly VariableProblem[], hint: string) {
    super(problems.map(({ place, problem }) => `${place}: ${problem}`).join('\n      '), hint);
    this.problems = problems;
  }
}

function refuse(problems: readonly string[], hint: string): void {
  if (problems.length > 0) throw new UsageError(problems.join('\n      '), hint);
}

/** Then the command line is wrong, and not the workflow. */
export function lacksOnlyVariables(diagnostics: readonly Diagnostic[]): boolean {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  return errors.length > 0 && errors.every(({ code }) => code === MISSING_VARIABLE);
}

/** Code of the diagnostic about a variable that the run must be given. */
const MISSING_VARIABLE = 'missing-variable';
