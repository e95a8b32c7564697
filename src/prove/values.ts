// Values that nobody can know before a run: outputs of commands and agents. Each has as many values as the workflow can
// distinguish.
//
// values/1  A boolean that something reads is true or false.
// values/2  A list that a foreach iterates over has 0, 1 or 2 items.
// values/3  A name of a template is each of the possible names.
// values/4  Everything else is one placeholder of the right type and shape: if a text uses `plan.outputs.spec.title`, the
//           output `spec` is a map with a `title`.

import type { Json } from '../base/json.ts';
import type { Expectation, ValueType } from '../ir/output.ts';
import type { Program, Step } from '../ir/program.ts';
import type { Text, ValueTemplate } from '../ir/text.ts';
import type { Target } from '../ir/transition.ts';
import { outputPath, pathsIn, targetsOf } from './footprint.ts';

/** What a workflow does with a value. */
interface Use {
  readonly parts: Map<string, Use>;
  /** Use of the items, if something iterates over the value. */
  item: Use | null;
  isBoolean: boolean;
  isRead: boolean;
  type: ValueType | 'duration';
  words: readonly string[];
}

/** More combinations of outputs than these are not tried. */
const COMBINATIONS_MAX = 64;

export class Values {
  readonly #outputs = new Map<string, Use>();
  readonly #variables = new Map<string, Use>();
  /** What happens to the second value happens to the first. */
  readonly #passed: (readonly [from: Use, to: Use])[] = [];

  constructor({ blocks }: Program) {
    for (const block of Object.values(blocks)) {
      for (const { name, type } of block.parameters) if (type !== 'any') this.#variable(name).type = type;
      for (const path of pathsIn(block)) this.#at(path).isRead = true;
      for (const step of block.steps) this.#readStep(step);
    }
    // A value may be passed on several times.
    for (let round = 0; round < PASSES; round++) for (const [from, to] of this.#passed) addUses(from, to);
  }

  /** All combinations of values for these outputs of a step. */
  combinations(step: string, outputs: readonly DeclaredOutput[]): readonly Readonly<Record<string, Json>>[] {
    let all: Readonly<Record<string, Json>>[] = [{}];
    for (const { name, type, required } of outputs) {
      const use = this.#outputs.get(`${step}.${name}`) ?? NO_USE();
      // A text in place of JSON would have to be JSON itself.
      const values = valuesOf(use, type, name).map((value) =>
        type === 'json' && typeof value === 'string' ? {} : value,
      );
      const absent = required || !use.isRead ? [] : all;
      all = [...values.flatMap((value) => all.map((others) => ({ ...others, [name]: value }))), ...absent];
      if (all.length > COMBINATIONS_MAX) all = all.slice(0, COMBINATIONS_MAX);
    }
    return all;
  }

  /** Outputs that decide about a loop, although the step does not declare them. */
  undeclared(step: string, declared: readonly DeclaredOutput[]): readonly DeclaredOutput[] {
    const prefix = `${step}.`;
    return [...this.#outputs].flatMap(([key, { isBoolean }]) => {
      const name = key.slice(prefix.length);
      const isMeant = isBoolean && key.startsWith(prefix) && declared.every((one) => one.name !== name);
      return isMeant ? [{ name, type: 'any' as const, required: true }] : [];
    });
  }

  /** Lists of 0, 1 and 2 items for a foreach that reads them from a file. */
  lists(itemName: string): readonly Json[] {
    return listsOf(this.#variables.get(itemName) ?? NO_USE());
  }

  /** A value for a variable that somebody will give when the run starts. */
  variable(name: string, type: ValueType): Json {
    return valuesOf(this.#variables.get(name) ?? NO_USE(), type, name).at(-1) ?? name;
  }

  #readStep(step: Step): void {
    for (const target of targetsOf(step)) this.#readTarget(target);
    const { act } = step;
    if (step.timeout !== null) this.#mark(step.timeout, (use) => (use.type = 'duration'));
    if (act.kind === 'each') {
      if (act.items.kind === 'value') this.#iterate(act.items.value, act.itemName);
      this.#markValue(act.parallel, (use) => (use.isBoolean = true));
      if (act.width !== null) this.#markValue(act.width, (use) => (use.type = 'integer'));
    }
    if (act.kind !== 'loop') return;
    this.#markValue(act.roundsMax, (use) => (use.type = 'integer'));
    if (act.check.kind === 'output')
      this.#at([...act.check.step.split('.'), 'outputs', ...act.check.path]).isBoolean = true;
  }

  #readTarget({ block, names, variables }: Target): void {
    this.#mark(block, (use) => (use.words = Object.keys(names)));
    for (const [name, template] of Object.entries(variables)) {
      const use = this.#variable(name);
      this.#markValue(template, (from) => void this.#passed.push([from, use]));
    }
  }

