// Text with placeholders. A language finds them and says how values are quoted; the kernel fills them in one pass. A
// filled value is never scanned again.

import { err, mapAll, ok, type Result } from '../base/errors.ts';
import { isJsonMap, type Json } from '../base/json.ts';
import { hasReference, joinTexts } from '../base/secret-reference.ts';
import type { StoredFile } from './output.ts';
import { quote, type QuoteLayer } from './quote.ts';

export type Text = string | { readonly parts: readonly Part[] };
export type Part = string | Reference;

export interface Reference {
  /** `{{task.files.0}}` is `['task', 'files', '0']`. */
  readonly path: readonly string[];
  /** Applied from first to last, innermost context first. Empty: the value is inserted unchanged. */
  readonly quote: readonly QuoteLayer[];
}

/** A value with placeholders, for a variable of a block. A text that is one placeholder keeps the type of its value. */
export type ValueTemplate =
  | { readonly kind: 'literal'; readonly value: Json }
  | { readonly kind: 'text'; readonly text: Text }
  | { readonly kind: 'list'; readonly items: readonly ValueTemplate[] }
  | { readonly kind: 'map'; readonly entries: Readonly<Record<string, ValueTemplate>> };

/** A filled text. Parts too large for the journal stay in files, which the driver reads, and secrets stay references. */
export type FilledText = string | readonly (string | FilePiece | SecretPiece)[];

/** A value that contains references to secrets. It is quoted when they are filled in: only then its characters are known. */
export interface SecretPiece {
  readonly secret: Json;
  readonly quote: readonly QuoteLayer[];
}

export interface FilePiece extends StoredFile {
  readonly quote: readonly QuoteLayer[];
}

/** An output stored in a file. A class, so that no data from outside can imitate it and have a file read. */
export class StoredOutput {
  readonly stored: StoredFile;

  constructor(stored: StoredFile) {
    this.stored = stored;
  }
}

/** Finds the value of a reference, or says in a sentence why there is none. */
export type Lookup = (path: readonly string[]) => Result<Json | StoredOutput, string>;

export function fillText(text: Text, lookup: Lookup): Result<FilledText, string> {
  if (typeof text === 'string') return ok(text);
  const pieces = mapAll(text.parts, (part): Result<string | FilePiece | SecretPiece, string> => {
    if (typeof part === 'string') return ok(part);
    const found = lookup(part.path);
    if (!found.ok) return found;
    if (found.value instanceof StoredOutput) return ok({ ...found.value.stored, quote: part.quote });
    const { value } = found;
    const isPlain = typeof value === 'string' && part.quote.length === 0;
    if (!isPlain && containsReference(value)) return ok({ secret: value, quote: part.quote });
    const quoted = quote(plainText(value), part.quote);
    return quoted.ok ? quoted : err(`{{${part.path.join('.')}}}: ${quoted.error}`);
  });
  if (!pieces.ok) return pieces;
  return ok(pieces.value.every((piece) => typeof piece === 'string') ? joinTexts(pieces.value) : pieces.value);
}

const TOO_LARGE = 'the value is too large to be used here (over 1 MB); use it in a command or a prompt';

/** Like `fillText`, but requires a plain string: a name, a path, a duration. */
export function fillString(text: Text, lookup: Lookup): Result<string, string> {
  const filled = fillText(text, lookup);
  if (!filled.ok) return filled;
  if (typeof filled.value === 'string') return ok(filled.value);
  const pieces = filled.value.map((piece) =>
    typeof piece === 'string' ? piece : 'secret' in piece && piece.quote.length === 0 ? plainText(piece.secret) : null,
  );
  return pieces.every((piece) => piece !== null) ? ok(joinTexts(pieces)) : err(TOO_LARGE);
}

export function fillValue(template: ValueTemplate, lookup: Lookup): Result<Json, string> {
  switch (template.kind) {
    case 'literal':
      return ok(template.value);
    case 'text': {
      const only = wholeReference(template.text);
      if (only === null) return fillString(template.text, lookup);
      const found = lookup(only.path);
      if (!found.ok) return found;
      return found.value instanceof StoredOutput ? err(TOO_LARGE) : ok(found.value);
    }
    case 'list':
      return mapAll(template.items, (item) => fillValue(item, lookup));
    case 'map': {
      const entries = mapAll(Object.entries(template.entries), ([key, item]) => {
        const filled = fillValue(item, lookup);
        return filled.ok ? ok([key, filled.value] as const) : filled;
      });
      return entries.ok ? ok(Object.fromEntries(entries.value)) : entries;
    }
  }
}

/** The stored output, if the text is only a reference to one. */
export function storedOutputOf(text: Text, lookup: Lookup): StoredOutput | null {
  const only = wholeReference(text);
  const found = only === null ? null : lookup(only.path);
  return found?.ok === true && found.value instanceof StoredOutput ? found.value : null;
}

/** The text as written, with its placeholders. */
export function writtenText(text: Text): string {
  if (typeof text === 'string') return text;
  return text.parts.map((part) => (typeof part === 'string' ? part : `{{${part.path.join('.')}}}`)).join('');
}

function containsReference(value: Json): boolean {
  if (typeof value === 'string') return hasReference(value);
  if (Array.isArray(value)) return value.some(containsReference);
  return isJsonMap(value) && Object.entries(value).some(([key, item]) => hasReference(key) || containsReference(item));
}

/** Strings unchanged, everything else as JSON. */
export function plainText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function referencesIn(text: Text): readonly Reference[] {
  return typeof text === 'string' ? [] : text.parts.filter((part) => typeof part !== 'string');
}

export function referencesInValue(template: ValueTemplate): readonly Reference[] {
  switch (template.kind) {
    case 'literal':
      return [];
    case 'text':
      return referencesIn(template.text);
    case 'list':
      return template.items.flatMap(referencesInValue);
    case 'map':
      return Object.values(template.entries).flatMap(referencesInValue);
  }
}

function wholeReference(text: Text): Reference | null {
  if (typeof text === 'string' || text.parts.length !== 1) return null;
  const [only] = text.parts;
  return only === undefined || typeof only === 'string' ? null : only;
}
