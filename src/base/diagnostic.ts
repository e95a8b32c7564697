// Diagnostics: an error or warning in an author's text, with its position and a fix. Data only; faces render it.

export interface Span {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** Length of the underline in characters; at least 1, cut at the end of the line. */
  readonly length: number;
}

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** Stable, kebab-case: `unknown-need`. */
  readonly code: string;
  readonly message: string;
  readonly span: Span;
  /** The source line without its line end; an excerpt if it is very long. */
  readonly sourceLine: string;
  /** The column where `sourceLine` starts: 1 unless it is an excerpt. */
  readonly sourceColumn: number;
  /** How to fix it, as a sentence; null if the message is enough. */
  readonly hint: string | null;
  readonly related: readonly { readonly message: string; readonly span: Span }[];
}

export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}
