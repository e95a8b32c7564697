// The secrets of a run: which values they are, and the records in which they must not be (drivers/guard-secrets.ts).

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import { isKindLabel } from '../base/secret-kinds.ts';
import { referencedNames } from '../base/secret-reference.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Program, RunRequest } from '../ir/program.ts';
import type { Input } from '../kernel/input.ts';
import type { Config } from '../languages/config.ts';
import { SECRET_LENGTH_MIN } from '../sys/secret-forms.ts';
import { maskJson, maskOutputs, Secrets } from '../sys/secrets.ts';

type Variables = Readonly<Record<string, string>>;

/** `named`: variables that a run has as secrets although their names do not match. `cwd`: of the run. */
export function secretsOf(
  environment: Variables,
  config: Pick<Config, 'secretNames'>,
  run: { readonly cwd: string; readonly named: Iterable<string> },
): Secrets {
  const values = new Map(secretValues(environment, config.secretNames, run.cwd));
  const hidden = new Set<string>();
  for (const name of run.named) {
    const value = environment[name];
    if (value === undefined || values.has(name)) continue;
    values.set(name, value);
    if (value.length < SECRET_LENGTH_MIN || !isSearchable(value, run.cwd)) hidden.add(name);
  }
  return new Secrets(values, hidden);
}

/** Those variables of an environment that are secrets. `cwd`: what relative paths are relative to. */
export function secretValues(
  environment: Readonly<Record<string, string>>,
  names: readonly string[],
  cwd: string,
): ReadonlyMap<string, string> {
  const isSecret = namePattern(names);
  const found = Object.entries(environment).filter(([name, value]) => isSecret.test(name) && isSearchable(value, cwd));
  return new Map(found);
}

/** Whether a value is searched for in texts. */
function isSearchable(value: string, cwd: string): boolean {
  if (value.length < SECRET_LENGTH_MIN || value.trim().length < SECRET_LENGTH_MIN) return false;
  return value.length > PATH_LENGTH_MAX || value.includes('\0') || !existsSync(resolve(cwd, value));
}

const PATH_LENGTH_MAX = 4_096;

function namePattern(names: readonly string[]): RegExp {
  const patterns = names.map((name) =>
    name
      .split('*')
      .map((part) => part.replaceAll(/[^A-Za-z0-9_]/g, String.raw`\$&`))
      .join('.*'),
  );
  return new RegExp(`^(?:${patterns.join('|')})$`);
}

/** Names in the references of a stored run. */
export function namesIn(value: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (each: unknown): void => {
    if (typeof each === 'string') {
      for (const name of referencedNames(each)) names.add(name);
    } else if (Array.isArray(each)) {
      for (const item of each) visit(item);
    } else if (typeof each === 'object' && each !== null) {
      for (const [key, item] of Object.entries(each)) {
        visit(key);
        visit(item);
      }
    }
  };
  visit(value);
  return names;
}

/** Throws a UsageError that names the secrets of the run that the environment does not have. */
export function requireSecrets(runId: string, named: ReadonlySet<string>, environment: Variables): void {
  const missing = [...named].filter((name) => environment[name] === undefined && !isKindLabel(name));
  if (missing.length === 0) return;
  const names = missing.toSorted().join(', ');
  throw new UsageError(
    `run ${runId} needs the value of ${names}, which is not in the environment`,
    'set it and try again; for meow serve, put it into ~/.meow/env',
  );
}

/**
 * A Program and a request without secrets. `masked`: variables that have references already. Refuses secrets that are known
 * only by their kind, since steps could not have them, and references without a value, unless nothing will run.
 */
export function withoutSecrets(
  program: Program,
  request: RunRequest,
  { config, environment, masked: already, isDry = false }: RecordedPlace & { readonly masked: ReadonlySet<string> },
): { readonly program: Program; readonly request: RunRequest } {
  const named = new Set([...namesOfProgram(program), ...namesIn(request)]);
  if (!isDry) requireSecrets(request.id, named, environment);
  const secrets = secretsOf(environment, config, { cwd: request.cwd, named });
  const kinds = new Set<string>();
  secrets.onKind = (label) => void kinds.add(label);
  const masked = { ...program, ...maskedTexts(program, secrets) };
  refuseKinds(kinds, 'the workflow', 'put it into an environment variable, and use it in the workflow as $NAME');
  const { variables, meta, given } = request;
  const known = maskOutputs(variables, secrets, [...already]);
  refuseKinds(kinds, 'a variable', 'put it into an environment variable, and pass that: --var-env VARIABLE=NAME');
  // Those of a fork have references.
  const notes = Object.fromEntries(
    Object.entries(meta).map(([name, text]) => [name, secrets.mask(secrets.reveal(text))]),
  );
  const files = given === undefined ? undefined : { ...given, files: maskOutputs(given.files, secrets) };
  return {
    program: masked,
    request: { ...request, variables: known, meta: notes, ...(files === undefined ? {} : { given: files }) },
  };
}

