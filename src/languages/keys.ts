// The keys of documents, as data: their names, the shape of their values, and a sentence about each. Readers take their lists of
// known keys from these tables; `meow schema`, the editor's hover and completion, and the reference are made of them.
//
// The tables of a language are in its own folder (meow/keys.ts, and so on); languages/documents.ts lists all of them.

/** Shape of a value. It says what an editor can check; readers check the rest. */
export type Shape =
  /** `pattern`: source of a regular expression that it matches. */
  | { readonly kind: 'string'; readonly pattern?: string }
  /** A scalar of YAML that is not empty: numbers and booleans count as text. */
  | { readonly kind: 'text' }
  | { readonly kind: 'boolean' }
  /** Exactly `true`. */
  | { readonly kind: 'true' }
  | { readonly kind: 'integer'; readonly least: number; readonly most?: number }
  /** `above`: the value is greater. */
  | { readonly kind: 'number'; readonly least?: number; readonly above?: number; readonly most?: number }
  /** `90s`, `1h30m`, or a number of seconds. */
  | { readonly kind: 'duration' }
  /** A text that contains `{{…}}`. */
  | { readonly kind: 'reference' }
  /** A date with a time. */
  | { readonly kind: 'moment' }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'list'; readonly of: Shape; readonly least?: number }
  /** Names that the author chooses, each with a value of one shape. */
  | { readonly kind: 'map'; readonly of: Shape; readonly names?: string }
  /** A function, because tables contain each other. */
  | { readonly kind: 'table'; readonly table: () => Table }
  | { readonly kind: 'either'; readonly of: readonly Shape[] }
  /** A key of YAML without a value. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'any' };

export interface Key<Name extends string = string> {
  readonly name: Name;
  readonly shape: Shape;
  readonly required?: true;
  /** One sentence of reference. */
  readonly doc: string;
}

/** Keys of which one must be present. They exclude each other unless `overlap`. */
export type Choice =
  | { readonly keys: readonly string[]; readonly required: true; readonly overlap?: true }
  /** Keys that exclude each other. */
  | { readonly keys: readonly string[]; readonly required?: never };

export interface Table {
  /** Unique in its document. */
  readonly name: string;
  readonly doc: string;
  readonly keys: readonly Key[];
  /** Keys that depend on the value of one key, such as `executor`. */
  readonly variants?: { readonly key: string; readonly tables: Readonly<Record<string, Table>> };
  readonly choices?: readonly Choice[];
  /** The first key needs one of the others. */
  readonly together?: readonly (readonly [string, ...string[]])[];
  /** Value of every other key; without it, other keys are unknown. `names`: source of a regular expression. */
  readonly others?: { readonly shape: Shape; readonly names: string };
  /** At least this many keys. */
  readonly least?: number;
}

/** The names of its keys, for readers that the compiler shall check. */
export type KeyIn<T extends Table> = T['keys'][number]['name'];

export interface Document {
  readonly syntax: 'toml' | 'yaml';
  /** One sentence, for lists. */
  readonly doc: string;
  readonly root: Table;
}

export function namesOf(keys: readonly Key[]): readonly string[] {
  return keys.map(({ name }) => name);
}

/** Keys of a table for one value of its deciding key; all keys of all variants if the value is null or unknown. */
export function keysOf({ keys, variants }: Table, decided: string | null): readonly Key[] {
  if (variants === undefined) return keys;
  const chosen = Object.entries(variants.tables).find(([name]) => name === decided)?.[1];
  const more = chosen === undefined ? Object.values(variants.tables).flatMap((table) => table.keys) : chosen.keys;
  const byName = new Map([...keys, ...more].map((key) => [key.name, key]));
  return [...byName.values()];
}

/** Text of the scalar at a path of the document; null if there is none. */
export type TextAt = (path: Path) => string | null;
/** Names of keys, and numbers of items. */
export type Path = readonly (string | number)[];

