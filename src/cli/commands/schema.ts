// `meow schema`: the JSON Schema of a kind of document, for editors.

import { schemaNamed, schemaNames, schemaText } from '../../app/schemas.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { EXIT, print, printLine } from '../output.ts';

/** Without a name, lists the names. */
export function schema(name: string | undefined): number {
  if (name === undefined) for (const line of namedLines()) printLine(line);
  else print(schemaText(schemaNamed(name) ?? refuse(name)));
  return EXIT.done;
}

function refuse(name: string): never {
  const names = schemaNames().map((each) => each.name);
  const head = `${didYouMean(name, names)}the schemas are:`;
  const lines = namedLines().map((line) => `    ${line}`);
  throw new UsageError(`unknown schema ${JSON.stringify(name)}`, [head, ...lines].join('\n'));
}

function namedLines(): readonly string[] {
  const width = Math.max(...schemaNames().map(({ name }) => name.length));
  return schemaNames().map(({ name, doc }) => `${name.padEnd(width)}  ${doc}`);
}
