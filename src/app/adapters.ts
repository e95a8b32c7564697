// The adapters of a project: its own in `.meow/adapters/`, those of the user in `~/.meow/adapters/`, and the built-in ones.
// The first one of a name overrides the others. Each is read on demand, once.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { err, ok, present, type Result, UsageError } from '../base/errors.ts';
import { nearest } from '../base/names.ts';
import { type Diagnostic, makeSource } from '../base/source.ts';
import { READER_NAMES } from '../drivers/agent/readers/named.ts';
import { type Adapter, type Channel, channelFor, type Permissions, permitted } from '../ir/adapter.ts';
import type { Program } from '../ir/program.ts';
import type { Text } from '../ir/text.ts';
import { blocksOfTarget } from '../ir/transition.ts';
import type { AdapterRefusal } from '../languages/adapter-catalog.ts';
import { isAdapterName, readAdapter } from '../languages/adapter/read-adapter.ts';
import { createReport, listed } from '../languages/report.ts';
import { readToml } from '../languages/toml.ts';
import { ABSENT, tolerate, UNUSABLE } from '../sys/errors.ts';
import { makeFolder, writePrivate } from '../sys/files.ts';
import { InvalidWorkflow } from './errors.ts';
import type { Project } from './project.ts';
import { packageFolder, readText, shownPath } from './sources.ts';

export const ADAPTER_FILE = 'adapter.toml';

export type Origin = 'project' | 'user' | 'built in';

export interface FoundAdapter extends CheckedAdapter {
  readonly name: string;
  readonly origin: Origin;
  /** Absolute. */
  readonly folder: string;
  /** Origins of adapters with the same name that it overrides. */
  readonly shadows: readonly Origin[];
}

export class Adapters {
  readonly #project: AdapterPlaces;
  readonly #read = new Map<string, FoundAdapter | null>();

  constructor(project: AdapterPlaces) {
    this.#project = project;
  }

  /** An error is a sentence. */
  named(name: string): Result<Adapter, string> {
    const found = this.find(name);
    if (found !== null && found.adapter !== null) return ok(found.adapter);
    const { message, hint } = this.#refuse(name, found);
    return err(found === null ? `${message}. ${hint}` : message);
  }

  /** The adapter with this name or alias; the name itself if there is none. */
  meant(name: string): string {
    if (this.find(name) !== null) return name;
    return this.all().find(({ adapter }) => adapter?.alias === name)?.name ?? name;
  }

  /** Why the adapter cannot be used; null if it can. */
  refusal(name: string): AdapterRefusal | null {
    const found = this.find(name);
    return found !== null && found.adapter !== null ? null : this.#refuse(name, found);
  }

  find(name: string): FoundAdapter | null {
    const known = this.#read.get(name);
    if (known !== undefined) return known;
    const found = isAdapterName(name) ? this.#look(name) : null;
    this.#read.set(name, found);
    return found;
  }

  all(): readonly FoundAdapter[] {
    return this.#names().flatMap((name) => this.find(name) ?? []);
  }