export interface RecordedPlace {
  readonly config: Pick<Config, 'secretNames'>;
  readonly environment: Variables;
  /** Nothing will run. */
  readonly isDry?: boolean;
}

/** Without defaults of the variables of the run: the request has what counts of them. */
export function namesOfProgram(program: Program): ReadonlySet<string> {
  const { blocks, entry } = program;
  const block = blocks[entry];
  if (block === undefined) return namesIn(program);
  return namesIn({ ...program, blocks: { ...blocks, [entry]: { ...block, parameters: [] } } });
}

function refuseKinds(kinds: ReadonlySet<string>, where: string, hint: string): void {
  const [kind] = kinds;
  if (kind !== undefined) throw new UsageError(`${where} contains a secret (${kind}), which would be recorded`, hint);
}

function maskedTexts(program: Program, secrets: Secrets): Pick<Program, 'blocks' | 'cleanup'> {
  const { blocks, cleanup } = program;
  return maskTexts({ blocks, cleanup } as unknown as JsonMap, secrets, false) as unknown as Pick<
    Program,
    'blocks' | 'cleanup'
  >;
}

/** Masks texts that become values: names of blocks, steps and outputs stay. */
function maskTexts(value: Json, secrets: Secrets, isText: boolean): Json {
  if (typeof value === 'string') return isText ? secrets.mask(value) : value;
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    const masked = items.map((item) => maskTexts(item, secrets, isText));
    return masked.every((item, at) => item === items[at]) ? value : masked;
  }
  if (!isJsonMap(value)) return value;
  // A placeholder names a variable or an output.
  if (('path' in value && 'quote' in value) || value['secret'] === true) return value;
  const masked = Object.entries(value).map(([key, item]) => {
    if (LITERALS.has(key) && !isText) return [key, maskJson(item, secrets)] as const;
    return [key, maskTexts(item, secrets, isText || TEXTS.has(key))] as const;
  });
  return masked.every(([key, item]) => item === value[key]) ? value : Object.fromEntries(masked);
}

const TEXTS: ReadonlySet<string> = new Set([
  'script',
  'prompt',
  'cwd',
  'env',
  'args',
  'parts',
  'reason',
  'message',
  'text',
]);
const LITERALS: ReadonlySet<string> = new Set(['value']);

/** A run whose inputs from outside are masked. */
export function maskedRun(run: LiveRun, secrets: Secrets): LiveRun {
  return {
    id: run.id,
    state: run.state,
    get durable() {
      return run.durable;
    },
    stop: (by, force) => run.stop(by, force),
    pause: (reason) => run.pause(reason),
    submit: (input) => run.submit(maskInput(input, secrets)),
  };
}

function maskInput(input: Input, secrets: Secrets): Input {
  const mask = (text: string): string => secrets.mask(text);
  const maybe = (text: string | null): string | null => (text === null ? null : mask(text));
  switch (input.kind) {
    case 'step-reported':
      // The message handler has masked its outputs, to check them; references that are masked again are references no more.
      return { ...input, notes: maybe(input.notes) };
    case 'report-refused':
      return { ...input, reason: mask(input.reason) };
    case 'event-emitted':
      return { ...input, event: { ...input.event, data: maskOutputs(input.event.data, secrets) } };
    case 'gate-asked':
      return { ...input, prompt: maybe(input.prompt) };
    case 'gate-decided': {
      const { verdict } = input;
      return { ...input, verdict: { ...verdict, notes: maybe(verdict.notes), answer: maybe(verdict.answer) } };
    }
    case 'verdict-refused':
      return { ...input, message: mask(input.message) };
    default:
      return input;
  }
}