  #iterate(template: ValueTemplate, itemName: string): void {
    this.#markValue(template, (use) => {
      use.item ??= NO_USE();
      this.#passed.push([use.item, this.#variable(itemName)]);
    });
  }

  #markValue(template: ValueTemplate, mark: (use: Use) => void): void {
    if (template.kind === 'text') this.#mark(template.text, mark);
  }

  /** Only a text that is one reference keeps the value. */
  #mark(text: Text, mark: (use: Use) => void): void {
    if (typeof text === 'string' || text.parts.length !== 1) return;
    const [only] = text.parts;
    if (only !== undefined && typeof only !== 'string') mark(this.#at(only.path));
  }

  #at(path: readonly string[]): Use {
    const output = outputPath(path);
    const [first = '', ...rest] = output === null ? path : output.rest;
    if (output === null) return within(this.#variable(first), rest);
    // An output of a loop is that of a step in its last round.
    const [inner, ...deeper] = rest;
    if (inner !== undefined) within(useIn(this.#outputs, `${first}.${inner}`), deeper).isRead = true;
    return within(useIn(this.#outputs, `${output.step}.${first}`), rest);
  }

  #variable(name: string): Use {
    return useIn(this.#variables, name);
  }
}

export type DeclaredOutput = Readonly<{ name: string; type: Expectation['type'] | ValueType; required: boolean }>;

const PASSES = 5;
const NO_USE = (): Use => ({ parts: new Map(), item: null, isBoolean: false, isRead: false, type: 'any', words: [] });

function useIn(uses: Map<string, Use>, name: string): Use {
  const known = uses.get(name) ?? NO_USE();
  uses.set(name, known);
  return known;
}

function within(use: Use, path: readonly string[]): Use {
  return path.reduce((now, part) => useIn(now.parts, part), use);
}

function addUses(from: Use, to: Use, depth = 0): void {
  if (depth > PASSES) return;
  from.isBoolean ||= to.isBoolean;
  from.isRead ||= to.isRead;
  if (from.type === 'any') from.type = to.type;
  if (from.words.length === 0) from.words = to.words;
  if (to.item !== null) addUses((from.item ??= NO_USE()), to.item, depth + 1);
  for (const [name, part] of to.parts) addUses(useIn(from.parts, name), part, depth + 1);
}

function valuesOf(use: Use, declared: DeclaredOutput['type'] | ValueType, name: string): readonly Json[] {
  const type = declared === 'any' || declared === 'json' ? use.type : declared;
  const asText = (value: Json): Json =>
    declared === 'json' || declared === 'boolean' ? value : typeof value === 'string' ? value : JSON.stringify(value);
  if (declared === 'boolean' ? use.isRead || use.isBoolean : use.isBoolean) return [true, false].map(asText);
  if (use.words.length > 0) return use.words;
  if (use.item !== null) return listsOf(use.item).map(asText);
  switch (type) {
    case 'boolean':
      return [asText(true)];
    case 'integer':
    case 'number':
      return declared === 'string' || declared === 'any' ? ['1'] : [1];
    case 'duration':
      return ['1h'];
    default:
      return use.parts.size === 0 ? [name] : [asText(mapOf(use, name))];
  }
}

function listsOf(item: Use): readonly Json[] {
  const items = [1, 2].map((number) => itemOf(item, `item${String(number)}`));
  return [[], items.slice(0, 1), items];
}

function itemOf(use: Use, name: string): Json {
  if (use.parts.size > 0) return mapOf(use, name);
  return valuesOf(use, use.type === 'any' || use.type === 'duration' ? 'json' : use.type, name)[0] ?? name;
}

function mapOf(use: Use, name: string): Json {
  return Object.fromEntries([...use.parts].map(([part, inner]) => [part, itemOf(inner, `${name}-${part}`)]));
}
