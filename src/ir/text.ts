// Text with placeholders. A language finds them and says how values are quoted; the kernel fills them in one pass. A
// filled value is never scanned again.

import type { Json } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { quote } from './quote.ts';
import type { QuoteLayer } from './quote.ts';

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

/** A filled text. Parts too large for the journal stay in files, which the driver reads. */
export type FilledText = string | readonly (string | FilePiece)[];

export interface FilePiece {
  /** Relative to the run's folder. */
  readonly file: string;
  readonly quote: readonly QuoteLayer[];
}

/**
 * An output stored in a file, as found by a lookup. A class, so that no data from outside can imitate it and have a
 * file read.
 */
export class StoredOutput {
  /** Relative to the run's folder. */
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }
}

/** Finds the value of a reference, or says in a sentence why there is none. */
export type Lookup = (path: readonly string[]) => Result<Json | StoredOutput, string>;

export function fillText(text: Text, lookup: Lookup): Result<FilledText, string> {
  if (typeof text === 'string') return ok(text);
  const pieces: (string | FilePiece)[] = [];
  for (const part of text.parts) {
    if (typeof part === 'string') {
      pieces.push(part);
      continue;
    }
    const found = lookup(part.path);
    if (!found.ok) return found;
    if (found.value instanceof StoredOutput) {
      pieces.push({ file: found.value.file, quote: part.quote });
      continue;
    }
    const quoted = quote(plainText(found.value), part.quote);
    if (!quoted.ok) return err(`{{${part.path.join('.')}}}: ${quoted.error}`);
    pieces.push(quoted.value);
  }
  return ok(pieces.every((piece) => typeof piece === 'string') ? pieces.join('') : pieces);
}

const TOO_LARGE = 'the value is too large to be used here (over 1 MB); use it in a command or a prompt';

/** Like `fillText`, but requires a plain string: a name, a path, a duration. */
export function fillString(text: Text, lookup: Lookup): Result<string, string> {
  const filled = fillText(text, lookup);
  if (!filled.ok) return filled;
  if (typeof filled.value === 'string') return ok(filled.value);
  return err(TOO_LARGE);
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
    case 'list': {
      const items: Json[] = [];
      for (const item of template.items) {
        const filled = fillValue(item, lookup);
        if (!filled.ok) return filled;
        items.push(filled.value);
      }
      return ok(items);
    }
    case 'map': {
      const entries: [string, Json][] = [];
      for (const [key, item] of Object.entries(template.entries)) {
        const filled = fillValue(item, lookup);
        if (!filled.ok) return filled;
        entries.push([key, filled.value]);
      }
      return ok(Object.fromEntries(entries));
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

/** Strings unchanged, everything else as JSON. */
export function plainText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function referencesIn(text: Text): readonly Reference[] {
  return typeof text === 'string' ? [] : text.parts.filter((part) => typeof part !== 'string');
}

function wholeReference(text: Text): Reference | null {
  if (typeof text === 'string' || text.parts.length !== 1) return null;
  const [only] = text.parts;
  return only === undefined || typeof only === 'string' ? null : only;
}
