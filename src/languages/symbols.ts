// Symbols of a workflow, for editors: what it defines, where that is used, and what may be written at a position. Each
// language finds its own, in texts that somebody is still writing.

import type { Place } from '../base/source.ts';
import type { NamedStep } from './test-file/step-names.ts';

export type SymbolKind = 'workflow' | 'step' | 'variable' | 'output' | 'state' | 'file';

export interface Definition {
  readonly kind: SymbolKind;
  readonly name: string;
  readonly file: string;
  /** Position of its name; the start of the file for a symbol that is a whole file. */
  readonly place: Place;
  /** Everything that belongs to it. */
  readonly extent: Place;
  /** What a person wants to know about it, as Markdown. */
  readonly about: string;
  /** The definition that contains it; null at the top level. */
  readonly parent: Definition | null;
  /** Renaming it renames its file. */
  readonly isFile: boolean;
}

export interface Use {
  readonly file: string;
  /** The text that names it, without quotes. */
  readonly place: Place;
  /** Several if a name means one of them, as in two branches. */
  readonly to: readonly Definition[];
  /** The name as written, if it is not that of the definition: `REVIEW` for `REVIEW.md`. */
  readonly spelling: 'name' | 'stem' | 'other';
}

export interface Suggestion {
  readonly label: string;
  readonly kind: SymbolKind | 'key' | 'value';
  /** A few words beside it. */
  readonly detail: string;
}

/** What may be written at a position. */
export interface Suggestions {
  /** The text that a suggestion replaces. */
  readonly place: Place;
  readonly items: readonly Suggestion[];
  /** Whether the value needs quotes around it. */
  readonly needsQuotes: boolean;
}

export interface Symbols {
  readonly definitions: readonly Definition[];
  readonly uses: readonly Use[];
  /** Null if nothing can be suggested there. */
  readonly suggest: (file: string, offset: number) => Suggestions | null;
  /** A known key, or a word such as an opcode, that is written at a position. */
  readonly keyAt: (file: string, offset: number) => WrittenKey | null;
  /** Symbols that an id or a pattern of a test file names. `workflow`: the name after `#`. */
  readonly namedIn: (id: Pick<NamedStep, 'kind' | 'text'>, workflow: string | null) => readonly NamedPart[];
}

/** A part of an id that names a symbol: `build` in `each.*.build`. */
export interface NamedPart extends Pick<Use, 'to' | 'spelling'> {
  /** In the text of the id. */
  readonly place: Place;
}

export interface WrittenKey {
  readonly place: Place;
  /** As Markdown. */
  readonly about: string;
}

/** The text from the start of the line to the offset. */
export function lineBefore(text: string, offset: number): string {
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
}

/** Replaces the name that ends at the offset, and its rest behind it. */
export function suggestions(
  text: string,
  offset: number,
  items: readonly Suggestion[],
  { quotes = false, name = /[\w-]*$/ }: { readonly quotes?: boolean; readonly name?: RegExp } = {},
): Suggestions {
  const [before = ''] = name.exec(lineBefore(text, offset)) ?? [];
  const [after = ''] = /^[\w-]*/.exec(text.slice(offset, offset + NAME_MAX)) ?? [];
  const unique = new Map(items.map((item) => [item.label, item]));
  return {
    place: { from: offset - before.length, to: offset + after.length },
    items: [...unique.values()],
    needsQuotes: quotes && !isQuoted(lineBefore(text, offset)),
  };
}

const NAME_MAX = 200;

function isQuoted(line: string): boolean {
  return (line.match(/"/g)?.length ?? 0) % 2 === 1 || (line.match(/'/g)?.length ?? 0) % 2 === 1;
}

export function toItems(kind: Suggestion['kind'], names: Iterable<string>, detail: string = kind): Suggestion[] {
  return [...names].map((label) => ({ label, kind, detail }));
}
