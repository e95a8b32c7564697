// Compiles a workflow with all workflows that it enters, whatever their languages, and links them to one Program.

import { own } from '../base/json.ts';
import { hasErrors } from '../base/source.ts';
import { type FailedStop, linkProgram, type Part, partSymbol } from '../ir/link.ts';
import type { Program } from '../ir/program.ts';
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
import { LANGUAGES } from './registry.ts';

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
  return { ...compiled, program: compiled.program === null ? null : linkProgram(compiled.program, others.parts) };
}

export function checkWorkflow(language: Language, location: Location, around: Surroundings): Validated {
  return language.validate(language.load(around.reader, location, {}), new Parts(around).context(null, ''));
}

/** Whether the path is a workflow that others may enter. */
export function detectLanguage(reader: SourceReader, path: string, sure: 'yes' | 'maybe'): Language | null {
  if (reader.kindOf(path) === null) return null;
  const detected = LANGUAGES.map((language) => ({ language, is: language.detect(reader, path) }));
  const found = detected.find(({ is }) => is === 'yes') ?? detected.find(({ is }) => is === sure);
  return found?.language ?? null;
}

/** The entered workflows, each compiled once per way of reporting its failure. */
class Parts implements OtherWorkflows {
  readonly #around: Surroundings;
  readonly #entered = new Map<string, Entered>();
  readonly #prefixes = new Set<string>();
  parts: readonly Part[] = [];
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

  enter(path: string, workflow: string | null, failedStop: FailedStop): Entered {
    const key = JSON.stringify([this.#around.reader.realPath(path), workflow, failedStop]);
    const known = this.#entered.get(key);
    if (known !== undefined) return known;
    const symbol = partSymbol((this.#symbols += 1));
    // Workflows may enter each other in a cycle: meanwhile callers get the symbol.
    this.#entered.set(key, { kind: 'found', entry: symbol, required: [], visited: [] });
    const before = { parts: this.parts, keys: new Set(this.#entered.keys()) };
    const entered = this.#compile(path, workflow, failedStop, symbol);
    if (entered.kind === 'refused') {
      // Parts compiled meanwhile may refer to it, and are compiled again if entered from elsewhere.
      this.parts = before.parts;
      for (const later of this.#entered.keys()) if (!before.keys.has(later)) this.#entered.delete(later);
    }
    this.#entered.set(key, entered);
    return entered;
  }

  #compile(path: string, workflow: string | null, failedStop: FailedStop, symbol: string): Entered {
    const { reader } = this.#around;
    const file = reader.shown(path);
    const language = detectLanguage(reader, path, 'yes');
    if (language === null) {
      return { kind: 'refused', message: `${file} is not a workflow`, hint: 'Name a file or folder of a workflow.' };
    }
    if (workflow !== null && !language.hasSections) {
      return { kind: 'refused', message: `${file} is one workflow, without parts`, hint: `Leave out #${workflow}.` };
    }
    const source = language.load(reader, { path, file, workflow }, {});
    const { program, diagnostics } = language.compile(source, this.context(null, this.#prefixFor(path)));
    if (program === null || hasErrors(diagnostics)) {
      const [first] = diagnostics.filter(({ severity }) => severity === 'error');
      const message = `${file} has problems${first === undefined ? '' : `: ${first.message}`}`;
      return { kind: 'refused', message, hint: `See all of them: meow validate ${file}.` };
    }
    this.parts = [...this.parts, { symbol, name: file, program, failedStop }];
    return { kind: 'found', entry: symbol, required: requiredBy(program), visited: visitedBy(program) };
  }

  #prefixFor(path: string): string {
    const stem = baseName(path).replace(/(?<=.)\.[^.]*$/, '');
    const plain = stem.replaceAll(/[^A-Za-z0-9_-]/g, '_') || 'workflow';
    let name = plain;
    for (let n = 2; this.#prefixes.has(name); n += 1) name = `${plain}_${String(n)}`;
    this.#prefixes.add(name);
    return `${name}-`;
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
