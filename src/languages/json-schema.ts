// JSON Schema (draft 7) of a document, made from its table of keys. It is self-contained, and refuses unknown keys.

import type { Json, JsonMap } from '../base/json.ts';
import { type Choice, type Document, DURATION_SOURCE, type Key, type Shape, type Table } from './keys.ts';

export function schemaOf({ doc, root }: Document): JsonMap {
  const definitions = new Map<Table, JsonMap>();
  // Tables contain each other, so each is entered before its keys are read.
  const define = (table: Table): JsonMap => {
    if (!definitions.has(table)) {
      definitions.set(table, {});
      definitions.set(table, tableSchema(table, define));
    }
    return { $ref: `#/definitions/${[...definitions.keys()].indexOf(table)}` };
  };
  const { $ref } = define(root);
  const named = [...definitions.values()].map((schema, index) => [String(index), schema] as const);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    description: doc,
    allOf: [{ $ref: $ref ?? null }],
    definitions: Object.fromEntries(named),
  };
}

type Define = (table: Table) => JsonMap;

function tableSchema(table: Table, define: Define): JsonMap {
  const { variants } = table;
  if (variants === undefined) return objectSchema(table, table.keys, define);
  const cases = Object.entries(variants.tables).map(([name, variant]) => {
    const keys = [...table.keys.filter((each) => variant.keys.every((own) => own.name !== each.name)), ...variant.keys];
    const inner = objectSchema(
      { ...variant, choices: [...(table.choices ?? []), ...(variant.choices ?? [])] },
      keys,
      define,
    );
    return [name, inner] as const;
  });
  // A chain of conditions, so that an editor reports the mistakes of the chosen variant alone.
  const names = cases.map(([name]) => name);
  return {
    title: table.name,
    description: table.doc,
    type: 'object',
    required: [variants.key],
    properties: { [variants.key]: { enum: names } },
    allOf: cases.map(([name, then]) => ({
      if: { required: [variants.key], properties: { [variants.key]: { const: name } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then,
    })),
  };
}

function objectSchema(table: Table, keys: readonly Key[], define: Define): JsonMap {
  const { name, doc, choices = [], together = [], others: rest, least } = table;
  const required = keys.filter((each) => each.required === true).map((each) => each.name);
  const rules = choices.flatMap((choice) => choiceRules(choice, keys));
  return {
    title: name,
    description: doc,
    type: 'object',
    properties: Object.fromEntries(
      keys.map((each) => [each.name, { description: each.doc, ...shapeSchema(each.shape, define) }]),
    ),
    ...(required.length === 0 ? {} : { required }),
    ...(together.length === 0
      ? {}
      : { dependencies: Object.fromEntries(together.map(([one, ...others]) => [one, anyOf(others)])) }),
    ...(rules.length === 0 ? {} : { allOf: rules }),
    ...(least === undefined ? {} : { minProperties: least }),
    ...(rest === undefined ? {} : { patternProperties: otherNames(keys, rest.names, shapeSchema(rest.shape, define)) }),
    additionalProperties: false,
  };
}

function choiceRules(choice: Choice, keys: readonly Key[]): readonly JsonMap[] {
  const present = choice.keys.map((name): JsonMap => {
    const isOptional = keys.some((each) => each.name === name && acceptsNothing(each.shape));
    // A key of YAML without a value counts as absent.
    return { required: [name], ...(isOptional ? { properties: { [name]: { not: { type: 'null' } } } } : {}) };
  });
  if (choice.required === true) return [choice.overlap === true ? { anyOf: present } : { oneOf: present }];
  return present.flatMap((one, index) => present.slice(index + 1).map((other) => ({ not: { allOf: [one, other] } })));
}

function acceptsNothing(shape: Shape): boolean {
  return shape.kind === 'nothing' || (shape.kind === 'either' && shape.of.some(acceptsNothing));
}

function anyOf(keys: readonly string[]): Json {
  return keys.length === 1 ? keys : { anyOf: keys.map((each) => ({ required: [each] })) };
}

/** Names that are not keys. */
function otherNames(keys: readonly Key[], names: string, schema: JsonMap): JsonMap {
  const known = keys.map(({ name }) => name).join('|');
  return { [names.replace('^', known === '' ? '^' : `^(?!(?:${known})$)`)]: schema };
}

const DURATION_PATTERN = String.raw`^\s*${DURATION_SOURCE}\s*$`;

function shapeSchema(shape: Shape, define: Define): JsonMap {
  switch (shape.kind) {
    case 'string':
      return { type: 'string', ...(shape.pattern === undefined ? {} : { pattern: shape.pattern }) };
    case 'text':
      return { type: ['string', 'number', 'boolean'], pattern: String.raw`\S` };
    case 'boolean':
      return { type: 'boolean' };
    case 'true':
      return { const: true };
    case 'integer':
      return { type: 'integer', minimum: shape.least, ...(shape.most === undefined ? {} : { maximum: shape.most }) };
    case 'number':
      return {
        type: 'number',
        ...(shape.least === undefined ? {} : { minimum: shape.least }),
        ...(shape.above === undefined ? {} : { exclusiveMinimum: shape.above }),
        ...(shape.most === undefined ? {} : { maximum: shape.most }),
      };
    case 'duration':
      return {
        anyOf: [
          { type: 'number', minimum: 0 },
          { type: 'string', pattern: DURATION_PATTERN },
        ],
      };
    case 'reference':
      return { type: 'string', pattern: String.raw`\{\{` };
    case 'moment':
      return { type: 'string', pattern: String.raw`^\d{4}-\d\d-\d\d` };
    case 'words':
      return { enum: shape.words };
    case 'list':
      return {
        type: 'array',
        items: shapeSchema(shape.of, define),
        ...(shape.least === undefined ? {} : { minItems: shape.least }),
      };
    case 'map':
      return mapSchema(shapeSchema(shape.of, define), shape.names);
    case 'table':
      return { allOf: [define(shape.table())] };
    case 'either':
      return { anyOf: shape.of.map((each): Json => shapeSchema(each, define)) };
    case 'nothing':
      return { type: 'null' };
    case 'any':
      return {};
  }
}

function mapSchema(values: JsonMap, names: string | undefined): JsonMap {
  if (names === undefined) return { type: 'object', additionalProperties: values };
  return { type: 'object', patternProperties: { [names]: values }, additionalProperties: false };
}