/** The tables that the value at a path may be, with the keys that apply there. Empty if the path leads to no table. */
export function tablesAt(
  root: Table,
  path: Path,
  textAt: TextAt,
): readonly { readonly table: Table; readonly keys: readonly Key[] }[] {
  return shapesAt({ kind: 'table', table: () => root }, [], path, textAt).flatMap((shape) => {
    if (shape.kind !== 'table') return [];
    const table = shape.table();
    const decided = table.variants === undefined ? null : textAt([...path, table.variants.key]);
    return [{ table, keys: keysOf(table, decided) }];
  });
}

/** The key whose name is the last of the path; null if the document has no such key there. */
export function keyAt(root: Table, path: Path, textAt: TextAt): Key | null {
  const name = path.at(-1);
  const found = tablesAt(root, path.slice(0, -1), textAt).flatMap(({ keys }) =>
    keys.filter((key) => key.name === name),
  );
  return found[0] ?? null;
}

/** The words that the value at a path may be, as far as a list of them exists. */
export function wordsAt(root: Table, path: Path, textAt: TextAt): readonly string[] {
  return shapesAt({ kind: 'table', table: () => root }, [], path, textAt).flatMap((shape) => {
    if (shape.kind === 'words') return shape.words;
    if (shape.kind === 'boolean') return ['true', 'false'];
    return shape.kind === 'true' ? ['true'] : [];
  });
}

/** `at`: path of the value with that shape. */
function shapesAt(shape: Shape, at: Path, path: Path, textAt: TextAt): readonly Shape[] {
  if (shape.kind === 'either') return shape.of.flatMap((each) => shapesAt(each, at, path, textAt));
  const step = path[at.length];
  if (step === undefined) return [shape];
  const below = [...at, step];
  if (shape.kind === 'list') return typeof step === 'number' ? shapesAt(shape.of, below, path, textAt) : [];
  if (shape.kind === 'map') return shapesAt(shape.of, below, path, textAt);
  if (shape.kind !== 'table') return [];
  const table = shape.table();
  const decided = table.variants === undefined ? null : textAt([...at, table.variants.key]);
  const key = keysOf(table, decided).find(({ name }) => name === step);
  const inner = key?.shape ?? table.others?.shape;
  return inner === undefined ? [] : shapesAt(inner, below, path, textAt);
}

// Short forms for tables.

export const STRING: Shape = { kind: 'string' };
/** Not only white space. */
export const FILLED: Shape = { kind: 'string', pattern: String.raw`\S` };
export const TEXT: Shape = { kind: 'text' };
export const BOOLEAN: Shape = { kind: 'boolean' };
export const DURATION: Shape = { kind: 'duration' };
export const REFERENCE: Shape = { kind: 'reference' };
export const ANY: Shape = { kind: 'any' };
export const STRINGS: Shape = listOf(STRING);
export const TEXTS: Shape = listOf(TEXT);
/** Values of TOML that are no lists or tables. */
export const SCALAR: Shape = either(STRING, BOOLEAN, { kind: 'number' }, { kind: 'moment' });
export const ENVIRONMENT: Shape = mapOf(SCALAR, '^[A-Za-z_][A-Za-z0-9_]*$');
/** Regular expression of a duration in a text. */
export const DURATION_SOURCE = String.raw`(?:\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)`;

export function integer(least: number, most?: number): Shape {
  return { kind: 'integer', least, ...(most === undefined ? {} : { most }) };
}

/** At least that much. */
export function amount(least: number): Shape {
  return { kind: 'number', least };
}

export function words(known: readonly string[]): Shape {
  return { kind: 'words', words: known };
}

export function matching(pattern: string): Shape {
  return { kind: 'string', pattern };
}

export function listOf(of: Shape, least?: number): Shape {
  return { kind: 'list', of, ...(least === undefined ? {} : { least }) };
}

export function mapOf(of: Shape, names?: string): Shape {
  return { kind: 'map', of, ...(names === undefined ? {} : { names }) };
}

export function either(...of: readonly Shape[]): Shape {
  return { kind: 'either', of };
}

export function tableOf(table: () => Table): Shape {
  return { kind: 'table', table };
}

export function key<const Name extends string>(name: Name, shape: Shape, doc: string): Key<Name> {
  return { name, shape, doc };
}

export function needed<const Name extends string>(name: Name, shape: Shape, doc: string): Key<Name> {
  return { name, shape, required: true, doc };
}
