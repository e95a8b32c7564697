// Compiles a workflow with all workflows that it enters, whatever their languages, and links them to one Program.

import { err, ok, present, type Result } from '../base/errors.ts';
import { own } from '../base/json.ts';
import { hasErrors } from '../base/source.ts';
import { type FailedStop, freeName, linkedBlockNames, linkProgram, type Part, partSymbol } from '../ir/link.ts';
import { conductorOf, type Program, type ProgramPart } from '../ir/program.ts';
import type { AdapterCatalog } from './adapter-catalog.ts';
import type { Config } from './config.ts';
import type {
  CompileContext,
  Compiled,
  Entered,
  Given,
  Language,
  Location,
  OtherWorkflows,
  SourceReader,
  Validated,
} from './language.ts';
import { baseName } from './language.ts';
import { renamedOutline } from './outline.ts';
import { LANGUAGES } from './registry.ts';
import type { Symbols } from './symbols.ts';

export interface Surroundings {
  readonly reader: SourceReader;
  readonly config: Config;
  readonly adapters: AdapterCatalog;
}

export function composeWorkflow(
  language: Language,
  location: Location,
  around: Surroundings,
  given: Given | null,
): Compiled {
  const others = new Parts(around);
  const source = language.load(around.reader, location, given?.values ?? {});
  const compiled = language.compile(source, others.context(given, ''));
  const { program, outline } = compiled;
  if (program === null) return compiled;
  const outlines = [outline, ...others.parts.map((part) => part.outline)];
  return {
    ...compiled,
    program: linkProgram(program, others.parts),
    outline: () => {
      const names = linkedBlockNames(program, others.parts);
      return outlines.flatMap((each, index) => renamedOutline(each?.() ?? [], names[index] ?? ((name) => name)));
    },
  };
}

/** Compiles a workflow that a running Program enters, and links it to that Program. An error is a sentence. */
export function composePart(
  program: Program,
  from: Pick<ProgramPart, 'machine' | 'path'>,
  location: Pick<Location, 'path' | 'workflow' | 'state'>,
  around: Surroundings,
): Result<ProgramPart, string> {
  const machine = own(program.machines, from.machine);
  if (machine === undefined) return err(`the program has no machine ${from.machine}`);
  const others = new Parts(around);
  const entered = others.enter(location.path, location.workflow, 'returns', location.state);
  if (entered.kind === 'refused') return err(entered.message);
  // The state of a run has no place for the facts of another repository.
  if (others.parts.some((part) => conductorOf(part.program) !== null))
    return err(`${from.path} is a Conductor workflow, which only a written path can enter`);
  const workflows = { ...machine.workflows, [from.path]: entered.entry };
  const machines = { ...program.machines, [from.machine]: { ...machine, workflows } };
  const linked = linkProgram({ ...program, machines }, others.parts);
  const added = <T>(
    all: Readonly<Record<string, T>>,
    known: Readonly<Record<string, T>>,
  ): Readonly<Record<string, T>> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !Object.hasOwn(known, name)));
  return ok({
    ...from,
    entry: present(own(linked.machines, from.machine)?.workflows[from.path], 'a linked workflow has an entry'),
    blocks: added(linked.blocks, program.blocks),
    machines: added(linked.machines, program.machines),
    steerings: added(linked.steerings, program.steerings),
  });
}

export function checkWorkflow(language: Language, location: Location, around: Surroundings): Validated {
  return language.validate(language.load(around.reader, location, {}), new Parts(around).context(null, ''));
}

/** Null if the language has none. `agents`: names of adapters. */
export function symbolsOf(
  language: Language,
  location: Location,
  around: Surroundings,
  agents: readonly string[],
): Symbols | null {
  const source = language.load(around.reader, location, {});
  return language.symbols?.(source, new Parts(around).context(null, ''), agents) ?? null;
}

