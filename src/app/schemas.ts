// The JSON Schemas that `meow schema` prints and `meow init` writes, by name, and the line by which editors find them.

import { own, type JsonMap } from '../base/json.ts';
import { DOCUMENTS } from '../languages/documents.ts';
import { schemaOf } from '../languages/json-schema.ts';

/** In the order of lists, each with a sentence about its files. */
export function schemaNames(): readonly { readonly name: string; readonly doc: string }[] {
  return Object.entries(DOCUMENTS).map(([name, { doc }]) => ({ name, doc }));
}

/** Undefined if no schema has that name. */
export function schemaNamed(name: string): JsonMap | undefined {
  const document = own(DOCUMENTS, name);
  return document === undefined ? undefined : schemaOf(document);
}

/** Text of the file of a schema. */
export function schemaText(schema: JsonMap): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** First line of a document, by which editors find its schema. `location`: relative to the document. */
export function schemaLine(name: string, location: string): string {
  return own(DOCUMENTS, name)?.syntax === 'yaml'
    ? `# yaml-language-server: $schema=${location}\n`
    : `#:schema ${location}\n`;
}
