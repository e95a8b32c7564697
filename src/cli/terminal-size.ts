// How large a terminal is. One that does not know (the pseudo-terminals of CI and of containers say 0 × 0) counts as 80 × 24.

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export function terminalSize(terminal: Partial<TerminalSize>): TerminalSize {
  return { columns: terminal.columns || 80, rows: terminal.rows || 24 };
}

/** How wide lines may be: no limit where they do not go to a terminal. */
export function lineWidth(stream: Partial<TerminalSize> & { readonly isTTY?: boolean }): number {
  return stream.isTTY === true ? terminalSize(stream).columns : Infinity;
}