/** The language of a path. `sure`: whether a language that is only possible counts, if no other is certain. */
export function detectLanguage(reader: SourceReader, path: string, sure: 'yes' | 'maybe'): Language | null {
  if (reader.kindOf(path) === null) return null;
  let possible: Language | null = null;
  for (const language of LANGUAGES) {
    const is = language.detect(reader, path);
    if (is === 'yes') return language;
    if (is === sure) possible ??= language;
  }
  return possible;
}

/** The entered workflows, each compiled once per way of reporting its failure. */
class Parts implements OtherWorkflows {
  readonly #around: Surroundings;
  readonly #entered = new Map<string, Entered>();
  readonly #prefixes = new Set<string>();
  parts: readonly (Part & Pick<Compiled, 'outline'>)[] = [];
  #symbols = 0;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  context(given: Given | null, idPrefix: string): CompileContext {
    const { config, adapters } = this.#around;
    return { config, adapters, given, idPrefix, others: this };
  }

  languageAt(path: string): string | null {
    return detectLanguage(this.#around.reader, path, 'yes')?.name ?? null;
  }

  enter(path: string, workflow: string | null, failedStop: FailedStop, state?: string): Entered {
    const key = JSON.stringify([this.#around.reader.realPath(path), workflow, failedStop, state]);
    const known = this.#entered.get(key);
    if (known !== undefined) return known;
    const symbol = partSymbol((this.#symbols += 1));
    // Workflows may enter each other in a cycle: meanwhile callers get the symbol.
    this.#entered.set(key, { kind: 'found', entry: symbol, required: [], visited: [] });
    const before = { parts: this.parts, keys: new Set(this.#entered.keys()) };
    const entered = this.#compile({ path, workflow, ...(state === undefined ? {} : { state }) }, failedStop, symbol);
    if (entered.kind === 'refused') {
      // Parts compiled meanwhile may refer to it, and are compiled again if entered from elsewhere.
      this.parts = before.parts;
      for (const later of this.#entered.keys()) if (!before.keys.has(later)) this.#entered.delete(later);
    }
    this.#entered.set(key, entered);
    return entered;
  }

  #compile(location: Omit<Location, 'file'>, failedStop: FailedStop, symbol: string): Entered {
    const { reader } = this.#around;
    const { path, workflow } = location;
    const file = reader.shown(path);
    const language = detectLanguage(reader, path, 'yes');
    if (language === null) {
      return { kind: 'refused', message: `${file} is not a workflow`, hint: 'Name a file or folder of a workflow.' };
    }
    if (workflow !== null && !language.hasSections) {
      return { kind: 'refused', message: `${file} is one workflow, without parts`, hint: `Leave out #${workflow}.` };
    }
    const source = language.load(reader, { ...location, file }, {});
    const { program, diagnostics, outline } = language.compile(source, this.context(null, this.#prefixFor(path)));
    if (program === null || hasErrors(diagnostics)) {
      const [first] = diagnostics.filter(({ severity }) => severity === 'error');
      const message = `${file} has problems${first === undefined ? '' : `: ${first.message}`}`;
      return { kind: 'refused', message, hint: `See all of them: meow validate ${file}.` };
    }
    this.parts = [
      ...this.parts,
      { symbol, name: file, program, failedStop, ...(outline === undefined ? {} : { outline }) },
    ];
    return { kind: 'found', entry: symbol, required: requiredBy(program), visited: visitedBy(program) };
  }

  #prefixFor(path: string): string {
    const stem = baseName(path).replace(/(?<=.)\.[^.]*$/, '');
    return `${freeName(stem.replaceAll(/[^A-Za-z0-9_-]/g, '_') || 'workflow', this.#prefixes)}-`;
  }
}

function requiredBy({ blocks, entry }: Program): readonly string[] {
  const parameters = own(blocks, entry)?.parameters ?? [];
  return parameters.filter(({ required, fallback }) => required && fallback === null).map(({ name }) => name);
}

function visitedBy({ blocks }: Program): readonly string[] {
  const visited = Object.values(blocks).filter(({ naming }) => naming === 'visit-last');
  return visited.flatMap(({ steps }) => steps.map(({ id }) => id));
}
