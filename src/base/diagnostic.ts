// What is wrong with an author's text: where, what, and what to do about it. Data only; a face draws it.

export interface Span {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** How many characters the squiggle covers; at least 1, cut at the line's end. */
  readonly length: number;
}

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** Stable, kebab-case: `unknown-need`. */
  readonly code: string;
  readonly message: string;
  readonly span: Span;
  /** The source line under the span, without its line end; of a very long one the part around the span's beginning. */
  readonly sourceLine: string;
  /** The column that `sourceLine` begins with: 1, unless it is a part. */
  readonly sourceColumn: number;
  /** The cure, as a sentence; null where the message says it all. */
  readonly hint: string | null;
  readonly related: readonly { readonly message: string; readonly span: Span }[];
}

export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}