  /** The default adapter; found without parsing all of them. */
  default(): string {
    const folder = adaptersIn(this.#project, 'built in');
    const isDefault = (name: string): boolean => /^default = true$/m.test(readFileSync(fileOf(folder, name), 'utf8'));
    return present(namesIn(folder).find(isDefault), 'no built-in adapter is the default');
  }

  #names(): readonly string[] {
    return [...new Set(ORIGINS.flatMap((origin) => namesIn(adaptersIn(this.#project, origin))))].toSorted();
  }

  #look(name: string): FoundAdapter | null {
    const has = (origin: Origin): boolean => existsSync(fileOf(adaptersIn(this.#project, origin), name));
    const [origin, ...shadows] = origins(this.#project).filter(has);
    if (origin === undefined) return null;
    const folder = join(adaptersIn(this.#project, origin), name);
    const file = shownPath(this.#project, join(folder, ADAPTER_FILE));
    return { name, origin, folder, shadows, ...checkAdapter(folder, file, name) };
  }

  #refuse(name: string, found: FoundAdapter | null): AdapterRefusal {
    if (found !== null) {
      const message = `the adapter "${name}" has an error: ${found.problem ?? ''}`;
      return { message, hint: `See it: meow adapter show ${name}.` };
    }
    const names = this.#names();
    const guess = nearest(name, names);
    const meant = guess === null ? '' : `Did you mean "${guess}"? `;
    return { message: `there is no adapter ${JSON.stringify(name)}`, hint: `${meant}Available: ${listed(names)}.` };
  }
}

/** How agents of a run are started, unless their steps say otherwise. */
export interface AgentChoices {
  readonly channel: Channel | null;
  readonly permissions: Permissions | null;
}

/** Throws if a step starts an agent whose adapter cannot be used. An adapter named by a variable is checked later. */
export function refuseAdapters(program: Program, adapters: Adapters, choices: AgentChoices): void {
  for (const step of agentSteps(program)) {
    const { id, adapter } = step;
    if (typeof adapter !== 'string') continue;
    const refusal = adapters.refusal(adapter) ?? refusedAsking(adapters.named(adapter), step, choices);
    if (refusal === null) continue;
    throw new InvalidWorkflow(`the step ${id} cannot start its agent: ${refusal.message}`, refusal.hint);
  }
}

/** Whether agents with tools of their own are started, and not only simulated ones. */
export function startsRealAgents(program: Program, adapters: Adapters): boolean {
  return agentSteps(program).some(
    ({ adapter }) => typeof adapter !== 'string' || adapters.find(adapter)?.adapter?.mailbox !== true,
  );
}

/**
 * Whether a person still has to be told what agents of this project may do: true once for each project. If that cannot be
 * recorded, the person is told again.
 */
export function claimPermissionNote({ meow, shared }: AdapterPlaces): boolean {
  const folder = join(shared, 'noted');
  const path = join(folder, `permissions-${createHash('sha256').update(meow).digest('hex').slice(0, 16)}`);
  if (existsSync(path)) return false;
  tolerate(UNUSABLE, undefined, () => {
    makeFolder(folder);
    writePrivate(path, `${meow}\n`);
  });
  return true;
}

/** `isTurn`: states and opcodes have no other channel. */
type AgentStep = Readonly<{ id: string; adapter: Text; channel: Channel | null; isTurn: boolean }>;

function agentSteps({ blocks }: Program): readonly AgentStep[] {
  const visitOf = visitsByBody(blocks);
  return Object.values(blocks).flatMap(({ name, steps }) =>
    steps.flatMap(({ id, act }): readonly AgentStep[] => {
      if (act.kind !== 'effect') return [];
      const { effect } = act;
      if (effect.kind === 'spawn') return [{ id, adapter: effect.adapter, channel: effect.channel, isTurn: false }];
      if (effect.kind !== 'turn') return [];
      return [{ id: visitOf.get(name) ?? id, adapter: effect.adapter, channel: 'headless', isTurn: true }];
    }),
  );
}

/** The steps that authors wrote, by the block that performs them. */
function visitsByBody(blocks: Program['blocks']): ReadonlyMap<string, string> {
  const visits = Object.values(blocks).filter(({ naming }) => naming === 'visit-last');
  const entries = visits.flatMap(({ steps }) =>
    steps.flatMap(({ id, act }) =>
      act.kind === 'block' ? blocksOfTarget(act.target).map((block) => [block, id] as const) : [],
    ),
  );
  return new Map(entries);
}

function refusedAsking(
  adapter: Result<Adapter, string>,
  { channel: wanted, isTurn }: AgentStep,
  { channel: fallback, permissions }: AgentChoices,
): AdapterRefusal | null {
  const channel = adapter.ok ? channelFor(adapter.value, wanted, fallback) : adapter;
  if (!adapter.ok || !channel.ok) return null;
  const allowed = permitted(adapter.value, channel.value, permissions, isTurn ? [] : undefined);
  if (allowed.ok) return null;
  return {
    message: allowed.error,
    hint: `Choose --permissions all, or another adapter${isTurn ? '' : ' or channel'}.`,
  };
}

export interface CheckedAdapter {
  /** As shown in messages. */
  readonly file: string;
  /** Null if there is a problem. */
  readonly adapter: Adapter | null;
  /** A sentence with a place. */
  readonly problem: string | null;
  readonly diagnostics: readonly Diagnostic[];
}

/** `file`: as shown in messages. `name`: the required name; null allows any. */
export function checkAdapter(folder: string, file: string, name: string | null): CheckedAdapter {
  try {
    const text = readText(join(folder, ADAPTER_FILE), file);
    const { adapter, diagnostics } = readAdapter({ file, text, readers: READER_NAMES });
    const error = diagnostics.find(({ severity }) => severity === 'error');
    if (adapter === null || error !== undefined) {
      const place = error === undefined ? file : `${file}:${error.span.line}:${error.span.column}`;
      return { file, adapter: null, problem: `${place}: ${error?.message ?? 'it is empty'}`, diagnostics };
    }
    if (name === null || adapter.name === name) return { file, adapter, problem: null, diagnostics };
    const problem = `${file}: the adapter is named "${adapter.name}", but its folder "${name}"`;
    return { file, adapter: null, problem, diagnostics };
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof InvalidWorkflow)) throw error;
    return { file, adapter: null, problem: error.message, diagnostics: [] };
  }
}

export type AdapterPlaces = Pick<Project, 'cwd' | 'meow' | 'shared'>;

const ORIGINS: readonly Origin[] = ['project', 'user', 'built in'];

/** In the home folder, the project's adapters are the user's. */
function origins({ meow, shared }: AdapterPlaces): readonly Origin[] {
  return meow === shared ? ORIGINS.slice(1) : ORIGINS;
}

/** The folder of adapters, with one subfolder each. */
export function adaptersIn({ meow, shared }: AdapterPlaces, origin: Origin): string {
  if (origin === 'built in') return builtInFolder();
  return join(origin === 'project' ? meow : shared, 'adapters');
}

function builtInFolder(): string {
  return join(packageFolder(), 'lib', 'adapters');
}

export function builtInAdapters(): readonly string[] {
  return namesIn(builtInFolder());
}

function fileOf(folder: string, name: string): string {
  return join(folder, name, ADAPTER_FILE);
}

function namesIn(folder: string): readonly string[] {
  return tolerate([...ABSENT, 'EACCES'], [], () =>
    readdirSync(folder).filter((name) => isAdapterName(name) && existsSync(fileOf(folder, name))),
  );
}

/** The keys of its file, with their sections: `ready.deadline`. */
export function keysIn({ folder, file }: FoundAdapter): ReadonlySet<string> {
  const root = readToml(createReport(makeSource(file, readText(join(folder, ADAPTER_FILE), file))));
  return new Set(
    [...(root?.entries.values() ?? [])].flatMap(({ key: section, value }) =>
      value.kind === 'table' ? [...value.entries.keys()].map((key) => `${section}.${key}`) : [],
    ),
  );
}
