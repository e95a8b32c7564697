// The JSON Schemas that `meow schema` prints, by name.

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
